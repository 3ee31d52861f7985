//! cert-manager, which most providers need for the certificates of their webhooks.
//!
//! It is labelled as clusterctl labels it, so that both tools can take turns.

mod manifest;
mod plan;
mod probe;
mod upgrade;

use std::{collections::BTreeSet, time::Duration};

use capstan_api::names::{CERT_MANAGER, label};
use kube::{core::GroupVersionKind, discovery::ApiResource};

pub use manifest::Manifest;
pub use plan::{CertManagerState, plan};
pub(crate) use plan::{images_in_use, plan_among};
pub(crate) use upgrade::leftovers;
pub use upgrade::upgrade;

use crate::{
    catalog::{CertManagerPolicy, CertManagerSource},
    release::ReleaseError,
};
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError,
    apply::{self, ApplyError},
    sweep,
};

/// The group of its kinds.
pub const GROUP: &str = "cert-manager.io";
/// The version that an object of it belongs to.
pub const VERSION_ANNOTATION: &str = "cert-manager.clusterctl.cluster.x-k8s.io/version";
/// The CRD that tells who installed it.
const CRD: &str = "certificates.cert-manager.io";

/// The progress of an installation or upgrade of cert-manager.
#[derive(Clone, Debug)]
pub enum CertManagerEvent<'a> {
    /// Its objects are applied.
    Apply(apply::ApplyEvent<'a>),
    /// It does not answer yet.
    Waiting {
        /// The reason.
        reason: &'a str,
    },
}

/// Receives the progress of an installation or upgrade of cert-manager.
pub type CertManagerReporter<'a> = &'a (dyn Fn(CertManagerEvent<'_>) + Sync);

/// Whether it is there, and who looks after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is not.
    Absent,
    /// clusterctl or we installed it.
    Managed {
        /// Which version; none where it is older than the annotation that says it.
        version: Option<String>,
    },
    /// Neither clusterctl nor Capstan installed it.
    External,
}

/// cert-manager as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether it is there.
    pub presence: Presence,
    /// Why it does not accept an Issuer and a Certificate; none if it does.
    pub trouble: Option<String>,
}

/// What is to be done before providers can be installed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing: no provider waits for it.
    Nothing,
    /// It is there, and must answer.
    Await(Found),
    /// It is to be installed.
    Install {
        /// The version to install.
        manifest: Manifest,
        /// Whether an interrupted run left a part of it.
        is_begun: bool,
    },
}

impl Action {
    /// The objects that are applied.
    pub fn objects(&self) -> &[serde_json::Value] {
        match self {
            Self::Install { manifest, .. } => &manifest.objects,
            Self::Nothing | Self::Await(_) => &[],
        }
    }
}

/// cert-manager cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertManagerError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Its objects cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// It does not answer.
    #[error("cert-manager does not work after {} s: {reason}", limit.as_secs())]
    NotWorking {
        /// How long it was waited for.
        limit: Duration,
        /// Why it does not.
        reason: String,
    },
}

/// Looks for it.
pub async fn detect(cluster: &ManagementCluster) -> Result<Found, ServerError> {
    let kinds = cluster.kinds().await?;
    if kinds.any_version(GROUP, "Certificate").is_none() && kinds.any_version(GROUP, "Issuer").is_none() {
        return Ok(Found { presence: Presence::Absent, trouble: Some("it is not installed".to_owned()) });
    }
    let (presence, probed) = futures::join!(presence(cluster), probe::probe(cluster));
    Ok(Found { presence: presence?, trouble: probed.err().map(|it| it.to_string()) })
}

/// Who installed it, as its CRD tells.
async fn presence(cluster: &ManagementCluster) -> Result<Presence, ServerError> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk(&gvk);
    let kind = Kind { resource, is_namespaced: false, is_managed: true, is_preferred: true };
    let found = cluster.objects(&kind, None).get_metadata_opt(CRD).await;
    let found = found.map_err(|error| cluster.failed(format!("look at CRD {CRD}"), error))?;
    let Some(metadata) = found.map(|it| it.metadata) else { return Ok(Presence::Absent) };
    let value = metadata.labels.unwrap_or_default().remove(label::CLUSTERCTL_CORE);
    Ok(if value.as_deref() == Some(CERT_MANAGER) {
        let version = metadata.annotations.unwrap_or_default().remove(VERSION_ANNOTATION);
        Presence::Managed { version }
    } else {
        Presence::External
    })
}

/// What is to be done; `is_needed` says whether something to be installed depends on it.
pub async fn decide(
    cluster: &ManagementCluster,
    policy: &CertManagerPolicy,
    is_needed: bool,
) -> Result<Result<Action, ReleaseError>, ServerError> {
    let source = match policy {
        CertManagerPolicy::LeaveAlone { .. } if !is_needed => return Ok(Ok(Action::Nothing)),
        CertManagerPolicy::LeaveAlone { .. } => return Ok(Ok(Action::Await(detect(cluster).await?))),
        CertManagerPolicy::Manage(source) => source,
    };
    let found = detect(cluster).await?;
    match &found.presence {
        Presence::Absent => Ok(install(source, false).await),
        Presence::Managed { .. } | Presence::External if !is_needed => Ok(Ok(Action::Nothing)),
        // A newer or older one that works is for an upgrade to change.
        Presence::Managed { version } if version.as_ref() == Some(&source.version) => {
            let manifest = match Manifest::fetch(source).await {
                Ok(manifest) => manifest,
                Err(error) => return Ok(Err(error)),
            };
            let is_whole = is_whole(cluster, &manifest).await?;
            Ok(Ok(if is_whole { Action::Await(found) } else { Action::Install { manifest, is_begun: true } }))
        }
        Presence::Managed { .. } if cluster.kinds().await?.find("cert-manager.io/v1", "Issuer").is_none() => {
            Ok(install(source, true).await)
        }
        Presence::Managed { .. } | Presence::External => Ok(Ok(Action::Await(found))),
    }
}

/// Whether an object is one that cert-manager acts on.
pub fn needs_it(object: &serde_json::Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).map(|it| it.0);
    group == Some(GROUP)
}

async fn install(source: &CertManagerSource, is_begun: bool) -> Result<Action, ReleaseError> {
    Ok(Action::Install { manifest: Manifest::fetch(source).await?, is_begun })
}

/// Whether every object of a manifest is there: who installed it may have been interrupted, and without its webhooks
/// it accepts everything.
async fn is_whole(cluster: &ManagementCluster, manifest: &Manifest) -> Result<bool, ServerError> {
    let kinds: BTreeSet<&str> = manifest.objects.iter().filter_map(|it| it["kind"].as_str()).collect();
    let is_among = |kind: &Kind| kinds.contains(kind.resource.kind.as_str());
    let found = sweep::sweep_kinds(cluster, &plan::selector(), is_among).await?;
    let found: BTreeSet<_> = found.iter().map(|it| it.id.identity()).collect();
    Ok(manifest.objects.iter().all(|it| found.contains(&ObjectRef::of(it).identity())))
}

/// Does what is to be done, and waits until it answers.
pub async fn carry_out(
    cluster: &ManagementCluster,
    action: &Action,
    limit: Duration,
    report: CertManagerReporter<'_>,
) -> Result<(), CertManagerError> {
    apply::apply(cluster, action.objects(), &|event| report(CertManagerEvent::Apply(event))).await?;
    wait(cluster, action, limit, &|reason| report(CertManagerEvent::Waiting { reason })).await
}

/// Waits until it answers, once what is to be done has been done.
pub(crate) async fn wait(
    cluster: &ManagementCluster,
    action: &Action,
    limit: Duration,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), CertManagerError> {
    match action {
        Action::Nothing => Ok(()),
        Action::Await(found) if found.trouble.is_none() => Ok(()),
        Action::Await(_) | Action::Install { .. } => probe::wait(cluster, limit, tell).await,
    }
}
