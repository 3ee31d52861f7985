//! Rules for an InfraMachinePool.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::Rule;

/// Seen in files.
pub const INFRA_MACHINE_POOL_IN_FILES: &[&Rule] = &[&MP1, &MP2, &MP3, &MP5];

/// Seen only in a running provider.
pub const INFRA_MACHINE_POOL_RUNNING: &[&Rule] = &[&MP4];

/// Provider IDs.
pub static MP1: Rule = rule(
    "MP1",
    Must,
    All,
    "an InfraMachinePool lists the provider IDs of its machines in spec.providerIDList",
    "the field is a list of strings in the schema of the version that core picks",
    "cannot find the pool's Nodes",
    paragraph!("infra-machinepool", "inframachinepool-provideridlist"),
);
/// Replicas.
pub static MP2: Rule = rule(
    "MP2",
    Must,
    All,
    "an InfraMachinePool counts its machines in status.replicas",
    "the field is an integer in the schema of the version that core picks",
    "takes the pool for empty",
    paragraph!("infra-machinepool", "inframachinepool-replicas"),
);
/// Completion.
pub static MP3: Rule = rule(
    "MP3",
    Must,
    All,
    "an InfraMachinePool reports completion: status.initialization.provisioned (v1beta1: status.ready)",
    "the field is a boolean in the schema of the version that core picks",
    "never sees the pool's infrastructure as provisioned",
    paragraph!("infra-machinepool", "inframachinepool-initialization-completed"),
);
/// Machines of a pool.
pub static MP4: Rule = rule(
    "MP4",
    May,
    All,
    "where status.infrastructureMachineKind is set, there is an InfraMachine for each machine of the pool",
    "the pool is scaled, and its InfraMachines are counted",
    "has Machines without infrastructure, or infrastructure without Machines",
    paragraph!("infra-machinepool", "machinepoolmachines-support"),
);
/// Template.
pub static MP5: Rule = rule(
    "MP5",
    Should,
    All,
    "there is a <InfraMachinePool>Template, which ClusterClasses need",
    "a CRD of the same group has the kind with Template at its end",
    "cannot make the pool from a ClusterClass",
    paragraph!(
        "infra-machinepool",
        "inframachinepooltemplate-inframachinetemplatepoollist-resource-definition"
    ),
);
