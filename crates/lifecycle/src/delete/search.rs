//! What was installed for providers, even where those who convert objects between versions do not answer any more.

use capstan_api::names::label;
use futures::{StreamExt, TryStreamExt, stream};
use kube::core::ObjectMeta;

use crate::{
    Kind, Kinds, ManagementCluster, ServerError,
    sweep::{Component, component, sweep_kinds},
};

const AT_ONCE: usize = 16;
/// What servers say when nobody converts an object.
const CONVERSION: &str = "conversion webhook";

/// Everything that a selector matches. Objects of providers' own kinds that cannot be read are passed over.
pub(crate) async fn components(
    cluster: &ManagementCluster,
    selector: &str,
) -> Result<Vec<Component>, ServerError> {
    let kinds = cluster.kinds().await?;
    let defined = defined_kinds(cluster, kinds).await?;
    let is_defined = |kind: &Kind| {
        defined
            .iter()
            .any(|it| it.resource.group == kind.resource.group && it.resource.kind == kind.resource.kind)
    };
    let mut found = sweep_kinds(cluster, selector, |kind| !is_defined(kind)).await?;
    let looks = defined.iter().map(|kind| async move {
        let objects = look(cluster, kinds, kind, None, selector).await?.unwrap_or_default();
        Ok::<_, ServerError>(objects.into_iter().map(|it| component(kind, it)).collect::<Vec<_>>())
    });
    let objects: Vec<Component> = stream::iter(looks).buffer_unordered(AT_ONCE).try_concat().await?;
    found.extend(objects);
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// The kinds that providers brought.
async fn defined_kinds<'a>(
    cluster: &ManagementCluster,
    kinds: &'a Kinds,
) -> Result<Vec<&'a Kind>, ServerError> {
    let Some(kind) = kinds.any_version("apiextensions.k8s.io", "CustomResourceDefinition") else {
        return Ok(Vec::new());
    };
    let selector = format!("{}=,{}", label::CLUSTERCTL, label::PROVIDER);
    let definitions = cluster.list_metadata(kind, None, &selector).await?;
    Ok(definitions.iter().filter_map(|it| kinds.defined_by(it.metadata.name.as_deref()?)).collect())
}

/// The objects of a kind that a selector matches, or why they cannot be read.
///
/// Nobody converts objects once a provider's workloads are gone; most likely one of the versions is the stored one.
pub(crate) async fn look(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    kind: &Kind,
    namespace: Option<&str>,
    selector: &str,
) -> Result<Result<Vec<ObjectMeta>, String>, ServerError> {
    let mut reason = String::new();
    for version in kinds.versions(&kind.resource.group, &kind.resource.kind) {
        match cluster.list_metadata(version, namespace, selector).await {
            Ok(found) => return Ok(Ok(found.into_iter().map(|it| it.metadata).collect())),
            Err(error) => match error.status().filter(|it| it.message.contains(CONVERSION)) {
                Some(status) => reason.clone_from(&status.message),
                None => return Err(error),
            },
        }
    }
    Ok(Err(reason))
}
