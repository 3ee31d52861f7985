//! An upgrade that is carried out: all controllers are stopped, then the CRDs of all providers are replaced at the
//! same time, then what else belongs to core, then what else belongs to all others.

use std::time::Duration;

use capstan_api::provider::ProviderType;
use futures::future::{join_all, try_join_all};
use kube::api::DeleteParams;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    CertManagerStep, CertManagerUpgrade, Migration, Step, Upgrade, UpgradeError, mark, prune, scale,
};
use crate::cert_manager;
use capstan_management::{
    Kinds, ManagementCluster, ObjectRef, adoption, apply, error, inventory, served, sweep::Component,
};

/// How long an object may take to go that has to be made anew.
const GONE_LIMIT: Duration = Duration::from_mins(1);
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// What is told on the way.
#[derive(Debug)]
pub enum UpgradeEvent<'a> {
    /// cert-manager is upgraded.
    CertManager(&'a CertManagerStep),
    /// It does not answer yet.
    CertManagerWaiting {
        /// Why not.
        reason: &'a str,
    },
    /// It has its new version, and works.
    CertManagerWorks(&'a CertManagerStep),
    /// Objects of a kind are written anew.
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
    Applied(apply::ApplyEvent<'a>),
    /// What its new release does not have any more is being deleted.
    Pruning(&'a Step),
    /// A CRD stays that was to go: somebody has made objects of it meanwhile.
    Kept {
        /// Of which provider.
        step: &'a Step,
        /// Which.
        crd: &'a ObjectRef,
    },
    /// It has its new version.
    Upgraded(&'a Step),
    /// The controllers that were stopped run again.
    Restored(&'a Step),
}

/// Who is told.
pub type UpgradeReporter<'a> = &'a (dyn Fn(UpgradeEvent<'_>) + Sync);

/// An upgrade that stopped on its way.
#[derive(Debug)]
pub struct Failed {
    /// Why.
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

/// How far providers have come.
#[derive(Default)]
struct Course<'a> {
    /// Those that failed, and why.
    failed: Vec<(&'a Step, UpgradeError)>,
    /// Those whose turn did not come.
    waiting: Vec<&'a Step>,
    /// Those that have their new version.
    upgraded: Vec<&'a Step>,
}

impl Upgrade {
    /// Stops all controllers, since they take their time to end, replaces all CRDs, since a server takes its time
    /// with each and makes them known meanwhile, then upgrades core, and then all others. Where that fails, the
    /// controllers that were stopped run again.
    pub async fn carry_out(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
    ) -> Result<(), Failed> {
        if let Err(error) = self.before(cluster, tell).await {
            // A run before this one may have stopped some.
            let waiting = join_all(self.steps.iter().map(|it| it.restore(cluster, tell, false))).await;
            return Err(Failed { error, stopped: None, others: Vec::new(), waiting, upgraded: Vec::new() });
        }
        let all = self.steps.iter().collect();
        let (waiting, failed) = each(all, |it| it.stop(cluster, tell)).await;
        if !failed.is_empty() {
            let course = Course { failed, waiting, ..Course::default() };
            return course.end(cluster, tell, false).await;
        }
        let (waiting, failed) = each(waiting, |it| it.define(cluster, tell)).await;
        if !failed.is_empty() {
            let course = Course { failed, waiting, ..Course::default() };
            return course.end(cluster, tell, true).await;
        }
        let (core, others) = waiting.into_iter().partition(|it| it.from.kind == ProviderType::Core);
        let (replaced, failed) = each(core, |it| it.replace(cluster, tell)).await;
        if !failed.is_empty() {
            let course = Course { failed, waiting: others, ..Course::default() };
            return course.end(cluster, tell, true).await;
        }
        // What is left to do for core holds nobody up.
        let others = each(others, async |it| {
            it.replace(cluster, tell).await?;
            it.finish(cluster, tell).await
        });
        let (core, others) = futures::join!(each(replaced, |it| it.finish(cluster, tell)), others);
        let (upgraded, failed) = ([core.0, others.0].concat(), core.1.into_iter().chain(others.1).collect());
        Course { failed, waiting: Vec::new(), upgraded }.end(cluster, tell, true).await
    }

    /// What can be done while all controllers run.
    async fn before(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
    ) -> Result<(), UpgradeError> {
        if let Some(CertManagerUpgrade { step, migrations, .. }) = &self.cert_manager {
            tell(UpgradeEvent::CertManager(step));
            migrate(cluster, migrations, tell).await?;
            let told = |event: cert_manager::Event<'_>| match event {
                cert_manager::Event::Apply(event) => tell(UpgradeEvent::Applied(event)),
                cert_manager::Event::Waiting { reason } => tell(UpgradeEvent::CertManagerWaiting { reason }),
            };
            cert_manager::upgrade(cluster, &step.manifest, step.limit, &told).await?;
            tell(UpgradeEvent::CertManagerWorks(step));
        }
        for step in &self.steps {
            migrate(cluster, &step.migrations, tell).await?;
        }
        try_join_all(self.steps.iter().map(|it| mark::set(cluster, &it.from, &it.to.version))).await?;
        Ok(())
    }
}

async fn migrate(
    cluster: &ManagementCluster,
    migrations: &[Migration],
    tell: UpgradeReporter<'_>,
) -> Result<(), UpgradeError> {
    for migration in migrations {
        tell(UpgradeEvent::Migrating(migration));
        let count = migration.carry_out(cluster).await?;
        tell(UpgradeEvent::Migrated { migration, count });
    }
    Ok(())
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

impl Course<'_> {
    /// Has the controllers of all run again that do not have their new version.
    async fn end(
        self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
        are_defined: bool,
    ) -> Result<(), Failed> {
        let failed = self
            .failed
            .into_iter()
            .map(async |(step, error)| (error, step.restore(cluster, tell, are_defined).await));
        // Who has no new CRDs is as before.
        let is_defined = |it: &Step| are_defined && !apply::crds(&it.to_write()).is_empty();
        let waiting = self.waiting.into_iter().map(|it| it.restore(cluster, tell, is_defined(it)));
        let (failed, waiting) = futures::join!(join_all(failed), join_all(waiting));
        let mut failed = failed.into_iter();
        let Some((error, stopped)) = failed.next() else { return Ok(()) };
        let upgraded = self.upgraded.into_iter().map(Step::label).collect();
        Err(Failed { error, stopped: Some(stopped), others: failed.collect(), waiting, upgraded })
    }
}

impl Step {
    async fn stop(&self, cluster: &ManagementCluster, tell: UpgradeReporter<'_>) -> Result<(), UpgradeError> {
        let kept: Vec<Component> = self.installed.iter().filter(|it| self.keeps(it)).cloned().collect();
        adoption::adopt(cluster, &kept).await?;
        tell(UpgradeEvent::Stopping(self));
        scale::stop(cluster, &self.label()).await
    }

    /// Replaces the CRDs.
    async fn define(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
    ) -> Result<(), UpgradeError> {
        let written = self.to_write();
        let crds = apply::crds(&written);
        if !crds.is_empty() {
            tell(UpgradeEvent::Defining(self));
            let told = |event: apply::ApplyEvent<'_>| tell(UpgradeEvent::Applied(event));
            apply::write(cluster, &*cluster.kinds().await?, &crds, &told).await?;
        }
        Ok(())
    }

    /// Replaces everything but the CRDs.
    async fn replace(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
    ) -> Result<(), UpgradeError> {
        tell(UpgradeEvent::Replacing(self));
        let told = |event: apply::ApplyEvent<'_>| tell(UpgradeEvent::Applied(event));
        let mut kinds = Kinds::clone(&*cluster.kinds().await?);
        kinds.learn_all(self.to.components.objects());
        let is_crd = |it: &&Value| apply::Wave::of(it) == apply::Wave::Crds;
        let (crds, others): (Vec<_>, Vec<_>) = self.to_write().into_iter().partition(is_crd);
        served::wait(cluster, apply::used(&crds, &others)).await?;
        let is_made_anew = |it: &&Value| self.replaced.contains(&ObjectRef::of(it));
        let (mut anew, changed): (Vec<_>, Vec<_>) = others.into_iter().partition(is_made_anew);
        apply::write(cluster, &kinds, &changed, &told).await?;
        // Nothing is away for longer than it must be.
        anew.sort_by_key(|it| apply::Wave::of(it));
        for object in anew {
            self.remove(cluster, &ObjectRef::of(object)).await?;
            apply::write(cluster, &kinds, &[object], &told).await?;
        }
        Ok(())
    }

    /// What is left to do when the new objects are written.
    async fn finish(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
    ) -> Result<(), UpgradeError> {
        tell(UpgradeEvent::Pruning(self));
        let (label, written) = (self.label(), self.to_write());
        let (kept, (), ()) = futures::try_join!(
            async { Ok::<_, UpgradeError>(prune::delete(cluster, &self.leftovers.gone).await?) },
            async { Ok(served::wait(cluster, apply::crds(&written)).await?) },
            scale::start_new(cluster, &label, self.to.components.objects()),
        )?;
        for crd in &kept {
            tell(UpgradeEvent::Kept { step: self, crd });
        }
        inventory::record(cluster, &self.to.entry()).await?;
        tell(UpgradeEvent::Upgraded(self));
        Ok(())
    }

    /// Starts the controllers again that were stopped. The mark goes where nothing was replaced, now or before.
    async fn restore(
        &self,
        cluster: &ManagementCluster,
        tell: UpgradeReporter<'_>,
        is_touched: bool,
    ) -> Stopped {
        let started = self.start_again(cluster).await;
        if matches!(started, Ok(true)) {
            tell(UpgradeEvent::Restored(self));
        }
        let not_unmarked = if is_touched || self.is_begun {
            None
        } else {
            inventory::record(cluster, &self.from).await.err().map(UpgradeError::from)
        };
        Stopped { label: self.label(), is_defined: is_touched, not_started: started.err(), not_unmarked }
    }

    async fn start_again(&self, cluster: &ManagementCluster) -> Result<bool, UpgradeError> {
        let is_started = scale::start(cluster, &self.label()).await?;
        let kinds = cluster.kinds().await?;
        for id in self.replaced.iter().filter(|it| it.kind == "Deployment") {
            let Some(kind) = kinds.find(&id.api_version, &id.kind) else { continue };
            let found = cluster.objects(kind, id.namespace.as_deref()).get_metadata_opt(&id.name).await;
            if found.map_err(|error| cluster.failed(format!("look at {id}"), error))?.is_none() {
                return Err(UpgradeError::Gone { object: Box::new(id.clone()) });
            }
        }
        Ok(is_started)
    }

    fn to_write(&self) -> Vec<&Value> {
        let is_changed = |it: &&Value| !self.unchanged.contains(&ObjectRef::of(it));
        self.to.components.objects().iter().filter(is_changed).collect()
    }

    fn keeps(&self, component: &Component) -> bool {
        !self.leftovers.gone.iter().any(|it| it.id == component.id)
    }

    /// Deletes an object that has to be made anew, and waits until it is gone.
    async fn remove(&self, cluster: &ManagementCluster, object: &ObjectRef) -> Result<(), UpgradeError> {
        let kinds = cluster.kinds().await?;
        let Some(kind) = kinds.find(&object.api_version, &object.kind) else { return Ok(()) };
        let api = cluster.objects(kind, object.namespace.as_deref());
        match api.delete(&object.name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(error) if error::is_not_found(&error) => return Ok(()),
            Err(error) => return Err(cluster.failed(format!("delete {object}"), error).into()),
        }
        let (start, mut delay) = (Instant::now(), FIRST_DELAY);
        loop {
            let found = api.get_metadata_opt(&object.name).await;
            let found = found.map_err(|error| cluster.failed(format!("look at {object}"), error))?;
            let Some(found) = found else { return Ok(()) };
            if start.elapsed() > GONE_LIMIT {
                return Err(UpgradeError::StillThere {
                    object: Box::new(object.clone()),
                    seconds: GONE_LIMIT.as_secs(),
                    finalizers: found.metadata.finalizers.unwrap_or_default(),
                });
            }
            sleep(delay).await;
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }
}
