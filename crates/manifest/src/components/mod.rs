//! Rendering a provider's components for a management cluster.
//!
//! Images are replaced, objects moved to the target namespace, cluster-wide roles prefixed with its name, the
//! manager's `--namespace` set, and all objects labelled and sorted.

mod rbac;
mod watching;
mod workloads;

use capstan_api::names::label;
use serde_json::Value;

use crate::images::Overrides;
use crate::namespaces::Destination;
use crate::objects::{self, Object, ObjectError, ObjectId, Problem};
use crate::scope::Scopes;
use crate::typed::describe;

pub use capstan_api::names::SHARED_NAMESPACE;

/// What is to be made of a file.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The provider's label, e.g. `infrastructure-aws`.
    pub label: &'a str,
    /// Where the components go; without it, to the file's own Namespace.
    pub target_namespace: Option<&'a str>,
    /// The only namespace that the manager looks at; without it, whatever the file says.
    pub watching_namespace: Option<&'a str>,
    /// Whether ClusterRoles and ClusterRoleBindings get the target namespace as a prefix.
    pub rbac_prefix: bool,
    /// What is replaced in images.
    pub images: &'a Overrides,
}

/// A provider's components, ready to be printed or installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    /// The target namespace.
    pub target_namespace: String,
    /// The images of their workloads, in order; one that is used twice is listed twice.
    pub images: Vec<String>,
    objects: Vec<Value>,
}

impl Components {
    /// All objects, in the order in which to print and to install them.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// All objects, to be changed further.
    pub fn into_objects(self) -> Vec<Value> {
        self.objects
    }

    /// The components after a change to their objects.
    pub fn alter<E>(mut self, change: impl FnOnce(&mut Vec<Value>) -> Result<(), E>) -> Result<Self, E> {
        change(&mut self.objects)?;
        Ok(self)
    }
}

/// Why a components file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentsError {
    /// No target namespace is given.
    #[error("there is no Namespace among the components, so that a target namespace must be given")]
    NoTargetNamespace,
    /// The file says twice where they go.
    #[error("there must be one Namespace among the components, but there are two: {:?} and {:?}", first.name, second.name)]
    TwoNamespaces {
        /// The first Namespace.
        first: Box<ObjectId>,
        /// The second Namespace.
        second: Box<ObjectId>,
    },
    /// The target is the namespace of shared objects.
    #[error(
        "components cannot go to namespace {SHARED_NAMESPACE}, which is for what instances of a provider share"
    )]
    SharedTarget,
    /// No container takes the namespace to watch.
    #[error("cannot watch only namespace {namespace}: no Deployment has a container named \"manager\"")]
    NoManager {
        /// The namespace.
        namespace: String,
    },
    /// A prefix makes two objects one.
    #[error("{object} cannot be renamed to {name}, which exists already")]
    NameTaken {
        /// What is to be renamed.
        object: Box<ObjectId>,
        /// Its new name.
        name: String,
    },
    /// One object is wrong.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl ComponentsError {
    /// The document that is to blame, if one is.
    pub fn document(&self) -> Option<usize> {
        match self {
            Self::NoTargetNamespace | Self::SharedTarget | Self::NoManager { .. } => None,
            Self::TwoNamespaces { second: object, .. }
            | Self::NameTaken { object, .. }
            | Self::Object(ObjectError { object, .. }) => Some(object.document),
        }
    }
}

/// Makes a provider's components of its file's documents, parsed after variables have been replaced.
///
/// Where the options leave roles and the manager alone, the objects written one after the other are what clusterctl
/// prints, byte by byte, but for the differences that [`crate::typed`] and the rules of namespaces name.
pub fn render(documents: Vec<Value>, options: &Options<'_>) -> Result<Components, ComponentsError> {
    let mut objects = objects::read(documents)?;
    let images = workloads::replace_images(&mut objects, options.images, options.label)?;
    let target = target_namespace(&mut objects, options.target_namespace)?;

    let scopes = Scopes::of(&objects);
    add_shared_namespace(&mut objects, &scopes);
    let is_shared: Vec<bool> = objects.iter().map(|object| is_shared(object, &scopes)).collect();
    let destination = Destination { target: &target, kept: Some(SHARED_NAMESPACE), scopes: &scopes };
    objects.iter_mut().try_for_each(|object| destination.take_in(object))?;
    if options.rbac_prefix {
        rbac::prefix(&mut objects, &target)?;
    }
    if let Some(namespace) = options.watching_namespace.filter(|it| !it.is_empty()) {
        // What all instances share serves all namespaces.
        let own = objects.iter_mut().zip(&is_shared).filter(|(_, is_shared)| !**is_shared);
        watching::restrict(own.map(|(object, _)| object), namespace)?;
    }
    let is_in_order = objects.iter().all(Object::is_labelled);
    objects.iter_mut().try_for_each(|object| add_labels(object, options.label))?;

    Ok(Components { target_namespace: target, images, objects: in_order(objects, is_in_order) })
}

/// The images that a file's workloads need, after overrides.
pub fn images(
    documents: &[Value],
    overrides: &Overrides,
    label: &str,
) -> Result<Vec<String>, ComponentsError> {
    let is_wanted = |value: &&Value| {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        text("kind") == "List" || workloads::is_workload(group, text("kind"))
    };
    // Documents keep their places, for errors.
    let workloads = documents.iter().map(|value| Some(value).filter(is_wanted).cloned().unwrap_or_default());
    Ok(workloads::replace_images(&mut objects::read(workloads.collect())?, overrides, label)?)
}

/// The namespace that the components go to, which is one of the objects afterwards.
fn target_namespace(objects: &mut Vec<Object>, wanted: Option<&str>) -> Result<String, ComponentsError> {
    let mut own = objects.iter().filter(|it| it.is_namespace() && it.name() != SHARED_NAMESPACE);
    let first = own.next();
    if let (Some(first), Some(second)) = (first, own.next()) {
        return Err(ComponentsError::TwoNamespaces {
            first: Box::new(first.id()),
            second: Box::new(second.id()),
        });
    }
    let default = first.map(Object::name);
    let is_named = |name: &&str| !name.is_empty();
    let target =
        wanted.filter(is_named).or(default.filter(is_named)).ok_or(ComponentsError::NoTargetNamespace)?;
    if target == SHARED_NAMESPACE {
        return Err(ComponentsError::SharedTarget);
    }
    let (target, is_there) = (target.to_owned(), first.is_some());
    if !is_there {
        objects.push(Object::namespace(objects.len(), &target));
    }
    Ok(target)
}

/// Adds the namespace of shared objects where the file has such objects, but not their namespace: the contract allows
/// one Namespace in a release, and that is the default target.
fn add_shared_namespace(objects: &mut Vec<Object>, scopes: &Scopes) {
    let is_there = objects.iter().any(|it| it.is_namespace() && it.name() == SHARED_NAMESPACE);
    let is_needed = objects.iter().any(|it| lives_in_shared_namespace(it, scopes));
    if is_needed && !is_there {
        objects.push(Object::namespace(objects.len(), SHARED_NAMESPACE));
    }
}

fn lives_in_shared_namespace(object: &Object, scopes: &Scopes) -> bool {
    scopes.is_namespaced(object) && object.namespace_name() == SHARED_NAMESPACE
}

fn is_shared(object: &Object, scopes: &Scopes) -> bool {
    object.is("apiextensions.k8s.io", "CustomResourceDefinition")
        || object.is("admissionregistration.k8s.io", "MutatingWebhookConfiguration")
        || object.is("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
        || object.is_namespace() && object.name() == SHARED_NAMESPACE
        || lives_in_shared_namespace(object, scopes)
}

/// Labels an object as one of the provider's. Upstream drops all labels where one of them is no string; an API
/// server would refuse it, so that it is an error here.
fn add_labels(object: &mut Object, provider: &str) -> Result<(), ObjectError> {
    let labels = object.labels()?;
    let wrong = labels.iter().find(|(_, value)| !value.is_string());
    if let Some((label, value)) = wrong {
        let problem = Problem::Label { label: label.clone(), found: describe(value) };
        return Err(object.error(problem));
    }
    labels.insert(label::CLUSTERCTL.to_owned(), Value::from(""));
    labels.insert(label::PROVIDER.to_owned(), Value::from(provider));
    Ok(())
}

/// Namespaces first, then what cert-manager turns into certificates before anything waits for them.
///
/// The latter come in reverse, which has no meaning but is what clusterctl's sort amounts to. What was rendered before
/// keeps its order, so that rendering twice is the same as rendering once.
fn in_order(objects: Vec<Object>, is_in_order: bool) -> Vec<Value> {
    let (namespaces, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(Object::is_namespace);
    let (mut certificates, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|object| object.group() == "cert-manager.io");
    if !is_in_order {
        certificates.reverse();
    }
    let ordered = namespaces.into_iter().chain(certificates).chain(others);
    ordered.map(|object| Value::Object(object.content)).collect()
}
