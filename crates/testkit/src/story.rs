//! A story: a namespace of its own, and the managers that act in it.

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use capstan_api::cluster::v1beta2::Cluster;
use capstan_provider_local::api::v1beta2::LocalCluster;
use capstan_runtime::{
    manager::{Manager, ManagerError},
    metrics::Metrics,
    options::ManagerOptions,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Plane, canary, generic, shared_plane, wait};

/// One story.
pub struct Story {
    /// The control plane that it plays on.
    pub plane: Arc<Plane>,
    /// Its namespace.
    pub namespace: String,
    /// An admin's client.
    pub client: Client,
}

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Story").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Which controllers a manager runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The Cluster controller.
    Core,
    /// The LocalCluster controller.
    Local,
    /// Both.
    All,
}

/// A manager inside the test's process.
#[derive(Debug)]
pub struct RunningManager {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl RunningManager {
    /// Ends the manager in order.
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        canary::assert_never_seen();
    }

    /// Ends the manager as a crash would: in the middle of whatever it does.
    pub async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|ended| ended.is_cancelled()));
        canary::assert_never_seen();
    }
}

impl Story {
    /// Begins a story on the shared control plane.
    pub async fn begin(name: &str) -> Self {
        Self::begin_on(shared_plane().await, name).await
    }

    /// Begins a story on a given control plane.
    pub async fn begin_on(plane: Arc<Plane>, name: &str) -> Self {
        let client = plane.client().await;
        Self::begin_as(plane, client, name).await
    }

    /// Begins a story with a client that it shares with others.
    pub async fn begin_as(plane: Arc<Plane>, client: Client, name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let namespace = format!("{name}-{count}");
        let object = Namespace {
            metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self { plane, namespace, client }
    }

    /// Runs controllers for this story's namespace.
    pub fn manager(&self, which: Which) -> RunningManager {
        self.manager_on(self.client.clone(), which)
    }

    /// Runs controllers on a client of the story's choice.
    pub fn manager_on(&self, client: Client, which: Which) -> RunningManager {
        self.manager_with(client, which, "story", ManagerOptions::embedded())
    }

    /// Runs the Cluster controller with options of the story's choice.
    pub fn core_manager(&self, options: capstan_cluster::Options) -> RunningManager {
        self.manager_of(self.client.clone(), Which::Core, "story", ManagerOptions::embedded(), options)
    }

    /// Runs controllers that act only while they hold the Lease `story` in this story's namespace.
    pub async fn elected_manager(&self, which: Which, host: &str) -> RunningManager {
        let mut config = self.plane.config().await;
        config.default_namespace.clone_from(&self.namespace);
        let client = Client::try_from(config).unwrap();
        let options = ManagerOptions {
            leader_elect: true,
            leader_elect_lease_duration: Duration::from_secs(10),
            leader_elect_renew_deadline: Duration::from_secs(8),
            leader_elect_retry_period: Duration::from_millis(200),
            ..ManagerOptions::embedded()
        };
        self.manager_with(client, which, host, options)
    }

    /// Runs the Cluster controller for all namespaces. The control plane must be the story's own.
    pub fn core_manager_everywhere(&self, options: capstan_cluster::Options) -> RunningManager {
        Self::run(self.client.clone(), "story", ManagerOptions::embedded(), |manager| {
            capstan_cluster::register(manager, options);
        })
    }

    fn manager_with(
        &self,
        client: Client,
        which: Which,
        host: &str,
        options: ManagerOptions,
    ) -> RunningManager {
        let core = capstan_cluster::Options { concurrency: 10, ..capstan_cluster::Options::default() };
        self.manager_of(client, which, host, options, core)
    }

    fn manager_of(
        &self,
        client: Client,
        which: Which,
        host: &str,
        options: ManagerOptions,
        core: capstan_cluster::Options,
    ) -> RunningManager {
        let options = ManagerOptions { namespace: self.namespace.clone(), ..options };
        Self::run(client, host, options, |manager| {
            if which != Which::Local {
                capstan_cluster::register(manager, core);
            }
            if which != Which::Core {
                let options = capstan_provider_local::Options { concurrency: 10 };
                capstan_provider_local::register(manager, options).unwrap();
            }
        })
    }

    /// Starts a manager of one's own making on a client of one's own.
    pub fn manager_that(&self, client: Client, register: impl FnOnce(&mut Manager)) -> RunningManager {
        let options = ManagerOptions { namespace: self.namespace.clone(), ..ManagerOptions::embedded() };
        Self::run(client, "story", options, register)
    }

    /// Every manager of a story is searched for what only Secrets may hold.
    fn run(
        client: Client,
        host: &str,
        options: ManagerOptions,
        register: impl FnOnce(&mut Manager),
    ) -> RunningManager {
        canary::search_the_log();
        let (client, stop) = (canary::searched(client), CancellationToken::new());
        let mut manager = Manager::new(options, client, Metrics::default(), "story", host, stop.clone());
        register(&mut manager);
        RunningManager { stop, task: tokio::spawn(manager.run()) }
    }

    /// Clusters in this story.
    pub fn clusters(&self) -> Api<Cluster> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// LocalClusters in this story.
    pub fn locals(&self) -> Api<LocalCluster> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of a generic kind in this story.
    pub fn generics(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &generic::resource(kind))
    }

    /// Secrets in this story.
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a Secret with canaries. `label` is the Cluster whose label shows it to the manager.
    pub async fn create_secret(&self, name: &str, label: Option<&str>, data: &[(&str, &[u8])]) -> Secret {
        let labels = label.map(|cluster| json!({"cluster.x-k8s.io/cluster-name": cluster}));
        let secret = json!({"metadata": {"name": name, "labels": labels}, "data": canary::plant(data)});
        let secret = serde_json::from_value(secret).unwrap();
        self.secrets().create(&PostParams::default(), &secret).await.unwrap()
    }

    /// Changes some of a Secret's contents.
    pub async fn change_secret(&self, name: &str, data: &[(&str, &[u8])]) -> Secret {
        let patch = Patch::Merge(json!({"data": canary::plant(data)}));
        self.secrets().patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    /// Creates a Cluster that refers to an object.
    pub async fn create_cluster(&self, name: &str, kind: &str, infrastructure: &str) -> Cluster {
        self.create_cluster_with(name, json!({"infrastructureRef": reference(kind, infrastructure)})).await
    }

    /// Creates a Cluster with a given spec.
    pub async fn create_cluster_with(&self, name: &str, spec: Value) -> Cluster {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name}, "spec": spec,
        });
        let cluster = serde_json::from_value(cluster).unwrap();
        self.clusters().create(&PostParams::default(), &cluster).await.unwrap()
    }

    /// Creates a LocalCluster with a given spec.
    pub async fn create_local(&self, name: &str, spec: Value) -> LocalCluster {
        let local = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "LocalCluster",
            "metadata": {"name": name}, "spec": spec,
        });
        let local = serde_json::from_value(local).unwrap();
        self.locals().create(&PostParams::default(), &local).await.unwrap()
    }

    /// Creates an object of a generic kind.
    pub async fn create_generic(&self, kind: &str, name: &str, spec: Value) -> DynamicObject {
        let object = DynamicObject::new(name, &generic::resource(kind)).data(json!({ "spec": spec }));
        self.generics(kind).create(&PostParams::default(), &object).await.unwrap()
    }

    /// Sets the status of an object of a generic kind.
    pub async fn set_generic_status(&self, kind: &str, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.generics(kind).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits for a Cluster's phase.
    pub async fn until_phase(&self, name: &str, phase: &str, limit: Duration) -> Cluster {
        wait::until_is(&self.clusters(), name, phase, limit, |cluster| {
            cluster.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase)
        })
        .await
    }
}

/// A reference to an object in the infrastructure group.
pub fn reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": generic::GROUP, "kind": kind, "name": name})
}
