//! The contract between core and providers: how a kind is found, which of its versions is spoken,
//! and where in its objects the agreed fields are.

mod compatibility;
mod fields;
mod kinds;
mod ownership;
pub mod plural;
mod version;

pub use compatibility::{compatible_with, is_compatible, is_supported};
pub use fields::{
    FieldError, InfraCluster, InfraClusterWriter, ProviderControlPlane, TerminalFailure, essence,
};
pub use kinds::{GroupKind, crd_name};
pub use ownership::{has_owner, is_externally_managed, is_paused, owned_by_cluster};
pub use version::{
    ContractVersion, NoCompatibleContract, PickedVersion, compare_versions, labelled_versions, list_labels,
    list_served, pick_served_version, pick_version,
};
