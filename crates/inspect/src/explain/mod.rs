//! Why a Cluster is not available: what everything else waits for, who is to act, and what to do.
//!
//! [`read`](read::read) takes a snapshot of all that belongs to a Cluster, and [`explain`] finds in it, without a
//! request, what is in the way, in the order in which things depend on each other.

mod commands;
mod control_plane;
mod controllers;
mod deletion;
mod finding;
mod infrastructure;
mod inspector;
mod machines;
mod read;
mod references;
mod snapshot;
#[cfg(test)]
mod tests;
mod topology;
mod webhooks;
mod workers;

pub use controllers::{Controller, ControllerState, Leader};
pub use finding::{Command, ConditionSeen, Explanation, Finding, Problem, Purpose, State};
pub use read::read;
pub use snapshot::ExplainSnapshot;

use jiff::Timestamp;

use self::inspector::Inspector;

/// Explains a Cluster to the user of a program of that name.
pub fn explain(snapshot: &ExplainSnapshot, program: &str, now: Timestamp) -> Explanation {
    let mut inspector = Inspector::new(snapshot, program, now);
    inspector.look_at_cluster();
    if inspector.state() == State::Deleting {
        inspector.look_at_deletion();
    } else {
        inspector.look_at_topology();
        inspector.look_at_infrastructure();
        inspector.look_at_control_plane();
        inspector.look_at_connection();
        inspector.look_at_workers();
        inspector.look_at_other_conditions();
    }
    inspector.finish()
}
