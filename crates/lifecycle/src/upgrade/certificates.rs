//! cert-manager goes along with an upgrade, before the providers that need it.

use std::time::Duration;

use capstan_api::names::CERT_MANAGER;

use super::{Migration, UpgradeError, UpgradeWarning, step::refusal, storage};
use crate::{
    catalog::CertManagerPolicy,
    cert_manager::{self, CertManagerState, Manifest},
    release::{ReleaseError, unlabelled},
};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    dry_run::{self, Detail},
    sweep::Component,
};

/// The upgrade of cert-manager.
#[derive(Clone, Debug, PartialEq)]
pub struct CertManagerStep {
    /// The version that is installed.
    pub from: String,
    /// What is to be there.
    pub manifest: Manifest,
    /// How long it may take until it works.
    pub limit: Duration,
}

/// The same, as it is decided before anything is changed.
#[derive(Debug)]
pub struct CertManagerUpgrade {
    /// From where to where.
    pub step: CertManagerStep,
    /// What the new version does not have any more.
    pub gone: Vec<Component>,
    /// Kinds whose objects have to be stored in another version first.
    pub migrations: Vec<Migration>,
    /// Objects that the server would refuse, and why.
    pub refusals: Vec<(ObjectRef, String)>,
}

impl CertManagerUpgrade {
    /// Has the server try the new objects.
    pub(super) async fn decide(
        cluster: &ManagementCluster,
        step: CertManagerStep,
    ) -> Result<Self, UpgradeError> {
        let Manifest { version, objects, .. } = &step.manifest;
        let (gone, trials) = futures::join!(
            cert_manager::leftovers(cluster, &step.manifest),
            dry_run::try_all(cluster, objects, Detail::Brief),
        );
        let mut trials = trials?;
        let objects: Vec<_> = objects.iter().collect();
        let migrations = storage::find(cluster, CERT_MANAGER, version, &objects, &mut trials).await?;
        let refusals: Vec<_> = trials.into_iter().filter_map(|it| refusal(&it)).collect();
        Ok(Self { gone: gone?, migrations, refusals, step })
    }
}

/// What is to be done about cert-manager.
#[derive(Clone, Debug, PartialEq)]
pub enum CertManagerPlan {
    /// Capstan does not look after it, or its state is unknown.
    NotOurs,
    /// Nothing.
    UpToDate,
    /// It is to be upgraded.
    Upgrade(CertManagerStep),
}

/// What the configuration wants, and how long it may take until it works; none where cert-manager is left alone.
pub(super) type Fetched = Result<Option<(Manifest, Duration)>, ReleaseError>;

/// Fetches the version that is wanted; none where cert-manager is left alone.
pub(super) async fn fetch(policy: &CertManagerPolicy) -> Fetched {
    match policy {
        CertManagerPolicy::LeaveAlone { .. } => Ok(None),
        CertManagerPolicy::Manage(source) => Ok(Some((Manifest::fetch(source).await?, source.limit))),
    }
}

/// Compares cert-manager with what the configuration wants. A manifest that cannot be had
/// is a warning. A caller that knows what is installed, and which of cert-manager's images are in use, saves a search.
pub(super) async fn plan(
    cluster: &ManagementCluster,
    fetched: Fetched,
    known: Option<(&[Component], &[String])>,
) -> Result<(CertManagerPlan, Option<UpgradeWarning>), ServerError> {
    let (manifest, limit) = match fetched {
        Ok(Some(fetched)) => fetched,
        Ok(None) => return Ok((CertManagerPlan::NotOurs, None)),
        Err(error) => {
            let error = unlabelled(CERT_MANAGER, &error);
            let text = format!("cannot determine whether it is up to date: {error}");
            let warning = UpgradeWarning { label: CERT_MANAGER.to_owned(), text };
            return Ok((CertManagerPlan::NotOurs, Some(warning)));
        }
    };
    let plan = match known {
        Some((installed, images)) => cert_manager::plan_among(cluster, &manifest, installed, images).await?,
        None => cert_manager::plan(cluster, &manifest).await?,
    };
    let plan = match plan {
        CertManagerState::Absent | CertManagerState::External => CertManagerPlan::NotOurs,
        CertManagerState::UpToDate { .. } => CertManagerPlan::UpToDate,
        CertManagerState::Upgrade { from, .. } => {
            CertManagerPlan::Upgrade(CertManagerStep { from, manifest, limit })
        }
    };
    Ok((plan, None))
}
