//! The reference infrastructure provider: clusters whose infrastructure is real on one machine.
//!
//! A `LocalCluster` stands for a TCP load balancer on loopback: a listener on the control plane's endpoint that
//! forwards to the backends in its spec. It follows the InfraCluster contract to the letter, so that it can be
//! read as an example of it.

pub mod api;
mod controller;
mod conversion;
mod load_balancer;
mod plan;

pub use controller::{Options, register};
pub use load_balancer::LoadBalancers;

/// The Lease that the replicas of this provider compete for.
pub const LEASE: &str = "controller-leader-election-capstan-local";

/// The Service in front of the webhook.
pub const WEBHOOK_SERVICE: &str = "capstan-local-webhook-service";
