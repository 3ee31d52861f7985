//! A run: all controllers are stopped, then the CRDs of all providers are replaced at the
//! same time, then what else belongs to core, then what else belongs to all others.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use capstan_api::provider::ProviderType;
use capstan_management::{
    Kinds, ManagementCluster, ObjectRef, adoption,
    apply::{self, ApplyEvent, Wave},
    error,
    inventory::{self, Installed},
    retry::{Backoff, Wait},
    served,
    sweep::Component,
};
use futures::future::{Either, join_all, pending, select, try_join_all};
use kube::api::DeleteParams;
use serde_json::Value;

use super::{CertManagerStep, CertManagerUpgrade, Migration, Step, UpgradeError, UpgradePlan, prune};
use crate::{
    cert_manager::{self, CertManagerEvent},
    check::Ready,
    scale,
};

/// How long an object that has to be recreated may take to go.
const GONE_LIMIT: Duration = Duration::from_mins(1);
const GONE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// The progress of an upgrade.
#[derive(Debug)]
pub enum UpgradeEvent<'a> {
    /// cert-manager is upgraded.
    CertManager(&'a CertManagerStep),
    /// It does not answer yet.
    CertManagerWaiting {
        /// The reason.
        reason: &'a str,
    },
    /// It has its new version, and works.
    CertManagerWorks(&'a CertManagerStep),
    /// Objects of a kind are stored in another version.
    Migrating(&'a Migration),
    /// All of them are.
    Migrated {
        /// Which kind.
        migration: &'a Migration,
        /// How many objects there are.
        count: usize,
    },
    /// The controllers of a provider are being stopped.
    Stopping(&'a Step),
    /// Its CRDs are being replaced.
    Defining(&'a Step),
    /// Its other objects are being replaced.
    Replacing(&'a Step),
    /// One of its objects is.
    Applied(ApplyEvent<'a>),
    /// What its new release does not have any more is being deleted.
    Pruning(&'a Step),
    /// A CRD stays that was to go: objects of it were created meanwhile.
    Kept {
        /// Of which provider.
        step: &'a Step,
        /// The CRD.
        crd: &'a ObjectRef,
    },
    /// It has its new version.
    Upgraded(&'a Step),
    /// The controllers that were stopped run again.
    Restored(&'a Step),
}

/// Receives the progress of an upgrade.
pub type UpgradeReporter<'a> = &'a (dyn Fn(UpgradeEvent<'_>) + Sync);

/// An upgrade that stopped on its way.
#[derive(Debug)]
pub struct Failed {
    /// The first error.
    pub error: UpgradeError,
    /// The provider that was being upgraded; none if it had not come to that.
    pub stopped: Option<Stopped>,
    /// Other providers that were being upgraded at the same time, and could not be.
    pub others: Vec<(UpgradeError, Stopped)>,
    /// Providers whose turn did not come.
    pub waiting: Vec<Stopped>,
    /// Labels of the providers that have their new version.
    pub upgraded: Vec<String>,
}

/// A provider whose upgrade stopped on its way.
#[derive(Debug)]
pub struct Stopped {
    /// Its label.
    pub label: String,
    /// Whether its CRDs may be the new ones already.
    pub is_defined: bool,
    /// Why its controllers could not be started again, if so.
    pub not_started: Option<UpgradeError>,
    /// Why it is still marked as being upgraded though nothing of it is replaced, if so.
    pub not_unmarked: Option<UpgradeError>,
}

/// A provider's instance.
type Instance = (String, String);

/// How far a run has come.
#[derive(Default)]
struct Progress {
    /// Instances of which something may be replaced.
    touched: Mutex<HashSet<Instance>>,
    /// Instances that have their new version.
    upgraded: Mutex<HashSet<Instance>>,
}

impl Progress {
    fn touch(&self, step: &Step) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(step.instance());
    }

    fn finish(&self, step: &Step) {
        self.upgraded.lock().unwrap_or_else(PoisonError::into_inner).insert(step.instance());
    }

    fn is_touched(&self, step: &Step) -> bool {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).contains(&step.instance())
    }

    fn is_finished(&self, step: &Step) -> bool {
        self.upgraded.lock().unwrap_or_else(PoisonError::into_inner).contains(&step.instance())
    }
}

/// One run of an upgrade.
struct Run<'a> {
    cluster: &'a ManagementCluster,
    plan: &'a UpgradePlan,
    report: UpgradeReporter<'a>,
    progress: Progress,
}

impl Ready<UpgradePlan> {
    /// Upgrades. Where that fails, the controllers that were stopped run again.
    pub async fn run(&self, report: UpgradeReporter<'_>) -> Result<(), Failed> {
        self.run_until(pending(), report).await
    }

    /// Upgrades until told to stop: then, too, the controllers that were stopped run again, and a later run goes on.
    pub async fn run_until(
        &self,
        stop: impl Future<Output = ()>,
        report: UpgradeReporter<'_>,
    ) -> Result<(), Failed> {
        let run = Run { cluster: &self.cluster, plan: &self.plan, report, progress: Progress::default() };
        match select(Box::pin(run.carry_out()), pin!(stop)).await {
            Either::Left((result, _)) => return result,
            // Its requests end before anything is restored.
            Either::Right(((), work)) => drop(work),
        }
        let (upgraded, left): (Vec<&Step>, Vec<&Step>) =
            self.plan.steps.iter().partition(|it| run.progress.is_finished(it));
        let waiting = join_all(left.into_iter().map(|it| run.restore(it))).await;
        let upgraded = upgraded.into_iter().map(Step::label).collect();
        Err(Failed { error: UpgradeError::CutOff, stopped: None, others: Vec::new(), waiting, upgraded })
    }
}

impl<'a> Run<'a> {
    /// Stops all controllers, since they take their time to end, replaces all CRDs, since a server takes its time
    /// with each and makes them known meanwhile, then upgrades core, and then all others.
    async fn carry_out(&self) -> Result<(), Failed> {
        if let Err(error) = self.before().await {
            // A run before this one may have stopped some.
            let waiting = join_all(self.plan.steps.iter().map(|it| self.restore(it))).await;
            return Err(Failed { error, stopped: None, others: Vec::new(), waiting, upgraded: Vec::new() });
        }
        let all = self.plan.steps.iter().collect();
        let (waiting, failed) = each(all, |it| self.stop(it)).await;
        if !failed.is_empty() {
            return self.end(failed, waiting, Vec::new()).await;
        }
        let (waiting, failed) = each(waiting, |it| self.define(it)).await;
        if !failed.is_empty() {
            return self.end(failed, waiting, Vec::new()).await;
        }
        let (core, others) = waiting.into_iter().partition(|it| it.from.kind == ProviderType::Core);
        let (replaced, failed) = each(core, |it| self.replace(it)).await;
        if !failed.is_empty() {
            return self.end(failed, others, Vec::new()).await;
        }
        // The last steps of core hold up no other provider.
        let others = each(others, async |it| {
            self.replace(it).await?;
            self.finish(it).await
        });
        let (core, others) = futures::join!(each(replaced, |it| self.finish(it)), others);
        let (upgraded, failed) = ([core.0, others.0].concat(), core.1.into_iter().chain(others.1).collect());
        self.end(failed, Vec::new(), upgraded).await
    }

    /// Has the controllers run again of all providers that do not have their new version.
    async fn end(
        &self,
        failed: Vec<(&'a Step, UpgradeError)>,
        waiting: Vec<&'a Step>,
        upgraded: Vec<&'a Step>,
    ) -> Result<(), Failed> {
        let failed = failed.into_iter().map(async |(step, error)| (error, self.restore(step).await));
        let waiting = waiting.into_iter().map(|it| self.restore(it));
        let (failed, waiting) = futures::join!(join_all(failed), join_all(waiting));
        let mut failed = failed.into_iter();
        let Some((error, stopped)) = failed.next() else { return Ok(()) };
        let upgraded = upgraded.into_iter().map(Step::label).collect();
        Err(Failed { error, stopped: Some(stopped), others: failed.collect(), waiting, upgraded })
    }

    /// What can be done while all controllers run.
    async fn before(&self) -> Result<(), UpgradeError> {
        if let Some(CertManagerUpgrade { step, migrations, .. }) = &self.plan.cert_manager {
            (self.report)(UpgradeEvent::CertManager(step));
            self.migrate(migrations).await?;
            let report = |event: CertManagerEvent<'_>| match event {
                CertManagerEvent::Apply(event) => (self.report)(UpgradeEvent::Applied(event)),
                CertManagerEvent::Waiting { reason } => {
                    (self.report)(UpgradeEvent::CertManagerWaiting { reason });
                }
            };
            cert_manager::upgrade(self.cluster, &step.manifest, step.limit, &report).await?;
            (self.report)(UpgradeEvent::CertManagerWorks(step));
        }
        for step in &self.plan.steps {
            self.migrate(&step.migrations).await?;
        }
        let stopped = self.plan.steps.iter().filter(|it| !it.is_reapply);
        let marks =
            stopped.map(|it| Installed { upgrading_to: Some(it.to.version.clone()), ..it.from.clone() });
        try_join_all(marks.map(async |it| inventory::record(self.cluster, &it).await)).await?;
        Ok(())
    }

    async fn migrate(&self, migrations: &[Migration]) -> Result<(), UpgradeError> {
        for migration in migrations {
            (self.report)(UpgradeEvent::Migrating(migration));
            let count = migration.carry_out(self.cluster).await?;
            (self.report)(UpgradeEvent::Migrated { migration, count });
        }
        Ok(())
    }

    async fn stop(&self, step: &Step) -> Result<(), UpgradeError> {
        let kept: Vec<Component> = step.installed.iter().filter(|it| step.keeps(it)).cloned().collect();
        adoption::adopt(self.cluster, &kept).await?;
        if step.is_reapply {
            return Ok(());
        }
        (self.report)(UpgradeEvent::Stopping(step));
        scale::stop(self.cluster, &step.label(), step.scope()).await
    }

    /// Replaces the CRDs.
    async fn define(&self, step: &Step) -> Result<(), UpgradeError> {
        let written = step.to_write();
        let crds = apply::crds(&written);
        if !crds.is_empty() {
            self.progress.touch(step);
            (self.report)(UpgradeEvent::Defining(step));
            let report = |event: ApplyEvent<'_>| (self.report)(UpgradeEvent::Applied(event));
            apply::write(self.cluster, &*self.cluster.kinds().await?, &crds, &report).await?;
        }
        Ok(())
    }

    /// Replaces everything but the CRDs.
    async fn replace(&self, step: &Step) -> Result<(), UpgradeError> {
        self.progress.touch(step);
        (self.report)(UpgradeEvent::Replacing(step));
        let report = |event: ApplyEvent<'_>| (self.report)(UpgradeEvent::Applied(event));
        let mut kinds = Kinds::clone(&*self.cluster.kinds().await?);
        kinds.learn_all(step.to.components.objects());
        let is_crd = |it: &&Value| Wave::of(it) == Wave::Crds;
        let (crds, others): (Vec<_>, Vec<_>) = step.to_write().into_iter().partition(is_crd);
        served::wait(self.cluster, apply::used(&crds, &others)).await?;
        let is_recreated = |it: &&Value| step.replaced.contains(&ObjectRef::of(it));
        let (mut recreated, changed): (Vec<_>, Vec<_>) = others.into_iter().partition(is_recreated);
        apply::write(self.cluster, &kinds, &changed, &report).await?;
        // Nothing is away for longer than it must be.
        recreated.sort_by_key(|it| Wave::of(it));
        for object in recreated {
            remove(self.cluster, &ObjectRef::of(object)).await?;
            apply::write(self.cluster, &kinds, &[object], &report).await?;
        }
        Ok(())
    }

    /// What is left to do when the new objects are written.
    async fn finish(&self, step: &Step) -> Result<(), UpgradeError> {
        (self.report)(UpgradeEvent::Pruning(step));
        let written = step.to_write();
        let (kept, (), ()) = futures::try_join!(
            async { Ok::<_, UpgradeError>(prune::delete(self.cluster, &step.leftovers.gone).await?) },
            async { Ok(served::wait(self.cluster, apply::crds(&written)).await?) },
            async {
                if step.is_reapply {
                    return Ok(());
                }
                let release = step.to.components.objects();
                scale::start_new(self.cluster, &step.label(), step.scope(), release).await
            },
        )?;
        for crd in &kept {
            (self.report)(UpgradeEvent::Kept { step, crd });
        }
        let entry = step.to.entry();
        if entry != step.from {
            inventory::record(self.cluster, &entry).await?;
        }
        self.progress.finish(step);
        (self.report)(UpgradeEvent::Upgraded(step));
        Ok(())
    }

    /// Starts the controllers again that were stopped. The mark goes where nothing was replaced, now or before.
    async fn restore(&self, step: &Step) -> Stopped {
        let started = start_again(self.cluster, step).await;
        if matches!(started, Ok(true)) {
            (self.report)(UpgradeEvent::Restored(step));
        }
        let is_touched = self.progress.is_touched(step);
        let is_marked = is_touched || step.from.upgrading_to.is_some() || step.is_reapply;
        let not_unmarked = if is_marked {
            None
        } else {
            inventory::record(self.cluster, &step.from).await.err().map(UpgradeError::from)
        };
        Stopped { label: step.label(), is_defined: is_touched, not_started: started.err(), not_unmarked }
    }
}

/// Does the same with several providers at the same time: those that it worked with, and those that it did not.
async fn each<'a, F>(
    steps: Vec<&'a Step>,
    work: impl Fn(&'a Step) -> F,
) -> (Vec<&'a Step>, Vec<(&'a Step, UpgradeError)>)
where
    F: Future<Output = Result<(), UpgradeError>>,
{
    let results = join_all(steps.iter().map(|it| work(it))).await;
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (step, result) in steps.into_iter().zip(results) {
        match result {
            Ok(()) => done.push(step),
            Err(error) => failed.push((step, error)),
        }
    }
    (done, failed)
}

impl Step {
    fn instance(&self) -> Instance {
        (self.label(), self.from.namespace.clone())
    }

    /// The namespace of this instance's controllers, where the provider has others.
    fn scope(&self) -> Option<&str> {
        self.has_others.then_some(self.from.namespace.as_str())
    }

    /// What is to be written: what would change.
    fn to_write(&self) -> Vec<&Value> {
        self.wanted().filter(|it| !self.unchanged.contains(&ObjectRef::of(it))).collect()
    }

    fn keeps(&self, component: &Component) -> bool {
        !self.leftovers.gone.iter().any(|it| it.id == component.id)
    }
}

async fn start_again(cluster: &ManagementCluster, step: &Step) -> Result<bool, UpgradeError> {
    let is_started = scale::start(cluster, &step.label(), step.scope()).await?;
    let kinds = cluster.kinds().await?;
    for id in step.replaced.iter().filter(|it| it.kind == "Deployment") {
        let Some(kind) = kinds.find(&id.api_version, &id.kind) else { continue };
        let found = cluster.objects(kind, id.namespace.as_deref()).get_metadata_opt(&id.name).await;
        if found.map_err(|error| cluster.failed(format!("look at {id}"), error))?.is_none() {
            return Err(UpgradeError::Gone { object: Box::new(id.clone()) });
        }
    }
    Ok(is_started)
}

/// Deletes an object that has to be recreated, and waits until it is gone.
async fn remove(cluster: &ManagementCluster, object: &ObjectRef) -> Result<(), UpgradeError> {
    let kinds = cluster.kinds().await?;
    let Some(kind) = kinds.find(&object.api_version, &object.kind) else { return Ok(()) };
    let api = cluster.objects(kind, object.namespace.as_deref());
    match api.delete(&object.name, &DeleteParams::background()).await {
        Ok(_) => {}
        Err(error) if error::is_not_found(&error) => return Ok(()),
        Err(error) => return Err(cluster.failed(format!("delete {object}"), error).into()),
    }
    let mut wait = Wait::new(GONE_BACKOFF, GONE_LIMIT);
    loop {
        let found = api.get_metadata_opt(&object.name).await;
        let found = found.map_err(|error| cluster.failed(format!("look at {object}"), error))?;
        let Some(found) = found else { return Ok(()) };
        if wait.is_over() {
            return Err(UpgradeError::StillThere {
                object: Box::new(object.clone()),
                seconds: GONE_LIMIT.as_secs(),
                finalizers: found.metadata.finalizers.unwrap_or_default(),
            });
        }
        wait.pause().await;
    }
}
