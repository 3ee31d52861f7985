//! A Cluster and all that belongs to it, as a tree.
//!
//! One [`WorkloadSnapshot`](crate::snapshot::WorkloadSnapshot) is read with concurrent requests; [`build`] makes a tree of [`Node`]s from it, and [`draw`] makes
//! a table from the tree. Both are pure: the clock is an argument.

mod condition;
mod data;
mod draw;
mod figures;
mod grouping;
mod node;
mod paragraph;
mod read;
mod show;
mod table;
mod tree;

pub use condition::{Condition, ConditionStyle};
pub use data::to_value;
pub use draw::draw;
pub use figures::Figures;
pub use node::{Node, NodeKind, UnreadNode, UnreadReason};
pub use read::{DescribeReading, read};
pub use show::{InvalidShowConditions, ShowConditions, Shown};
pub use table::{Lines, Paint};
pub use tree::build;

/// What is shown.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "every one is a switch of its own")]
pub struct DescribeOptions {
    /// Whose conditions are shown one by one.
    pub show_conditions: ShowConditions,
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
