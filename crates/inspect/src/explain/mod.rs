//! Why a Cluster is not available: what everything else waits for, which controller acts on it, and what to do.
//!
//! [`read`](read::read) takes a snapshot of all that belongs to a Cluster, and [`explain`] finds in it, without a
//! request, what is in the way, in the order in which things depend on each other.

mod commands;
mod control_plane;
mod controllers;
mod deletion;
mod draft;
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

pub use controllers::{Controller, ControllerLeader, ControllerState};
pub use finding::{
    ClusterState, CommandPurpose, ConditionSeen, ExplainProblem, Explanation, Finding, FindingCommand,
};
pub use read::read;
pub use snapshot::ExplainSnapshot;

use jiff::Timestamp;

use self::inspector::Inspector;

/// Explains a Cluster. `program` is the name of the program in commands to copy.
pub fn explain(snapshot: &ExplainSnapshot, program: &str, now: Timestamp) -> Explanation {
    let mut inspector = Inspector::new(snapshot, program, now);
    inspector.check_cluster();
    if inspector.state() == ClusterState::Deleting {
        inspector.check_deletion();
    } else {
        inspector.check_topology();
        inspector.check_infrastructure();
        inspector.check_control_plane();
        inspector.check_connection();
        inspector.check_workers();
        inspector.check_other_conditions();
    }
    inspector.finish()
}
