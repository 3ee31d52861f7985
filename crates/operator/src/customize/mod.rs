//! Changes of a release's objects that a provider's spec asks for: flags, containers, replicas and placement.
//!
//! Everything here is a function over values. The objects are those of a rendered release; the order in which the spec
//! lists containers and flags does not matter, and customizing twice is the same as customizing once.

mod containers;
mod error;
mod feature_gates;
mod flags;
mod images;
mod manager;

use std::collections::BTreeMap;

use capstan_api::names::SHARED_NAMESPACE;
use capstan_api::operator::{DeploymentSpec, ProviderSpec};
use serde_json::{Map, Value};

pub use error::{ArgProblem, CustomizeError, DeploymentContainers};

use containers::ContainerChanges;
use manager::ManagerChanges;

/// What the contract calls the container with the controllers in it.
const MANAGER: &str = "manager";
/// The lists of containers in a Pod's spec.
const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// Changes the rendered objects of a release as a provider's spec asks.
///
/// `spec.deployment` and `spec.manager` apply to the release's Deployment; where it has several, to those of controller
/// managers. An error leaves all objects as they were.
pub fn customize(objects: &mut [Value], spec: &ProviderSpec) -> Result<(), CustomizeError> {
    let changes = Changes::read(spec)?;
    if changes.is_empty() {
        return Ok(());
    }
    let selected = select(objects)?;
    let mut problems = Vec::new();
    let mut changed: Vec<(usize, Value)> = selected.into_iter().map(|at| (at, objects[at].clone())).collect();
    problems.extend(changes.unknown_containers(&changed));
    for (_, deployment) in &mut changed {
        changes.apply(deployment, &mut problems);
    }
    CustomizeError::from_all(problems)?;
    for (at, deployment) in changed {
        objects[at] = deployment;
    }
    Ok(())
}

/// The names of the Deployments among rendered objects that a spec applies to.
pub fn customized(objects: &[Value]) -> Vec<String> {
    let places = select(objects).unwrap_or_default();
    places.into_iter().map(|at| metadata(&objects[at], "name").to_owned()).collect()
}

/// The places of the Deployments that a spec applies to; never none. What instances of the provider share serves others
/// as well, and is left alone where there is a choice.
fn select(objects: &[Value]) -> Result<Vec<usize>, CustomizeError> {
    let all = || objects.iter().enumerate().filter(|(_, object)| is_deployment(object));
    let own: Vec<_> = all().filter(|(_, object)| metadata(object, "namespace") != SHARED_NAMESPACE).collect();
    let candidates = if own.is_empty() { all().collect() } else { own };
    let choose = |is_chosen: fn(&Value) -> bool| -> Vec<usize> {
        candidates.iter().filter(|(_, object)| is_chosen(object)).map(|(at, _)| *at).collect()
    };
    let selected = match candidates.as_slice() {
        [only] => vec![only.0],
        _ => Some(choose(has_manager_name))
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| choose(has_manager_container)),
    };
    if selected.is_empty() {
        let deployments = candidates.iter().map(|(_, object)| id(object)).collect();
        return Err(CustomizeError::NoManagerDeployment { deployments });
    }
    Ok(selected)
}

fn is_deployment(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "Deployment" && text("apiVersion").starts_with("apps/")
}

fn has_manager_name(deployment: &Value) -> bool {
    let name = metadata(deployment, "name");
    name.starts_with("ca") && name.ends_with("-controller-manager")
}

fn has_manager_container(deployment: &Value) -> bool {
    names_of(deployment, "containers").any(|name| name == MANAGER)
}

/// The names in one of the lists of containers of a Deployment.
fn names_of<'a>(deployment: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let pod = deployment.pointer("/spec/template/spec").and_then(Value::as_object);
    pod.into_iter().flat_map(move |it| names_in(it, list))
}

/// The names in one of the lists of containers of a Pod's spec.
fn names_in<'a>(pod: &'a Map<String, Value>, list: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let containers = pod.get(list).and_then(Value::as_array);
    containers.into_iter().flatten().map(|it| it.get("name").and_then(Value::as_str).unwrap_or_default())
}

fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// The namespace and name of an object, for messages.
fn id(object: &Value) -> String {
    match (metadata(object, "namespace"), metadata(object, "name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// What a spec asks for.
struct Changes<'a> {
    deployment: Option<&'a DeploymentSpec>,
    containers: BTreeMap<&'a str, ContainerChanges<'a>>,
    manager: ManagerChanges<'a>,
}

impl<'a> Changes<'a> {
    fn read(spec: &'a ProviderSpec) -> Result<Self, CustomizeError> {
        let mut problems = Vec::new();
        let mut listed: Vec<_> = spec.deployment.iter().flat_map(|it| &it.containers).collect();
        // Problems come in the same order, whatever the order of containers.
        listed.sort_by_key(|it| it.name.as_str());
        let mut containers = BTreeMap::new();
        for container in listed {
            let changes = ContainerChanges::read(container, &mut problems);
            if containers.insert(container.name.as_str(), changes).is_some() {
                problems.push(CustomizeError::DuplicateContainer { container: container.name.clone() });
            }
        }
        let manager =
            spec.manager.as_ref().map(|it| ManagerChanges::read(it, &mut problems)).unwrap_or_default();
        CustomizeError::from_all(problems)?;
        Ok(Self { deployment: spec.deployment.as_ref(), containers, manager })
    }

    fn is_empty(&self) -> bool {
        let changes_pods = self.deployment.is_some_and(|it| {
            it.replicas.is_some()
                || it.node_selector.is_some()
                || it.tolerations.is_some()
                || it.affinity.is_some()
        });
        !changes_pods && self.containers.is_empty() && self.manager.is_empty()
    }

    /// A container must be in one of the Deployments, not in all: what a sidecar needs does not depend on how many
    /// Deployments the release has.
    fn unknown_containers(&self, deployments: &[(usize, Value)]) -> Option<CustomizeError> {
        let deployments: Vec<_> = deployments
            .iter()
            .map(|(_, it)| DeploymentContainers {
                deployment: id(it),
                containers: CONTAINER_LISTS
                    .iter()
                    .flat_map(|list| names_of(it, list))
                    .map(str::to_owned)
                    .collect(),
            })
            .collect();
        let is_known = |name: &str| deployments.iter().any(|it| it.containers.iter().any(|it| it == name));
        let unknown = self.containers.keys().filter(|name| !is_known(name));
        let containers: Vec<String> = unknown.map(|&name| name.to_owned()).collect();
        (!containers.is_empty()).then_some(CustomizeError::UnknownContainers { containers, deployments })
    }

    fn apply(&self, deployment: &mut Value, problems: &mut Vec<CustomizeError>) {
        let id = id(deployment);
        let malformed = |field| CustomizeError::Malformed { deployment: id.clone(), field };
        if let Some(replicas) = self.deployment.and_then(|it| it.replicas)
            && let Some(spec) = deployment.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.insert("replicas".to_owned(), Value::from(replicas));
        }
        let Some(pod) = deployment.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) else {
            problems.push(malformed("spec.template.spec"));
            return;
        };
        if let Some(changes) = self.deployment {
            set_placement(pod, changes);
        }
        if !self.manager.is_empty() && names_in(pod, "containers").next().is_none() {
            problems.push(malformed("spec.template.spec.containers"));
        }
        for list in CONTAINER_LISTS {
            let Some(containers) = pod.get_mut(list).and_then(Value::as_array_mut) else { continue };
            let has_manager = list == "containers" && !self.manager.is_empty();
            let manager_place = has_manager.then(|| manager_place(containers));
            for (at, container) in containers.iter_mut().enumerate() {
                let Some(container) = container.as_object_mut() else { continue };
                let own = self.containers.get(containers::name(container));
                let manager = (manager_place == Some(at)).then_some(&self.manager);
                if own.is_some() || manager.is_some() {
                    containers::apply(container, own, manager, &id, problems);
                }
            }
        }
    }
}

/// The place of the controller manager's container: the one with its name, else the first.
fn manager_place(containers: &[Value]) -> usize {
    let is_manager = |it: &Value| it.get("name").and_then(Value::as_str) == Some(MANAGER);
    containers.iter().position(is_manager).unwrap_or_default()
}

/// Replaces where Pods run. An empty list or map removes the field: the API server does not store it, so that writing
/// it would look like drift.
fn set_placement(pod: &mut Map<String, Value>, changes: &DeploymentSpec) {
    let selector = changes.node_selector.as_ref().map(|labels| {
        Value::Object(
            labels.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect(),
        )
    });
    let tolerations = changes.tolerations.clone().map(Value::Array);
    for (field, value) in [("nodeSelector", selector), ("tolerations", tolerations)] {
        match value {
            None => {}
            Some(Value::Object(map)) if map.is_empty() => drop(pod.remove(field)),
            Some(Value::Array(list)) if list.is_empty() => drop(pod.remove(field)),
            Some(value) => drop(pod.insert(field.to_owned(), value)),
        }
    }
    if let Some(affinity) = &changes.affinity {
        pod.insert("affinity".to_owned(), affinity.clone());
    }
}
