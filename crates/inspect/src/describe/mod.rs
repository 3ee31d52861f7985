//! A Cluster and all that belongs to it, as a tree.
//!
//! One [`WorkloadSnapshot`](crate::snapshot::WorkloadSnapshot) is read with concurrent requests; [`build`] makes a tree of
//! [`Node`]s from it, which is pure.

mod condition;
mod data;
mod figures;
mod grouping;
mod node;
mod read;
mod tree;

pub use condition::{AVAILABLE, Condition, ConditionStyle, READY};
pub use data::to_value;
pub use figures::Figures;
pub use node::{Node, NodeKind, UnreadNode, UnreadReason};
pub use read::{DescribeReading, read};
pub use tree::build;

/// What the tree has.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "every one is a switch of its own")]
pub struct DescribeOptions {
    /// Whether MachineSets stand between MachineDeployments and Machines.
    pub show_machine_sets: bool,
    /// Whether the ClusterResourceSets are shown that were applied.
    pub show_resource_sets: bool,
    /// Whether the templates of Machines are shown.
    pub show_templates: bool,
    /// Whether a Machine's objects are shown that say no more than the Machine.
    pub echo: bool,
    /// Whether Machines in the same state become one line.
    pub grouping: bool,
    /// Which conditions are looked at.
    pub style: ConditionStyle,
}
