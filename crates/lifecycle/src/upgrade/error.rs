//! Why an upgrade cannot be.

use capstan_api::contract::compatible_with;

use crate::{
    cert_manager::CertManagerError,
    delete::within,
    release::{ReleaseError, labelled},
};
use capstan_management::{ObjectRef, ServerError, apply::ApplyError, inventory::Installed};

/// An upgrade that cannot be planned, prepared or carried out.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The server refused something, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Objects could not be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// cert-manager cannot be upgraded.
    #[error(transparent)]
    CertManager(#[from] CertManagerError),
    /// A release cannot be had or used.
    #[error("{}", labelled(label, source))]
    Release {
        /// The provider's label.
        label: String,
        /// What is wrong with it.
        source: Box<ReleaseError>,
    },
    /// Nothing is installed.
    #[error("no providers are installed")]
    NothingInstalled,
    /// There is not one core provider.
    #[error("there must be one core provider, but there are {}", list(found))]
    Cores {
        /// Those that there are.
        found: Vec<String>,
    },
    /// A provider is named that has several instances.
    #[error("provider {label} is installed more than once, in namespaces {}", namespaces.join(" and "))]
    SeveralInstances {
        /// The provider's label.
        label: String,
        /// The namespaces of its instances.
        namespaces: Vec<String>,
    },
    /// A contract that we do not speak.
    #[error("contract {contract:?} cannot be upgraded to: {} can", super::rules::spoken())]
    UnknownContract {
        /// The contract.
        contract: String,
    },
    /// A provider that is not there.
    #[error("provider {label} is not installed{}", within(namespace.as_deref()))]
    NotInstalled {
        /// The provider's label.
        label: String,
        /// The namespace that was named.
        namespace: Option<String>,
    },
    /// A provider is named twice.
    #[error("provider {label} is named more than once")]
    NamedTwice {
        /// The provider's label.
        label: String,
    },
    /// Objects are stored in a version that the new release does not have.
    #[error("objects of {kind} are stored as {stored}, which {label} {version} does not have any more")]
    NoCommonVersion {
        /// The provider's label.
        label: String,
        /// The version.
        version: String,
        /// The name of the CRD.
        kind: String,
        /// The version that objects are stored in.
        stored: String,
    },
    /// Objects cannot be written in the version that they are to be stored in.
    #[error("objects of {kind} cannot be stored as {stored}, though {} will be gone: {reason}", dropped.join(" and "))]
    NotMigrated {
        /// The name of the CRD.
        kind: String,
        /// The version to store them in.
        stored: String,
        /// The versions that the new release drops.
        dropped: Vec<String>,
        /// The reason.
        reason: String,
    },
    /// Controllers do not stop.
    #[error("{deployment} still runs after {seconds} s: {left} of its Pods are left")]
    StillRunning {
        /// What was scaled down.
        deployment: Box<ObjectRef>,
        /// For how long it was waited.
        seconds: u64,
        /// Pods.
        left: i64,
    },
    /// The run was told to stop before its end.
    #[error("the upgrade was stopped before its end")]
    CutOff,
    /// An object that had to be recreated was deleted, and could not be created.
    #[error("{object} had to be recreated, and is gone")]
    Gone {
        /// The object.
        object: Box<ObjectRef>,
    },
    /// An object that has to be recreated does not go away.
    #[error("{object} has to be recreated, but is still there after {seconds} s{}", held(finalizers))]
    StillThere {
        /// The object.
        object: Box<ObjectRef>,
        /// For how long it was waited.
        seconds: u64,
        /// What holds it.
        finalizers: Vec<String>,
    },
}

impl UpgradeError {
    pub(super) fn release(provider: &Installed, source: ReleaseError) -> Self {
        Self::Release { label: provider.label(), source: Box::new(source) }
    }
}

/// What stands in the way of an upgrade.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeProblem {
    /// A release cannot be had or used.
    #[error("{}", labelled(label, source))]
    Release {
        /// The provider's label.
        label: String,
        /// What is wrong with it.
        source: Box<ReleaseError>,
    },
    /// A version that is older than what is installed.
    #[error("{label} {version} is older than {installed}, which is installed")]
    Downgrade {
        /// The provider's label.
        label: String,
        /// What is installed.
        installed: String,
        /// What was asked for.
        version: String,
    },
    /// Too many versions are left out.
    #[error(
        "{label} cannot go from {installed} to {version} in one step: no more than {} minor versions may be skipped",
        super::rules::MOST_MINORS
    )]
    TooFar {
        /// The provider's label.
        label: String,
        /// What is installed.
        installed: String,
        /// What was asked for.
        version: String,
        /// The series that can be reached, e.g. `v1.13`.
        farthest: String,
    },
    /// A provider is to go to a version that core does not understand.
    #[error("{label} {version} speaks contract {contract}, but core would speak {core}, which goes with {} only", compatible_with(core).join(" and "))]
    IncompatibleTarget {
        /// The provider's label.
        label: String,
        /// What was asked for.
        version: String,
        /// Its contract.
        contract: String,
        /// Core's contract afterwards.
        core: String,
    },
    /// A provider that stays as it is would not be understood any more.
    #[error(
        "{} {} speaks {}, but core would speak {core}, which goes with {} only",
        provider.label(), provider.version, spoken(contract.as_deref()), compatible_with(core).join(" and ")
    )]
    LeftBehind {
        /// The provider as it is installed.
        provider: Box<Installed>,
        /// Its contract, if it is known.
        contract: Option<String>,
        /// Core's contract afterwards.
        core: String,
    },
    /// The server does not accept objects of the new release.
    #[error("the server would refuse {} of {label} {version}{}", count(refusals), each(refusals))]
    Refused {
        /// The provider's label.
        label: String,
        /// The version.
        version: String,
        /// Which, and why.
        refusals: Vec<(ObjectRef, String)>,
    },
}

impl UpgradeProblem {
    /// Whether an upgrade that may go back to older versions can be run in spite of it.
    pub fn is_downgrade(&self) -> bool {
        matches!(self, Self::Downgrade { .. })
    }
}

fn list(found: &[String]) -> String {
    if found.is_empty() { "none".to_owned() } else { found.join(", ") }
}

fn spoken(contract: Option<&str>) -> String {
    contract.map_or_else(|| "an unknown contract".to_owned(), |it| format!("contract {it}"))
}

fn count(refusals: &[(ObjectRef, String)]) -> String {
    match refusals.len() {
        1 => "an object".to_owned(),
        many => format!("{many} objects"),
    }
}

fn each(refusals: &[(ObjectRef, String)]) -> String {
    refusals.iter().fold(String::new(), |text, (object, reason)| format!("{text}\n  {object}: {reason}"))
}

fn held(finalizers: &[String]) -> String {
    if finalizers.is_empty() {
        String::new()
    } else {
        format!(", held by finalizers {}", finalizers.join(", "))
    }
}
