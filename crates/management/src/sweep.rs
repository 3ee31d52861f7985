//! What was installed, found by its labels whatever its kind and name.

use capstan_api::names::label;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    api::{DeleteParams, DynamicObject, Preconditions},
    core::ObjectMeta,
};
use serde_json::Value;

use crate::{Kind, ManagementCluster, ObjectRef, ServerError, error};

/// How many lists are under way at a time.
const AT_ONCE: usize = 16;
/// Kinds that are never part of a release: controllers make them, in masses, some with the labels of what they are made
/// from.
const DERIVED: [(&str, &str); 8] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("", "Node"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("storage.k8s.io", "CSINode"),
];

/// An object that was installed.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its kind.
    pub kind: Kind,
    /// What names it.
    pub id: ObjectRef,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What else it says, where that was asked for.
    pub content: Option<Value>,
}

impl Component {
    /// The value of one of its labels.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// The label of the provider that it was installed for.
    pub fn provider(&self) -> Option<&str> {
        self.label(label::PROVIDER)
    }

    /// Whether it is made from another object, bears its labels, and comes and goes with that one.
    pub fn is_made_from_another(&self) -> bool {
        self.metadata.owner_references.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// Deletes it. What is gone already is no matter, and what has come by its name since is not ours to delete.
    pub async fn delete(&self, cluster: &ManagementCluster) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: self.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        let api = cluster.objects(&self.kind, self.id.namespace.as_deref());
        match api.delete(&self.id.name, &params).await {
            Err(error) if !error::is_not_found(&error) && !error::is_about_uid(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The selector of everything that was installed for a provider.
pub fn selector_of(provider: &str) -> String {
    format!("{}=,{}={provider}", label::CLUSTERCTL, label::PROVIDER)
}

/// Everything that a selector matches, in all namespaces: one list a kind, many at a time.
pub async fn sweep(cluster: &ManagementCluster, selector: &str) -> Result<Vec<Component>, ServerError> {
    sweep_kinds(cluster, selector, |_| true).await
}

/// The same among some of the kinds.
pub async fn sweep_kinds(
    cluster: &ManagementCluster,
    selector: &str,
    fits: impl Fn(&Kind) -> bool,
) -> Result<Vec<Component>, ServerError> {
    let list = async |kind: &Kind| {
        let found = cluster.list_metadata(kind, None, selector).await?;
        Ok(found.into_iter().map(|it| component(kind, it.metadata)).collect())
    };
    each_kind(cluster, fits, list).await
}

/// The same, with everything that the objects say.
pub async fn sweep_whole(
    cluster: &ManagementCluster,
    selector: &str,
    fits: impl Fn(&Kind) -> bool,
) -> Result<Vec<Component>, ServerError> {
    let list = async |kind: &Kind| {
        let found = cluster.list(kind, None, selector).await?;
        let whole = |it: DynamicObject| Component { content: Some(it.data), ..component(kind, it.metadata) };
        Ok(found.into_iter().map(whole).collect())
    };
    each_kind(cluster, fits, list).await
}

async fn each_kind(
    cluster: &ManagementCluster,
    fits: impl Fn(&Kind) -> bool,
    list: impl AsyncFn(&Kind) -> Result<Vec<Component>, ServerError>,
) -> Result<Vec<Component>, ServerError> {
    let is_meant = |it: &&Kind| it.is_managed && !is_derived(it) && fits(it);
    let kinds = cluster.kinds().await?.preferred().filter(is_meant);
    let lists = kinds.map(|kind| list(kind));
    let mut found = stream::iter(lists).buffer_unordered(AT_ONCE).try_concat().await?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

fn is_derived(kind: &Kind) -> bool {
    DERIVED.contains(&(kind.resource.group.as_str(), kind.resource.kind.as_str()))
}

/// The component of that kind and metadata.
pub fn component(kind: &Kind, metadata: ObjectMeta) -> Component {
    let id = ObjectRef {
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    Component { kind: kind.clone(), id, metadata, content: None }
}
