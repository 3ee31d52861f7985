//! Applies objects in waves: each object after those that it needs, all objects of a wave at the same time.

use std::time::Duration;

use capstan_api::names::FIELD_MANAGER;
use futures::TryStreamExt;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::{
    Kind, Kinds, ManagementCluster, ObjectRef, ServerError, at_once, error,
    retry::{Backoff, retry},
    served,
};

/// How long a new kind or namespace may be unknown: API servers learn of it one after the other.
const PROPAGATION_LIMIT: Duration = Duration::from_secs(30);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));

/// Objects that need nothing but the waves before theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wave {
    /// Namespaces.
    Namespaces,
    /// CustomResourceDefinitions.
    Crds,
    /// Roles, accounts, configuration, services, certificates.
    Settings,
    /// Deployments and everything else that runs.
    Workloads,
    /// Webhook configurations and APIServices: last, since their workloads have to run first.
    Webhooks,
}

impl Wave {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Namespaces, Self::Crds, Self::Settings, Self::Workloads, Self::Webhooks];

    /// The wave of an object.
    pub fn of(object: &Value) -> Self {
        let group = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).map_or("", |it| it.0);
        match (group, object["kind"].as_str().unwrap_or_default()) {
            ("", "Namespace") => Self::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Crds,
            ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
            | ("", "Pod" | "ReplicationController") => Self::Workloads,
            ("admissionregistration.k8s.io", _) | ("apiregistration.k8s.io", "APIService") => Self::Webhooks,
            _ => Self::Settings,
        }
    }

    /// The name for progress lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Crds => "CRDs",
            Self::Settings => "settings",
            Self::Workloads => "workloads",
            Self::Webhooks => "webhooks",
        }
    }
}

/// Progress of an apply.
#[derive(Clone, Debug)]
pub enum ApplyEvent<'a> {
    /// A wave begins.
    Wave {
        /// The wave.
        wave: Wave,
        /// The number of its objects.
        count: usize,
    },
    /// An object is applied.
    Applied(&'a ObjectRef),
    /// A transient failure is retried.
    Retrying {
        /// The object.
        object: &'a ObjectRef,
        /// The failure.
        reason: String,
    },
}

/// Receives progress.
pub type ApplyReporter<'a> = &'a (dyn Fn(ApplyEvent<'_>) + Sync);

/// Objects could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A request failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server does not serve the kind of an object.
    #[error("cannot apply {object}: the server does not serve kind {} in {}", object.kind, object.api_version)]
    UnknownKind {
        /// The object.
        object: Box<ObjectRef>,
    },
    /// The server does not serve the kind of a CRD in time.
    #[error("{object} is not served: {reason}")]
    NotEstablished {
        /// Its CRD.
        object: Box<ObjectRef>,
        /// The reason, from its conditions.
        reason: String,
    },
}

/// Applies objects in waves. What is there already is changed to what is wanted; fields of others are left alone.
pub async fn apply(
    cluster: &ManagementCluster,
    objects: &[Value],
    report: ApplyReporter<'_>,
) -> Result<(), ApplyError> {
    let mut kinds = Kinds::clone(&*cluster.kinds().await?);
    kinds.learn_all(objects);
    apply_known(cluster, &kinds, &objects.iter().collect::<Vec<_>>(), report).await
}

/// The same with known kinds, including those that were created after discovery.
pub async fn apply_known(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    objects: &[&Value],
    report: ApplyReporter<'_>,
) -> Result<(), ApplyError> {
    write(cluster, kinds, objects, report).await?;
    // The server establishes them while everything else is written.
    served::wait(cluster, crds(objects)).await
}

/// The parameters of every apply. Field validation is off: the JSON has no duplicate fields, and server-side apply
/// refuses unknown fields in any case.
pub fn params() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force().validation_ignore()
}

/// The same, but waits only for CRDs that other objects need.
pub async fn write(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    objects: &[&Value],
    report: ApplyReporter<'_>,
) -> Result<(), ApplyError> {
    // An unknown kind fails before anything is written.
    for object in objects {
        kind_of(kinds, object)?;
    }
    for wave in Wave::ALL {
        let mut members: Vec<&Value> = objects.iter().copied().filter(|it| Wave::of(it) == wave).collect();
        if members.is_empty() {
            continue;
        }
        // Services take longest, since the server allocates an address for each.
        members.sort_by_key(|it| it["kind"] != "Service");
        report(ApplyEvent::Wave { wave, count: members.len() });
        let applied = members.iter().map(|object| async move {
            put(cluster, kind_of(kinds, object)?, object, report).await?;
            report(ApplyEvent::Applied(&ObjectRef::of(object)));
            Ok::<_, ApplyError>(())
        });
        at_once(applied).try_collect::<()>().await?;
        if wave == Wave::Crds {
            served::wait(cluster, used(&members, objects)).await?;
        }
    }
    Ok(())
}

/// The CRDs among objects.
pub fn crds<'a>(objects: &[&'a Value]) -> Vec<&'a Value> {
    objects.iter().copied().filter(|it| Wave::of(it) == Wave::Crds).collect()
}

/// Those of the CRDs that define the kind of some of the objects.
pub fn used<'a>(crds: &[&'a Value], objects: &[&Value]) -> Vec<&'a Value> {
    crds.iter().copied().filter(|it| is_used(it, objects)).collect()
}

/// Whether a CRD defines the kind of some of the objects.
pub fn is_used(crd: &Value, objects: &[&Value]) -> bool {
    let mut defined = Kinds::default();
    defined.learn(crd);
    objects.iter().any(|it| defined.of(it).is_some())
}

fn kind_of<'a>(kinds: &'a Kinds, object: &Value) -> Result<&'a Kind, ApplyError> {
    kinds.of(object).ok_or_else(|| ApplyError::UnknownKind { object: Box::new(ObjectRef::of(object)) })
}

/// Applies one object, and retries transient failures.
pub async fn put(
    cluster: &ManagementCluster,
    kind: &Kind,
    object: &Value,
    report: ApplyReporter<'_>,
) -> Result<(), ServerError> {
    let id = ObjectRef::of(object);
    let api = cluster.objects(kind, id.namespace.as_deref());
    let params = params();
    let request = || async {
        // The response is not needed, and CRDs are large.
        let applied = api.patch_metadata(&id.name, &params, &Patch::Apply(object)).await;
        applied.map(|_| ()).map_err(|error| cluster.failed(format!("apply {id}"), error))
    };
    let limit = cluster.apply_limit();
    let is_transient = |error: &ServerError, elapsed| is_worth_another_try(&error.source, elapsed, limit);
    let retrying = |error: &ServerError| {
        report(ApplyEvent::Retrying { object: &id, reason: error.to_string() });
    };
    retry(BACKOFF, request, is_transient, retrying).await
}

fn is_worth_another_try(error: &kube::Error, elapsed: Duration, limit: Duration) -> bool {
    (error::is_transient(error) && elapsed < limit)
        || (error::is_not_found(error) && elapsed < PROPAGATION_LIMIT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_comes_before_what_it_needs() {
        for (api_version, kind, wave) in [
            ("v1", "Namespace", Wave::Namespaces),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", Wave::Crds),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", Wave::Settings),
            ("v1", "Service", Wave::Settings),
            ("cert-manager.io/v1", "Certificate", Wave::Settings),
            ("apps/v1", "Deployment", Wave::Workloads),
            // The same word in another group is another kind.
            ("example.com/v1", "Deployment", Wave::Settings),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", Wave::Webhooks),
        ] {
            assert_eq!(Wave::of(&json!({"apiVersion": api_version, "kind": kind})), wave, "{kind}");
        }
        assert!(Wave::ALL.is_sorted());
    }

    #[test]
    fn only_kinds_that_something_is_written_of_are_waited_for() {
        let crd = |kind: &str| {
            json!({"spec": {"group": "g.io", "names": {"kind": kind, "plural": kind.to_lowercase()},
                            "versions": [{"name": "v1", "served": true}]}})
        };
        let (needed, other) = (crd("Box"), crd("Lid"));
        let object = json!({"apiVersion": "g.io/v1", "kind": "Box"});
        assert_eq!(used(&[&needed, &other], &[&object]), [&needed]);
        assert!(used(&[&needed, &other], &[]).is_empty());
    }
}
