//! The controller's shell: what wakes it, and how a step is carried out.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::{cluster::v1beta2::Cluster, contract::owned_by_cluster, names::label};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler, resync},
    manager::Manager,
    queue::Queue,
    watch::{Change, Listener, WatchHandle, WatchState, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use kube::core::ApiResource;
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::{
    api::v1beta2::LocalCluster,
    conversion::add_converters,
    load_balancer::{ListenError, LoadBalancers},
    plan::{self, LocalRecord, OwnerRecord, Step, next_step},
};

/// The steps of one pass: finalizer, infrastructure, endpoint, status, and conflicts in between.
const MOST_STEPS: u32 = 10;

/// Flags of this controller.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// LocalClusters that are reconciled at the same time.
    pub concurrency: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 10 }
    }
}

/// Adds the provider to a manager.
pub fn register(manager: &mut Manager, options: Options) {
    let queue = Arc::new(Queue::default());
    let locals = Cache::<LocalRecord>::default();
    let clusters = Cache::<OwnerRecord>::default();
    let resource = ApiResource::erase::<LocalCluster>(&());

    let filter = Some(&manager.options().watch_filter).filter(|value| !value.is_empty());
    let target = WatchTarget {
        resource: resource.clone(),
        namespace: manager.namespace(),
        label_selector: filter.map(|value| format!("{}={value}", label::WATCH_FILTER)),
    };
    let waker =
        Arc::new(Waker { queue: Arc::clone(&queue), owned: Mutex::default(), locals: locals.clone() });
    manager.watch(target, LocalRecord::new, &locals, LocalListener(Arc::clone(&waker)));

    let target = WatchTarget {
        resource: ApiResource::erase::<Cluster>(&()),
        namespace: manager.namespace(),
        label_selector: None,
    };
    let clusters_watch = manager.watch(target, OwnerRecord::new, &clusters, ClusterListener(waker));
    let period = manager.options().sync_period;
    manager
        .background("the LocalClusters' resync", resync(period, locals.clone(), Arc::clone(&queue), || {}));

    add_converters(manager.converters());
    let reconciler = LocalReconciler {
        locals,
        clusters,
        clusters_watch,
        balancers: LoadBalancers::default(),
        writer: manager.writer("capstan-provider-local"),
        resource,
    };
    manager.controller("localcluster", &queue, Arc::new(reconciler), options.concurrency);
}

/// Turns what happens into LocalClusters to look at.
struct Waker {
    queue: Arc<Queue<ObjectKey>>,
    /// The LocalClusters that each Cluster owns.
    owned: Mutex<HashMap<ObjectKey, HashSet<ObjectKey>>>,
    locals: Cache<LocalRecord>,
}

impl Waker {
    fn owned(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashSet<ObjectKey>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LocalListener(Arc<Waker>);

impl Listener<LocalRecord> for LocalListener {
    fn changed(&self, change: Change<'_, LocalRecord>) {
        let owner = |local: Option<&Arc<LocalRecord>>| {
            let owner = owned_by_cluster(local?.metadata())?;
            Some(change.key.beside(&owner.name))
        };
        let (before, now) = (owner(change.before), owner(change.now));
        if before != now {
            let mut owned = self.0.owned();
            if let Some(before) = before
                && let Some(locals) = owned.get_mut(&before)
            {
                locals.remove(change.key);
                if locals.is_empty() {
                    owned.remove(&before);
                }
            }
            if let Some(now) = now {
                owned.entry(now).or_default().insert(change.key.clone());
            }
        }
        self.0.queue.add(change.key.clone());
    }
}

struct ClusterListener(Arc<Waker>);

impl Listener<OwnerRecord> for ClusterListener {
    fn changed(&self, change: Change<'_, OwnerRecord>) {
        for local in self.0.owned().get(change.key).into_iter().flatten() {
            self.0.queue.add(local.clone());
        }
    }

    /// Who owns what can be told only once all Clusters are known: then everybody has another look.
    fn state_changed(&self, state: &WatchState) {
        if *state == WatchState::Synced {
            for local in self.0.locals.keys() {
                self.0.queue.add(local);
            }
        }
    }
}

/// Why a pass over a LocalCluster did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The load balancer cannot listen.
    #[error("LocalCluster {key}: {source}")]
    Listen {
        /// The object.
        key: ObjectKey,
        /// Why not.
        source: ListenError,
    },
    /// Others keep writing.
    #[error("LocalCluster {0} keeps changing")]
    Restless(ObjectKey),
}

struct LocalReconciler {
    locals: Cache<LocalRecord>,
    clusters: Cache<OwnerRecord>,
    clusters_watch: Arc<WatchHandle>,
    balancers: LoadBalancers,
    writer: Writer,
    resource: ApiResource,
}

impl Reconciler for LocalReconciler {
    type Error = LocalError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, LocalError> {
        if !self.clusters_watch.was_synced() {
            return Ok(Next::Settled);
        }
        for _ in 0..MOST_STEPS {
            match self.step(key).await {
                Ok(true) => {}
                Ok(false) => return Ok(Next::Settled),
                Err(LocalError::Write(conflict)) if conflict.is_conflict() => {
                    debug!(%conflict, "deciding anew");
                    if let Some(fresh) = self.writer.read(&self.resource, key).await? {
                        self.locals.remember(key, LocalRecord::new(fresh));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(LocalError::Restless(key.clone()))
    }

    fn is_noteworthy(&self, error: &LocalError) -> bool {
        !matches!(error, LocalError::Write(error) if error.is_ordinary())
    }
}

impl LocalReconciler {
    /// Takes one step; says whether another one may follow.
    async fn step(&self, key: &ObjectKey) -> Result<bool, LocalError> {
        let Some(local) = self.locals.get(key) else {
            // Gone without our leave: its finalizer was taken off by hand.
            self.balancers.remove(key).await;
            return Ok(false);
        };
        if let Some(error) = &local.malformed {
            // Only a new state of the object can help, and that is an event.
            warn!(%error, "this LocalCluster cannot be read");
            return Ok(false);
        }
        let owner = owned_by_cluster(local.metadata()).and_then(|owner| {
            self.clusters
                .get(&key.beside(&owner.name))
                .filter(|it| it.metadata.uid.as_ref() == Some(&owner.uid))
        });
        match next_step(&local, owner.as_ref(), clock::now()) {
            Step::Leave => Ok(false),
            Step::ReportPause(patch) => {
                if let Some(patch) = patch {
                    self.write(key, Part::Status, &patch).await?;
                }
                Ok(false)
            }
            Step::AddFinalizer(patch) => {
                self.write(key, Part::Main, &patch).await?;
                Ok(true)
            }
            Step::Provision(wanted) => self.provision(key, &local, wanted.as_ref()).await,
            Step::Deprovision => {
                if let Some(patch) = plan::report_deleting(&local, clock::now()) {
                    self.write(key, Part::Status, &patch).await?;
                    return Ok(true);
                }
                self.balancers.remove(key).await;
                self.release(key, &local).await
            }
            Step::Release => self.release(key, &local).await,
        }
    }

    async fn provision(
        &self,
        key: &ObjectKey,
        local: &LocalRecord,
        wanted: Option<&capstan_api::cluster::v1beta2::ApiEndpoint>,
    ) -> Result<bool, LocalError> {
        let uid = local.metadata.uid.as_deref().unwrap_or_default();
        match self
            .balancers
            .ensure(key, uid, wanted, &local.spec.backends, |port| self.is_reserved(port))
            .await
        {
            Ok(endpoint) => {
                // The endpoint is on record before anything is called ready.
                if let Some(patch) = plan::record_endpoint(local, &endpoint) {
                    self.write(key, Part::Main, &patch).await?;
                    return Ok(true);
                }
                if let Some(patch) = plan::report_provisioned(local, clock::now()) {
                    self.write(key, Part::Status, &patch).await?;
                }
                Ok(false)
            }
            Err(source) => {
                if let Some(patch) = plan::report_trouble(local, &source.to_string(), clock::now()) {
                    self.write(key, Part::Status, &patch).await?;
                }
                Err(LocalError::Listen { key: key.clone(), source })
            }
        }
    }

    /// Whether a port is on record for a LocalCluster, which may be about to listen on it again.
    fn is_reserved(&self, port: u16) -> bool {
        self.locals.keys().iter().filter_map(|key| self.locals.get(key)).any(|local| {
            local.spec.control_plane_endpoint.as_ref().is_some_and(|it| it.port == i32::from(port))
        })
    }

    async fn release(&self, key: &ObjectKey, local: &LocalRecord) -> Result<bool, LocalError> {
        match self.writer.patch(&self.resource, key, Part::Main, &plan::finalizers(local, false)).await {
            Ok(_) => info!("released"),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(false)
    }

    async fn write(&self, key: &ObjectKey, part: Part, patch: &Value) -> Result<(), LocalError> {
        let written: Observed = self.writer.patch(&self.resource, key, part, patch).await?;
        self.locals.remember(key, LocalRecord::new(written));
        Ok(())
    }
}
