//! An upgrade that is carried out: core first, then all other providers at the same time.

use std::{collections::HashSet, time::Duration};

use capstan_api::provider::ProviderType;
use futures::future::{join_all, try_join_all};
use kube::api::DeleteParams;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    CertManagerStep, UpgradeError, mark,
    prepare::{Step, Upgrade},
    prune, scale,
    storage::Migration,
};
use crate::{
    ManagementCluster, ObjectRef, adoption, apply, cert_manager, error, inventory, sweep::Component,
};

/// How long an object may take to go that has to be made anew.
const GONE_LIMIT: Duration = Duration::from_mins(1);
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// What is told on the way.
#[derive(Debug)]
pub enum Event<'a> {
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
    /// Its objects are being replaced.
    Replacing(&'a Step),
    /// One of its objects is.
    Applied(apply::Event<'a>),
    /// What its new release does not have any more is being deleted.
    Pruning(&'a Step),
    /// It has its new version.
    Upgraded(&'a Step),
    /// The controllers that were stopped run again.
    Restored(&'a Step),
}

/// Who is told.
pub type Tell<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// An upgrade that stopped on its way.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: UpgradeError,
    /// The provider that was being upgraded; none if it had not come to that.
    pub stopped: Option<Stopped>,
    /// Other providers that were being upgraded at the same time, and could not be.
    pub others: Vec<(UpgradeError, Stopped)>,
    /// Labels of the providers that have their new version.
    pub upgraded: Vec<String>,
}

/// A provider whose upgrade stopped on its way.
#[derive(Debug)]
pub struct Stopped {
    /// Its label.
    pub label: String,
    /// Why its controllers could not be started again, if so.
    pub not_restored: Option<UpgradeError>,
}

impl Upgrade {
    /// Upgrades core, then all others. Where that fails, the controllers that were stopped run again.
    pub async fn carry_out(&self, cluster: &ManagementCluster, tell: Tell<'_>) -> Result<(), Failed> {
        self.before(cluster, tell).await.map_err(|error| Failed {
            error,
            stopped: None,
            others: Vec::new(),
            upgraded: Vec::new(),
        })?;
        let (cores, others): (Vec<&Step>, Vec<&Step>) =
            self.steps.iter().partition(|it| it.from.kind == ProviderType::Core);
        let mut upgraded = Vec::new();
        for (steps, untouched) in [(&cores, others.as_slice()), (&others, &[])] {
            let results = join_all(steps.iter().map(|it| it.carry_out(cluster, tell))).await;
            let mut failures = Vec::new();
            for (step, result) in steps.iter().zip(results) {
                match result {
                    Ok(()) => upgraded.push(step.label()),
                    Err(failure) => failures.push(failure),
                }
            }
            let mut failures = failures.into_iter();
            if let Some((error, mut stopped)) = failures.next() {
                if let Err(error) = unmark(cluster, untouched).await {
                    stopped.not_restored.get_or_insert(error);
                }
                let others = failures.collect();
                return Err(Failed { error, stopped: Some(stopped), others, upgraded });
            }
        }
        Ok(())
    }

    /// What can be done while all controllers run.
    async fn before(&self, cluster: &ManagementCluster, tell: Tell<'_>) -> Result<(), UpgradeError> {
        if let Some(step) = &self.cert_manager {
            tell(Event::CertManager(step));
            let told = |event: cert_manager::Event<'_>| match event {
                cert_manager::Event::Apply(event) => tell(Event::Applied(event)),
                cert_manager::Event::Waiting { reason } => tell(Event::CertManagerWaiting { reason }),
            };
            cert_manager::upgrade(cluster, &step.manifest, step.limit, &told).await?;
            tell(Event::CertManagerWorks(step));
        }
        for migration in self.steps.iter().flat_map(|it| &it.migrations) {
            tell(Event::Migrating(migration));
            let count = migration.carry_out(cluster).await?;
            tell(Event::Migrated { migration, count });
        }
        try_join_all(self.steps.iter().map(|it| mark::set(cluster, &it.from, &it.to.version))).await?;
        Ok(())
    }
}

impl Step {
    async fn carry_out(
        &self,
        cluster: &ManagementCluster,
        tell: Tell<'_>,
    ) -> Result<(), (UpgradeError, Stopped)> {
        let stopped = self.stop(cluster, tell).await;
        let is_touched = stopped.is_ok();
        let result = match stopped {
            Ok(()) => self.replace(cluster, tell).await,
            error => error,
        };
        let Err(error) = result else {
            tell(Event::Upgraded(self));
            return Ok(());
        };
        let not_restored = self.restore(cluster, is_touched).await.err();
        if not_restored.is_none() {
            tell(Event::Restored(self));
        }
        Err((error, Stopped { label: self.label(), not_restored }))
    }

    async fn stop(&self, cluster: &ManagementCluster, tell: Tell<'_>) -> Result<(), UpgradeError> {
        let kept: Vec<Component> = self.installed.iter().filter(|it| self.keeps(it)).cloned().collect();
        adoption::adopt(cluster, &kept).await?;
        tell(Event::Stopping(self));
        scale::stop(cluster, &self.label()).await
    }

    async fn replace(&self, cluster: &ManagementCluster, tell: Tell<'_>) -> Result<(), UpgradeError> {
        let objects = self.to.components.objects();
        tell(Event::Replacing(self));
        for object in &self.replaced {
            self.remove(cluster, object).await?;
        }
        let mut kinds = cluster.kinds().await?.clone();
        kinds.learn_all(objects);
        let to_write: Vec<&Value> =
            objects.iter().filter(|it| !self.unchanged.contains(&ObjectRef::of(it))).collect();
        apply::apply_known(cluster, &kinds, &to_write, &|event| tell(Event::Applied(event))).await?;
        scale::start(cluster, &self.label(), &scale::with_replicas(objects)).await?;
        tell(Event::Pruning(self));
        prune::delete(cluster, &self.leftovers.gone).await?;
        inventory::record(cluster, &self.to.entry()).await?;
        Ok(())
    }

    /// Starts the controllers again that were stopped.
    async fn restore(&self, cluster: &ManagementCluster, is_touched: bool) -> Result<(), UpgradeError> {
        scale::start(cluster, &self.label(), &HashSet::new()).await?;
        if !is_touched {
            unmark(cluster, &[self]).await?;
        }
        Ok(())
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

/// Takes the marks off providers of which nothing is replaced.
async fn unmark(cluster: &ManagementCluster, steps: &[&Step]) -> Result<(), UpgradeError> {
    try_join_all(steps.iter().map(|it| inventory::record(cluster, &it.from))).await?;
    Ok(())
}
