//! What every controller needs: a client, watches that fill caches, a queue, writes, events,
//! and the shell of a manager around them.
//!
//! A controller is a [`Reconciler`](controller::Reconciler): it reads caches, decides by pure functions of its own
//! crate, and hands what it decided to a [`Writer`](writer::Writer).

pub mod admission;
pub mod cache;
pub mod certificates;
pub mod client;
pub mod clock;
pub mod controller;
mod diagnostics;
pub mod events;
pub mod fence;
pub mod hub;
pub mod install;
mod key;
pub mod leadership;
pub mod manager;
pub mod metrics;
mod observed;
pub mod options;
pub mod outages;
pub mod patch;
pub mod proxy;
pub mod queue;
pub mod readiness;
mod refusals;
mod review;
pub mod serve;
pub mod shell;
mod throttle;
pub mod tls;
mod turns;
mod verdicts;
pub mod watch;
pub mod webhook;
pub mod writer;

pub use key::ObjectKey;
pub use observed::{JsonText, Observed, ObservedMetadata, ObservedSecret};

impl cache::Cached for Observed {
    fn metadata(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        &self.metadata
    }
}
