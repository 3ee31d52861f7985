//! Rollouts of machines: started again, paused, resumed.

use std::fmt;

use capstan_api::names::{CONTROL_PLANE_GROUP, CORE_GROUP, FIELD_MANAGER, annotation};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fields;
use capstan_management::{Kind, ManagementCluster, ServerError};

/// What is done to a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutAction {
    /// All machines are replaced, from now on.
    Restart,
    /// Nothing is rolled out until it is resumed.
    Pause,
    /// What was paused goes on.
    Resume,
}

impl RolloutAction {
    /// What is done, as in "cannot pause".
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// What has been done, as in "was paused".
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Restart => "restarted",
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

/// The kinds whose machines are rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutTarget {
    /// Workers.
    MachineDeployment,
    /// A control plane of the kubeadm provider.
    KubeadmControlPlane,
}

impl RolloutTarget {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::MachineDeployment, Self::KubeadmControlPlane];

    /// The kind.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::MachineDeployment => "MachineDeployment",
            Self::KubeadmControlPlane => "KubeadmControlPlane",
        }
    }

    const fn group(self) -> &'static str {
        match self {
            Self::MachineDeployment => CORE_GROUP,
            Self::KubeadmControlPlane => CONTROL_PLANE_GROUP,
        }
    }

    fn is_paused(self, object: &Value) -> bool {
        match self {
            Self::MachineDeployment => fields::is_true(object, &["/spec/paused"]),
            Self::KubeadmControlPlane => fields::is_paused_by_annotation(object),
        }
    }

    fn pause(self, is_paused: bool) -> Value {
        match self {
            Self::MachineDeployment => json!({"spec": {"paused": is_paused}}),
            Self::KubeadmControlPlane => {
                let value = if is_paused { json!("true") } else { Value::Null };
                json!({"metadata": {"annotations": {annotation::PAUSED: value}}})
            }
        }
    }
}

/// An object whose machines are rolled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutResource {
    /// The kind.
    pub target: RolloutTarget,
    /// The name.
    pub name: String,
}

impl fmt::Display for RolloutResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.target.kind().to_lowercase(), self.name)
    }
}

/// Why a rollout is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RolloutRefusal {
    /// It is paused, so that a restart would do nothing.
    #[error("it is paused")]
    Paused,
    /// It is paused already.
    #[error("it is paused already")]
    PausedAlready,
    /// There is nothing to resume.
    #[error("it is not paused")]
    NotPaused,
    /// A rollout is planned for later.
    #[error("a rollout is planned already: {field} is {after}")]
    Planned {
        /// The field.
        field: &'static str,
        /// The time.
        after: Timestamp,
    },
    /// The planned time cannot be read.
    #[error("{field} is {found}, which is not a time")]
    OddTime {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
    },
}

/// The merge patch for an action.
pub fn plan(
    action: RolloutAction,
    target: RolloutTarget,
    object: &Value,
    now: Timestamp,
) -> Result<Value, RolloutRefusal> {
    let is_paused = target.is_paused(object);
    match action {
        RolloutAction::Pause if is_paused => Err(RolloutRefusal::PausedAlready),
        RolloutAction::Pause => Ok(target.pause(true)),
        RolloutAction::Resume if !is_paused => Err(RolloutRefusal::NotPaused),
        RolloutAction::Resume => Ok(target.pause(false)),
        RolloutAction::Restart if is_paused => Err(RolloutRefusal::Paused),
        RolloutAction::Restart => restart(object, now),
    }
}

fn restart(object: &Value, now: Timestamp) -> Result<Value, RolloutRefusal> {
    let is_old = object["apiVersion"].as_str().is_some_and(|it| it.ends_with("/v1beta1"));
    let (field, pointer) = if is_old {
        ("spec.rolloutAfter", "/spec/rolloutAfter")
    } else {
        ("spec.rollout.after", "/spec/rollout/after")
    };
    if let Some(found) = object.pointer(pointer).filter(|it| !it.is_null()) {
        let after: Option<Timestamp> = found.as_str().and_then(|it| it.parse().ok());
        let after = after.ok_or_else(|| RolloutRefusal::OddTime { field, found: found.to_string() })?;
        if after > now {
            return Err(RolloutRefusal::Planned { field, after });
        }
    }
    // Kubernetes keeps whole seconds.
    let now = json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Ok(if is_old {
        json!({"spec": {"rolloutAfter": now}})
    } else {
        json!({"spec": {"rollout": {"after": now}}})
    })
}

/// A rollout was not touched.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The server refused, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kind is not installed.
    #[error("cannot {} {resource}: {url} knows no kind {} of {}", action.verb(), resource.target.kind(), resource.target.group())]
    NotInstalled {
        /// The action.
        action: RolloutAction,
        /// The object.
        resource: RolloutResource,
        /// The API server.
        url: String,
    },
    /// Nothing has that name.
    #[error("cannot {} {resource}: there is no {} {namespace}/{}", action.verb(), resource.target.kind(), resource.name)]
    NotFound {
        /// The action.
        action: RolloutAction,
        /// The object.
        resource: RolloutResource,
        /// The namespace.
        namespace: String,
        /// Names of the same kind in the namespace.
        here: Vec<String>,
    },
    /// The action would be wrong, or change nothing.
    #[error("cannot {} {resource}: {refusal}", action.verb())]
    Refused {
        /// The action.
        action: RolloutAction,
        /// The object.
        resource: RolloutResource,
        /// The namespace.
        namespace: String,
        /// The reason.
        refusal: RolloutRefusal,
    },
}

/// Restarts, pauses or resumes one rollout.
pub async fn perform(
    cluster: &ManagementCluster,
    namespace: &str,
    resource: &RolloutResource,
    action: RolloutAction,
    now: Timestamp,
) -> Result<(), RolloutError> {
    let target = resource.target;
    let kinds = cluster.kinds().await?;
    let Some(kind) = kinds.any_version(target.group(), target.kind()) else {
        let url = cluster.url().to_owned();
        return Err(RolloutError::NotInstalled { action, resource: resource.clone(), url });
    };
    let failed =
        |doing: &str, error| cluster.failed(format!("{doing} {resource} in namespace {namespace}"), error);
    let api = cluster.objects(kind, Some(namespace));
    let found = api.get_opt(&resource.name).await.map_err(|error| failed("read", error))?;
    let Some(found) = found else {
        return Err(not_found(cluster, kind, namespace, resource, action).await);
    };
    let object = crate::clusters::whole(kind, found);
    let patch = plan(action, target, &object, now).map_err(|refusal| RolloutError::Refused {
        action,
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        refusal,
    })?;
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = api.patch(&resource.name, &params, &Patch::Merge(&patch)).await;
    patched.map_err(|error| failed(action.verb(), error))?;
    Ok(())
}

async fn not_found(
    cluster: &ManagementCluster,
    kind: &Kind,
    namespace: &str,
    resource: &RolloutResource,
    action: RolloutAction,
) -> RolloutError {
    // Names are a help only: without them the error is the same.
    let listed = cluster.list_metadata(kind, Some(namespace), "").await.unwrap_or_default();
    RolloutError::NotFound {
        action,
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        here: listed.into_iter().filter_map(|it| it.metadata.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05.678Z";

    #[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
    fn deployment(version: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{CORE_GROUP}/{version}"), "kind": "MachineDeployment", "spec": spec})
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
    fn control_plane(annotations: Value) -> Value {
        let version = format!("{CONTROL_PLANE_GROUP}/v1beta2");
        json!({"apiVersion": version, "kind": "KubeadmControlPlane", "metadata": {"annotations": annotations}})
    }

    #[test]
    fn what_is_done_depends_on_the_object() {
        use RolloutAction::{Pause, Restart, Resume};
        use RolloutTarget::{KubeadmControlPlane, MachineDeployment};
        let planned =
            |field| Err(RolloutRefusal::Planned { field, after: "2026-01-02T03:04:06Z".parse().unwrap() });
        let (plain, paused) = (json!({}), json!({"paused": true}));
        let held = json!({annotation::PAUSED: ""});
        for (action, target, object, expected) in [
            (
                Pause,
                MachineDeployment,
                deployment("v1beta2", plain.clone()),
                Ok(json!({"spec": {"paused": true}})),
            ),
            (
                Pause,
                MachineDeployment,
                deployment("v1beta2", paused.clone()),
                Err(RolloutRefusal::PausedAlready),
            ),
            (
                Resume,
                MachineDeployment,
                deployment("v1beta1", paused.clone()),
                Ok(json!({"spec": {"paused": false}})),
            ),
            (Resume, MachineDeployment, deployment("v1beta2", plain.clone()), Err(RolloutRefusal::NotPaused)),
            (Restart, MachineDeployment, deployment("v1beta2", paused), Err(RolloutRefusal::Paused)),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta2", plain.clone()),
                Ok(json!({"spec": {"rollout": {"after": "2026-01-02T03:04:05Z"}}})),
            ),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta1", plain),
                Ok(json!({"spec": {"rolloutAfter": "2026-01-02T03:04:05Z"}})),
            ),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta2", json!({"rollout": {"after": "2026-01-02T03:04:06Z"}})),
                planned("spec.rollout.after"),
            ),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta1", json!({"rolloutAfter": "2026-01-02T03:04:06Z"})),
                planned("spec.rolloutAfter"),
            ),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta2", json!({"rollout": {"after": "2026-01-02T03:04:04Z"}})),
                Ok(json!({"spec": {"rollout": {"after": "2026-01-02T03:04:05Z"}}})),
            ),
            (
                Restart,
                MachineDeployment,
                deployment("v1beta2", json!({"rollout": {"after": "soon"}})),
                Err(RolloutRefusal::OddTime { field: "spec.rollout.after", found: "\"soon\"".to_owned() }),
            ),
            (
                Pause,
                KubeadmControlPlane,
                control_plane(json!({})),
                Ok(json!({"metadata": {"annotations": {annotation::PAUSED: "true"}}})),
            ),
            (Pause, KubeadmControlPlane, control_plane(held.clone()), Err(RolloutRefusal::PausedAlready)),
            (
                Resume,
                KubeadmControlPlane,
                control_plane(held.clone()),
                Ok(json!({"metadata": {"annotations": {annotation::PAUSED: null}}})),
            ),
            (Resume, KubeadmControlPlane, control_plane(json!({})), Err(RolloutRefusal::NotPaused)),
            (Restart, KubeadmControlPlane, control_plane(held), Err(RolloutRefusal::Paused)),
        ] {
            assert_eq!(plan(action, target, &object, NOW.parse().unwrap()), expected, "{action:?} {object}");
        }
    }
}
