//! The reference infrastructure provider: clusters whose infrastructure is real on one machine.
//!
//! A `LocalCluster` stands for a TCP load balancer on loopback: a listener on the control plane's endpoint that
//! forwards to the backends in its spec. The SDK keeps the contract for it; what is left is in [`provider`].

pub mod api;
mod load_balancer;
mod provider;

use capstan_api::crd::Conversion;
use capstan_provider_sdk::{BrokenContract, Handle, conversion::ContractVersions};
use capstan_runtime::manager::Manager;

pub use capstan_provider_sdk::Options;
pub use load_balancer::{LoadBalancers, Place};

/// The Lease that the replicas of this provider compete for.
pub const LEASE: &str = "controller-leader-election-capstan-local";

/// The Service in front of the webhook.
pub const WEBHOOK_SERVICE: &str = "capstan-local-webhook-service";

/// Adds the provider to a manager.
pub fn register(manager: &mut Manager, options: Options) -> Result<Handle, BrokenContract> {
    let versions = ContractVersions {
        group: capstan_api::names::INFRASTRUCTURE_GROUP,
        v1beta1: "v1beta1",
        v1beta2: "v1beta2",
    };
    versions.add_to(manager.converters(), "LocalCluster");
    // Who converts makes no difference to the contract.
    let crds = api::crds(Conversion::Nobody);
    capstan_provider_sdk::register(manager, provider::LocalProvider::default(), &crds, options)
}
