//! Rules for an InfraCluster.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::Rule;

/// Seen in files.
pub const INFRA_CLUSTER_IN_FILES: &[&Rule] = &[&IC1, &IC2, &IC4, &IC6, &IC11];

/// Seen only in a running provider.
pub const INFRA_CLUSTER_RUNNING: &[&Rule] =
    &[&IC3, &IC5, &IC7, &IC8, &IC9, &IC10, &IC12, &IC13, &IC14, &IC15];

/// Spec and status.
pub static IC1: Rule = rule(
    "IC1",
    Must,
    All,
    "an InfraCluster has spec and status",
    "both are objects in the schema of the version that core picks",
    "finds none of the contract's fields",
    paragraph!("infra-cluster", "infracluster-infraclusterlist-resource-definition"),
);
/// Endpoint.
pub static IC2: Rule = rule(
    "IC2",
    Must,
    All,
    "a provider that makes the control plane endpoint reports it in spec.controlPlaneEndpoint",
    "where the schema has the field, it is an object with host (a string) and port (an integer)",
    "cannot copy the endpoint to the Cluster, so that no machine can join",
    paragraph!("infra-cluster", "infracluster-control-plane-endpoint"),
);
/// Waits for the endpoint.
pub static IC3: Rule = rule(
    "IC3",
    Must,
    All,
    "a provider that does not make the endpoint waits until the Cluster has one",
    "a Cluster without an endpoint is created, and gets one later",
    "copies the endpoint later; a provider that does not wait works with an empty one",
    paragraph!("infra-cluster", "infracluster-control-plane-endpoint"),
);
/// Completion.
pub static IC4: Rule = rule(
    "IC4",
    Must,
    All,
    "an InfraCluster reports completion: status.initialization.provisioned (v1beta1: status.ready)",
    "the field is a boolean in the schema of the version that core picks",
    "never sees the infrastructure as provisioned: the Cluster stays in phase Provisioning",
    paragraph!("infra-cluster", "infracluster-initialization-completed"),
);
/// Completion is final.
pub static IC5: Rule = rule(
    "IC5",
    Must,
    All,
    "completion is reported once and for all; later trouble is reported by conditions",
    "the infrastructure is disturbed after completion",
    "ignores that the field turns false",
    paragraph!("infra-cluster", "infracluster-initialization-completed"),
);
/// Failure domains.
pub static IC6: Rule = rule(
    "IC6",
    May,
    All,
    "failure domains are a list of {name, controlPlane, attributes} in status.failureDomains (v1beta1: a map by name)",
    "where the schema has the field, it has the shape of the contract that core picks",
    "stops with an error that names the field, and does not provision the Cluster",
    paragraph!("infra-cluster", "infracluster-failure-domains"),
);
/// Ready condition.
pub static IC7: Rule = rule(
    "IC7",
    Should,
    All,
    "an InfraCluster has the condition Ready as long as it lives",
    "the conditions of a running provider are watched",
    "has only completion to show in the Cluster's condition InfrastructureReady",
    paragraph!("infra-cluster", "infracluster-conditions"),
);
/// Externally managed.
pub static IC8: Rule = rule(
    "IC8",
    Should,
    All,
    "the provider leaves an InfraCluster with the annotation cluster.x-k8s.io/managed-by alone",
    "an object with the annotation is created and watched",
    "waits for an external controller to report completion, while the provider creates unwanted infrastructure",
    paragraph!("infra-cluster", "externally-managed-infrastructure"),
);
/// Adoption.
pub static IC9: Rule = rule(
    "IC9",
    Must,
    All,
    "owner reference and the label cluster.x-k8s.io/cluster-name, which core writes, stay",
    "both are written, and looked for later",
    "writes them again and again, or cannot write them at all",
    paragraph!("infra-cluster", "all-resources-api-group"),
);
/// Deletion.
pub static IC10: Rule = rule(
    "IC10",
    Must,
    All,
    "deletion completes",
    "the object is deleted as core does it, and must vanish",
    "waits with the Cluster's deletion for ever",
    paragraph!("infra-cluster", "typical-infracluster-reconciliation-workflow"),
);
/// Template.
pub static IC11: Rule = rule(
    "IC11",
    Should,
    All,
    "there is a <InfraCluster>Template, which ClusterClasses need",
    "a CRD of the same group has the kind with Template at its end",
    "cannot make an InfraCluster from a ClusterClass",
    paragraph!("infra-cluster", "infraclustertemplate-infraclustertemplatelist-resource-definition"),
);
/// A lost status.
pub static IC12: Rule = rule(
    "IC12",
    Must,
    All,
    "provisioned is reported again, with the same endpoint, when the status is lost",
    "the status is emptied, as it is after a restore or a move, and the field is waited for",
    "never sees a moved or restored Cluster as provisioned, or gives it another endpoint",
    paragraph!("infra-cluster", "infracluster-initialization-completed"),
);
/// A restart.
pub static IC13: Rule = rule(
    "IC13",
    Must,
    All,
    "a restart of the provider changes nothing about what is provisioned",
    "the provider is restarted; then an earlier InfraCluster is checked and deleted",
    "has Clusters that an upgrade of the provider breaks",
    paragraph!("infra-cluster", "infracluster-initialization-completed"),
);
/// Rest.
pub static IC14: Rule = rule(
    "IC14",
    Should,
    All,
    "the provider writes nothing while nothing changes",
    "a provisioned InfraCluster gets one quiet time to settle and is watched for another one",
    "is woken by every write, and a thousand clusters never come to rest",
    paragraph!("infra-cluster", "typical-infracluster-reconciliation-workflow"),
);
/// The condition Paused.
pub static IC15: Rule = rule(
    "IC15",
    Should,
    All,
    "the condition Paused is True while reconciliation is paused, and no longer True afterwards",
    "the condition is checked on InfraClusters while they are paused and after they are resumed",
    "cannot show whether an object is paused or stuck",
    paragraph!("infra-cluster", "infracluster-pausing"),
);
