//! The controllers' shell: what wakes them, what they read, and how a plan is carried out.

use std::sync::Arc;

use capstan_api::{
    conditions::{self, Condition, ConditionStatus, Report},
    contract::GroupKind,
    names::{CLUSTERCTL_GROUP, label},
    operator::{FINALIZER, GROUP, VERSION, admission, condition, reason, resource, warnings},
    provider::ProviderType,
};
use capstan_management::{ManagementCluster, ServerError, error::is_transient, inventory::Installed};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    clock,
    controller::{ControllerOptions, Next, Reconciler, resync},
    events::{Recorder, Severity},
    manager::Manager,
    queue::Queue,
    watch::{Change, WatchHandle, WatchState, WatchTarget},
    writer::{Part, WriteError, Writer},
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ObjectReference as EventTarget},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tracing::debug;

use crate::{
    Options,
    drift::DriftWatch,
    executor::{Cause, Done, Executor, Prepared},
    fetch::Fetcher,
    inputs::Inputs,
    memory::{Doubt, Memory, ProviderKey},
    migration::Migration,
    outcome::{Outcome, RETRY, Then, Trouble, clamped},
    plan::{Plan, Step, decide, forget_progress, ready},
    record::{DeploymentRecord, ProviderRecord},
    snapshot::Snapshot,
};

/// The most steps that one reconcile takes.
const MOST_STEPS: usize = 12;

/// All provider objects.
pub struct Providers {
    caches: [(ProviderType, Cache<ProviderRecord>); 7],
    handles: std::sync::OnceLock<Vec<Arc<WatchHandle>>>,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            caches: ProviderType::ALL.map(|kind| (kind, Cache::default())),
            handles: std::sync::OnceLock::new(),
        }
    }
}

impl Providers {
    fn cache(&self, kind: ProviderType) -> &Cache<ProviderRecord> {
        let found = self.caches.iter().find(|it| it.0 == kind);
        // Every type has a cache; the first one is only named for a total function.
        &found.unwrap_or(&self.caches[0]).1
    }

    /// Every provider object.
    pub fn all(&self) -> Vec<Arc<ProviderRecord>> {
        let keys = |cache: &Cache<ProviderRecord>| cache.keys().into_iter();
        self.caches.iter().flat_map(|(_, cache)| keys(cache).filter_map(|it| cache.get(&it))).collect()
    }

    /// Whether the objects of every kind were listed. A kind that is not served has none.
    pub fn are_listed(&self) -> bool {
        let is_listed = |it: &Arc<WatchHandle>| it.was_synced() || matches!(it.state(), WatchState::Absent);
        self.handles.get().is_some_and(|it| it.iter().all(is_listed))
    }
}

/// Turns what happens into provider objects to look at.
struct Waker {
    queues: [(ProviderType, Arc<Queue<ObjectKey>>); 7],
    providers: Arc<Providers>,
    memory: Arc<Memory>,
    /// The entries of the inventory.
    entries: Cache<Entry>,
    /// Entries that may lack an object; none are looked at where the inventory is not migrated.
    migration: Option<Arc<Queue<ObjectKey>>>,
}

impl Waker {
    fn wake(&self, kind: ProviderType, key: &ObjectKey) {
        for (_, queue) in self.queues.iter().filter(|it| it.0 == kind) {
            queue.add(key.clone());
        }
    }

    /// An object changed. What others may wait for wakes them.
    fn provider_changed(&self, kind: ProviderType, change: &Change<'_, ProviderRecord>) {
        self.wake(kind, change.key);
        if let (Some(gone), None) = (change.before, change.now) {
            self.migrate(&gone.label());
        }
        let facts = |it: Option<&Arc<ProviderRecord>>| it.map(|it| public_facts(it));
        if facts(change.before) != facts(change.now) {
            self.wake_others(kind, change.key);
        }
    }

    fn wake_others(&self, kind: ProviderType, key: &ObjectKey) {
        for other in self.providers.all() {
            if (other.kind, &other.key) != (kind, key) {
                self.wake(other.kind, &other.key);
            }
        }
    }

    fn deployment_changed(&self, change: &Change<'_, DeploymentRecord>) {
        let Some(deployment) = change.now.or(change.before) else { return };
        let availability = |it: Option<&Arc<DeploymentRecord>>| it.map(|it| it.availability.clone());
        let is_down = |it: Option<&Arc<DeploymentRecord>>| it.map(|it| it.is_scaled_down());
        let is_scaled = is_down(change.before) != is_down(change.now);
        if !is_scaled && availability(change.before) == availability(change.now) {
            return;
        }
        for provider in self.providers.all() {
            if provider.label() == deployment.provider {
                self.wake(provider.kind, &provider.key);
                // A change of the contract waits until all are scaled to 0, and installations wait for core.
                if is_scaled || provider.kind == ProviderType::Core {
                    self.wake_others(provider.kind, &provider.key);
                }
            }
        }
    }

    /// The inventory changed: providers wait for others to be installed, upgraded or deleted.
    fn entry_changed(&self, change: &Change<'_, Entry>) {
        for provider in self.providers.all() {
            self.wake(provider.kind, &provider.key);
        }
        if change.now.is_some() {
            self.migrate(&change.key.name);
        }
    }

    /// Looks whether the entries of a provider have an object.
    fn migrate(&self, label: &str) {
        let Some(migration) = &self.migration else { return };
        let entries = self.entries.keys().into_iter().filter(|it| *it.name == *label);
        entries.for_each(|it| migration.add(it));
    }

    fn component_changed(&self, label: &str) {
        for provider in self.providers.all().into_iter().filter(|it| it.label() == label) {
            self.memory.changed(&(provider.kind, provider.key.clone()));
            self.wake(provider.kind, &provider.key);
        }
    }

    fn input_changed(&self, namespace: &str) {
        for provider in self.providers.all() {
            if *provider.key.namespace == *namespace && waits_for_input(&provider) {
                self.memory.forget_contract(&(provider.kind, provider.key.clone()));
                self.wake(provider.kind, &provider.key);
            }
        }
    }
}

/// What others may wait for.
fn public_facts(provider: &ProviderRecord) -> impl PartialEq + use<> {
    (
        provider.is_deleting(),
        provider.spec.paused,
        provider.is_scaled_down(),
        provider.status.installed_version.clone(),
        provider.status.contract.clone(),
        conditions::is_true(&provider.status.conditions, condition::READY),
    )
}

/// Whether a change of a Secret or ConfigMap may help: something that depends on them went wrong.
fn waits_for_input(provider: &ProviderRecord) -> bool {
    let reasons = [
        reason::COMPONENTS_FETCH,
        reason::COMPONENTS_CUSTOMIZATION,
        reason::COMPONENTS_UPGRADE,
        reason::CONTRACT_MISMATCH,
        reason::FETCH_CONFIG_INVALID,
        reason::FORBIDDEN,
        reason::INSTALL_FAILED,
    ];
    let types = [condition::PREFLIGHT, condition::INSTALLED, condition::UPGRADED];
    provider.status.conditions.iter().any(|it| {
        it.status == ConditionStatus::False
            && types.contains(&it.type_.as_str())
            && reasons.contains(&it.reason.as_str())
    })
}

/// Adds the operator to a manager.
pub fn register(manager: &mut Manager, fetcher: Fetcher, options: Options) {
    for kind in ProviderType::ALL {
        let judge = move |new: &Value, old: Option<&Value>| admission::judge(kind, new, old);
        let (path, group_kind) = (admission::validate_path(kind), GroupKind::new(GROUP, kind.as_str()));
        manager.admitters().add(&path, group_kind, VERSION, Arc::new(judge));
    }
    let providers = Arc::new(Providers::default());
    let memory = Arc::new(Memory::default());
    let queues = ProviderType::ALL.map(|kind| (kind, Arc::new(Queue::default())));
    let waker = Arc::new(Waker {
        queues,
        providers: Arc::clone(&providers),
        memory: Arc::clone(&memory),
        entries: Cache::default(),
        migration: options.migrate_inventory.then(Arc::default),
    });
    let deployments = Cache::<DeploymentRecord>::default();

    let mut handles = Vec::new();
    for kind in ProviderType::ALL {
        let target = WatchTarget {
            resource: resource(kind),
            namespace: manager.namespace(),
            label_selector: None,
            field_selector: None,
        };
        let on_change = Arc::clone(&waker);
        let listener = move |change: Change<'_, ProviderRecord>| on_change.provider_changed(kind, &change);
        let project = move |object: Observed| ProviderRecord::new(kind, object);
        handles.push(manager.watch(target, project, providers.cache(kind), listener));
    }
    // Set once, right here.
    let _ = providers.handles.set(handles);

    let target = WatchTarget {
        resource: ApiResource::erase::<Deployment>(&()),
        namespace: None,
        label_selector: Some(format!("{},{}", label::CLUSTERCTL, label::PROVIDER)),
        field_selector: None,
    };
    let on_deployment = Arc::clone(&waker);
    let listener = move |change: Change<'_, DeploymentRecord>| on_deployment.deployment_changed(&change);
    let deployments_handle = manager.watch(target, DeploymentRecord::new, &deployments, listener);

    let client = manager.leader_client();
    let cluster = ManagementCluster::new(client.clone(), "the API server");
    let on_component = Arc::clone(&waker);
    let on_input = Arc::clone(&waker);
    let drift = DriftWatch::new(
        manager.client(),
        manager.outages(),
        Arc::new(move |label: &str| on_component.component_changed(label)),
    );
    let inputs = Inputs::new(
        manager.client(),
        manager.outages(),
        Arc::new(move |namespace: &str| on_input.input_changed(namespace)),
    );
    let writer = manager.writer("capstan-operator");
    let shared = Arc::new(Shared {
        executor: Executor::new(cluster.clone(), fetcher, manager.stop_token()),
        providers: Arc::clone(&providers),
        deployments,
        deployments_handle,
        memory,
        drift,
        inputs,
        waker: Arc::clone(&waker),
        writer: writer.clone(),
        recorder: manager.recorder("capstan-operator"),
    });
    let limits = ControllerOptions {
        workers: options.concurrency,
        reconcile_limit: options.reconcile_limit,
        drain_limit: options.drain_limit,
    };
    for (kind, queue) in &waker.queues {
        let reconciler = ProviderReconciler { kind: *kind, shared: Arc::clone(&shared) };
        manager.controller_with(controller_name(*kind), queue, Arc::new(reconciler), limits);
        let period = manager.options().sync_period;
        let resync = resync(period, providers.cache(*kind).clone(), Arc::clone(queue), || {});
        manager.background("the providers' resync", resync);
    }
    watch_inventory(manager, &waker);
    if let Some(queue) = &waker.migration {
        let recorder = manager.recorder("capstan-operator");
        let migration = Migration { cluster, providers, writer, recorder };
        manager.controller("inventory-migration", queue, Arc::new(migration), 1);
    }
}

fn watch_inventory(manager: &mut Manager, waker: &Arc<Waker>) {
    let version = capstan_api::inventory::VERSION;
    let gvk = GroupVersionKind::gvk(CLUSTERCTL_GROUP, version, capstan_api::inventory::KIND);
    let target = WatchTarget {
        resource: ApiResource::from_gvk(&gvk),
        namespace: manager.namespace(),
        label_selector: None,
        field_selector: None,
    };
    let on_entry = Arc::clone(waker);
    let listener = move |change: Change<'_, Entry>| on_entry.entry_changed(&change);
    manager.watch(target, |object| Entry(object.metadata), &waker.entries, listener);
}

/// An entry of the inventory: that it exists is all that is kept.
struct Entry(ObjectMeta);

impl Cached for Entry {
    fn metadata(&self) -> &ObjectMeta {
        &self.0
    }
}

fn controller_name(kind: ProviderType) -> &'static str {
    match kind {
        ProviderType::Core => "coreprovider",
        ProviderType::Bootstrap => "bootstrapprovider",
        ProviderType::ControlPlane => "controlplaneprovider",
        ProviderType::Infrastructure => "infrastructureprovider",
        ProviderType::Ipam => "ipamprovider",
        ProviderType::RuntimeExtension => "runtimeextensionprovider",
        ProviderType::Addon => "addonprovider",
    }
}

/// Whether the API server refuses a request, and would refuse it again.
fn is_refusal(error: &ServerError) -> bool {
    error.status().is_some() && !is_transient(&error.source)
}

/// Why a pass over a provider object did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The object could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The inventory could not be read.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The object changed faster than it could be decided on.
    #[error("the object changes all the time")]
    Unsettled,
}

struct Shared {
    executor: Executor,
    providers: Arc<Providers>,
    deployments: Cache<DeploymentRecord>,
    deployments_handle: Arc<WatchHandle>,
    memory: Arc<Memory>,
    drift: DriftWatch,
    inputs: Inputs,
    waker: Arc<Waker>,
    writer: Writer,
    recorder: Recorder,
}

struct ProviderReconciler {
    kind: ProviderType,
    shared: Arc<Shared>,
}

impl Reconciler for ProviderReconciler {
    type Error = ProviderError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ProviderError> {
        let shared = &self.shared;
        // Decisions need all provider objects; no event says that the last watch is synced, so this is retried.
        if !shared.providers.are_listed() || !shared.deployments_handle.was_synced() {
            return Ok(Next::Again(std::time::Duration::from_millis(100)));
        }
        for _ in 0..MOST_STEPS {
            let Some(provider) = shared.providers.cache(self.kind).get(key) else {
                shared.memory.forget(&(self.kind, key.clone()));
                shared.release_inputs();
                return Ok(Next::Settled);
            };
            match shared.pass(Arc::clone(&provider)).await {
                Ok(Then::Continue) => {}
                Err(ProviderError::Server(error)) if is_refusal(&error) => {
                    return shared.report_refusal(provider, &error).await;
                }
                Ok(Then::Rest) => return Ok(Next::Settled),
                Ok(Then::Again(delay)) => return Ok(Next::Again(delay)),
                Err(ProviderError::Write(error)) if error.is_conflict() => {
                    shared.refresh(self.kind, key).await?;
                }
                Err(ProviderError::Write(error)) if error.is_not_found() => return Ok(Next::Settled),
                Err(error) => return Err(error),
            }
        }
        Err(ProviderError::Unsettled)
    }

    fn is_noteworthy(&self, error: &ProviderError) -> bool {
        match error {
            ProviderError::Write(error) => !error.is_ordinary(),
            ProviderError::Server(_) | ProviderError::Unsettled => true,
        }
    }
}

impl Shared {
    /// Reads, decides, acts: once.
    async fn pass(&self, provider: Arc<ProviderRecord>) -> Result<Then, ProviderError> {
        let (snapshot, doubt) = self.look(provider).await?;
        let plan = decide(&snapshot);
        debug!(provider = snapshot.provider.full_name(), step = ?plan.step, "decided");
        let then = if plan.step.needs_turn() {
            self.take_turn(snapshot, plan).await?
        } else {
            match self.act_alone(&snapshot, &plan.step).await? {
                Some(outcome) => self.finish(&snapshot, plan, outcome).await?,
                None => return Ok(Then::Rest),
            }
        };
        Ok(match (then, doubt) {
            (Then::Rest, Doubt::After(delay)) => Then::Again(delay),
            (then, _) => then,
        })
    }

    /// Waits for the provider's turn, decides again from what is there then, and acts only if that is the same.
    ///
    /// The turn lasts until the status is written: what others decide on is what was done.
    async fn take_turn(&self, snapshot: Snapshot, plan: Plan) -> Result<Then, ProviderError> {
        let snapshot = match progress(&plan.step) {
            Some(progress) => self.report_progress(snapshot, progress).await?,
            None => snapshot,
        };
        let prepared = match self.executor.prepare(&snapshot, &plan.step).await {
            Ok(Prepared::Blocked(outcome)) => return self.finish(&snapshot, plan, outcome).await,
            Ok(prepared) => prepared,
            Err(trouble) => {
                let outcome = self.failed(&snapshot, trouble, &plan.step);
                return self.finish(&snapshot, plan, outcome).await;
            }
        };
        let key = (snapshot.provider.kind, snapshot.provider.key.clone());
        if let Prepared::Release { release, is_kept: false } = &prepared {
            let spec = &snapshot.provider.spec;
            self.memory.learn_contract(&key, snapshot.provider.uid(), spec, &release.contract);
        }
        let _turn = self.executor.turn().await;
        let Some(provider) = self.providers.cache(key.0).get(&key.1) else { return Ok(Then::Continue) };
        let (fresh, _) = self.look(provider).await?;
        let again = decide(&fresh);
        let asked = |it: &Snapshot| (it.provider.metadata.uid.clone(), it.provider.generation());
        if again.step != plan.step || asked(&fresh) != asked(&snapshot) {
            return Ok(Then::Continue);
        }
        let Some(outcome) = self.act(&fresh, &key, &again.step, prepared).await? else {
            return Ok(Then::Rest);
        };
        let after = self.with_deployments_of_now(fresh).await;
        self.finish(&after, again, outcome).await
    }

    /// Reports what the plan says, unless the step says otherwise, and what came of the step.
    async fn finish(
        &self,
        snapshot: &Snapshot,
        plan: Plan,
        mut outcome: Outcome,
    ) -> Result<Then, ProviderError> {
        let Plan { reports, obsolete, .. } = plan;
        let fresh = reports.into_iter().filter(|it| !outcome.reports.iter().any(|new| new.type_ == it.type_));
        outcome.reports.splice(0..0, fresh.collect::<Vec<_>>());
        outcome.obsolete.extend(obsolete);
        let then = outcome.then;
        self.write_status(snapshot, outcome).await?;
        Ok(then)
    }

    /// Everything that a decision is made from.
    async fn look(&self, provider: Arc<ProviderRecord>) -> Result<(Snapshot, Doubt), ProviderError> {
        let (key, uid) = ((provider.kind, provider.key.clone()), provider.uid().to_owned());
        let doubt = self.memory.doubt(&key, &uid);
        let inventory = self.executor.inventory().await?.providers;
        let mut snapshot = self.known(provider, inventory);
        snapshot.is_unverified = doubt == Doubt::Now;
        let is_noted = snapshot.deployments_of(&snapshot.provider).any(DeploymentRecord::is_scaled_down);
        let may_be_paused =
            snapshot.provider.is_paused() || is_noted || self.memory.is_scaled_down(&key, &uid);
        if may_be_paused {
            // The watch may be late, and how much runs decides on what becomes of the replicas.
            let found = self.executor.deployments(&snapshot.provider).await?;
            self.replace_deployments(&mut snapshot, found);
        }
        Ok((snapshot, doubt))
    }

    /// What this process knows without a request.
    fn known(&self, provider: Arc<ProviderRecord>, inventory: Vec<Installed>) -> Snapshot {
        let (key, uid) = ((provider.kind, provider.key.clone()), provider.uid().to_owned());
        let mut others = self.providers.all();
        others.retain(|it| (it.kind, &it.key) != (provider.kind, &provider.key));
        let deployments = self.deployments.keys().iter().filter_map(|it| self.deployments.get(it)).collect();
        Snapshot {
            expected_deployments: self.memory.deployments(&key, &uid),
            wanted_contract: self.memory.contract(&key, &uid, &provider.spec),
            applied: self.memory.applied(&key, &uid),
            provider,
            others,
            inventory,
            deployments,
            is_unverified: false,
        }
    }

    /// The snapshot after a step: what was written is not available before its controllers have seen it.
    async fn with_deployments_of_now(&self, mut snapshot: Snapshot) -> Snapshot {
        let key = (snapshot.provider.kind, snapshot.provider.key.clone());
        snapshot.expected_deployments = self.memory.deployments(&key, snapshot.provider.uid());
        // What cannot be read counts as missing, until the next look.
        let found = self.executor.deployments(&snapshot.provider).await.unwrap_or_default();
        self.replace_deployments(&mut snapshot, found);
        snapshot
    }

    fn replace_deployments(&self, snapshot: &mut Snapshot, found: Vec<DeploymentRecord>) {
        let (label, namespace) = (snapshot.provider.label(), snapshot.provider.key.namespace.to_string());
        let is_own = |it: &DeploymentRecord| {
            it.provider == label && it.metadata.namespace.as_deref() == Some(namespace.as_str())
        };
        snapshot.deployments.retain(|it| !is_own(it));
        for deployment in found {
            // What follows must not be decided on an older state.
            self.deployments.remember(&ObjectKey::new(&namespace, deployment.name()), deployment.clone());
            snapshot.deployments.push(Arc::new(deployment));
        }
    }

    /// Reports a refusal of the API server that does not pass by itself.
    async fn report_refusal(
        &self,
        provider: Arc<ProviderRecord>,
        error: &ServerError,
    ) -> Result<Next, ProviderError> {
        let trouble = Trouble::of_objects(reason::INSTALL_FAILED, error.to_string());
        let report = Report::new(condition::PREFLIGHT, false, trouble.reason).with_message(trouble.message);
        let snapshot = self.known(provider, Vec::new());
        self.write_status(&snapshot, Outcome::then(trouble.then).report(report)).await?;
        Ok(Next::Again(RETRY))
    }

    /// Writes progress, unless it is a repetition of what failed before; returns the snapshot after it.
    async fn report_progress(&self, snapshot: Snapshot, progress: Report) -> Result<Snapshot, ProviderError> {
        let before = snapshot.provider.condition(&progress.type_);
        let is_repeated = before.is_some_and(|it| {
            it.status == ConditionStatus::False && it.observed_generation == snapshot.provider.generation()
        });
        if is_repeated {
            return Ok(snapshot);
        }
        self.write_status(&snapshot, Outcome::then(Then::Continue).report(progress)).await?;
        let provider = self.providers.cache(snapshot.provider.kind).get(&snapshot.provider.key);
        Ok(Snapshot { provider: provider.unwrap_or_else(|| Arc::clone(&snapshot.provider)), ..snapshot })
    }

    /// Carries out a step that writes only the provider object; nothing is left to report if that is released.
    async fn act_alone(&self, snapshot: &Snapshot, step: &Step) -> Result<Option<Outcome>, ProviderError> {
        let provider = &*snapshot.provider;
        let then = match step {
            Step::Hold => {
                self.hold(provider).await?;
                Then::Continue
            }
            Step::FindVersion => match self.executor.latest(provider).await {
                Ok(version) => {
                    self.set_version(provider, &version).await?;
                    Then::Continue
                }
                Err(trouble) => return Ok(Some(self.failed(snapshot, trouble, step))),
            },
            Step::SetVersion(version) => {
                self.set_version(provider, version).await?;
                Then::Continue
            }
            Step::Release => {
                self.release(provider).await?;
                return Ok(None);
            }
            _ => Then::Rest,
        };
        Ok(Some(Outcome::then(then)))
    }

    /// Carries out a step in the provider's turn; nothing is left to report if the object is released.
    async fn act(
        &self,
        snapshot: &Snapshot,
        key: &ProviderKey,
        step: &Step,
        prepared: Prepared,
    ) -> Result<Option<Outcome>, ProviderError> {
        let provider = &*snapshot.provider;
        let uid = provider.uid();
        let done = match (step, prepared) {
            (Step::Install { version }, Prepared::Release { release, .. }) => {
                self.memory.begin(key, uid);
                self.executor.install(snapshot, version, &release).await
            }
            (Step::Upgrade { version }, Prepared::Release { release, .. }) => {
                self.memory.begin(key, uid);
                self.executor.upgrade(snapshot, version, &release).await
            }
            (Step::Apply { version }, prepared) => {
                self.memory.begin(key, uid);
                self.executor.apply(snapshot, version, Cause::Change, prepared).await
            }
            (Step::Verify { version }, prepared) => {
                self.memory.begin(key, uid);
                self.executor.apply(snapshot, version, Cause::Drift, prepared).await
            }
            (Step::Unpause { version }, prepared) => {
                self.memory.begin(key, uid);
                let done = self.executor.unpause(snapshot, version, prepared).await;
                if done.is_ok() {
                    self.memory.scaled_down(key, uid, false);
                }
                done
            }
            (Step::Adopt { version }, _) => {
                let adopted = self.executor.adopt(snapshot, version).await;
                return Ok(Some(adopted.unwrap_or_else(|it| self.failed(snapshot, it, step))));
            }
            (Step::Pause, _) => {
                self.memory.scaled_down(key, uid, true);
                let paused = self.executor.pause(provider).await;
                return Ok(Some(paused.unwrap_or_else(|it| self.failed(snapshot, it, step))));
            }
            (Step::Delete, _) => match self.executor.delete(provider).await {
                Ok(None) => {
                    self.release(provider).await?;
                    return Ok(None);
                }
                Ok(Some(blocked)) => return Ok(Some(blocked)),
                Err(trouble) => return Ok(Some(self.failed(snapshot, trouble, step))),
            },
            // The others need no turn.
            _ => return Ok(Some(Outcome::then(Then::Continue))),
        };
        Ok(Some(match done {
            Ok(done) => self.done(snapshot, key, done),
            Err(trouble) => self.failed(snapshot, trouble, step),
        }))
    }

    /// What came of a step that failed. One that compares is still due.
    fn failed(&self, snapshot: &Snapshot, trouble: Trouble, step: &Step) -> Outcome {
        let provider = &*snapshot.provider;
        if let Step::Verify { .. } = step {
            self.memory.unverified(&(provider.kind, provider.key.clone()), provider.uid());
            if !trouble.is_cut_off {
                let message = clamped(trouble.message.clone());
                self.recorder.record(&event_target(provider), Severity::Warning, "DriftCheckFailed", message);
            }
        }
        Outcome::failed(trouble.of_source(provider), step)
    }

    /// Remembers what was done.
    fn done(&self, snapshot: &Snapshot, key: &ProviderKey, done: Done) -> Outcome {
        let Done { outcome, deployments, kinds, drift } = done;
        let uid = snapshot.provider.uid();
        self.memory.verified(key, uid, deployments);
        self.memory.apply(key, uid, &snapshot.provider.spec);
        match kinds {
            Some(kinds) => self.drift.ensure(&kinds),
            // Without a watch on them, the next comparison is due at once.
            None => self.memory.unverified(key, uid),
        }
        if !drift.is_empty() {
            let target = event_target(&snapshot.provider);
            let words = clamped(drift.join("; "));
            self.recorder.record(
                &target,
                Severity::Warning,
                "Drifted",
                format!("Changed by others: {words}"),
            );
            if !snapshot.provider.only_reports_drift() {
                let message = format!("Restored what others had changed: {words}");
                self.recorder.record(&target, Severity::Normal, "DriftHealed", message);
            }
        }
        outcome
    }

    async fn hold(&self, provider: &ProviderRecord) -> Result<(), ProviderError> {
        let mut finalizers = provider.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        self.write(provider, Part::Main, json!({"metadata": {"finalizers": finalizers}})).await?;
        Ok(())
    }

    async fn set_version(&self, provider: &ProviderRecord, version: &str) -> Result<(), ProviderError> {
        self.write(provider, Part::Main, json!({"spec": {"version": version}})).await
    }

    /// Removes the finalizer.
    async fn release(&self, provider: &ProviderRecord) -> Result<(), ProviderError> {
        let mut finalizers = provider.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|it| it != FINALIZER);
        let message = format!("{} is deleted", provider.label());
        match self.write(provider, Part::Main, json!({"metadata": {"finalizers": finalizers}})).await {
            Ok(()) => self.recorder.record(&event_target(provider), Severity::Normal, "Deleted", message),
            Err(ProviderError::Write(error)) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes the status if it differs, and records an event for each condition that changed.
    async fn write_status(&self, snapshot: &Snapshot, outcome: Outcome) -> Result<(), ProviderError> {
        let provider = &*snapshot.provider;
        let (generation, now) = (provider.generation(), clock::now());
        let mut status = provider.status.clone();
        for mut report in outcome.reports {
            report.message = clamped(report.message);
            conditions::set(&mut status.conditions, report, generation, now);
        }
        for type_ in outcome.obsolete {
            conditions::remove(&mut status.conditions, type_);
        }
        forget_progress(&mut status.conditions);
        if let Some((version, contract)) = outcome.installed {
            status.installed_version = Some(version);
            status.contract = contract;
        }
        let ready = ready(snapshot, &status.conditions);
        conditions::set(&mut status.conditions, ready, generation, now);
        status.observed_generation = generation;
        if status == provider.status {
            self.watch_inputs(provider);
            return Ok(());
        }
        let mut patch = json!(status);
        // A merge patch removes only what it names.
        for field in ["contract", "installedVersion"] {
            if patch.get(field).is_none() {
                patch[field] = Value::Null;
            }
        }
        self.write(provider, Part::Status, json!({"status": patch})).await?;
        let target = event_target(provider);
        if provider.status.observed_generation != generation {
            for warning in warnings(&provider.spec) {
                self.recorder.record(&target, Severity::Warning, "Ignored", warning);
            }
        }
        for condition in changed_conditions(&provider.status.conditions, &status.conditions) {
            self.recorder.record(&target, severity(condition), &condition.reason, event_message(condition));
        }
        self.watch_inputs(&ProviderRecord { status, ..provider.clone() });
        Ok(())
    }

    fn watch_inputs(&self, provider: &ProviderRecord) {
        if waits_for_input(provider) && !provider.is_deleting() {
            self.inputs.watch(&provider.key.namespace);
        } else {
            self.release_inputs();
        }
    }

    fn release_inputs(&self) {
        let waiting: Vec<_> = self.providers.all().into_iter().filter(|it| waits_for_input(it)).collect();
        self.inputs.retain(|namespace| waiting.iter().any(|it| *it.key.namespace == *namespace));
    }

    /// Sends a merge patch, guarded by the version that it was decided on.
    async fn write(
        &self,
        provider: &ProviderRecord,
        part: Part,
        mut patch: Value,
    ) -> Result<(), ProviderError> {
        patch["metadata"]["resourceVersion"] = json!(provider.metadata.resource_version);
        let written = self.writer.patch(&resource(provider.kind), &provider.key, part, &patch).await?;
        let written = ProviderRecord::new(provider.kind, written);
        // The echo of this write wakes no worker.
        let is_news = public_facts(provider) != public_facts(&written);
        self.providers.cache(provider.kind).remember(&provider.key, written);
        if is_news {
            self.waker.wake_others(provider.kind, &provider.key);
        }
        Ok(())
    }

    /// Reads an object once more, past the cache.
    async fn refresh(&self, kind: ProviderType, key: &ObjectKey) -> Result<(), ProviderError> {
        if let Some(found) = self.writer.read(&resource(kind), key).await? {
            self.providers.cache(kind).remember(key, ProviderRecord::new(kind, found));
        }
        Ok(())
    }
}

/// What to report before a step that takes its time.
fn progress(step: &Step) -> Option<Report> {
    match step {
        Step::Install { version } => Some(
            Report::new(condition::INSTALLED, false, reason::IN_PROGRESS)
                .with_message(format!("Installing {version}")),
        ),
        Step::Upgrade { version } => Some(
            Report::new(condition::UPGRADED, false, reason::IN_PROGRESS)
                .with_message(format!("Upgrading to {version}")),
        ),
        _ => None,
    }
}

/// The conditions that say something else than before. `Ready` repeats others, but for what it says of Deployments.
fn changed_conditions<'a>(
    before: &'a [Condition],
    after: &'a [Condition],
) -> impl Iterator<Item = &'a Condition> {
    let is_own = |it: &Condition| {
        it.type_ != condition::READY
            || [reason::AVAILABLE, reason::NOT_AVAILABLE].contains(&it.reason.as_str())
    };
    after.iter().filter(move |it| {
        let same = conditions::get(before, &it.type_);
        let says = |it: &Condition| (it.status, it.reason.clone(), it.message.clone());
        is_own(it) && same.map(says) != Some(says(it))
    })
}

fn severity(condition: &Condition) -> Severity {
    let is_trouble = match condition.type_.as_str() {
        condition::DRIFTED | condition::DELETION_BLOCKED => condition.status == ConditionStatus::True,
        condition::PAUSED => condition.reason == reason::WAITING_FOR_CONTRACT,
        _ => condition.status == ConditionStatus::False,
    };
    let is_expected = [
        reason::IN_PROGRESS,
        reason::WAITING_FOR_CORE,
        reason::PAUSED,
        reason::DELETING,
        reason::NOT_AVAILABLE,
    ]
    .contains(&condition.reason.as_str());
    if is_trouble && !is_expected { Severity::Warning } else { Severity::Normal }
}

fn event_message(condition: &Condition) -> String {
    format!("{} is {}: {}", condition.type_, condition.status, condition.message)
}

fn event_target(provider: &ProviderRecord) -> EventTarget {
    let resource = resource(provider.kind);
    EventTarget {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: Some(provider.key.namespace.to_string()),
        name: Some(provider.key.name.to_string()),
        uid: provider.metadata.uid.clone(),
        ..EventTarget::default()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn only_what_the_server_would_refuse_again_is_reported() {
        let failed = |source: kube::Error| ServerError {
            doing: "list installed providers".to_owned(),
            url: "https://server".to_owned(),
            source: Box::new(source),
        };
        let answered =
            |code: u16| failed(kube::Error::Api(Status::failure("no", "").with_code(code).boxed()));
        for (code, expected) in
            [(403, true), (401, true), (400, true), (429, false), (500, false), (503, false)]
        {
            assert_eq!(is_refusal(&answered(code)), expected, "{code}");
        }
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert!(!is_refusal(&failed(kube::Error::Service(Box::new(late)))));
    }

    #[test]
    fn what_went_wrong_with_an_input_waits_for_inputs() {
        let waits = |type_: &str, status: &str, reason: &str| {
            let condition = json!({"type": type_, "status": status, "reason": reason, "message": "",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let object =
                json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"conditions": [condition]}});
            let object = serde_json::from_value(object).unwrap();
            waits_for_input(&ProviderRecord::new(ProviderType::Core, object))
        };
        for (type_, status, reason, expected) in [
            (condition::INSTALLED, "False", reason::COMPONENTS_FETCH, true),
            (condition::UPGRADED, "False", reason::COMPONENTS_CUSTOMIZATION, true),
            (condition::UPGRADED, "False", reason::COMPONENTS_UPGRADE, true),
            (condition::PREFLIGHT, "False", reason::CONTRACT_MISMATCH, true),
            (condition::PREFLIGHT, "False", reason::FETCH_CONFIG_INVALID, true),
            (condition::PREFLIGHT, "False", reason::UNSUPPORTED_DOWNGRADE, false),
            (condition::INSTALLED, "False", reason::IN_PROGRESS, false),
            (condition::INSTALLED, "True", reason::INSTALLED, false),
            // It repeats others.
            (condition::READY, "False", reason::COMPONENTS_FETCH, false),
        ] {
            assert_eq!(waits(type_, status, reason), expected, "{type_} {status} {reason}");
        }
    }
}
