//! The core provider's Cluster controller.
//!
//! One pass over a Cluster reads a [snapshot] from caches, turns it into a [plan] by pure functions, and lets the
//! [controller] carry the plan out: at most one write on each provider object, one on the Cluster, one on its status.

mod admission;
mod available;
mod class;
pub mod connection;
pub mod controller;
mod conversion;
mod core_kinds;
mod crds;
mod deletion;
pub mod descendants;
mod foreign;
mod index;
mod known;
mod kubeconfig;
mod machines;
mod ownership;
mod phase;
pub mod plan;
mod provider_object;
mod resolve;
pub mod snapshot;
mod status;

pub use connection::ConnectionOptions;
pub use controller::{Options, register};

/// The Lease that upstream's core manager and this one compete for, so that never both act.
pub const LEASE: &str = "controller-leader-election-capi";

/// The Service in front of the webhooks, under the name that upstream gives it.
pub const WEBHOOK_SERVICE: &str = "capi-webhook-service";
