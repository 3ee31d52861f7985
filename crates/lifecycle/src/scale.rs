//! Stopping and starting the controllers of providers. How many there were is written on their Deployments first, so
//! that a run after one that was killed knows it.

use std::{collections::HashSet, time::Duration};

use capstan_api::names::FIELD_MANAGER;
use futures::TryStreamExt;
use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::upgrade::UpgradeError;
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError, at_once, error, inventory,
    retry::{Backoff, Wait},
    sweep,
};

/// The annotation with the number of replicas before an upgrade.
const BEFORE_UPGRADE: &str = "capstan.dev/replicas-before-upgrade";
/// How often to try to change a Deployment while others change it.
const MOST_TRIES: usize = 5;
const CONFLICT_BACKOFF: Backoff = Backoff::constant(Duration::from_millis(50));
/// How long Pods may take to end.
const LIMIT: Duration = Duration::from_mins(1);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// What to do with a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Nothing.
    None,
    /// Write down what runs now and stop it.
    Stop(i64),
    /// Start as many again.
    Start(i64),
    /// Only forget how many there were.
    Forget,
}

/// Stops the controllers of a provider, in one namespace or in all, and waits until none runs.
pub(crate) async fn stop(
    cluster: &ManagementCluster,
    label: &str,
    namespace: Option<&str>,
) -> Result<(), UpgradeError> {
    let Some(kind) = deployments(cluster).await? else { return Ok(()) };
    let found = installed(cluster, &kind, label, namespace).await?;
    let each = found.into_iter().map(|deployment| stop_one(cluster, &kind, deployment));
    at_once(each).try_collect().await
}

/// Scales the Deployments of a provider in a namespace to 0, with their replicas in an annotation: each of them carries it
/// afterwards, also one that was at 0 before. Their Pods may still run for a moment.
pub async fn scale_down(
    cluster: &ManagementCluster,
    label: &str,
    namespace: &str,
    annotation: &str,
) -> Result<(), ServerError> {
    change_all(cluster, label, namespace, annotation, |it| to_pause(it, annotation)).await
}

/// Scales the Deployments of a provider in a namespace to what their annotation says, and removes the annotation. Those
/// without it are left alone.
pub async fn scale_up(
    cluster: &ManagementCluster,
    label: &str,
    namespace: &str,
    annotation: &str,
) -> Result<(), ServerError> {
    change_all(cluster, label, namespace, annotation, |it| to_start(it, annotation, false)).await
}

async fn change_all(
    cluster: &ManagementCluster,
    label: &str,
    namespace: &str,
    annotation: &str,
    decide: impl Fn(&DynamicObject) -> Change,
) -> Result<(), ServerError> {
    let Some(kind) = deployments(cluster).await? else { return Ok(()) };
    let decide = &decide;
    let each = installed(cluster, &kind, label, Some(namespace)).await?.into_iter().map(async |deployment| {
        change(cluster, &kind, deployment, annotation, decide).await?;
        Ok::<_, ServerError>(())
    });
    at_once(each).try_collect().await
}

/// Starts as many controllers of a provider as there were before they were stopped. Whether any were.
pub(crate) async fn start(
    cluster: &ManagementCluster,
    label: &str,
    namespace: Option<&str>,
) -> Result<bool, UpgradeError> {
    start_unless_named(cluster, label, namespace, &HashSet::new()).await
}

/// The same when a new release is there. Those whose number it names run already: only the note is taken off them.
pub(crate) async fn start_new(
    cluster: &ManagementCluster,
    label: &str,
    namespace: Option<&str>,
    release: &[Value],
) -> Result<(), UpgradeError> {
    let (named, open) = by_replicas(release);
    if !open.is_empty() {
        start_unless_named(cluster, label, namespace, &named).await?;
        return Ok(());
    }
    let Some(kind) = deployments(cluster).await? else { return Ok(()) };
    let each = named.iter().map(async |(namespace, name)| {
        let mut noted = DynamicObject::new(name, &kind.resource).within(namespace);
        noted.annotations_mut().insert(BEFORE_UPGRADE.to_owned(), String::new());
        change(cluster, &kind, noted, BEFORE_UPGRADE, |it| to_start(it, BEFORE_UPGRADE, true)).await?;
        Ok::<_, UpgradeError>(())
    });
    at_once(each).try_collect().await
}

async fn start_unless_named(
    cluster: &ManagementCluster,
    label: &str,
    namespace: Option<&str>,
    named: &HashSet<Name>,
) -> Result<bool, UpgradeError> {
    let Some(kind) = deployments(cluster).await? else { return Ok(false) };
    let found = installed(cluster, &kind, label, namespace).await?;
    let are_stopped = found.iter().any(|it| to_start(it, BEFORE_UPGRADE, false) != Change::None);
    let each = found.into_iter().map(async |deployment| {
        let is_named = named.contains(&(deployment.namespace().unwrap_or_default(), deployment.name_any()));
        change(cluster, &kind, deployment, BEFORE_UPGRADE, |it| to_start(it, BEFORE_UPGRADE, is_named))
            .await?;
        Ok::<_, UpgradeError>(())
    });
    at_once(each).try_collect::<()>().await?;
    Ok(are_stopped)
}

/// The Deployments of a provider; not what users copied from them.
async fn installed(
    cluster: &ManagementCluster,
    kind: &Kind,
    label: &str,
    namespace: Option<&str>,
) -> Result<Vec<DynamicObject>, ServerError> {
    let mut own = Vec::new();
    for deployment in cluster.list(kind, namespace, &sweep::selector_of(label)).await? {
        let namespace = deployment.namespace().unwrap_or_default();
        if sweep::is_installed(&deployment.metadata, &[])
            || inventory::has_entry(cluster, &namespace, label).await?
        {
            own.push(deployment);
        }
    }
    Ok(own)
}

/// The namespace and name of a Deployment.
type Name = (String, String);

/// A release's Deployments: those whose number of replicas it names, and those where it leaves that open.
fn by_replicas(release: &[Value]) -> (HashSet<Name>, HashSet<Name>) {
    let names = |is_named: bool| {
        let deployments = release.iter().filter(|it| it["kind"] == "Deployment");
        let ids = deployments.filter(|it| it["spec"]["replicas"].is_null() != is_named).map(ObjectRef::of);
        ids.map(|id| (id.namespace.unwrap_or_default(), id.name)).collect()
    };
    (names(true), names(false))
}

async fn deployments(cluster: &ManagementCluster) -> Result<Option<Kind>, ServerError> {
    Ok(cluster.kinds().await?.find("apps/v1", "Deployment").cloned())
}

async fn stop_one(
    cluster: &ManagementCluster,
    kind: &Kind,
    deployment: DynamicObject,
) -> Result<(), UpgradeError> {
    let stopped = change(cluster, kind, deployment, BEFORE_UPGRADE, to_stop).await?;
    let Some(mut deployment) = stopped else { return Ok(()) };
    let (api, name) = (cluster.objects(kind, deployment.namespace().as_deref()), deployment.name_any());
    let mut wait = Wait::new(BACKOFF, LIMIT);
    loop {
        let left = running(&deployment);
        if left == 0 {
            return Ok(());
        }
        if wait.is_over() {
            let deployment = Box::new(id(kind, &deployment));
            return Err(UpgradeError::StillRunning { deployment, seconds: LIMIT.as_secs(), left });
        }
        wait.pause().await;
        match api.get_opt(&name).await {
            Ok(Some(found)) => deployment = found,
            Ok(None) => return Ok(()),
            Err(error) if error::is_transient(&error) => {}
            Err(error) => {
                return Err(cluster.failed(format!("look at {}", id(kind, &deployment)), error).into());
            }
        }
    }
}

/// Changes a Deployment, unless it is as wanted; none is left if it is gone.
async fn change(
    cluster: &ManagementCluster,
    kind: &Kind,
    mut deployment: DynamicObject,
    annotation: &str,
    decide: impl Fn(&DynamicObject) -> Change,
) -> Result<Option<DynamicObject>, ServerError> {
    let (api, name) = (cluster.objects(kind, deployment.namespace().as_deref()), deployment.name_any());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let id = id(kind, &deployment);
    let mut wait = Wait::new(CONFLICT_BACKOFF, Duration::MAX);
    for tries in 1.. {
        let Some(patch) =
            patch(&decide(&deployment), annotation, deployment.metadata.resource_version.as_deref())
        else {
            break;
        };
        match api.patch(&name, &params, &Patch::Merge(patch)).await {
            Ok(changed) => return Ok(Some(changed)),
            Err(error) if error::is_not_found(&error) => return Ok(None),
            Err(error) if error::is_transient(&error) && tries < MOST_TRIES => {}
            Err(error) => return Err(cluster.failed(format!("scale {id}"), error)),
        }
        wait.pause().await;
        let found = api.get_opt(&name).await;
        match found.map_err(|error| cluster.failed(format!("look at {id}"), error))? {
            Some(found) => deployment = found,
            None => return Ok(None),
        }
    }
    Ok(Some(deployment))
}

fn to_stop(deployment: &DynamicObject) -> Change {
    match replicas(deployment) {
        // Stopped already: by a run before this one, or by a user.
        0 => Change::None,
        count => Change::Stop(count),
    }
}

/// What is noted already stays noted. An upgrade that was cut off has noted how many there were before it.
fn to_pause(deployment: &DynamicObject, annotation: &str) -> Change {
    let noted = |name: &str| deployment.annotations().get(name).map(|it| it.parse().unwrap_or(1));
    match (noted(annotation), replicas(deployment)) {
        (Some(_), 0) => Change::None,
        (Some(before), _) => Change::Stop(before),
        (None, 0) => Change::Stop(noted(BEFORE_UPGRADE).unwrap_or(0)),
        (None, count) => Change::Stop(count),
    }
}

fn to_start(deployment: &DynamicObject, annotation: &str, is_named: bool) -> Change {
    let before = deployment.annotations().get(annotation).map(|it| it.parse().unwrap_or(1));
    match before {
        None => Change::None,
        Some(before) if replicas(deployment) == 0 && !is_named => Change::Start(before),
        Some(_) => Change::Forget,
    }
}

fn patch(change: &Change, annotation: &str, resource_version: Option<&str>) -> Option<Value> {
    let (replicas, before) = match change {
        Change::None => return None,
        Change::Stop(count) => (Some(0), json!(count.to_string())),
        Change::Start(count) => (Some(*count), Value::Null),
        Change::Forget => (None, Value::Null),
    };
    let mut patch = json!({"metadata": {"annotations": {annotation: before}}});
    if annotation != BEFORE_UPGRADE && matches!(change, Change::Stop(_)) {
        // Else the end of a failed upgrade would start what is stopped here.
        patch["metadata"]["annotations"][BEFORE_UPGRADE] = Value::Null;
    }
    if let Some(version) = resource_version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    if let Some(replicas) = replicas {
        patch["spec"] = json!({"replicas": replicas});
    }
    Some(patch)
}

fn replicas(deployment: &DynamicObject) -> i64 {
    deployment.data.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

/// How many Pods there are still. A Deployment without a status has none.
fn running(deployment: &DynamicObject) -> i64 {
    let status = |field: &str| deployment.data.pointer(&format!("/status/{field}")).and_then(Value::as_i64);
    let has_seen = status("observedGeneration").is_none_or(|it| Some(it) >= deployment.metadata.generation);
    match status("replicas").unwrap_or(0) {
        // It has not been seen yet that they are not wanted any more.
        0 if !has_seen => 1,
        left => left,
    }
}

fn id(kind: &Kind, deployment: &DynamicObject) -> ObjectRef {
    ObjectRef {
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
        namespace: deployment.namespace(),
        name: deployment.name_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(replicas: Option<i64>, before: Option<&str>) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": "d", "namespace": "n", "annotations": before.map(|it| json!({BEFORE_UPGRADE: it}))},
            "spec": {"replicas": replicas},
        }))
        .unwrap()
    }

    #[test]
    fn what_ran_is_written_down_once_and_started_again() {
        for (replicas, before, stop, start, start_named) in [
            (Some(2), None, Change::Stop(2), Change::None, Change::None),
            (None, None, Change::Stop(1), Change::None, Change::None),
            // A user wants it so.
            (Some(0), None, Change::None, Change::None, Change::None),
            // A run before this one was killed: what it wrote down is kept.
            (Some(0), Some("3"), Change::None, Change::Start(3), Change::Forget),
            (Some(0), Some("many"), Change::None, Change::Start(1), Change::Forget),
            // The new release is there, and only the note is left.
            (Some(1), Some("3"), Change::Stop(1), Change::Forget, Change::Forget),
        ] {
            let deployment = deployment(replicas, before);
            assert_eq!(to_stop(&deployment), stop, "{replicas:?} {before:?}");
            assert_eq!(to_start(&deployment, BEFORE_UPGRADE, false), start, "{replicas:?} {before:?}");
            assert_eq!(to_start(&deployment, BEFORE_UPGRADE, true), start_named, "{replicas:?} {before:?}");
        }
    }

    #[test]
    fn a_pause_notes_what_ran_before_it_once() {
        const NOTE: &str = "original";
        for (replicas, note, before_upgrade, expected) in [
            (Some(3), None, None, Change::Stop(3)),
            (None, None, None, Change::Stop(1)),
            // Scaled to 0 by hand: it stays there after the pause.
            (Some(0), None, None, Change::Stop(0)),
            // An upgrade was cut off after it had stopped the controllers.
            (Some(0), None, Some("3"), Change::Stop(3)),
            (Some(2), None, Some("3"), Change::Stop(2)),
            // A pause was cut off, or the Deployment was scaled up by hand meanwhile.
            (Some(0), Some("3"), None, Change::None),
            (Some(2), Some("3"), None, Change::Stop(3)),
        ] {
            let mut it = deployment(replicas, before_upgrade);
            it.annotations_mut().extend(note.map(|note| (NOTE.to_owned(), note.to_owned())));
            assert_eq!(to_pause(&it, NOTE), expected, "{replicas:?} {note:?} {before_upgrade:?}");
        }
        let patch = patch(&Change::Stop(3), NOTE, None).unwrap();
        assert_eq!(
            patch,
            json!({"metadata": {"annotations": {NOTE: "3", BEFORE_UPGRADE: null}}, "spec": {"replicas": 0}})
        );
    }

    #[test]
    fn controllers_run_until_their_status_says_otherwise() {
        for (status, left) in [
            (json!(null), 0),
            (json!({}), 0),
            (json!({"observedGeneration": 2}), 0),
            (json!({"observedGeneration": 2, "replicas": 1}), 1),
            (json!({"observedGeneration": 1}), 1),
            (json!({"replicas": 2}), 2),
        ] {
            let mut deployment = deployment(Some(0), None);
            deployment.metadata.generation = Some(2);
            deployment.data["status"] = status.clone();
            assert_eq!(running(&deployment), left, "{status}");
        }
    }

    #[test]
    fn a_release_may_leave_the_number_of_replicas_open() {
        let object = |kind: &str, name: &str, spec: Value| json!({"kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec});
        let (named, open) = by_replicas(&[
            object("Deployment", "one", json!({"replicas": 1})),
            object("Deployment", "open", json!({})),
            object("Deployment", "null", json!({"replicas": null})),
            object("StatefulSet", "other", json!({"replicas": 1})),
        ]);
        let names = |names: &[&str]| names.iter().map(|it| ("n".to_owned(), (*it).to_owned())).collect();
        assert_eq!((named, open), (names(&["one"]), names(&["open", "null"])));
    }
}
