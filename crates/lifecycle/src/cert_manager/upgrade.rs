//! cert-manager upgraded in place: nothing is taken down before its successor is there.

use std::{collections::BTreeSet, time::Duration};

use futures::TryStreamExt;

use super::{CertManagerError, CertManagerEvent, CertManagerReporter, Manifest, plan::components, probe};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError, adoption, apply, at_once, sweep::Component,
};

/// Applies a version over the one that is there, deletes what it no longer has, and waits until it answers.
pub async fn upgrade(
    cluster: &ManagementCluster,
    wanted: &Manifest,
    limit: Duration,
    report: CertManagerReporter<'_>,
) -> Result<(), CertManagerError> {
    let before = components(cluster).await?;
    adoption::adopt(cluster, &before).await?;
    apply::apply(cluster, &wanted.objects, &|event| report(CertManagerEvent::Apply(event))).await?;
    prune(cluster, &stale(&before, wanted)).await?;
    probe::wait(cluster, limit, &|reason| report(CertManagerEvent::Waiting { reason })).await
}

/// What is installed of it, and goes with the upgrade to a version.
pub(crate) async fn leftovers(
    cluster: &ManagementCluster,
    wanted: &Manifest,
) -> Result<Vec<Component>, ServerError> {
    let before = components(cluster).await?;
    Ok(stale(&before, wanted).into_iter().cloned().collect())
}

async fn prune(cluster: &ManagementCluster, stale: &[&Component]) -> Result<(), ServerError> {
    let deleted = stale.iter().map(|component| async move {
        let deleted = component.delete(cluster).await;
        deleted.map_err(|error| cluster.failed(format!("delete {}", component.id), error))
    });
    at_once(deleted).try_collect().await
}

/// What is no longer wanted. Kinds and namespaces stay: with them would go what users made.
fn stale<'a>(before: &'a [Component], wanted: &Manifest) -> Vec<&'a Component> {
    let kept: BTreeSet<_> = wanted.objects.iter().map(|it| ObjectRef::of(it).identity()).collect();
    let is_stale = |it: &&Component| {
        !it.is_made_from_another()
            && !matches!(it.id.kind.as_str(), "Namespace" | "CustomResourceDefinition")
            && !kept.contains(&it.id.identity())
    };
    before.iter().filter(is_stale).collect()
}
