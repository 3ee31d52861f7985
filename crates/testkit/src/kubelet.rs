//! Plays kubelet: Deployments become available without Pods.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use tokio::task::JoinHandle;

/// Makes every Deployment available with the replicas that it asks for, until dropped.
pub struct Kubelet {
    client: Client,
    held_back: Arc<Mutex<HashSet<String>>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Kubelet").field("held_back", &self.held_back).finish_non_exhaustive()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelet {
    /// Begins.
    pub fn start(client: Client) -> Self {
        let held_back = Arc::default();
        let task = tokio::spawn(run(client.clone(), Arc::clone(&held_back)));
        Self { client, held_back, task }
    }

    /// Keeps a Deployment from becoming available.
    pub fn hold_back(&self, deployment: &str) {
        self.held_back.lock().unwrap().insert(deployment.to_owned());
    }

    /// Makes a Deployment available that was held back.
    pub async fn let_go(&self, namespace: &str, deployment: &str) {
        self.held_back.lock().unwrap().remove(deployment);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let found = deployments.get(deployment).await.unwrap();
        report(&self.client, &found, true).await;
    }
}

async fn run(client: Client, held_back: Arc<Mutex<HashSet<String>>>) {
    let all: Api<Deployment> = Api::all(client.clone());
    let mut deployments =
        Box::pin(watcher(all, watcher::Config::default()).default_backoff().applied_objects());
    while let Some(event) = deployments.next().await {
        let Ok(deployment) = event else { continue };
        let is_available = !held_back.lock().unwrap().contains(&deployment.name_any());
        let status = deployment.status.clone().unwrap_or_default();
        if status.observed_generation != deployment.metadata.generation
            || status.replicas.unwrap_or(0) != replicas(&deployment)
        {
            report(&client, &deployment, is_available).await;
        }
    }
}

fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|it| it.replicas).unwrap_or(1)
}

async fn report(client: &Client, deployment: &Deployment, is_available: bool) {
    let replicas = replicas(deployment);
    let (available, status) = if is_available { (replicas, "True") } else { (0, "False") };
    let condition =
        json!({"type": "Available", "status": status, "reason": "MinimumReplicas", "message": ""});
    let patch = json!({"status": {
        "observedGeneration": deployment.metadata.generation,
        "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": available, "availableReplicas": available,
        "conditions": [condition],
    }});
    let api: Api<Deployment> = Api::namespaced(client.clone(), &deployment.namespace().unwrap());
    // A Deployment may be gone meanwhile.
    let _ = api.patch_status(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
}
