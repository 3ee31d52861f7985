//! The controller's shell: what wakes it, and how a step is carried out.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::{cluster::v1beta2::Cluster, contract::owned_by_cluster, names::label};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    clock,
    controller::{Next, Reconciler, resync, with_causes},
    events::{Recorder, Severity},
    manager::Manager,
    queue::Queue,
    watch::{Change, Listener, WatchHandle, WatchState, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use k8s_openapi::{
    api::core::v1::ObjectReference as EventTarget,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::{ApiResource, object::HasSpec};
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::{
    identity::InfrastructureId,
    kind::{BrokenContract, Shape, finalizer},
    orphans::Unrecorded,
    provider::{EndpointSource, Infrastructure, Owner, Progress, Provider, Removal, Request, Wait},
    record::{self, Record, same_owner},
    report::{StatusDraft, was_provisioned},
    step::{self, Step, next_step},
};

/// The steps of one pass: finalizer, infrastructure, endpoint, status, and conflicts in between.
const MOST_STEPS: u32 = 10;
/// The word for what stopped the provider and is tried again.
const PROVISIONING_FAILED: &str = "ProvisioningFailed";
const DELETION_FAILED: &str = "DeletionFailed";
const DELETING: &str = "Deleting";
const PROVISIONING: &str = "Provisioning";
/// How long a call to the provider may take; a reconcile has a minute.
const CALL_LIMIT: Duration = Duration::from_secs(50);
/// How soon what an object left behind is looked at again.
const ORPHAN_PAUSE: Duration = Duration::from_secs(5);

/// How a provider's controller runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Objects that are reconciled at the same time.
    pub concurrency: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 10 }
    }
}

/// Notifies a provider's controller of events outside of Kubernetes.
#[derive(Clone, Debug)]
pub struct Handle {
    queue: Arc<Queue<ObjectKey>>,
}

impl Handle {
    /// Looks at an object again.
    pub fn wake(&self, key: ObjectKey) {
        self.queue.add(key);
    }
}

type Spec<P> = <<P as Provider>::Cluster as HasSpec>::Spec;

/// Adds a provider to a manager. `crds` are its CRDs as they are installed: they say which contracts it speaks, and are
/// checked against the contract before anything runs.
pub fn register<P: Provider>(
    manager: &mut Manager,
    provider: P,
    crds: &[CustomResourceDefinition],
    options: Options,
) -> Result<Handle, BrokenContract> {
    let resource = ApiResource::erase::<P::Cluster>(&());
    let makes_endpoint = P::ENDPOINT == EndpointSource::Provider;
    let shape = Shape::of(crds, &resource.group, &resource.kind, &resource.version, makes_endpoint)?;
    let queue = Arc::new(Queue::default());
    let objects = Cache::<Record<Spec<P>>>::default();
    let owners = Cache::<Owner>::default();

    let filter = Some(&manager.options().watch_filter).filter(|value| !value.is_empty());
    let target = WatchTarget {
        resource: resource.clone(),
        namespace: manager.namespace(),
        label_selector: filter.map(|value| format!("{}={value}", label::WATCH_FILTER)),
        field_selector: None,
    };
    let finalizer = finalizer(&resource.kind, &resource.group);
    let unrecorded = Arc::new(Unrecorded::new(finalizer.clone()));
    let waker = Arc::new(Waker {
        queue: Arc::clone(&queue),
        owned: Mutex::default(),
        objects: objects.clone(),
        unrecorded: Arc::clone(&unrecorded),
    });
    manager.watch(target, Record::new, &objects, ObjectListener(Arc::clone(&waker)));
    let target = WatchTarget {
        resource: ApiResource::erase::<Cluster>(&()),
        namespace: manager.namespace(),
        label_selector: None,
        field_selector: None,
    };
    let owners_watch = manager.watch(target, record::owner, &owners, OwnerListener(waker));
    let period = manager.options().sync_period;
    manager.background(P::NAME, resync(period, objects.clone(), Arc::clone(&queue), || {}));

    let reconciler = Keeper {
        provider,
        shape,
        objects,
        owners,
        owners_watch,
        writer: manager.writer(P::NAME),
        recorder: manager.recorder(P::NAME),
        unrecorded,
        going: Mutex::default(),
        finalizer,
        resource,
    };
    manager.controller(P::NAME, &queue, Arc::new(reconciler), options.concurrency);
    Ok(Handle { queue })
}

/// Turns what happens into objects to look at.
struct Waker<S> {
    queue: Arc<Queue<ObjectKey>>,
    /// The objects that each Cluster owns.
    owned: Mutex<HashMap<ObjectKey, HashSet<ObjectKey>>>,
    objects: Cache<Record<S>>,
    unrecorded: Arc<Unrecorded<S>>,
}

impl<S> Waker<S> {
    fn owned(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashSet<ObjectKey>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ObjectListener<S>(Arc<Waker<S>>);

impl<S: Send + Sync + 'static> Listener<Record<S>> for ObjectListener<S> {
    fn changed(&self, change: Change<'_, Record<S>>) {
        let owner = |object: Option<&Arc<Record<S>>>| {
            let owner = owned_by_cluster(object?.metadata())?;
            Some(change.key.beside(&owner.name))
        };
        // The last state before the deletion says how the object was deleted.
        if let Some(state) = change.now.or(change.before) {
            self.0.unrecorded.observe(change.key, state);
        }
        let (before, now) = (owner(change.before), owner(change.now));
        if before != now {
            let mut owned = self.0.owned();
            if let Some(before) = before
                && let Some(objects) = owned.get_mut(&before)
            {
                objects.remove(change.key);
                if objects.is_empty() {
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

struct OwnerListener<S>(Arc<Waker<S>>);

impl<S: Send + Sync + 'static> Listener<Owner> for OwnerListener<S> {
    fn changed(&self, change: Change<'_, Owner>) {
        for object in self.0.owned().get(change.key).into_iter().flatten() {
            self.0.queue.add(object.clone());
        }
    }

    /// Owners are known only once all Clusters are listed: then every object is reconciled again.
    fn state_changed(&self, state: &WatchState) {
        if let WatchState::Absent | WatchState::Failing(_) = state {
            warn!(
                ?state,
                "Clusters (cluster.x-k8s.io/v1beta2) cannot be watched: nothing is done until they can"
            );
        }
        if *state == WatchState::Synced {
            for object in self.0.objects.keys() {
                self.0.queue.add(object);
            }
        }
    }
}

/// Why a pass over an object did not come to its end.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    /// A write failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The provider failed.
    #[error("{kind} {key}: {words}")]
    Provider {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
        /// What the provider said.
        words: String,
    },
    /// Others keep writing.
    #[error("{kind} {key} keeps changing")]
    Restless {
        /// The kind.
        kind: String,
        /// The object.
        key: ObjectKey,
    },
}

/// What a step leaves to do.
enum After {
    /// Another step may follow at once.
    More,
    /// This was the last one.
    Rest(Next),
}

/// Keeps the contract for one kind.
struct Keeper<P: Provider> {
    provider: P,
    shape: Shape,
    objects: Cache<Record<Spec<P>>>,
    owners: Cache<Owner>,
    owners_watch: Arc<WatchHandle>,
    writer: Writer,
    recorder: Recorder,
    unrecorded: Arc<Unrecorded<Spec<P>>>,
    /// What this process has said to be on its way out.
    going: Mutex<HashSet<InfrastructureId>>,
    finalizer: String,
    resource: ApiResource,
}

impl<P: Provider> Reconciler for Keeper<P> {
    type Error = KeepError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, KeepError> {
        // Who does not know the Clusters does not know what is paused.
        if self.owners_watch.state() != WatchState::Synced {
            return Ok(Next::Settled);
        }
        for _ in 0..MOST_STEPS {
            match self.step(key).await {
                Ok(After::More) => {}
                Ok(After::Rest(next)) => return Ok(next),
                Err(KeepError::Write(conflict)) if conflict.is_conflict() => {
                    debug!(%conflict, "deciding again");
                    if let Some(fresh) = self.writer.read(&self.resource, key).await? {
                        self.objects.remember(key, Record::new(fresh));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(KeepError::Restless { kind: self.resource.kind.clone(), key: key.clone() })
    }

    fn is_noteworthy(&self, error: &KeepError) -> bool {
        !matches!(error, KeepError::Write(error) if error.is_ordinary())
    }
}

impl<P: Provider> Keeper<P> {
    async fn step(&self, key: &ObjectKey) -> Result<After, KeepError> {
        let rest = Ok(After::Rest(Next::Settled));
        let found = self.objects.get(key);
        let there = found.as_ref().and_then(|object| InfrastructureId::of(key, &object.metadata));
        if let Some(next) = self.clean_up(key, there.as_ref()).await? {
            return Ok(After::Rest(next));
        }
        let Some(object) = found else {
            self.going().retain(|id| !id.is_of(key));
            self.provider.forget(key).await;
            return rest;
        };
        if let Some(error) = &object.malformed {
            // Only a new state of the object can help, and that is an event.
            warn!(%error, "this object cannot be read");
            self.record_event(
                key,
                &object,
                Severity::Warning,
                "Malformed",
                format!("It cannot be read: {error}"),
            );
            return rest;
        }
        let owner = owned_by_cluster(object.metadata())
            .and_then(|owner| same_owner(self.owners.get(&key.beside(&owner.name)), &owner.uid));
        let draft = || StatusDraft::new(&object, self.shape, clock::now());
        match next_step(key, &object, owner.as_deref(), &self.finalizer, P::ENDPOINT) {
            Step::Leave => rest,
            Step::Pause(why) => {
                // It may be about to be moved, and then belongs to the mover.
                if let Some(id) = &there {
                    self.unrecorded.end(id);
                }
                self.write_status(key, draft().paused(&why).patch()).await?;
                rest
            }
            Step::Begin(patch) => {
                self.write(key, Part::Main, &patch).await?;
                // Only what begins here can vanish unnoticed; what has an id already may be in use.
                if there.is_none()
                    && let Some(begun) = self.objects.get(key)
                    && let Some(id) = InfrastructureId::of(key, &begun.metadata)
                {
                    self.unrecorded.begin(&id, key, &begun);
                }
                Ok(After::More)
            }
            Step::AwaitEndpoint => {
                let wait = Wait::new(
                    "WaitingForControlPlaneEndpoint",
                    "The Cluster's spec.controlPlaneEndpoint is not set yet",
                );
                self.write_status(key, draft().waiting(&wait).patch()).await?;
                rest
            }
            Step::Provision(id, endpoint) => {
                if is_new(&object) {
                    // The first word, and a look whether the object is still there: see `orphans`.
                    let wait = Wait::new(PROVISIONING, "The infrastructure is being looked for, or made");
                    if self.write_status(key, draft().waiting(&wait).patch()).await? {
                        return Ok(After::More);
                    }
                }
                let request = self.request(key, &object, &id, endpoint, owner.as_deref());
                match self.limited(self.provider.provision(request)).await {
                    Ok(Progress::Done(made)) => self.record(key, &object, &id, &made).await,
                    Ok(Progress::Wait(wait)) => {
                        self.write_status(key, draft().waiting(&wait).patch()).await?;
                        Ok(After::Rest(next(wait.again)))
                    }
                    Ok(Progress::Failed(failure)) => {
                        if self.write_status(key, draft().failed(&failure).patch()).await? {
                            self.record_event(
                                key,
                                &object,
                                Severity::Warning,
                                &failure.reason,
                                failure.message.clone(),
                            );
                        }
                        rest
                    }
                    Err(words) => self.trouble(key, &object, PROVISIONING_FAILED, words).await,
                }
            }
            Step::Deprovision(id) => self.deprovision(key, &object, &id, owner.as_deref()).await,
            Step::Release => self.release(key, &object).await,
        }
    }

    /// Puts on record what was made. The endpoint comes before anything is called provisioned.
    async fn record(
        &self,
        key: &ObjectKey,
        object: &Record<Spec<P>>,
        id: &InfrastructureId,
        made: &Infrastructure,
    ) -> Result<After, KeepError> {
        if P::ENDPOINT == EndpointSource::Provider {
            let endpoint = match made.endpoint.as_ref().or(object.endpoint.as_ref()) {
                Some(endpoint) if endpoint.is_valid() => endpoint,
                other => {
                    let words = format!("the provider returned an incomplete endpoint: {other:?}");
                    return self.trouble(key, object, PROVISIONING_FAILED, words).await;
                }
            };
            if let Some(patch) = step::record_endpoint(object, endpoint) {
                self.write(key, Part::Main, &patch).await?;
                let recorded = self.objects.get(key).and_then(|object| object.endpoint.clone());
                if recorded.as_ref().is_some_and(|recorded| recorded != endpoint) {
                    let words = format!("the endpoint {endpoint:?} was recorded, but became {recorded:?}");
                    return Err(self.failed(key, words));
                }
                return Ok(After::More);
            }
        }
        let draft = StatusDraft::new(object, self.shape, clock::now());
        let first = !was_provisioned(&object.status);
        if self.write_status(key, draft.provisioned(made).patch()).await? && first {
            let message = format!("{} {} is provisioned", self.resource.kind, key.name);
            self.record_event(key, object, Severity::Normal, "Provisioned", message);
        }
        self.unrecorded.end(id);
        Ok(After::Rest(Next::Settled))
    }

    /// Deletes what was begun for deleted objects of a name and never recorded.
    async fn clean_up(
        &self,
        key: &ObjectKey,
        there: Option<&InfrastructureId>,
    ) -> Result<Option<Next>, KeepError> {
        for (id, object) in self.unrecorded.orphans(key, there) {
            if self.is_gone(key, &id).await? && !self.owner_pauses(key, &object).await? {
                info!(%id, "deleted before its infrastructure was recorded: deleting the infrastructure");
                let request = self.request(key, &object, &id, object.endpoint.clone(), None);
                match self.limited(self.provider.deprovision(request)).await {
                    Ok(Removal::Gone) => {}
                    Ok(Removal::Wait(wait)) => {
                        return Ok(Some(Next::Again(wait.again.unwrap_or(ORPHAN_PAUSE))));
                    }
                    Err(words) => return Err(self.failed(key, words)),
                }
            }
            self.unrecorded.end(&id);
        }
        Ok(None)
    }

    /// Whether past all caches no object has that infrastructure: it may exist but not be watched.
    async fn is_gone(&self, key: &ObjectKey, id: &InfrastructureId) -> Result<bool, KeepError> {
        let found = self.writer.read(&self.resource, key).await?;
        Ok(found.is_none_or(|found| InfrastructureId::of(key, &found.metadata).as_ref() != Some(id)))
    }

    /// Whether the owner is paused, past all caches: what is taken down cannot be had back.
    async fn owner_pauses(&self, key: &ObjectKey, object: &Record<Spec<P>>) -> Result<bool, KeepError> {
        let Some(owner) = owned_by_cluster(&object.metadata) else {
            return Ok(false);
        };
        let cluster = ApiResource::erase::<Cluster>(&());
        let found = self.writer.read(&cluster, &key.beside(&owner.name)).await?;
        let found = found.filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid)).map(record::owner);
        Ok(found.is_some_and(|owner| step::owner_pauses(&owner).is_some()))
    }

    /// A call to the provider, which has its time. What goes wrong comes back as words.
    async fn limited<T>(&self, call: impl Future<Output = Result<T, P::Error>>) -> Result<T, String> {
        match tokio::time::timeout(CALL_LIMIT, call).await {
            Ok(answer) => answer.map_err(|error| with_causes(&error)),
            Err(_) => Err(format!("the provider was cut off after {CALL_LIMIT:?}, and is asked again")),
        }
    }

    fn failed(&self, key: &ObjectKey, words: String) -> KeepError {
        KeepError::Provider { kind: self.resource.kind.clone(), key: key.clone(), words }
    }

    fn going(&self) -> MutexGuard<'_, HashSet<InfrastructureId>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn deprovision(
        &self,
        key: &ObjectKey,
        object: &Record<Spec<P>>,
        id: &InfrastructureId,
        owner: Option<&Owner>,
    ) -> Result<After, KeepError> {
        let draft = || StatusDraft::new(object, self.shape, clock::now());
        let request = self.request(key, object, id, object.endpoint.clone(), owner);
        // What goes away says so before it goes; and whether it may go is asked past the caches.
        if !self.going().contains(id) {
            if self.owner_pauses(key, object).await? {
                let why = ["Cluster spec.paused is set to true".to_owned()];
                self.write_status(key, draft().paused(&why).patch()).await?;
                return Ok(After::Rest(Next::Again(ORPHAN_PAUSE)));
            }
            let going = Wait::new(DELETING, "The infrastructure is being deleted");
            let said = self.write_status(key, draft().waiting(&going).patch()).await?;
            self.going().insert(id.clone());
            if said {
                return Ok(After::More);
            }
        }
        match self.limited(self.provider.deprovision(request)).await {
            Ok(Removal::Gone) => {
                let released = self.release(key, object).await?;
                self.unrecorded.end(id);
                self.going().remove(id);
                Ok(released)
            }
            Ok(Removal::Wait(wait)) => {
                self.write_status(key, draft().waiting(&wait).patch()).await?;
                Ok(After::Rest(next(wait.again)))
            }
            Err(words) => self.trouble(key, object, DELETION_FAILED, words).await,
        }
    }

    /// Reports what stopped the provider, and requeues the object.
    async fn trouble(
        &self,
        key: &ObjectKey,
        object: &Record<Spec<P>>,
        reason: &str,
        words: String,
    ) -> Result<After, KeepError> {
        let draft = StatusDraft::new(object, self.shape, clock::now());
        match self.write_status(key, draft.waiting(&Wait::new(reason, &words)).patch()).await {
            Ok(true) => self.record_event(key, object, Severity::Warning, reason, words.clone()),
            Ok(false) => {}
            Err(KeepError::Write(conflict)) if conflict.is_conflict() => return Err(conflict.into()),
            // The provider's own trouble is what matters.
            Err(error) => warn!(%error, "cannot report the provider's error in the status"),
        }
        Err(self.failed(key, words))
    }

    async fn release(&self, key: &ObjectKey, object: &Record<Spec<P>>) -> Result<After, KeepError> {
        let patch = step::release(object, &self.finalizer);
        match self.writer.patch(&self.resource, key, Part::Main, &patch).await {
            Ok(_) => info!("released"),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(After::Rest(Next::Settled))
    }

    fn request<'a>(
        &'a self,
        key: &'a ObjectKey,
        object: &'a Record<Spec<P>>,
        id: &'a InfrastructureId,
        endpoint: Option<capstan_api::cluster::v1beta2::ApiEndpoint>,
        owner: Option<&'a Owner>,
    ) -> Request<'a, P> {
        Request {
            id,
            key,
            metadata: &object.metadata,
            spec: &object.spec,
            endpoint,
            owner,
            writer: &self.writer,
            objects: &self.objects,
        }
    }

    /// Writes a status if there is something to write; says whether there was.
    async fn write_status(&self, key: &ObjectKey, patch: Option<Value>) -> Result<bool, KeepError> {
        match patch {
            Some(patch) => self.write(key, Part::Status, &patch).await.map(|()| true),
            None => Ok(false),
        }
    }

    async fn write(&self, key: &ObjectKey, part: Part, patch: &Value) -> Result<(), KeepError> {
        let written: Observed = self.writer.patch(&self.resource, key, part, patch).await?;
        self.objects.remember(key, Record::new(written));
        Ok(())
    }

    fn record_event(
        &self,
        key: &ObjectKey,
        object: &Record<Spec<P>>,
        severity: Severity,
        reason: &str,
        message: String,
    ) {
        let target = EventTarget {
            api_version: Some(self.resource.api_version.clone()),
            kind: Some(self.resource.kind.clone()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: object.metadata.uid.clone(),
            ..EventTarget::default()
        };
        self.recorder.record(&target, severity, reason, message);
    }
}

/// Whether nothing has been said about an object yet.
fn is_new<S>(object: &Record<S>) -> bool {
    let conditions = object.status["conditions"].as_array();
    !conditions.into_iter().flatten().any(|it| it["type"] == "Ready")
}

fn next(again: Option<Duration>) -> Next {
    again.map_or(Next::Settled, Next::Again)
}
