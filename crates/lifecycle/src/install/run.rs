//! An installation, carried out.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use capstan_api::{names::CERT_MANAGER, provider::ProviderType};
use futures::future::try_join_all;
use serde_json::Value;

use super::Plan;
use crate::{
    ManagementCluster, ObjectRef, ServerError,
    apply::{self, ApplyError, Wave},
    cert_manager::{self, CertManagerError},
    inventory::{self, Installed},
    release::Prepared,
    served,
};

/// What is told on the way.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Objects are written that wait for each other no more.
    Wave {
        /// Which.
        wave: Wave,
        /// How many of them.
        count: usize,
    },
    /// An object is there.
    Applied {
        /// The label of its provider, or `cert-manager`.
        part: &'a str,
        /// Which.
        object: &'a ObjectRef,
        /// How many are there of all.
        done: usize,
        /// How many there are.
        all: usize,
    },
    /// An object could not be written yet, and is tried again.
    Retrying {
        /// Which.
        object: &'a ObjectRef,
        /// Why.
        reason: &'a str,
    },
    /// cert-manager does not answer yet.
    CertManagerWaiting {
        /// Why not.
        reason: &'a str,
    },
    /// cert-manager answers.
    CertManagerWorks,
    /// A provider is installed.
    Installed(&'a Installed),
}

/// Who is told.
pub type Tell<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// An installation that did not end.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct InstallError {
    /// What went wrong.
    #[source]
    pub reason: Reason,
    /// How many objects were written before.
    pub done: usize,
    /// How many there are.
    pub all: usize,
}

/// Why an installation did not end.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The objects of providers.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// cert-manager.
    #[error(transparent)]
    CertManager(#[from] CertManagerError),
    /// The inventory.
    #[error(transparent)]
    Inventory(#[from] ServerError),
}

impl InstallError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match &self.reason {
            Reason::Apply(error) => error.hint(),
            Reason::CertManager(error) => error.hint(),
            Reason::Inventory(error) => error.hint(),
        }
    }
}

/// Carries out a plan: cert-manager and the kinds of all providers, then their other objects wave by wave, then the
/// inventory.
pub async fn run(cluster: &ManagementCluster, plan: &Plan, tell: Tell<'_>) -> Result<(), InstallError> {
    if plan.is_nothing() {
        return Ok(());
    }
    let count = Count::of(plan);
    carry_out(cluster, plan, &count, tell).await.map_err(|reason| InstallError {
        reason,
        done: count.done.load(Ordering::Relaxed),
        all: count.all,
    })
}

async fn carry_out(
    cluster: &ManagementCluster,
    plan: &Plan,
    count: &Count,
    tell: Tell<'_>,
) -> Result<(), Reason> {
    inventory::ensure_kind(cluster).await?;
    let tell_apply = |event: apply::Event<'_>| count.tell(event, tell);
    let (begin, rest): (Vec<&Value>, Vec<&Value>) = plan
        .queue
        .iter()
        .flat_map(|it| it.components.objects())
        .partition(|it| Wave::of(it) <= Wave::Definitions);
    let cert_manager: Vec<&Value> = plan.cert_manager.objects().iter().collect();
    apply::write(cluster, &plan.kinds, &cert_manager, &tell_apply).await?;
    // A server makes kinds known one after the other: those of cert-manager would have to wait for all the others.
    served::wait(cluster, apply::used(&apply::definitions(&cert_manager), &rest)).await?;
    // Kinds take a server the longest, and harm nobody while cert-manager comes up.
    futures::try_join!(
        async { Ok(apply::write(cluster, &plan.kinds, &begin, &tell_apply).await?) },
        await_cert_manager(cluster, plan, tell),
    )?;
    served::wait(cluster, apply::used(&apply::definitions(&begin), &rest)).await?;
    apply::write(cluster, &plan.kinds, &rest, &tell_apply).await?;
    record(cluster, &plan.queue, tell).await
}

async fn await_cert_manager(cluster: &ManagementCluster, plan: &Plan, tell: Tell<'_>) -> Result<(), Reason> {
    let tell_wait = |reason: &str| tell(Event::CertManagerWaiting { reason });
    cert_manager::wait(cluster, &plan.cert_manager, plan.cert_manager_limit, &tell_wait).await?;
    if plan.cert_manager != cert_manager::Action::Nothing {
        tell(Event::CertManagerWorks);
    }
    Ok(())
}

/// Writes the inventory, core's entry last: while it is missing, the same command again is a first run again, and adds
/// the same defaults.
async fn record(cluster: &ManagementCluster, queue: &[Prepared], tell: Tell<'_>) -> Result<(), Reason> {
    let entries = queue.iter().map(Prepared::entry);
    let (cores, others): (Vec<_>, Vec<_>) = entries.partition(|it| it.kind == ProviderType::Core);
    for entries in [others, cores] {
        try_join_all(entries.iter().map(|it| inventory::record(cluster, it))).await?;
        for entry in &entries {
            tell(Event::Installed(entry));
        }
    }
    Ok(())
}

/// How far an installation is.
struct Count {
    parts: HashMap<ObjectRef, String>,
    done: AtomicUsize,
    all: usize,
}

impl Count {
    fn of(plan: &Plan) -> Self {
        let cert_manager =
            plan.cert_manager.objects().iter().map(|it| (ObjectRef::of(it), CERT_MANAGER.to_owned()));
        let of_provider = |it: &Prepared| -> Vec<_> {
            let label = it.provider.label();
            it.components.objects().iter().map(|object| (ObjectRef::of(object), label.clone())).collect()
        };
        let all = plan.cert_manager.objects().len()
            + plan.queue.iter().map(|it| it.components.objects().len()).sum::<usize>();
        let parts = cert_manager.chain(plan.queue.iter().flat_map(of_provider)).collect();
        Self { parts, done: AtomicUsize::new(0), all }
    }

    fn tell(&self, event: apply::Event<'_>, tell: Tell<'_>) {
        match event {
            apply::Event::Wave { wave, count } => tell(Event::Wave { wave, count }),
            apply::Event::Applied(object) => {
                let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                let part = self.parts.get(object).map_or("", String::as_str);
                tell(Event::Applied { part, object, done, all: self.all });
            }
            apply::Event::Retrying { object, reason } => tell(Event::Retrying { object, reason: &reason }),
        }
    }
}
