//! An installation, carried out.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use capstan_api::{names::CERT_MANAGER, provider::ProviderType};
use futures::future::try_join_all;
use serde_json::Value;

use super::InstallPlan;
use crate::{
    cert_manager::{self, CertManagerError},
    release::Prepared,
};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    apply::{self, ApplyError, Wave},
    inventory::{self, Installed},
    served,
};

/// The progress of an installation.
#[derive(Clone, Debug)]
pub enum InstallEvent<'a> {
    /// Objects are written that wait for each other no more.
    Wave {
        /// The wave.
        wave: Wave,
        /// How many of them.
        count: usize,
    },
    /// An object is there.
    Applied {
        /// The label of its provider, or `cert-manager`.
        part: &'a str,
        /// The object.
        object: &'a ObjectRef,
        /// How many are there of all.
        done: usize,
        /// How many there are.
        all: usize,
    },
    /// An object could not be written yet, and is tried again.
    Retrying {
        /// The object.
        object: &'a ObjectRef,
        /// The reason.
        reason: &'a str,
    },
    /// cert-manager does not answer yet.
    CertManagerWaiting {
        /// The reason.
        reason: &'a str,
    },
    /// cert-manager answers.
    CertManagerWorks,
    /// A provider is installed.
    Installed(&'a Installed),
}

/// Receives the progress of an installation.
pub type InstallReporter<'a> = &'a (dyn Fn(InstallEvent<'_>) + Sync);

/// An installation that did not end.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct InstallError {
    /// What went wrong.
    #[source]
    pub reason: InstallFailure,
    /// How many objects were written before.
    pub done: usize,
    /// How many there are.
    pub all: usize,
}

/// Why an installation did not end.
#[derive(Debug, thiserror::Error)]
pub enum InstallFailure {
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

/// Carries out a plan: cert-manager and the kinds of all providers, then their other objects wave by wave, then the
/// inventory.
pub(super) async fn run(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    report: InstallReporter<'_>,
) -> Result<(), InstallError> {
    if plan.is_empty() {
        return Ok(());
    }
    let count = Count::of(plan);
    carry_out(cluster, plan, &count, report).await.map_err(|reason| InstallError {
        reason,
        done: count.done.load(Ordering::Relaxed),
        all: count.all,
    })
}

async fn carry_out(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    count: &Count,
    report: InstallReporter<'_>,
) -> Result<(), InstallFailure> {
    let tell_apply = |event: apply::ApplyEvent<'_>| count.report(event, report);
    let write = |objects| apply::write(cluster, &plan.kinds, objects, &tell_apply);
    let Order { first, cert_manager, crds, rest } = Order::of(plan);
    let inventory = inventory::missing_kind(cluster).await?;
    let inventory: Vec<&Value> = inventory.iter().collect();
    futures::try_join!(write(&first), apply::write(cluster, &plan.kinds, &inventory, &|_| {}))?;
    let first = apply::crds(&first);
    futures::try_join!(
        async {
            served::wait(cluster, apply::used(&first, &cert_manager)).await?;
            write(&cert_manager).await?;
            await_cert_manager(cluster, plan, report).await
        },
        // CRDs take a server the longest, and do no harm while cert-manager comes up.
        async { Ok(write(&crds).await?) },
    )?;
    served::wait(cluster, [first, inventory].concat()).await?;
    write(&rest).await?;
    record(cluster, &plan.queue, report).await
}

/// The objects of a plan, in the order in which they are written.
struct Order<'a> {
    /// Namespaces, and the kinds that something is written of. A server makes kinds known one after the other: behind
    /// all the others these would be waited for the longest.
    first: Vec<&'a Value>,
    /// What else belongs to cert-manager.
    cert_manager: Vec<&'a Value>,
    /// The other kinds of the providers.
    crds: Vec<&'a Value>,
    /// What else belongs to the providers.
    rest: Vec<&'a Value>,
}

impl<'a> Order<'a> {
    fn of(plan: &'a InstallPlan) -> Self {
        let cert_manager: Vec<&Value> = plan.cert_manager.objects().iter().collect();
        let providers: Vec<&Value> = plan.queue.iter().flat_map(|it| it.components.objects()).collect();
        Self::among(&cert_manager, &providers)
    }

    fn among(cert_manager: &[&'a Value], providers: &[&'a Value]) -> Self {
        let all = [cert_manager, providers].concat();
        let is_first = |it: &&Value| match Wave::of(it) {
            Wave::Namespaces => true,
            Wave::Crds => apply::is_used(it, &all),
            Wave::Settings | Wave::Workloads | Wave::Webhooks => false,
        };
        let (mut first, cert_manager): (Vec<_>, Vec<_>) = cert_manager.iter().copied().partition(is_first);
        let (needed, others): (Vec<_>, Vec<_>) = providers.iter().copied().partition(is_first);
        first.extend(needed);
        let (crds, rest) = others.into_iter().partition(|it| Wave::of(it) == Wave::Crds);
        Self { first, cert_manager, crds, rest }
    }
}

async fn await_cert_manager(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    report: InstallReporter<'_>,
) -> Result<(), InstallFailure> {
    let tell_wait = |reason: &str| report(InstallEvent::CertManagerWaiting { reason });
    cert_manager::wait(cluster, &plan.cert_manager, plan.cert_manager_limit, &tell_wait).await?;
    if plan.cert_manager != cert_manager::Action::Nothing {
        report(InstallEvent::CertManagerWorks);
    }
    Ok(())
}

/// Writes the inventory, core's entry last: while it is missing, the same command again is a first run again, and adds
/// the same defaults.
async fn record(
    cluster: &ManagementCluster,
    queue: &[Prepared],
    report: InstallReporter<'_>,
) -> Result<(), InstallFailure> {
    let entries = queue.iter().map(Prepared::entry);
    let (cores, others): (Vec<_>, Vec<_>) = entries.partition(|it| it.kind == ProviderType::Core);
    for entries in [others, cores] {
        try_join_all(entries.iter().map(|it| inventory::record(cluster, it))).await?;
        for entry in &entries {
            report(InstallEvent::Installed(entry));
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
    fn of(plan: &InstallPlan) -> Self {
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

    fn report(&self, event: apply::ApplyEvent<'_>, report: InstallReporter<'_>) {
        match event {
            apply::ApplyEvent::Wave { wave, count } => report(InstallEvent::Wave { wave, count }),
            apply::ApplyEvent::Applied(object) => {
                let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
                let part = self.parts.get(object).map_or("", String::as_str);
                report(InstallEvent::Applied { part, object, done, all: self.all });
            }
            apply::ApplyEvent::Retrying { object, reason } => {
                report(InstallEvent::Retrying { object, reason: &reason });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_that_something_is_written_of_come_before_all_others() {
        let object = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        let crd = |kind: &str| {
            let mut it = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind);
            it["spec"] = json!({"group": "g.io", "names": {"kind": kind, "plural": kind.to_lowercase()},
                                "versions": [{"name": "v1", "served": true}]});
            it
        };
        let cert_manager = [
            object("v1", "Namespace", "cert-manager"),
            crd("Order"),
            crd("Issuer"),
            object("apps/v1", "Deployment", "cert-manager"),
        ];
        let providers = [
            object("v1", "Namespace", "capi-system"),
            crd("Cluster"),
            crd("ClusterClass"),
            object("g.io/v1", "Issuer", "issuer"),
            object("g.io/v1", "ClusterClass", "class"),
            object("apps/v1", "Deployment", "capi"),
        ];
        let order =
            Order::among(&cert_manager.iter().collect::<Vec<_>>(), &providers.iter().collect::<Vec<_>>());
        let names = |objects: &[&Value]| -> Vec<String> {
            objects.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&order.first), ["cert-manager", "Issuer", "capi-system", "ClusterClass"]);
        assert_eq!(names(&order.cert_manager), ["Order", "cert-manager"]);
        assert_eq!(names(&order.crds), ["Cluster"]);
        assert_eq!(names(&order.rest), ["issuer", "class", "capi"]);
    }
}
