//! What stands in the way of a command in a cluster with the provider operator.

use capstan_api::provider::ProviderType;
use capstan_management::{ObjectRef, inventory::Installed};

use crate::commands::version::VERSION;

/// What stands in the way of a command in a cluster with the provider operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperatorProblem {
    /// Providers were to be installed behind the operator's back.
    #[error(
        "the provider operator manages the providers of this cluster{}; nothing was changed",
        among(objects)
    )]
    InCharge {
        /// The provider objects.
        objects: Vec<ObjectRef>,
        /// The providers that were named.
        named: Vec<(ProviderType, String)>,
    },
    /// Providers were to be deleted behind the operator's back.
    #[error("{} managed by the provider operator: {}; nothing was deleted", are(labels), list(objects))]
    Managed {
        /// The labels of the providers.
        labels: Vec<String>,
        /// Their objects.
        objects: Vec<ObjectRef>,
    },
    /// The operator in the cluster and this program do not go together.
    #[error(
        "the provider operator is {installed}, and this program is {VERSION}: they must be of the same minor version"
    )]
    OperatorVersion {
        /// The version of the operator.
        installed: String,
        /// Whether the operator is the newer one.
        is_newer: bool,
    },
    /// The operator is newer than this program.
    #[error(
        "the provider operator is {installed}, which is newer than this program ({VERSION}); nothing was changed"
    )]
    OperatorDowngrade {
        /// The version of the operator.
        installed: String,
    },
    /// There is no operator.
    #[error("the provider operator is not installed")]
    NoOperator,
    /// Upstream's operator runs in the cluster.
    #[error(
        "upstream's provider operator runs in this cluster: Deployment {namespace}/{name}; nothing was changed"
    )]
    Upstream {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The operator was installed by other means.
    #[error(
        "the provider operator is Deployment {namespace}/{name}, which {by} manages; nothing was changed"
    )]
    Foreign {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Who installed it.
        by: String,
    },
    /// An object of the provider asks for another version.
    #[error("{object} asks for {}, not for {version}", found.as_deref().unwrap_or("the latest version"))]
    OtherVersion {
        /// The type of the provider.
        kind: ProviderType,
        /// The object.
        object: Box<ObjectRef>,
        /// The version that it asks for.
        found: Option<String>,
        /// The version that was named.
        version: String,
    },
    /// There is an object of the provider in another namespace.
    #[error("{object} exists already: the operator would not install a second one in namespace {namespace}")]
    SecondObject {
        /// The object.
        object: Box<ObjectRef>,
        /// The namespace that was named.
        namespace: String,
    },
    /// The provider is installed in another version or namespace.
    #[error("{} {} is installed in namespace {} without the operator, which takes it over as it is", installed.label(), installed.version, installed.namespace)]
    Installed {
        /// The provider.
        installed: Box<Installed>,
    },
    /// The provider has several instances.
    #[error("{label} is installed several times, in namespaces {}: the operator installs a provider once", namespaces.join(", "))]
    SeveralInstances {
        /// The provider's label.
        label: String,
        /// The namespaces of its instances.
        namespaces: Vec<String>,
    },
    /// The provider watches one namespace.
    #[error(
        "{} in namespace {} watches namespace {} only, and the operator lets every provider watch all",
        installed.label(), installed.namespace, installed.watched_namespace.as_deref().unwrap_or_default()
    )]
    WatchesNamespace {
        /// The provider.
        installed: Box<Installed>,
    },
    /// A version that no label of a ConfigMap can hold.
    #[error(
        "{label} {version} cannot be put into a ConfigMap: the label of its version cannot hold build metadata"
    )]
    VersionLabel {
        /// The provider's label.
        label: String,
        /// The version.
        version: String,
    },
    /// A provider's contract does not go with core's.
    #[error(
        "{label} {version} speaks contract {contract}, and {core} speaks {core_contract}, which goes with {} only",
        compatible(core_contract)
    )]
    Contract {
        /// The provider's label.
        label: String,
        /// Its version.
        version: String,
        /// Its contract.
        contract: String,
        /// Core and its version.
        core: String,
        /// Core's contract.
        core_contract: String,
    },
    /// A provider that was named is not installed yet.
    #[error("{object} is not installed yet: {reason}")]
    NotInstalledYet {
        /// The object.
        object: Box<ObjectRef>,
        /// What the operator says.
        reason: String,
    },
    /// Providers that the operator manages were to be upgraded together with others.
    #[error("the provider operator manages {}, but not {}: they cannot be upgraded by one command", managed.join(", "), unmanaged.join(", "))]
    Mixed {
        /// The labels of those with objects.
        managed: Vec<String>,
        /// The labels of those without, each with its flag.
        unmanaged: Vec<String>,
    },
    /// A contract upgrade would leave out providers that the operator does not manage.
    #[error("{} cannot be paused by the operator, which does not manage {}: contract {contract} needs all providers to be paused", unmanaged.join(", "), if unmanaged.len() == 1 { "it" } else { "them" })]
    NotPausable {
        /// The labels of those without objects.
        unmanaged: Vec<String>,
        /// The contract.
        contract: String,
    },
    /// A provider would stay behind on the old contract, and nothing could be unpaused.
    #[error(
        "{object} would stay on contract {found}, and the operator unpauses providers only once all speak {contract}"
    )]
    StaysBehind {
        /// The type of the provider.
        kind: ProviderType,
        /// The object.
        object: Box<ObjectRef>,
        /// Its contract.
        found: String,
        /// The contract of the upgrade.
        contract: String,
    },
    /// The operator goes back by patch versions only.
    #[error(
        "{label} cannot go back from {installed} to {version}: the operator goes back within a minor version only"
    )]
    Downgrade {
        /// The provider's label.
        label: String,
        /// The version that is installed.
        installed: String,
        /// The version that was named.
        version: String,
    },
}

fn list(objects: &[ObjectRef]) -> String {
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn among(objects: &[ObjectRef]) -> String {
    if objects.is_empty() { String::new() } else { format!(": {}", list(objects)) }
}

fn are(labels: &[String]) -> String {
    format!("{} {}", labels.join(", "), if labels.len() == 1 { "is" } else { "are" })
}

fn compatible(core: &str) -> String {
    capstan_api::contract::compatible_with(core).join(" and ")
}
