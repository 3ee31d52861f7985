//! Rules for a BootstrapConfig.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::Rule;

/// Seen in files.
pub const BOOTSTRAP_CONFIG_IN_FILES: &[&Rule] = &[&BC3, &BC8];

/// Seen only in a running provider.
pub const BOOTSTRAP_CONFIG_RUNNING: &[&Rule] = &[&BC1, &BC2, &BC4, &BC5, &BC6, &BC7, &BC9];

/// Data Secret.
pub static BC1: Rule = rule(
    "BC1",
    Must,
    All,
    "bootstrap data is in a Secret that is named in status.dataSecretName, labelled, owned and keyed as agreed",
    "the Secret of a running provider is read",
    "waits, and the machine never starts",
    paragraph!("bootstrap-config", "bootstrapconfig-data-secret"),
);
/// Name of the Secret.
pub static BC2: Rule = rule(
    "BC2",
    Must,
    All,
    "the Secret's name follows from the names of Cluster, Machine and config",
    "the Secret is deleted and made again",
    "finds no Secret after a move",
    paragraph!("bootstrap-config", "bootstrapconfig-data-secret"),
);
/// Completion.
pub static BC3: Rule = rule(
    "BC3",
    Must,
    All,
    "a BootstrapConfig reports completion in status.initialization.dataSecretCreated (v1beta1: status.ready), \
     and the Secret's name in status.dataSecretName",
    "the first is a boolean and the second a string in the schema of the version that core picks",
    "never gives bootstrap data to the Machine, which stays in phase Pending",
    paragraph!("bootstrap-config", "bootstrapconfig-initialization-completed"),
);
/// Gates.
pub static BC4: Rule = rule(
    "BC4",
    Must,
    All,
    "nothing is made before the owner is known and the Cluster's infrastructure is provisioned",
    "the gates are opened one after the other",
    "has not got what the bootstrap data needs, such as the endpoint",
    paragraph!("bootstrap-config", "typical-bootstrapconfig-reconciliation-workflow"),
);
/// Ready condition.
pub static BC5: Rule = rule(
    "BC5",
    Should,
    All,
    "a BootstrapConfig has the condition Ready as long as it lives",
    "the conditions of a running provider are watched",
    "has only completion to show in the Machine's condition BootstrapConfigReady",
    paragraph!("bootstrap-config", "bootstrapconfig-conditions"),
);
/// Sentinel file.
pub static BC6: Rule = rule(
    "BC6",
    Should,
    All,
    "bootstrapping ends with the file /run/cluster-api/bootstrap-success.complete",
    "the file is looked for on a machine that was bootstrapped",
    "is not concerned, but infrastructure providers cannot see whether bootstrapping succeeded",
    paragraph!("bootstrap-config", "sentinel-file"),
);
/// Taint.
pub static BC7: Rule = rule(
    "BC7",
    May,
    All,
    "worker Nodes start with the taint node.cluster.x-k8s.io/uninitialized:NoSchedule",
    "new Nodes are looked at",
    "may label a Node after Pods were put on it",
    paragraph!("bootstrap-config", "taint-nodes-at-creation"),
);
/// Template.
pub static BC8: Rule = rule(
    "BC8",
    Must,
    All,
    "there is a <BootstrapConfig>Template",
    "a CRD of the same group has the kind with Template at its end",
    "cannot make machines: MachineSets clone templates",
    paragraph!("bootstrap-config", "bootstrapconfigtemplate-bootstrapconfigtemplatelist-resource-definition"),
);
/// Expiry of certificates.
pub static BC9: Rule = rule(
    "BC9",
    May,
    All,
    "the annotation machine.cluster.x-k8s.io/certificates-expiry, where it is set, is a time of RFC 3339",
    "the annotation of a running provider is read as core reads it",
    "does not show when certificates expire",
    paragraph!("bootstrap-config", "typical-bootstrapconfig-reconciliation-workflow"),
);
