//! The controller's shell: what wakes it, what it reads, and how a plan is carried out.

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::Cluster,
    contract::{GroupKind, crd_name, owned_by_cluster},
    names::{CORE_GROUP, label},
};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler, resync},
    events::{Recorder, Severity},
    hub::{Hub, HubListener},
    manager::Manager,
    patch::guarded_by_lists,
    queue::Queue,
    watch::{Change, WatchState, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use k8s_openapi::{
    api::core::v1::ObjectReference as EventTarget,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::{
    class::ClassWatch,
    connection::{self, ConnectionOptions, Connections},
    conversion::converter,
    crds::{CrdReader, CrdRecord, Crds},
    descendants::{DescendantWatch, search},
    foreign::Foreign,
    index::ReferenceIndex,
    known::KnownCluster,
    plan::{Plan, PlannedEvent, Release, plan as make_plan},
    resolve::Resolver,
    snapshot::{ClusterRecord, Snapshot},
};

/// The guards of a pass's first attempts; each one after the first follows a conflict.
const GUARDS: [Guard; 4] = [Guard::Version, Guard::Lists, Guard::Lists, Guard::Lists];

/// Flags of this controller.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Clusters that are reconciled at the same time.
    pub concurrency: usize,
    /// How workload clusters are connected to.
    pub connections: ConnectionOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 16, connections: ConnectionOptions::default() }
    }
}

/// Adds the Cluster controller to a manager.
pub fn register(manager: &mut Manager, options: Options) {
    let queue = Arc::new(Queue::default());
    let index = Arc::new(ReferenceIndex::default());
    let clusters = Cache::<KnownCluster>::default();
    let crds = Arc::new(Crds::default());
    let waker =
        Arc::new(Waker { queue: Arc::clone(&queue), index: Arc::clone(&index), clusters: clusters.clone() });
    let recorder = manager.recorder("cluster-controller");
    let connections = connection::register(manager, options.connections, &clusters, &queue, recorder.clone());
    let listener = Arc::clone(&waker) as Arc<dyn HubListener<Foreign>>;
    let project = |_: &GroupKind, object| Foreign::new(object);
    let hub = Hub::new(manager.client(), manager.namespace(), project, listener, manager.outages());
    let hub = Arc::new(hub);

    let filter = Some(&manager.options().watch_filter).filter(|value| !value.is_empty());
    let target = WatchTarget {
        resource: ApiResource::erase::<Cluster>(&()),
        namespace: manager.namespace(),
        label_selector: filter.map(|value| format!("{}={value}", label::WATCH_FILTER)),
        field_selector: None,
    };
    let (on_cluster, connected) = (Arc::clone(&waker), connections.clone());
    manager.watch(target, KnownCluster::new, &clusters, move |change: Change<'_, KnownCluster>| {
        connected.observe(change.key);
        on_cluster.cluster_changed(&change);
    });

    let target = WatchTarget {
        resource: ApiResource::erase::<CustomResourceDefinition>(&()),
        namespace: None,
        label_selector: None,
        field_selector: None,
    };
    let descendants = Arc::new(DescendantWatch::new(manager, Arc::clone(&crds), Arc::clone(&waker)));
    let classes = Arc::new(ClassWatch::new(manager, Arc::clone(&crds), Arc::clone(&waker)));
    let on_details = Arc::clone(&waker);
    let reader = Arc::new(CrdReader::new(
        manager.client(),
        manager.outages(),
        Arc::new(move |crd: &str| on_details.wake_users_of(|kind| crd_name(&kind.group, &kind.kind) == crd)),
    ));
    let on_crd = CrdListener {
        waker: Arc::clone(&waker),
        hub: Arc::clone(&hub),
        descendants: Arc::clone(&descendants),
        classes: Arc::clone(&classes),
    };
    crds.watched_by(manager.watch_metadata(target, CrdRecord::new, &crds.records, on_crd));

    crate::admission::register(manager.admitters());
    manager
        .converters()
        .add(GroupKind::new(CORE_GROUP, "Cluster"), converter(crds.records.clone(), Arc::clone(&reader)));
    let (used, watched, read) = (Arc::clone(&index), Arc::clone(&hub), Arc::clone(&reader));
    let (family, class) = (Arc::clone(&descendants), Arc::clone(&classes));
    let drop_unused = move || {
        watched.retain(|kind| used.uses(kind));
        read.retain(|crd| used.uses_crd(crd));
        family.drop_unused();
        class.drop_unused();
    };
    let period = manager.options().sync_period;
    manager.background(
        "the Clusters' resync",
        resync(period, clusters.clone(), Arc::clone(&queue), drop_unused),
    );
    let reconciler = ClusterReconciler {
        clusters,
        index,
        resolver: Resolver { crds, reader, hub },
        descendants,
        classes,
        writer: manager.writer("capstan-cluster"),
        recorder,
        connections,
        resource: ApiResource::erase::<Cluster>(&()),
    };
    manager.controller("cluster", &queue, Arc::new(reconciler), options.concurrency);
}

/// Turns what happens into Clusters to look at.
pub(crate) struct Waker {
    queue: Arc<Queue<ObjectKey>>,
    index: Arc<ReferenceIndex>,
    clusters: Cache<KnownCluster>,
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

impl Waker {
    fn cluster_changed(&self, change: &Change<'_, KnownCluster>) {
        self.index.update(change.key, change.now.map(|now| now.bare()));
        self.queue.add(change.key.clone());
    }

    /// Looks at a Cluster, if there is one of that name.
    pub(crate) fn wake(&self, cluster: ObjectKey) {
        if self.clusters.get(&cluster).is_some() {
            self.queue.add(cluster);
        }
    }

    /// Looks at all Clusters.
    pub(crate) fn wake_all(&self) {
        self.clusters.keys().into_iter().for_each(|cluster| self.queue.add(cluster));
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
    descendants: Arc<DescendantWatch>,
    classes: Arc<ClassWatch>,
}

impl capstan_runtime::watch::Listener<CrdRecord> for CrdListener {
    fn changed(&self, change: Change<'_, CrdRecord>) {
        self.hub.crd_changed(&change.key.name);
        self.descendants.crd_changed(&change.key.name);
        self.classes.crd_changed(&change.key.name);
        let labels = |record: Option<&Arc<CrdRecord>>| record.map(|record| record.metadata().labels.clone());
        if labels(change.before) != labels(change.now)
            && let Some((_, group)) = change.key.name.split_once('.')
        {
            self.waker.wake_users_of(|kind| kind.group == group);
        }
    }

    fn state_changed(&self, _state: &WatchState) {
        self.waker.wake_all();
    }
}

/// How a write is kept from overwriting another controller's.
#[derive(Clone, Copy, Debug)]
enum Guard {
    /// The object must not have been written to at all since it was read.
    Version,
    /// The lists that the write replaces must be as they were. Others may write everything else, all the time.
    Lists,
}

/// Why a pass over a Cluster did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An object exists although the caches lack it.
    #[error("{kind} {key} still exists although the watch reported its deletion")]
    NotGone {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
}

struct ClusterReconciler {
    clusters: Cache<KnownCluster>,
    index: Arc<ReferenceIndex>,
    resolver: Resolver,
    descendants: Arc<DescendantWatch>,
    classes: Arc<ClassWatch>,
    writer: Writer,
    recorder: Recorder,
    connections: Connections,
    resource: ApiResource,
}

impl Reconciler for ClusterReconciler {
    type Error = ClusterError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ClusterError> {
        for guard in GUARDS {
            match self.pass(key, guard).await {
                Err(ClusterError::Write(conflict)) if conflict.is_conflict() => {
                    debug!(%conflict, "planning again");
                    self.refresh(key).await?;
                }
                other => return other,
            }
        }
        self.pass(key, Guard::Version).await
    }

    fn is_noteworthy(&self, error: &ClusterError) -> bool {
        !matches!(error, ClusterError::Write(error) if error.is_ordinary())
    }
}

impl ClusterReconciler {
    /// Reads, decides, acts: once.
    async fn pass(&self, key: &ObjectKey, guard: Guard) -> Result<Next, ClusterError> {
        let Some(known) = self.clusters.get(key) else {
            return Ok(Next::Settled);
        };
        let cluster = Arc::new(known.unpack());
        if let Some(error) = &cluster.malformed {
            // Only a new state of the object can help, and that is an event.
            warn!(%error, "this Cluster cannot be read");
            let message = format!("This Cluster cannot be read: {error}");
            self.recorder.record(&self.event_target(key, &cluster), Severity::Warning, "Malformed", message);
            return Ok(Next::Settled);
        }
        let resolve = |reference, field| self.resolver.resolve(key, reference, field);
        let infrastructure = resolve(cluster.spec.infrastructure_ref.as_ref(), "spec.infrastructureRef");
        let control_plane = resolve(cluster.spec.control_plane_ref.as_ref(), "spec.controlPlaneRef");
        // Once its kinds are loaded, the Cluster is woken again; until then every word about it would be a guess.
        let (Some(infrastructure), Some(control_plane)) = (infrastructure, control_plane) else {
            return Ok(Next::Settled);
        };
        let (Some(descendants), Some(class_gates)) =
            (self.descendants.of(key), self.classes.gates_of(&cluster))
        else {
            return Ok(Next::Settled);
        };
        let snapshot = Snapshot {
            cluster,
            infrastructure,
            control_plane,
            descendants,
            class_gates,
            connection: self.connections.health(key),
            connection_grace: self.connections.grace_period(),
        };
        let plan = make_plan(&snapshot, clock::now());
        let next = plan.again.map_or(Next::Settled, Next::Again);
        let carried_out = self.carry_out(key, &snapshot, plan, guard).await;
        // The echo of our own writes wakes no worker, so connections are notified of them here.
        self.connections.observe(key);
        carried_out?;
        Ok(next)
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        snapshot: &Snapshot,
        plan: Plan,
        guard: Guard,
    ) -> Result<(), ClusterError> {
        // The finalizer is there before anything else happens.
        let cluster = &snapshot.cluster;
        let mut version = cluster.metadata.resource_version.clone();
        if let Some(patch) = plan.cluster {
            let written =
                self.write(&self.resource, key, Part::Main, || cluster.as_written(), patch, guard).await?;
            version.clone_from(&written.metadata.resource_version);
            self.clusters.remember(key, KnownCluster::new(written));
        }
        let mut failure = None;
        for adoption in &plan.adoptions {
            let (resource, before) = (&adoption.resource, || adoption.before.clone());
            let patch = adoption.patch.clone();
            match self.write(resource, &adoption.key, Part::Main, before, patch, guard).await {
                Ok(written) => {
                    self.resolver.remember(&adoption.resource, &adoption.key, Foreign::new(written));
                }
                Err(error) => failure = Some((&adoption.resource, error)),
            }
        }
        if plan.only_if_childless {
            self.expect_no_descendants(key, &snapshot.cluster).await?;
        }
        for deletion in &plan.deletions {
            info!(kind = %deletion.resource.kind, object = %deletion.key, "deleting");
            match self.writer.delete(&deletion.resource, &deletion.key, &deletion.uid).await {
                Ok(()) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => failure = Some((&deletion.resource, error)),
            }
        }
        if let Some((resource, error)) = failure {
            if let Some(words) = error.lasting_refusal() {
                let words = format!("the API server refused a request for it: {words}");
                let refused = snapshot.with_refusal(resource, &words);
                let plan = make_plan(&refused, clock::now());
                self.report(key, snapshot, plan.status, plan.events, version, guard).await?;
            }
            return Err(error.into());
        }
        // Events are recorded only after the write.
        let released = plan.release.is_some();
        let events = if released { Vec::new() } else { plan.events.clone() };
        self.report(key, snapshot, plan.status, events, version, guard).await?;
        if let Some(release) = &plan.release {
            self.release(key, release).await?;
            self.tell(key, snapshot, plan.events);
        }
        Ok(())
    }

    /// Sends a merge patch that carries the version it was decided on, under a guard. `before` is what it was decided
    /// on, as far as it matters.
    async fn write(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        part: Part,
        before: impl FnOnce() -> Value + Send,
        mut patch: Value,
        guard: Guard,
    ) -> Result<Observed, WriteError> {
        if matches!(guard, Guard::Version) {
            return self.writer.patch(resource, key, part, &patch).await;
        }
        let before = before();
        // Into a status that is not there yet nothing can be put piece by piece.
        if part == Part::Status && before["status"].as_object().is_none_or(serde_json::Map::is_empty) {
            return self.writer.patch(resource, key, part, &patch).await;
        }
        if let Some(metadata) = patch["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let uid = before["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let operations = guarded_by_lists(&before, &patch);
        self.writer.patch_by_operations(resource, key, part, &uid, operations).await
    }

    /// Writes the status and records events.
    async fn report(
        &self,
        key: &ObjectKey,
        snapshot: &Snapshot,
        status: Option<Value>,
        events: Vec<PlannedEvent>,
        version: Option<String>,
        guard: Guard,
    ) -> Result<(), ClusterError> {
        if let Some(mut patch) = status {
            // What the plan was made from guards the write: other writers' conditions are never lost.
            patch["metadata"] = json!({ "resourceVersion": version });
            let before = || snapshot.cluster.as_written();
            let written = self.write(&self.resource, key, Part::Status, before, patch, guard).await?;
            self.clusters.remember(key, KnownCluster::new(written));
        }
        self.tell(key, snapshot, events);
        Ok(())
    }

    /// Asks past all caches whether a Machine has come up that must go first.
    async fn expect_no_descendants(
        &self,
        key: &ObjectKey,
        cluster: &ClusterRecord,
    ) -> Result<(), ClusterError> {
        let has_control_plane = cluster.spec.control_plane_ref.is_some();
        match search(&self.writer, &self.descendants.installed(), key, has_control_plane).await? {
            Some((kind, found)) => Err(ClusterError::NotGone { kind: kind.name().to_owned(), key: found }),
            None => Ok(()),
        }
    }

    /// Removes the Cluster's finalizer, if past all caches the objects it waited for do not exist.
    ///
    /// It must not have been written to since: it may have been paused.
    async fn release(&self, key: &ObjectKey, release: &Release) -> Result<(), ClusterError> {
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
        Ok(())
    }

    fn tell(&self, key: &ObjectKey, snapshot: &Snapshot, events: Vec<PlannedEvent>) {
        let target = self.event_target(key, &snapshot.cluster);
        for event in events {
            self.recorder.record(&target, event.severity, event.reason, event.message);
        }
    }

    fn event_target(&self, key: &ObjectKey, cluster: &ClusterRecord) -> EventTarget {
        EventTarget {
            api_version: Some(self.resource.api_version.clone()),
            kind: Some(self.resource.kind.clone()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: cluster.metadata.uid.clone(),
            ..EventTarget::default()
        }
    }

    /// Reads what a plan was made from once more, past the caches.
    ///
    /// The Cluster comes last: it is what others write to all the time, and the next write is guarded by its version.
    async fn refresh(&self, key: &ObjectKey) -> Result<(), ClusterError> {
        let known = self.clusters.get(key).map(|cluster| cluster.bare().spec.clone()).unwrap_or_default();
        for reference in [known.infrastructure_ref, known.control_plane_ref].iter().flatten() {
            let Some(resource) = self.resolver.resource_of(reference) else {
                continue;
            };
            let object = key.beside(&reference.name);
            if let Some(found) = self.writer.read(&resource, &object).await? {
                self.resolver.remember(&resource, &object, Foreign::new(found));
            }
        }
        if let Some(cluster) = self.writer.read(&self.resource, key).await? {
            let cluster = KnownCluster::new(cluster);
            self.index.update(key, Some(cluster.bare()));
            self.clusters.remember(key, cluster);
        }
        Ok(())
    }
}
