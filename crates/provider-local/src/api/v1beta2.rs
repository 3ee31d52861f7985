//! Version `v1beta2`: what is stored, and what speaks contract v1beta2.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type")]

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, FailureDomain},
    conditions::Condition,
};
use capstan_provider_sdk::{Initialization, TemplateResource};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cluster's infrastructure should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "LocalCluster",
    plural = "localclusters",
    singular = "localcluster",
    shortname = "lcl",
    category = "cluster-api",
    namespaced,
    status = "LocalClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "LocalCluster is the infrastructure of a cluster on this machine: a load balancer on loopback.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r#".metadata.labels.cluster\.x-k8s\.io/cluster-name"#,
        description = "The Cluster that this belongs to"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the load balancer works"
    ),
    printcolumn(
        name = "Host",
        type_ = "string",
        json_path = ".spec.controlPlaneEndpoint.host",
        description = "Host of the control plane's endpoint"
    ),
    printcolumn(
        name = "Port",
        type_ = "integer",
        json_path = ".spec.controlPlaneEndpoint.port",
        description = "Port of the control plane's endpoint"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalClusterSpec {
    /// controlPlaneEndpoint is where the load balancer listens; a free port on 127.0.0.1 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// backends are the addresses, as host:port, that connections are forwarded to in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 3, max = 261)), extend("x-kubernetes-list-type" = "atomic"))]
    pub backends: Vec<String>,
    /// failureDomains are reported as the places that machines can be put in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
    /// identityRef names the tenant whose load balancer this is; everything is allowed unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityReference>,
    /// simulate makes the infrastructure slow or faulty, for tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate: Option<Simulation>,
}

/// The tenant behind a LocalCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityReference {
    /// name is that of a Secret in the same namespace. Its key `host` holds the address that the tenant's load balancers
    /// listen on, and no other.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Infrastructure that is slow or faulty on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Simulation {
    /// provisioningSeconds is how long after the creation of the LocalCluster its infrastructure is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub provisioning_seconds: Option<u32>,
    /// deletionSeconds is how long after the deletion of the LocalCluster its infrastructure is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86400))]
    pub deletion_seconds: Option<u32>,
    /// error is what provisioning fails with, again and again, for as long as it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub error: Option<String>,
    /// terminalFailure is what provisioning fails with for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_failure: Option<SimulatedFailure>,
}

/// A failure that cannot be recovered from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedFailure {
    /// reason is a word in CamelCase.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// message describes it for people.
    #[schemars(length(min = 1, max = 10240))]
    pub message: String,
}

/// What is known of a cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalClusterStatus {
    /// conditions say what is true of the infrastructure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// initialization says which first steps are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// failureDomains are the places that machines can be put in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
    /// deprecated holds what v1beta1 still shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<LocalClusterDeprecated>,
}

/// What older API versions show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalClusterDeprecated {
    /// v1beta1 holds what v1beta1 shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<TerminalFailure>,
}

/// A failure that cannot be recovered from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TerminalFailure {
    /// failureReason is a word for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// failureMessage describes the failure for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// What LocalClusters made from a template look like.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "LocalClusterTemplate",
    plural = "localclustertemplates",
    singular = "localclustertemplate",
    shortname = "lclt",
    category = "cluster-api",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "LocalClusterTemplate is what a ClusterClass makes LocalClusters from.",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct LocalClusterTemplateSpec {
    /// template is the LocalCluster to make.
    pub template: TemplateResource<LocalClusterSpec>,
}
