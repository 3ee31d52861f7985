//! What stands in the way of an installation.

use capstan_api::contract::ContractVersion;

use crate::release::ReleaseError;
use capstan_management::{ObjectRef, dry_run::Refusal, inventory::Installed};

/// Keeps a CRD from being checked for its name.
pub const SKIP_NAME_CHECK: &str = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check";

/// What stands in the way of an installation.
#[derive(Debug, thiserror::Error)]
pub enum InstallProblem {
    /// A release cannot be had or used.
    #[error("{provider}: {error}")]
    Release {
        /// The provider's label.
        provider: String,
        /// Why not.
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
    /// There would not be exactly one core provider.
    #[error("there must be one core provider, but there would be {}: {}", cores.len(), cores.join(", "))]
    Cores {
        /// Their labels.
        cores: Vec<String>,
    },
    /// Nobody can tell which contract the core provider speaks that is installed.
    #[error("cannot tell which contract core provider {core} speaks: {reason}")]
    UnknownContract {
        /// Its label and version.
        core: String,
        /// Why not.
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
        core_contract: ContractVersion,
    },
    /// A CRD has a name under which nobody would find it.
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
    /// A CRD is there that somebody else put there.
    #[error("{provider}: CRD {name} is on the server already, and belongs to {}", owner.as_deref().unwrap_or("somebody else"))]
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
    /// Nobody defines the kind of an object.
    #[error("{provider}: the server knows no kind {} in {}, as {object} needs", object.kind, object.api_version)]
    UnknownKind {
        /// The provider's label.
        provider: String,
        /// The object.
        object: Box<ObjectRef>,
    },
}

impl InstallProblem {
    /// Whether the installation can be tried all the same.
    pub fn can_be_ignored(&self) -> bool {
        !matches!(self, Self::Release { .. } | Self::InventoryVersion { .. } | Self::UnknownKind { .. })
    }

    /// What to do about it; for releases the caller knows more.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Release { .. } => return None,
            Self::InventoryVersion { .. } => "another tool keeps it: use that one here".to_owned(),
            Self::OtherVersion { installed, version } => format!(
                "upgrade it: capstan upgrade apply --{} {}/{}:{version}",
                installed.kind.prefix(),
                installed.namespace,
                installed.name
            ),
            Self::SecondInstance { .. } => {
                "leave --target-namespace out, or delete the instance that is there".to_owned()
            }
            Self::Cores { .. } => "delete the others first: capstan delete --core NAME".to_owned(),
            Self::UnknownContract { .. } => "upgrade the core provider first".to_owned(),
            Self::Contract { contract, .. } => {
                format!(
                    "install a version of the provider, or of core, that goes with the other's; {contract} needs core of the same contract or later"
                )
            }
            Self::CrdName { .. } => format!(
                "this is for the provider's author to repair; if core never refers to the kind, annotation \
                 {SKIP_NAME_CHECK} says so"
            ),
            Self::ForeignCrd { owner: Some(owner), .. } => {
                format!(
                    "delete provider {owner} with --include-crd first, or take the CRD over by --validate=false"
                )
            }
            Self::ForeignCrd { name, .. } => format!(
                "if nobody needs it, delete it and its objects (kubectl delete crd {name}), or take it over by \
                 --validate=false"
            ),
            Self::KindTaken { taken, .. } => format!(
                "a server serves a kind of a group once: if nobody needs it, delete the one that is there and its \
                 objects (kubectl delete crd {taken})"
            ),
            Self::SharedCrd { .. } => "install one of the two".to_owned(),
            Self::Refused { .. } => {
                "repair the release or the variables that it is rendered with, or use another \
                                     version"
                    .to_owned()
            }
            Self::UnknownKind { object, .. } => format!("install what defines {} first", object.kind),
        })
    }
}
