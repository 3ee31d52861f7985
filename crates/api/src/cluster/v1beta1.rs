//! `Cluster` as older clients see it: version `v1beta1`, served by conversion from [`v1beta2`](super::v1beta2).
//!
//! Decoding is as lenient as in `v1beta2`, except that kube's derive wants a `spec` where the schema does not.

// The comments are what `kubectl explain` prints, as it is.
#![allow(clippy::doc_markdown)]
// Columns may share a type or a priority.
#![allow(clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::common::{
    AvailabilityGate, ControlPlaneStatus, MachinesStatus, ObjectMeta, ReadinessGate, Rollout, Taint,
    UpgradePlanStep, VersionStatus, WorkersStatus,
};
use super::common::{CONDITION_TYPE, DNS_LABEL, UNHEALTHY_RANGE, is_blank, is_false};
use crate::conditions::{Condition, LegacyCondition};

/// What a Cluster should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Cluster",
    plural = "clusters",
    singular = "cluster",
    shortname = "cl",
    category = "cluster-api",
    namespaced,
    status = "ClusterStatus",
    deprecated,
    derive = "Default",
    derive = "PartialEq",
    doc = "Cluster is a Kubernetes cluster that is managed through objects.",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = ".spec.topology.class",
        description = "The ClusterClass that the Cluster is built from, if any"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the Cluster has come"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since the Cluster was created"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.topology.version",
        description = "The Kubernetes version that the Cluster's topology asks for"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSpec {
    /// paused stops all controllers from acting on the Cluster and the objects that belong to it.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// clusterNetwork describes the cluster's network.
    #[serde(skip_serializing_if = "is_blank")]
    pub cluster_network: Option<ClusterNetwork>,
    /// controlPlaneEndpoint is where the cluster's API server is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// controlPlaneRef names the control plane object.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane_ref: Option<ObjectReference>,
    /// infrastructureRef names the infrastructure object.
    #[serde(skip_serializing_if = "is_blank")]
    pub infrastructure_ref: Option<ObjectReference>,
    /// topology describes a cluster that is made from a ClusterClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Box<Topology>>,
    /// availabilityGates are further conditions that the Cluster's Available condition depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub availability_gates: Vec<AvailabilityGate>,
}

/// The network of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterNetwork {
    /// apiServerPort is the port that the API server should bind to; 6443 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_port: Option<i32>,
    /// services are the networks that Service addresses are taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
    /// pods are the networks that Pod addresses are taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// serviceDomain is the DNS domain of Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
}

/// Networks of one purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["cidrBlocks"]))]
pub struct NetworkRanges {
    /// cidrBlocks are networks in CIDR notation.
    #[schemars(length(max = 100), inner(length(min = 1, max = 43)))]
    pub cidr_blocks: Vec<String>,
}

/// Where an API server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiEndpoint {
    /// host is a DNS name or an IP address; empty while it is not known.
    #[schemars(length(max = 512))]
    pub host: String,
    /// port is a TCP port; 0 while it is not known.
    pub port: i32,
}

/// Names an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// apiVersion of the object: group/version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// uid of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// resourceVersion of the object that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// fieldPath is the part of the object that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
}

/// A cluster that is made from a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["class", "version"]))]
pub struct Topology {
    /// class is the name of the ClusterClass.
    #[schemars(length(min = 1, max = 253))]
    pub class: String,
    /// classNamespace is the namespace of the ClusterClass; the Cluster's own unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub class_namespace: Option<String>,
    /// version of Kubernetes, with a leading v.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// rolloutAfter has never had an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_after: Option<Time>,
    /// controlPlane describes the control plane.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// workers describes the groups of worker Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub workers: Option<WorkersTopology>,
    /// variables are values for the variables that the ClusterClass defines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub variables: Vec<Variable>,
}

/// The control plane of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ControlPlaneTopology {
    /// metadata is added to the control plane object and its Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub metadata: Option<ObjectMeta>,
    /// replicas is the number of control plane Machines; left to the control plane provider unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// rollout says when Machines are replaced.
    #[serde(skip_serializing_if = "is_blank")]
    pub rollout: Option<Rollout>,
    /// machineHealthCheck overrides the ClusterClass's health check.
    #[serde(skip_serializing_if = "is_blank")]
    pub machine_health_check: Option<MachineHealthCheck>,
    /// nodeDrainTimeout is how long draining a Node may take; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// nodeVolumeDetachTimeout is how long to wait for volumes to be detached; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// nodeDeletionTimeout is how long to try to delete the Node; 10 seconds unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// taints are set on the Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<Taint>,
    /// readinessGates are further conditions that a Machine's Ready condition depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub readiness_gates: Vec<ReadinessGate>,
    /// variables overrides values of the topology's variables.
    #[serde(skip_serializing_if = "is_blank")]
    pub variables: Option<Variables>,
}

/// The health check of a group of Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineHealthCheck {
    /// enable says whether there is a MachineHealthCheck; unless set, there is one if it is defined anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// unhealthyConditions make a Machine unhealthy if its Node has any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub unhealthy_conditions: Vec<UnhealthyNodeCondition>,
    /// unhealthyMachineConditions make a Machine unhealthy if it has any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
    /// maxUnhealthy is the greatest number or share of unhealthy Machines to remediate at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unhealthy: Option<IntOrString>,
    /// unhealthyRange is a range such as [3-5] for the number of unhealthy Machines; it wins over maxUnhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = UNHEALTHY_RANGE))]
    pub unhealthy_range: Option<String>,
    /// nodeStartupTimeout is how long a Machine may take to get its Node; 10 minutes unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout: Option<String>,
    /// remediationTemplate names a template for an object that remediates in place of the Machine's owner.
    #[serde(skip_serializing_if = "is_blank")]
    pub remediation_template: Option<ObjectReference>,
}

/// A condition of a Node that makes its Machine unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "timeout", "type"]))]
pub struct UnhealthyNodeCondition {
    /// type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub type_: String,
    /// status of the condition.
    #[schemars(length(min = 1))]
    pub status: String,
    /// timeout is how long the condition must have had this status.
    pub timeout: String,
}

/// A condition of a Machine that makes it unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "timeout", "type"]))]
pub struct UnhealthyMachineCondition {
    /// type of the condition; not one that the controllers derive from health themselves.
    #[serde(rename = "type")]
    #[schemars(
        length(min = 1, max = 316),
        regex(pattern = CONDITION_TYPE),
        extend("x-kubernetes-validations" = [super::common::not_a_health_condition()])
    )]
    pub type_: String,
    /// status of the condition: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// timeout is how long the condition must have had this status.
    pub timeout: String,
}

/// The groups of worker Machines of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkersTopology {
    /// machineDeployments are groups whose Machines are managed one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 2000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub machine_deployments: Vec<MachineDeploymentTopology>,
    /// machinePools are groups whose Machines the infrastructure manages together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 2000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub machine_pools: Vec<MachinePoolTopology>,
}

/// A MachineDeployment of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["class", "name"]))]
pub struct MachineDeploymentTopology {
    /// metadata is added to the MachineDeployment and its Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub metadata: Option<ObjectMeta>,
    /// class names one of the ClusterClass's MachineDeployment classes.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// name of the group, unique among the topology's MachineDeployments.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// failureDomain is where the Machines are placed; one of the names in the Cluster's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// replicas is the number of Machines; unless set, another controller scales the MachineDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// machineHealthCheck overrides the class's health check.
    #[serde(skip_serializing_if = "is_blank")]
    pub machine_health_check: Option<MachineHealthCheck>,
    /// nodeDrainTimeout is how long draining a Node may take; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// nodeVolumeDetachTimeout is how long to wait for volumes to be detached; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// nodeDeletionTimeout is how long to try to delete the Node; 10 seconds unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// taints are set on the Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<Taint>,
    /// minReadySeconds is how long a new Machine must be ready before it counts as available; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// readinessGates are further conditions that a Machine's Ready condition depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub readiness_gates: Vec<ReadinessGate>,
    /// rollout says when Machines are replaced.
    #[serde(skip_serializing_if = "is_blank")]
    pub rollout: Option<Rollout>,
    /// strategy says how Machines are replaced, in which order they are deleted, and how many are remediated at once.
    #[serde(skip_serializing_if = "is_blank")]
    pub strategy: Option<Strategy>,
    /// variables overrides values of the topology's variables.
    #[serde(skip_serializing_if = "is_blank")]
    pub variables: Option<Variables>,
}

/// How Machines of a MachineDeployment are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Strategy {
    /// type of the strategy: RollingUpdate (the default) or OnDelete.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RollingUpdate", "OnDelete"]))]
    pub type_: Option<String>,
    /// rollingUpdate bounds a rolling update.
    #[serde(skip_serializing_if = "is_blank")]
    pub rolling_update: Option<RollingUpdate>,
    /// remediation bounds the remediation of unhealthy Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub remediation: Option<Remediation>,
}

/// The bounds of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingUpdate {
    /// maxUnavailable is how many Machines, or what share, may be missing meanwhile; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// maxSurge is how many Machines, or what share, may be added meanwhile; 1 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// deletePolicy says which Machines go first when scaling down: Random (the default), Newest or Oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub delete_policy: Option<String>,
}

/// The bounds of remediation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Remediation {
    /// maxInFlight is how many Machines, or what share of them, are remediated at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<IntOrString>,
}

/// A MachinePool of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["class", "name"]))]
pub struct MachinePoolTopology {
    /// metadata is added to the MachinePool and its Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub metadata: Option<ObjectMeta>,
    /// class names one of the ClusterClass's MachinePool classes.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// name of the group, unique among the topology's MachinePools.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// failureDomains are where the Machines are placed; names from the Cluster's status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Vec<String>,
    /// nodeDrainTimeout is how long draining a Node may take; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// nodeVolumeDetachTimeout is how long to wait for volumes to be detached; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// nodeDeletionTimeout is how long to try to delete the Node; 10 seconds unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// taints are set on the Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<Taint>,
    /// minReadySeconds is how long a new Machine must be ready before it counts as available; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// replicas is the number of Machines; unless set, another controller scales the MachinePool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// variables overrides values of the topology's variables.
    #[serde(skip_serializing_if = "is_blank")]
    pub variables: Option<Variables>,
}

/// Variables that are overridden for one part of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Variables {
    /// overrides are the values that differ from the topology's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub overrides: Vec<Variable>,
}

/// The value of a variable that a ClusterClass defines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "value"]))]
pub struct Variable {
    /// name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// definitionFrom once selected one of several definitions of a variable; it has no effect any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub definition_from: Option<String>,
    /// value of the variable: any JSON that the ClusterClass's schema for it allows.
    #[schemars(schema_with = "super::common::any_json")]
    pub value: Value,
}

/// What a Cluster is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterStatus {
    /// failureDomains are the places that Machines can be spread over, as the infrastructure reports them, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,
    /// failureReason is a word for a failure that no controller recovers from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// failureMessage describes that failure for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// phase is how far the Cluster has come, for people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]
    ))]
    pub phase: Option<String>,
    /// infrastructureReady is true once the infrastructure object has said that it is provisioned.
    pub infrastructure_ready: bool,
    /// controlPlaneReady is true once the cluster's API server has accepted requests.
    pub control_plane_ready: bool,
    /// conditions in the style of v1beta1 say what is true of the Cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
    /// observedGeneration is the newest generation that the controller has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// v1beta2 holds what the v1beta2 API shows.
    #[serde(skip_serializing_if = "is_blank")]
    pub v1beta2: Option<V1Beta2Status>,
}

/// A place that Machines can be put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FailureDomain {
    /// controlPlane says whether control plane Machines may be put there.
    #[serde(skip_serializing_if = "is_false")]
    pub control_plane: bool,
    /// attributes are whatever the infrastructure wants to say about it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// What the v1beta2 API shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct V1Beta2Status {
    /// conditions in the style of Kubernetes say what is true of the Cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// controlPlane counts the control plane's Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane: Option<ControlPlaneStatus>,
    /// workers counts all worker Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub workers: Option<WorkersStatus>,
}
