//! The kinds that an API server serves.

use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{ApiCapabilities, ApiResource, Discovery, Scope, verbs},
};
use serde_json::Value;

use crate::{ObjectRef, crd::Crd};

/// One kind in one version.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether its objects can be listed and deleted.
    pub is_managed: bool,
    /// Whether this is the preferred version of the kind.
    pub is_preferred: bool,
}

impl Kind {
    /// A well-known kind whose objects are in namespaces.
    pub fn namespaced(group: &str, version: &str, kind: &str) -> Self {
        Self::well_known(group, version, kind, true)
    }

    /// A well-known kind whose objects are not in namespaces.
    pub fn cluster_scoped(group: &str, version: &str, kind: &str) -> Self {
        Self::well_known(group, version, kind, false)
    }

    /// The kind Deployment.
    pub fn deployment() -> Self {
        Self::namespaced("apps", "v1", "Deployment")
    }

    /// The reference to an object of this kind; to all of them if the name is empty.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef::new(&self.resource.api_version, &self.resource.kind, namespace, name)
    }

    fn well_known(group: &str, version: &str, kind: &str, is_namespaced: bool) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Self { resource, is_namespaced, is_managed: true, is_preferred: true }
    }
}

/// The kinds of a server.
#[derive(Clone, Debug, Default)]
pub struct Kinds(Vec<Kind>);

impl FromIterator<Kind> for Kinds {
    fn from_iter<T: IntoIterator<Item = Kind>>(kinds: T) -> Self {
        Self(kinds.into_iter().collect())
    }
}

impl Kinds {
    /// Discovers them: two requests, or one for each group and version on old servers.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let discovery = match Discovery::new(client.clone()).run_aggregated().await {
            Ok(discovery) => discovery,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 406) => {
                Discovery::new(client.clone()).run().await?
            }
            Err(error) => return Err(error),
        };
        let mut kinds: Vec<Kind> = Vec::new();
        for group in discovery.groups() {
            let preferred = group.preferred_version_or_latest();
            let others = group.versions().filter(|it| *it != preferred);
            let begin = kinds.len();
            for version in [preferred].into_iter().chain(others) {
                for (resource, can) in group.versioned_resources(version) {
                    // A kind may be missing from the version that its group prefers.
                    let is_preferred = !kinds[begin..].iter().any(|it| it.resource.kind == resource.kind);
                    kinds.push(kind(resource, &can, is_preferred));
                }
            }
        }
        Ok(Self(kinds))
    }

    /// The kind of that group, version and name.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.0.iter().find(|it| it.resource.api_version == api_version && it.resource.kind == kind)
    }

    /// The kind of an object.
    pub fn of(&self, object: &Value) -> Option<&Kind> {
        self.find(object["apiVersion"].as_str()?, object["kind"].as_str()?)
    }

    /// Every kind in every version.
    pub fn all(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter()
    }

    /// Every kind once, in its preferred version.
    pub fn preferred(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter().filter(|it| it.is_preferred)
    }

    /// A kind of a group in any version, the preferred one first.
    pub fn any_version(&self, group: &str, kind: &str) -> Option<&Kind> {
        let mut found = self.0.iter().filter(|it| it.resource.group == group && it.resource.kind == kind);
        found.clone().find(|it| it.is_preferred).or_else(|| found.next())
    }

    /// A kind of a group in all its versions, the preferred one first.
    pub fn versions(&self, group: &str, kind: &str) -> Vec<&Kind> {
        let is_meant = |it: &&Kind| it.resource.group == group && it.resource.kind == kind;
        let mut found: Vec<&Kind> = self.0.iter().filter(is_meant).collect();
        found.sort_by_key(|it| !it.is_preferred);
        found
    }

    /// The kind that a CRD of that name defines.
    pub fn defined_by(&self, crd: &str) -> Option<&Kind> {
        let (plural, group) = crd.split_once('.')?;
        self.preferred().find(|it| it.resource.plural == plural && it.resource.group == group)
    }

    /// Adds what the CRDs among objects define.
    pub fn learn_all<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        for crd in objects.into_iter().filter_map(Crd::of) {
            self.add(crd);
        }
    }

    /// Adds what a CRD defines. The server serves it once the CRD is established.
    pub fn learn(&mut self, crd: &Value) {
        self.add(Crd::new(crd));
    }

    fn add(&mut self, crd: Crd<'_>) {
        for version in crd.served_versions() {
            let mut kind = crd.kind_in(version);
            if self.find(&kind.resource.api_version, crd.kind()).is_none() {
                kind.is_preferred &= self.any_version(crd.group(), crd.kind()).is_none();
                self.0.push(kind);
            }
        }
    }
}

fn kind(resource: ApiResource, can: &ApiCapabilities, is_preferred: bool) -> Kind {
    Kind {
        resource,
        is_namespaced: can.scope == Scope::Namespaced,
        is_managed: can.supports_operation(verbs::LIST) && can.supports_operation(verbs::DELETE),
        is_preferred,
    }
}
