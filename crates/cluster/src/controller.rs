//! The controller's shell: what wakes it, what it reads, and how a plan is carried out.

use std::{sync::Arc, time::Duration};

use capstan_api::{
    cluster::v1beta2::Cluster,
    contract::{GroupKind, owned_by_cluster},
    names::{CORE_GROUP, label},
};
use capstan_runtime::{
    ObjectKey,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler},
    events::Recorder,
    hub::{Hub, HubListener},
    manager::Manager,
    queue::Queue,
    watch::{Change, WatchState, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use k8s_openapi::{
    api::core::v1::ObjectReference as EventTarget,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::ApiResource;
use serde_json::json;
use tracing::{debug, info};

use crate::{
    conversion::converter,
    foreign::Foreign,
    index::ReferenceIndex,
    plan::{ObjectPatch, Plan, plan},
    resolve::{CrdRecord, Resolver},
    snapshot::{ClusterRecord, Snapshot},
};

/// How often a write is planned anew within one pass when others keep writing in between.
const CONFLICT_TRIES: u32 = 5;

/// Flags of this controller.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Clusters that are reconciled at the same time.
    pub concurrency: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 50 }
    }
}

/// Adds the Cluster controller to a manager.
pub fn register(manager: &mut Manager, options: Options) {
    let queue = Arc::new(Queue::default());
    let index = Arc::new(ReferenceIndex::default());
    let clusters = Cache::<ClusterRecord>::default();
    let crds = Cache::<CrdRecord>::default();
    let waker = Arc::new(Waker { queue: Arc::clone(&queue), index: Arc::clone(&index) });
    let hub = Arc::new(Hub::new(
        manager.client(),
        manager.namespace(),
        Foreign::new,
        Arc::clone(&waker) as Arc<dyn HubListener<Foreign>>,
    ));

    let filter = Some(&manager.options().watch_filter).filter(|value| !value.is_empty());
    let target = WatchTarget {
        resource: ApiResource::erase::<Cluster>(&()),
        namespace: manager.namespace(),
        label_selector: filter.map(|value| format!("{}={value}", label::WATCH_FILTER)),
    };
    let on_cluster = Arc::clone(&waker);
    manager.watch(target, ClusterRecord::new, &clusters, move |change: Change<'_, ClusterRecord>| {
        on_cluster.cluster_changed(&change);
    });

    let target = WatchTarget {
        resource: ApiResource::erase::<CustomResourceDefinition>(&()),
        namespace: None,
        label_selector: None,
    };
    let on_crd = CrdListener { waker: Arc::clone(&waker), hub: Arc::clone(&hub) };
    let crds_watch = manager.watch_metadata(target, CrdRecord::new, &crds, on_crd);

    manager.converters().add(GroupKind::new(CORE_GROUP, "Cluster"), converter(crds.clone()));
    manager.background(
        "the Clusters' resync",
        resync(manager.options().sync_period, clusters.clone(), Arc::clone(&waker), Arc::clone(&hub)),
    );
    let reconciler = ClusterReconciler {
        clusters,
        resolver: Resolver { crds, crds_watch, hub },
        writer: manager.writer("capstan-cluster"),
        recorder: manager.recorder("cluster-controller"),
        resource: ApiResource::erase::<Cluster>(&()),
    };
    manager.controller("cluster", &queue, Arc::new(reconciler), options.concurrency);
}

/// Turns what happens into Clusters to look at.
struct Waker {
    queue: Arc<Queue<ObjectKey>>,
    index: Arc<ReferenceIndex>,
}

impl Waker {
    fn cluster_changed(&self, change: &Change<'_, ClusterRecord>) {
        self.index.update(change.key, change.before.map(|it| &**it), change.now.map(|it| &**it));
        self.queue.add(change.key.clone());
    }

    fn wake_users_of(&self, fits: impl Fn(&GroupKind) -> bool) {
        for cluster in self.index.clusters_of_kinds(fits) {
            self.queue.add(cluster);
        }
    }
}

impl HubListener<Foreign> for Waker {
    fn changed(&self, kind: &GroupKind, change: Change<'_, Foreign>) {
        for cluster in self.index.clusters_of(kind, change.key) {
            self.queue.add(cluster);
        }
        // A Cluster that has let go of the object may still be waiting for it to go.
        for state in [change.before, change.now].into_iter().flatten() {
            if let Some(owner) = owned_by_cluster(state.metadata()) {
                self.queue.add(change.key.beside(&owner.name));
            }
        }
    }

    fn state_changed(&self, kind: &GroupKind, state: &WatchState) {
        debug!(%kind, ?state, "watch state");
        self.wake_users_of(|used| used == kind);
    }
}

struct CrdListener {
    waker: Arc<Waker>,
    hub: Arc<Hub<Foreign>>,
}

impl capstan_runtime::watch::Listener<CrdRecord> for CrdListener {
    fn changed(&self, change: Change<'_, CrdRecord>) {
        self.hub.crd_changed(&change.key.name);
        let labels = |record: Option<&Arc<CrdRecord>>| record.map(|record| record.metadata().labels.clone());
        if labels(change.before) != labels(change.now)
            && let Some((_, group)) = change.key.name.split_once('.')
        {
            self.waker.wake_users_of(|kind| kind.group == group);
        }
    }

    fn state_changed(&self, _state: &WatchState) {
        self.waker.wake_users_of(|_| true);
    }
}

/// Looks at every Cluster from time to time, spread over the period, and drops watches that nobody needs.
async fn resync(period: Duration, clusters: Cache<ClusterRecord>, waker: Arc<Waker>, hub: Arc<Hub<Foreign>>) {
    loop {
        let keys = clusters.keys();
        let pause = period / u32::try_from(keys.len().max(1)).unwrap_or(u32::MAX);
        if keys.is_empty() {
            tokio::time::sleep(period).await;
        }
        for key in keys {
            tokio::time::sleep(pause).await;
            waker.queue.add(key);
        }
        hub.retain(|kind| waker.index.uses(kind));
    }
}

/// Why a pass over a Cluster did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The object cannot be read.
    #[error("Cluster {0} cannot be read: {1}")]
    Malformed(ObjectKey, String),
    /// Something that seemed gone is there.
    #[error("{kind} {key} is still there although the watch says that it is gone")]
    NotGone {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
}

struct ClusterReconciler {
    clusters: Cache<ClusterRecord>,
    resolver: Resolver,
    writer: Writer,
    recorder: Recorder,
    resource: ApiResource,
}

impl Reconciler for ClusterReconciler {
    type Error = ClusterError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ClusterError> {
        for _ in 1..CONFLICT_TRIES {
            match self.pass(key).await {
                Err(ClusterError::Write(conflict)) if conflict.is_conflict() => {
                    debug!(%conflict, "planning anew");
                    self.refresh(key).await?;
                }
                other => return other,
            }
        }
        self.pass(key).await
    }

    fn is_noteworthy(&self, error: &ClusterError) -> bool {
        !matches!(error, ClusterError::Write(error) if error.is_conflict())
    }
}

impl ClusterReconciler {
    /// Reads, decides, acts: once.
    async fn pass(&self, key: &ObjectKey) -> Result<Next, ClusterError> {
        let Some(cluster) = self.clusters.get(key) else {
            return Ok(Next::Settled);
        };
        if let Some(error) = &cluster.malformed {
            return Err(ClusterError::Malformed(key.clone(), error.clone()));
        }
        let resolve = |reference, field| self.resolver.resolve(key, reference, field);
        let infrastructure = resolve(cluster.spec.infrastructure_ref.as_ref(), "spec.infrastructureRef");
        let control_plane = resolve(cluster.spec.control_plane_ref.as_ref(), "spec.controlPlaneRef");
        // Once its kinds are loaded, the Cluster is woken again; until then every word about it would be a guess.
        let (Some(infrastructure), Some(control_plane)) = (infrastructure, control_plane) else {
            return Ok(Next::Settled);
        };
        let snapshot = Snapshot { cluster, infrastructure, control_plane };
        let plan = plan(&snapshot, clock::now());
        self.carry_out(key, &snapshot, plan).await?;
        Ok(Next::Settled)
    }

    async fn carry_out(&self, key: &ObjectKey, snapshot: &Snapshot, plan: Plan) -> Result<(), ClusterError> {
        // The finalizer is there before anything else happens.
        let mut version = snapshot.cluster.metadata.resource_version.clone();
        if let Some(patch) = &plan.cluster {
            let written = self.writer.patch(&self.resource, key, Part::Main, patch).await?;
            version.clone_from(&written.metadata.resource_version);
            self.clusters.remember(key, ClusterRecord::new(written));
        }
        let mut failure = None;
        for (index, adoption) in plan.adoptions.iter().enumerate() {
            match self.writer.patch(&adoption.resource, &adoption.key, Part::Main, &adoption.patch).await {
                Ok(written) => {
                    self.resolver.remember(&adoption.resource, &adoption.key, Foreign::new(written));
                }
                Err(error) => failure = Some((Some(index), error)),
            }
        }
        for deletion in &plan.deletions {
            info!(kind = %deletion.resource.kind, object = %deletion.key, "deleting");
            match self.writer.delete(&deletion.resource, &deletion.key, &deletion.uid).await {
                Ok(()) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => failure = Some((None, error)),
            }
        }
        if let Some((index, error)) = failure {
            if let Some(index) = index.filter(|_| matches!(error, WriteError::Refused { .. })) {
                self.report_refusal(key, snapshot, &plan.adoptions[index], &error, version).await?;
            }
            return Err(error.into());
        }
        if let Some(mut patch) = plan.status {
            // What the plan was made from guards the write: other writers' conditions are never lost.
            patch["metadata"] = json!({ "resourceVersion": version });
            let written = self.writer.patch(&self.resource, key, Part::Status, &patch).await?;
            self.clusters.remember(key, ClusterRecord::new(written));
        }
        if let Some(release) = &plan.release {
            for (resource, gone) in &release.gone {
                if self.writer.read(resource, gone).await?.is_some() {
                    return Err(ClusterError::NotGone { kind: resource.kind.clone(), key: gone.clone() });
                }
            }
            match self.writer.patch(&self.resource, key, Part::Main, &release.patch).await {
                Ok(_) => info!("deleted"),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let target = EventTarget {
            api_version: Some(self.resource.api_version.clone()),
            kind: Some(self.resource.kind.clone()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: snapshot.cluster.metadata.uid.clone(),
            ..EventTarget::default()
        };
        for event in plan.events {
            self.recorder.record(&target, event.severity, event.reason, event.message);
        }
        Ok(())
    }

    /// An object that the server does not let us adopt is shown as such, instead of as waiting.
    async fn report_refusal(
        &self,
        key: &ObjectKey,
        snapshot: &Snapshot,
        adoption: &ObjectPatch,
        error: &WriteError,
        version: Option<String>,
    ) -> Result<(), ClusterError> {
        let refused = snapshot.with_refusal(&adoption.resource, &error.to_string());
        if let Some(mut patch) = plan(&refused, clock::now()).status {
            patch["metadata"] = json!({ "resourceVersion": version });
            let written = self.writer.patch(&self.resource, key, Part::Status, &patch).await?;
            self.clusters.remember(key, ClusterRecord::new(written));
        }
        Ok(())
    }

    /// Reads what a plan was made from once more, past the caches.
    async fn refresh(&self, key: &ObjectKey) -> Result<(), ClusterError> {
        let Some(cluster) = self.writer.read(&self.resource, key).await? else {
            return Ok(());
        };
        let cluster = ClusterRecord::new(cluster);
        let references = [cluster.spec.infrastructure_ref.clone(), cluster.spec.control_plane_ref.clone()];
        self.clusters.remember(key, cluster);
        for reference in references.iter().flatten() {
            let Some(resource) = self.resolver.resource_of(reference) else {
                continue;
            };
            let object = key.beside(&reference.name);
            if let Some(found) = self.writer.read(&resource, &object).await? {
                self.resolver.remember(&resource, &object, Foreign::new(found));
            }
        }
        Ok(())
    }
}
