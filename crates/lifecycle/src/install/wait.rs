//! Waiting until the kinds of providers are served and their managers run.

use std::{fmt, time::Duration};

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use serde_json::Value;

use super::InstallPlan;
use crate::release::Prepared;
use capstan_management::{
    Kind, ManagementCluster, ServerError,
    apply::{self, ApplyError},
    error,
    retry::{Backoff, Wait},
    served, sweep,
};

/// The container by which a manager is known.
const MANAGER: &str = "manager";
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));

/// A Deployment that is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedDeployment {
    /// The label of its provider.
    pub provider: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why it is not, as far as it says.
    pub reason: String,
}

impl AwaitedDeployment {
    /// A Deployment that was not looked at yet.
    pub fn new(provider: &str, namespace: &str, name: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            reason: "it was not looked at yet".to_owned(),
        }
    }
}

impl fmt::Display for AwaitedDeployment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, namespace, name, reason } = self;
        write!(out, "Deployment {namespace}/{name} of {provider} is not available: {reason}")
    }
}

/// Providers that do not run in time.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A kind is not served.
    #[error(transparent)]
    Kind(#[from] ApplyError),
    /// Some did not become available.
    #[error("{} not available after {} s", count(late.len()), limit.as_secs())]
    NotAvailable {
        /// Which, and why.
        late: Vec<AwaitedDeployment>,
        /// How long they were waited for.
        limit: Duration,
    },
}

fn count(late: usize) -> String {
    if late == 1 { "a provider is".to_owned() } else { format!("{late} providers are") }
}

/// Waits for the kinds of a plan's providers, and for those of their Deployments that have a manager, all at once.
/// `tell` receives those that are not available yet.
pub async fn wait(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    limit: Duration,
    tell: &(dyn Fn(&[AwaitedDeployment]) + Sync),
) -> Result<(), WaitError> {
    let objects: Vec<&Value> = plan.queue.iter().flat_map(|it| it.components.objects()).collect();
    served::wait(cluster, apply::crds(&objects)).await?;
    wait_for(cluster, managers(cluster, plan).await?, limit, tell).await
}

/// Waits for the Deployments of releases that have a manager, all at once.
pub async fn wait_for_releases<'a>(
    cluster: &ManagementCluster,
    releases: impl IntoIterator<Item = &'a Prepared>,
    limit: Duration,
    tell: &(dyn Fn(&[AwaitedDeployment]) + Sync),
) -> Result<(), WaitError> {
    wait_for(cluster, releases.into_iter().flat_map(managers_of).collect(), limit, tell).await
}

/// Waits for Deployments, all at once.
pub async fn wait_for(
    cluster: &ManagementCluster,
    mut awaited: Vec<AwaitedDeployment>,
    limit: Duration,
    tell: &(dyn Fn(&[AwaitedDeployment]) + Sync),
) -> Result<(), WaitError> {
    let mut wait = Wait::new(BACKOFF, limit);
    loop {
        let looks = try_join_all(awaited.iter().map(|it| look(cluster, it))).await?;
        let late: Vec<(AwaitedDeployment, Value)> = looks.into_iter().flatten().collect();
        if late.is_empty() {
            return Ok(());
        }
        if wait.is_over() {
            let late =
                try_join_all(late.into_iter().map(|(it, object)| with_pods(cluster, it, object))).await?;
            return Err(WaitError::NotAvailable { late, limit });
        }
        awaited = late.into_iter().map(|it| it.0).collect();
        tell(&awaited);
        wait.pause().await;
    }
}

/// The Deployments that have a manager: those that are to be there, and those that are there of providers that were
/// installed before.
async fn managers(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
) -> Result<Vec<AwaitedDeployment>, ServerError> {
    let mut found: Vec<AwaitedDeployment> = plan.queue.iter().flat_map(managers_of).collect();
    for there in &plan.present {
        let label = there.label();
        let list =
            cluster.list(&Kind::deployment(), Some(&there.namespace), &sweep::selector_of(&label)).await?;
        for object in list {
            if has_manager(&object.data) {
                let name = object.metadata.name.unwrap_or_default();
                found.push(AwaitedDeployment::new(&label, &there.namespace, &name));
            }
        }
    }
    Ok(found)
}

/// The Deployments of a release that have a manager.
fn managers_of(release: &Prepared) -> Vec<AwaitedDeployment> {
    let (label, namespace) = (release.provider.label(), &release.components.target_namespace);
    let managers = release.components.objects().iter().filter(|it| is_manager(it));
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    managers.map(|it| AwaitedDeployment::new(&label, namespace, &name(it))).collect()
}

fn is_manager(object: &Value) -> bool {
    object["kind"] == "Deployment" && has_manager(object)
}

fn has_manager(object: &Value) -> bool {
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().any(|it| it["name"] == MANAGER)
}

/// Looks at a Deployment; what is late is given back, with the object. A look that fails for a reason that passes is
/// no look.
async fn look(
    cluster: &ManagementCluster,
    awaited: &AwaitedDeployment,
) -> Result<Option<(AwaitedDeployment, Value)>, ServerError> {
    let api = cluster.objects(&Kind::deployment(), Some(&awaited.namespace));
    let still_awaited =
        |reason: String, object: Value| Ok(Some((AwaitedDeployment { reason, ..awaited.clone() }, object)));
    match api.get_opt(&awaited.name).await {
        Ok(Some(object)) => {
            let mut data = object.data;
            data["metadata"] = serde_json::json!({"generation": object.metadata.generation});
            match unavailable(&data) {
                Some(reason) => still_awaited(reason, data),
                None => Ok(None),
            }
        }
        Ok(None) => still_awaited("it is gone".to_owned(), Value::Null),
        Err(error) if error::is_transient(&error) => {
            let doing = format!("look at Deployment {}/{}", awaited.namespace, awaited.name);
            still_awaited(cluster.failed(doing, error).to_string(), Value::Null)
        }
        Err(error) => {
            let doing = format!("look at Deployment {}/{}", awaited.namespace, awaited.name);
            Err(cluster.failed(doing, error))
        }
    }
}

/// Why a Deployment is not available; none if it is.
fn unavailable(deployment: &Value) -> Option<String> {
    let status = &deployment["status"];
    let seen = status["observedGeneration"].as_i64();
    if seen.is_some_and(|seen| deployment["metadata"]["generation"].as_i64().is_some_and(|it| seen < it)) {
        return Some("its last change was not acted upon yet".to_owned());
    }
    let conditions = status["conditions"].as_array();
    let find = |kind: &str| conditions.into_iter().flatten().find(|it| it["type"] == kind);
    if find("Available").is_some_and(|it| it["status"] == "True") {
        return None;
    }
    let failure = find("ReplicaFailure").filter(|it| it["status"] == "True");
    let stuck = find("Progressing").filter(|it| it["status"] == "False");
    let said = [failure, stuck, find("Available")].into_iter().flatten();
    let words: Vec<&str> = said.filter_map(|it| it["message"].as_str()).collect();
    Some(match words.as_slice() {
        [] => "its status says nothing yet".to_owned(),
        words => words.join("; "),
    })
}

/// Adds what its Pods are waiting for.
async fn with_pods(
    cluster: &ManagementCluster,
    mut late: AwaitedDeployment,
    object: Value,
) -> Result<AwaitedDeployment, ServerError> {
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let Some(labels) = labels.filter(|it| !it.is_empty()) else { return Ok(late) };
    let pairs = labels.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    let params = ListParams::default().labels(&pairs.collect::<Vec<_>>().join(",")).limit(10);
    let pods: Api<Pod> = Api::namespaced(cluster.client().clone(), &late.namespace);
    let doing = || format!("list the Pods of Deployment {}/{}", late.namespace, late.name);
    let pods = pods.list(&params).await.map_err(|error| cluster.failed(doing(), error))?;
    for pod in pods.items {
        if let Some(reason) = waiting(&pod) {
            let name = pod.metadata.name.unwrap_or_default();
            late.reason = format!("{}; Pod {name}: {reason}", late.reason);
        }
    }
    Ok(late)
}

/// What a Pod waits for, if it says so.
fn waiting(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let of_container = containers.filter_map(|it| {
        let state = it.state.as_ref()?;
        let (reason, message) = match (&state.waiting, &state.terminated) {
            (Some(waiting), _) => (waiting.reason.as_deref(), waiting.message.as_deref()),
            (_, Some(ended)) => (ended.reason.as_deref(), ended.message.as_deref()),
            _ => return None,
        };
        let words: Vec<&str> = [reason, message].into_iter().flatten().collect();
        Some(format!("container {}: {}", it.name, words.join(": ")))
    });
    let conditions = status.conditions.iter().flatten();
    let of_pod = conditions
        .filter(|it| it.type_ == "PodScheduled" && it.status == "False")
        .map(|it| it.message.clone().or_else(|| it.reason.clone()).unwrap_or_default());
    let words: Vec<String> = of_container.chain(of_pod).collect();
    let phase = || status.phase.clone().filter(|it| it == "Pending");
    if words.is_empty() { phase() } else { Some(words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_says_why_it_is_not_available() {
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
        let available = condition("Available", "True", "has minimum availability");
        let unavailable_ = condition("Available", "False", "no minimum availability");
        let stuck = condition("Progressing", "False", "timed out");
        let moving = condition("Progressing", "True", "going on");
        let failure = condition("ReplicaFailure", "True", "quota exceeded");
        for (generation, observed, conditions, expected) in [
            (1, Some(1), json!([available]), None),
            (1, None, json!([available]), None),
            (2, Some(1), json!([available]), Some("its last change was not acted upon yet")),
            (1, Some(1), json!([moving, unavailable_]), Some("no minimum availability")),
            (1, Some(1), json!([unavailable_, stuck]), Some("timed out; no minimum availability")),
            (1, Some(1), json!([failure]), Some("quota exceeded")),
            (1, None, json!([]), Some("its status says nothing yet")),
        ] {
            let deployment = json!({
                "metadata": {"generation": generation},
                "status": {"observedGeneration": observed, "conditions": conditions},
            });
            assert_eq!(unavailable(&deployment).as_deref(), expected, "{deployment}");
        }
    }

    #[test]
    fn a_pod_says_what_it_waits_for() {
        let told = |status: Value| {
            waiting(&serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap())
        };
        let container = |state: Value| {
            json!({"name": "manager", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                   "state": state})
        };
        for (status, expected) in [
            (json!({"phase": "Running"}), None),
            (json!({"phase": "Pending"}), Some("Pending")),
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/0 nodes"}]}),
                Some("0/0 nodes"),
            ),
            (
                json!({"phase": "Pending", "containerStatuses": [container(json!({"waiting": {
                    "reason": "ImagePullBackOff", "message": "no such image"}}))]}),
                Some("container manager: ImagePullBackOff: no such image"),
            ),
            (
                json!({"containerStatuses": [container(json!({"terminated": {"reason": "Error",
                    "exitCode": 1}}))]}),
                Some("container manager: Error"),
            ),
            (json!({"containerStatuses": [container(json!({"running": {}}))]}), None),
        ] {
            assert_eq!(told(status.clone()).as_deref(), expected, "{status}");
        }
    }
}
