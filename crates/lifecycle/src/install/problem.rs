//! What stands in the way of an installation.

use capstan_api::contract::ContractVersion;

use crate::release::{ReleaseError, labelled};
use capstan_management::{ObjectRef, dry_run::Refusal, inventory::Installed};

/// Keeps a CRD from being checked for its name.
pub const SKIP_NAME_CHECK: &str = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check";

/// The namespaces that a provider watches, in words.
fn watched(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| "all namespaces".to_owned(), |it| format!("namespace {it}"))
}

/// What stands in the way of an installation.
#[derive(Debug, thiserror::Error)]
pub enum InstallProblem {
    /// A release cannot be had or used.
    #[error("{}", labelled(provider, error))]
    Release {
        /// The provider's label.
        provider: String,
        /// What is wrong with it.
        error: Box<ReleaseError>,
    },
    /// The inventory has a form that we do not know.
    #[error("the server has the inventory's kind Provider in {found} only, not in v1alpha3")]
    InventoryVersion {
        /// The group and version that it has.
        found: String,
    },
    /// Another version of a provider is there.
    #[error("{} is installed in namespace {} as {}, not as {version}", installed.label(), installed.namespace, installed.version)]
    OtherVersion {
        /// What is there.
        installed: Box<Installed>,
        /// What is asked for.
        version: String,
    },
    /// A provider is there in another namespace.
    #[error(
        "{} is installed in namespace {}: a second instance in namespace {namespace} would act on the same objects",
        installed.label(),
        installed.namespace
    )]
    SecondInstance {
        /// What is there.
        installed: Box<Installed>,
        /// Where it would go.
        namespace: String,
    },
    /// A provider watches other namespaces than asked for.
    #[error(
        "{} {} in namespace {} watches {}, not namespace {wanted}",
        installed.label(), installed.version, installed.namespace,
        watched(installed.watched_namespace.as_deref())
    )]
    OtherWatchedNamespace {
        /// The provider as it is installed.
        installed: Box<Installed>,
        /// The namespace to watch.
        wanted: String,
        /// Whether it is the only instance of the provider.
        is_alone: bool,
    },
    /// There would be no core provider.
    #[error("no core provider is installed, and the other providers need one")]
    NoCore,
    /// cert-manager is looked after by others, and is not installed.
    #[error("cert-manager is not installed, and {} need it", providers.join(", "))]
    NoCertManager {
        /// The labels of the providers with Certificates or Issuers.
        providers: Vec<String>,
    },
    /// There would be several core providers.
    #[error("there must be one core provider, but there would be {}: {}", cores.len(), cores.join(", "))]
    Cores {
        /// Their labels.
        cores: Vec<String>,
    },
    /// The contract of the installed core provider is unknown.
    #[error("cannot determine the contract of core provider {core}: {reason}")]
    UnknownContract {
        /// Its label and version.
        core: String,
        /// The reason.
        reason: String,
    },
    /// A provider speaks a contract that core does not.
    #[error("{provider} speaks contract {contract}, but core provider {core} speaks {core_contract} only")]
    Contract {
        /// The provider's label and version.
        provider: String,
        /// Its contract.
        contract: ContractVersion,
        /// The core provider's label and version.
        core: String,
        /// Its contract.
        core_contract: String,
    },
    /// A CRD has a name under which core does not find it.
    #[error("{provider}: CRD {name} of kind {kind} must be called {expected} for core to find it")]
    CrdName {
        /// The provider's label.
        provider: String,
        /// The CRD's name.
        name: String,
        /// The kind that it defines.
        kind: String,
        /// The name that it should have.
        expected: String,
    },
    /// A CRD on the server belongs to another provider or to none.
    #[error("{provider}: CRD {name} is on the server already, and belongs to {}", owner.as_deref().unwrap_or("no provider"))]
    ForeignCrd {
        /// The provider's label.
        provider: String,
        /// The CRD's name.
        name: String,
        /// The label of the provider that it belongs to; none if it belongs to no provider.
        owner: Option<String>,
    },
    /// A CRD is of a kind that the server knows by another CRD.
    #[error("{provider}: kind {kind} of CRD {name} is defined by {taken} on the server already")]
    KindTaken {
        /// The provider's label.
        provider: String,
        /// The CRD's name.
        name: String,
        /// The kind that it defines.
        kind: String,
        /// The CRD that is there.
        taken: String,
    },
    /// Two providers bring the same CRD.
    #[error("{first} and {second} both have CRD {name}")]
    SharedCrd {
        /// The CRD's name.
        name: String,
        /// The label of one provider.
        first: String,
        /// The label of the other.
        second: String,
    },
    /// The server would not accept an object.
    #[error("{provider}: the server would not accept {refusal}")]
    Refused {
        /// The provider's label, or `cert-manager`.
        provider: String,
        /// What, and why not.
        refusal: Refusal,
    },
    /// Neither the server nor the plan defines the kind of an object.
    #[error("{provider}: the server knows no kind {} in {}, as {object} needs", object.kind, object.api_version)]
    UnknownKind {
        /// The provider's label.
        provider: String,
        /// The object.
        object: Box<ObjectRef>,
    },
}

impl InstallProblem {
    /// Whether an installation can be tried in spite of it. What would leave two instances or no core never can.
    pub fn can_be_ignored(&self) -> bool {
        matches!(
            self,
            Self::Cores { .. }
                | Self::UnknownContract { .. }
                | Self::Contract { .. }
                | Self::CrdName { .. }
                | Self::ForeignCrd { .. }
                | Self::KindTaken { .. }
                | Self::SharedCrd { .. }
                | Self::Refused { .. }
        )
    }

    /// The object that it is about, if it is about one.
    pub(super) fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Refused { refusal, .. } => Some(&refusal.object),
            other => other.unknown_kind(),
        }
    }

    /// The object of an unknown kind, which a trial would find again.
    pub(super) fn unknown_kind(&self) -> Option<&ObjectRef> {
        match self {
            Self::UnknownKind { object, .. } => Some(object),
            _ => None,
        }
    }
}
