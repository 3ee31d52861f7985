//! Version `v1beta1`: the same object in the shape of contract v1beta1.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type")]

use std::collections::BTreeMap;

use capstan_api::{cluster::v1beta2::FailureDomain, conditions::ConditionStatus};
use capstan_provider_sdk::TemplateResource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::v1beta2::{IdentityReference, Simulation};

/// What a cluster's infrastructure should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
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
        json_path = ".status.ready",
        description = "Whether the infrastructure is complete"
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

/// Where an API server is reached; zero values mean "not yet".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiEndpoint {
    /// host is a DNS name or an IP address.
    #[schemars(length(max = 512))]
    pub host: String,
    /// port is a TCP port.
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
}

/// What is known of a cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalClusterStatus {
    /// ready is true once the infrastructure has been complete.
    pub ready: bool,
    /// failureReason is a word for a failure that cannot be recovered from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// failureMessage describes that failure for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// failureDomains are the places that machines can be put in, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomainSpec>,
    /// conditions say what is true of the infrastructure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// A place that machines can be put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FailureDomainSpec {
    /// controlPlane says whether the place is fit for control plane machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// attributes are free-form.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// A condition of Cluster API's older style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// type of condition in CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// status of the condition, one of True, False, Unknown.
    pub status: ConditionStatus,
    /// severity says how bad a False status is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// lastTransitionTime is the last time the condition changed.
    pub last_transition_time: Time,
    /// reason is a word that says why the condition is in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// message describes the transition for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// observedGeneration is the generation that the condition was set from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What LocalClusters made from a template look like.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
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
