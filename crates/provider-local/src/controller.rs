//! The controller's shell: what wakes it, and how a step is carried out.

use std::sync::Arc;

use capstan_api::{cluster::v1beta2::Cluster, contract::owned_by_cluster, names::label};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler},
    manager::Manager,
    queue::Queue,
    watch::{Change, WatchHandle, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use kube::core::ApiResource;
use serde_json::Value;
use tracing::{debug, info};

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
    let wake = Arc::clone(&queue);
    manager.watch(target, LocalRecord::new, &locals, move |change: Change<'_, LocalRecord>| {
        wake.add(change.key.clone());
    });

    let target = WatchTarget {
        resource: ApiResource::erase::<Cluster>(&()),
        namespace: manager.namespace(),
        label_selector: None,
    };
    let wake = Arc::clone(&queue);
    let clusters_watch =
        manager.watch(target, OwnerRecord::new, &clusters, move |change: Change<'_, OwnerRecord>| {
            for state in [change.before, change.now].into_iter().flatten() {
                if let Some(reference) = &state.spec.infrastructure_ref
                    && reference.kind == "LocalCluster"
                {
                    wake.add(change.key.beside(&reference.name));
                }
            }
        });

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
    /// The object cannot be read.
    #[error("LocalCluster {0} cannot be read: {1}")]
    Malformed(ObjectKey, String),
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
        // Whether an owner is there can only be told once all Clusters are known.
        if !self.clusters_watch.was_synced() {
            return Ok(Next::Again(std::time::Duration::from_millis(100)));
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
            return Err(LocalError::Malformed(key.clone(), error.clone()));
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
        match self.balancers.ensure(key, uid, wanted, &local.spec.backends).await {
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
