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
pub const INFRA_CLUSTER_RUNNING: &[&Rule] = &[&IC3, &IC5, &IC7, &IC8, &IC9, &IC10];

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
    "waits for somebody else to report completion, while the provider makes infrastructure that nobody asked for",
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
    "deletion comes to an end",
    "the object is deleted as core does it, and must be gone",
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
