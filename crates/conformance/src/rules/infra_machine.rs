//! Rules for an InfraMachine.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::Rule;

/// Seen in files.
pub const INFRA_MACHINE_IN_FILES: &[&Rule] = &[&IM1, &IM2, &IM8];

/// Seen only in a running provider.
pub const INFRA_MACHINE_RUNNING: &[&Rule] = &[&IM3, &IM4, &IM5, &IM6, &IM7, &IM9, &IM10, &IM11];

/// Provider ID.
pub static IM1: Rule = rule(
    "IM1",
    Must,
    All,
    "an InfraMachine reports the Node's provider ID in spec.providerID",
    "the field is a string in the schema of the version that core picks",
    "cannot find the Machine's Node: the Machine stays in phase Provisioning",
    paragraph!("infra-machine", "inframachine-provider-id"),
);
/// Completion.
pub static IM2: Rule = rule(
    "IM2",
    Must,
    All,
    "an InfraMachine reports completion: status.initialization.provisioned (v1beta1: status.ready)",
    "the field is a boolean in the schema of the version that core picks",
    "never sees the Machine's infrastructure as provisioned",
    paragraph!("infra-machine", "inframachine-initialization-completed"),
);
/// Gates.
pub static IM3: Rule = rule(
    "IM3",
    Must,
    All,
    "nothing is created before the Cluster's infrastructure is provisioned and bootstrap data exists",
    "the gates are opened one after the other",
    "has nothing yet that the machine could start with",
    paragraph!("infra-machine", "normal-resource"),
);
/// Addresses.
pub static IM4: Rule = rule(
    "IM4",
    May,
    All,
    "status.addresses are of the types Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS",
    "the status of a running provider is read as core reads it",
    "cannot copy the addresses to the Machine",
    paragraph!("infra-machine", "inframachine-addresses"),
);
/// Failure domain.
pub static IM5: Rule = rule(
    "IM5",
    Must,
    All,
    "the machine is put into the Machine's failure domain, where there are failure domains",
    "Machines of several failure domains are made",
    "takes machines for spread that are not",
    paragraph!("infra-machine", "inframachine-failure-domain"),
);
/// Ready condition.
pub static IM6: Rule = rule(
    "IM6",
    Should,
    All,
    "an InfraMachine has the condition Ready as long as it lives",
    "the conditions of a running provider are watched",
    "has only completion to show in the Machine's condition InfrastructureReady",
    paragraph!("infra-machine", "inframachine-conditions"),
);
/// Interruptible.
pub static IM7: Rule = rule(
    "IM7",
    May,
    All,
    "status.interruptible, where it is set, is a boolean",
    "the status of a running provider is read as core reads it",
    "does not label the Node as interruptible",
    paragraph!("infra-machine", "typical-inframachine-reconciliation-workflow"),
);
/// Template.
pub static IM8: Rule = rule(
    "IM8",
    Must,
    All,
    "there is a <InfraMachine>Template",
    "a CRD of the same group has the kind with Template at its end",
    "cannot make machines: MachineSets and control planes clone templates",
    paragraph!("infra-machine", "inframachinetemplate-inframachinetemplatelist-resource-definition"),
);
/// Change of owners.
pub static IM9: Rule = rule(
    "IM9",
    Must,
    All,
    "an InfraMachine may be made for a MachineSet or control plane, and be owned by its Machine later",
    "the owner is changed after creation",
    "changes the owner as it always does, and the provider waits for ever",
    paragraph!("infra-machine", "typical-inframachine-reconciliation-workflow"),
);
/// In-place changes.
pub static IM10: Rule = rule(
    "IM10",
    May,
    All,
    "fields that may be changed in place are accepted and left alone by the controller",
    "such a field is changed",
    "cannot update the machine in place",
    paragraph!("infra-machine", "inframachine-support-for-in-place-changes"),
);
/// Load balancer.
pub static IM11: Rule = rule(
    "IM11",
    Must,
    All,
    "a control plane machine leaves the load balancer before its deletion ends",
    "a control plane machine is deleted while requests are made",
    "removes the Node while requests are still led to the machine",
    paragraph!("infra-machine", "deleted-resource"),
);
