//! The provider's side of the InfraCluster contract, kept for a provider's author.
//!
//! An author defines the kind with kube's derive, says how infrastructure is made and taken down
//! ([`Provider::provision`], [`Provider::deprovision`]), and gives both to [`register`]. Everything else that the
//! contract asks for is done here: waiting for the owner, the finalizer, pauses, infrastructure that others manage, the
//! endpoint, both contracts' ways to say that all is provisioned, failure domains, conditions, deletion.
//!
//! What a provider may rely on:
//! - `provision` and `deprovision` are called again and again, and may be cut off at any `await`: they look for what is
//!   there under [`Request::id`] before they make anything. The id is on record before the first call, and survives a
//!   restart, a wiped status and a move to another management cluster.
//! - `deprovision` is called until it says [`Removal::Gone`]. Under its id there may never have been anything.

mod controller;
pub mod conversion;
mod identity;
mod kind;
mod orphans;
mod provider;
mod record;
mod report;
mod run;
mod step;
mod types;

pub use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ClusterSpec, FailureDomain},
    conditions::{Condition, Report},
    contract::ContractVersion,
};
pub use capstan_runtime::{ObjectKey, manager::Manager, options::ManagerOptions};
pub use controller::{Handle, Options, register};
pub use identity::{ID_ANNOTATION, InfrastructureId};
pub use kind::{BrokenContract, Problem, labelled};
pub use provider::{
    EndpointSource, Failure, Infrastructure, Owner, Progress, Provider, Removal, Request, SecretContents,
    SecretError, Wait,
};
pub use run::{RunError, run};
pub use types::{InfraClusterStatus, Initialization, TemplateMetadata, TemplateResource, crd};
