//! What was installed, found by its labels whatever its kind and name.

use capstan_api::names::label;
use futures::{StreamExt, TryStreamExt, stream};
use kube::core::ObjectMeta;

use crate::{Kind, ManagementCluster, ObjectRef, ServerError};

/// How many lists are under way at a time.
const AT_ONCE: usize = 16;

/// An object that was installed, of which only the metadata are known.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its kind.
    pub kind: Kind,
    /// What names it.
    pub id: ObjectRef,
    /// Its metadata.
    pub metadata: ObjectMeta,
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
    let kinds = cluster.kinds().await?.preferred().filter(|it| it.is_managed && fits(it));
    let lists = kinds.map(|kind| async move {
        let found = cluster.list_metadata(kind, None, selector).await?;
        Ok::<_, ServerError>(found.into_iter().map(|it| component(kind, it.metadata)).collect::<Vec<_>>())
    });
    let mut found: Vec<Component> = stream::iter(lists).buffer_unordered(AT_ONCE).try_concat().await?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// The component of that kind and metadata.
pub(crate) fn component(kind: &Kind, metadata: ObjectMeta) -> Component {
    let id = ObjectRef {
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    Component { kind: kind.clone(), id, metadata }
}
