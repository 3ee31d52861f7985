//! The provider operator: providers as declarative objects.
//!
//! A provider object is read with everything that matters to it as a [snapshot]; a pure function [decides](plan::decide)
//! the next step; the [executor] carries it out by the functions that the commands call, and the
//! [controller] writes what came of it.

pub mod catalog;
pub mod controller;
pub mod customize;
pub mod drift;
pub mod executor;
pub mod fetch;
pub mod gates;
pub mod inputs;
pub mod memory;
pub mod migration;
pub mod outcome;
pub mod pause;
pub mod placement;
pub mod plan;
pub mod record;
pub mod rights;
pub mod snapshot;
pub mod store;
pub mod usage;

use std::time::Duration;

pub use controller::register;
pub use fetch::Fetcher;

/// The Lease that the replicas of the operator compete for.
pub const LEASE: &str = "controller-leader-election-capstan-operator";

/// The Service in front of the operator's webhook.
pub const WEBHOOK_SERVICE: &str = "capstan-operator-webhook-service";

/// Settings of the operator.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Provider objects of a kind that are looked at at the same time; one is written at a time.
    pub concurrency: usize,
    /// Whether providers of the inventory get provider objects.
    pub migrate_inventory: bool,
    /// How long one look may take: releases are fetched, and Pods end.
    pub reconcile_limit: Duration,
    /// How long a look may go on after the stop signal: an upgrade starts again what it stopped.
    pub drain_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 4,
            migrate_inventory: true,
            reconcile_limit: Duration::from_mins(15),
            drain_limit: Duration::from_secs(25),
        }
    }
}
