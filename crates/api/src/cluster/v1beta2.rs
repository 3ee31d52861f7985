//! `Cluster` as stored: version `v1beta2`.
//!
//! Objects are not validated again when they are read, and those that were written as v1beta1 were never held
//! against this version's schema. So every field may be missing: decoding is lenient, the schema is strict.

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

use super::common::{
    API_VERSION, CONDITION_TYPE, DNS_LABEL, DNS_SUBDOMAIN, KIND, UNHEALTHY_RANGE, is_blank, is_zero,
};
pub use super::common::{
    AvailabilityGate, ControlPlaneStatus, MachinesStatus, ObjectMeta, ReadinessGate, Rollout, Taint,
    UpgradePlanStep, VersionStatus, WorkersStatus,
};
use crate::conditions::{Condition, LegacyCondition};

/// What a Cluster should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    plural = "clusters",
    singular = "cluster",
    shortname = "cl",
    category = "cluster-api",
    namespaced,
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Cluster is a Kubernetes cluster that is managed through objects.",
    label("cluster.x-k8s.io/provider", "cluster-api"),
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = ".spec.topology.classRef.name",
        description = "The ClusterClass that the Cluster is built from, if any"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the Cluster is available"
    ),
    printcolumn(
        name = "CP Desired",
        type_ = "integer",
        json_path = ".status.controlPlane.desiredReplicas",
        description = "Control plane machines that are asked for"
    ),
    printcolumn(
        name = "CP Current",
        type_ = "integer",
        json_path = ".status.controlPlane.replicas",
        priority = 10,
        description = "Control plane machines that exist"
    ),
    printcolumn(
        name = "CP Ready",
        type_ = "integer",
        json_path = ".status.controlPlane.readyReplicas",
        priority = 10,
        description = "Control plane machines that are ready"
    ),
    printcolumn(
        name = "CP Available",
        type_ = "integer",
        json_path = ".status.controlPlane.availableReplicas",
        description = "Control plane machines that are available"
    ),
    printcolumn(
        name = "CP Up-to-date",
        type_ = "integer",
        json_path = ".status.controlPlane.upToDateReplicas",
        description = "Control plane machines that are up to date"
    ),
    printcolumn(
        name = "W Desired",
        type_ = "integer",
        json_path = ".status.workers.desiredReplicas",
        description = "Worker machines that are asked for"
    ),
    printcolumn(
        name = "W Current",
        type_ = "integer",
        json_path = ".status.workers.replicas",
        priority = 10,
        description = "Worker machines that exist"
    ),
    printcolumn(
        name = "W Ready",
        type_ = "integer",
        json_path = ".status.workers.readyReplicas",
        priority = 10,
        description = "Worker machines that are ready"
    ),
    printcolumn(
        name = "W Available",
        type_ = "integer",
        json_path = ".status.workers.availableReplicas",
        description = "Worker machines that are available"
    ),
    printcolumn(
        name = "W Up-to-date",
        type_ = "integer",
        json_path = ".status.workers.upToDateReplicas",
        description = "Worker machines that are up to date"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        priority = 10,
        description = "Whether controllers leave the Cluster alone"
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// clusterNetwork describes the cluster's network.
    #[serde(skip_serializing_if = "is_blank")]
    pub cluster_network: Option<ClusterNetwork>,
    /// controlPlaneEndpoint is where the cluster's API server is reached.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// controlPlaneRef names the control plane object, in the Cluster's namespace.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane_ref: Option<ObjectReference>,
    /// infrastructureRef names the infrastructure object, in the Cluster's namespace.
    #[serde(skip_serializing_if = "is_blank")]
    pub infrastructure_ref: Option<ObjectReference>,
    /// topology describes a cluster that is made from a ClusterClass.
    #[serde(skip_serializing_if = "is_blank")]
    pub topology: Option<Box<Topology>>,
    /// availabilityGates are further conditions that the Cluster's Available condition depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub availability_gates: Vec<AvailabilityGate>,
}

/// The network of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterNetwork {
    /// apiServerPort is the port that the API server should bind to; 6443 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    /// services are the networks that Service addresses are taken from.
    #[serde(skip_serializing_if = "is_blank")]
    pub services: Option<NetworkRanges>,
    /// pods are the networks that Pod addresses are taken from.
    #[serde(skip_serializing_if = "is_blank")]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 43)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub cidr_blocks: Vec<String>,
}

/// Where an API server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ApiEndpoint {
    /// host is a DNS name or an IP address.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub host: String,
    /// port is a TCP port.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

impl ApiEndpoint {
    /// Whether both host and port are known.
    pub fn is_valid(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }

    /// Whether neither host nor port is known.
    pub fn is_zero(&self) -> bool {
        self.host.is_empty() && self.port == 0
    }
}

/// Names an object in the Cluster's namespace. Its API version is found from its CRD's contract labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiGroup", "kind", "name"]))]
pub struct ObjectReference {
    /// apiGroup is the object's API group, without a version.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub api_group: String,
    /// kind of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = KIND))]
    pub kind: String,
    /// name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
}

/// A cluster that is made from a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["classRef", "version"]))]
pub struct Topology {
    /// classRef names the ClusterClass.
    #[serde(skip_serializing_if = "is_blank")]
    pub class_ref: Option<ClassRef>,
    /// version of Kubernetes, with a leading v.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// controlPlane describes the control plane.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// workers describes the groups of worker Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub workers: Option<WorkersTopology>,
    /// variables are values for the variables that the ClusterClass defines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub variables: Vec<Variable>,
}

/// Names a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ClassRef {
    /// name of the ClusterClass.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// namespace of the ClusterClass; the Cluster's own unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub namespace: Option<String>,
}

/// The control plane of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneTopology {
    /// metadata is added to the control plane object and its Machines.
    #[serde(skip_serializing_if = "is_blank")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// replicas is the number of control plane Machines; left to the control plane provider unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// rollout says when Machines are replaced.
    #[serde(skip_serializing_if = "is_blank")]
    pub rollout: Option<Rollout>,
    /// healthCheck overrides the ClusterClass's health check.
    #[serde(skip_serializing_if = "is_blank")]
    pub health_check: Option<ControlPlaneHealthCheck>,
    /// deletion says how Machines are deleted.
    #[serde(skip_serializing_if = "is_blank")]
    pub deletion: Option<MachineDeletion>,
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
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub readiness_gates: Vec<ReadinessGate>,
    /// variables overrides values of the topology's variables.
    #[serde(skip_serializing_if = "is_blank")]
    pub variables: Option<Variables>,
}

/// The health check of control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneHealthCheck {
    /// enabled says whether there is a MachineHealthCheck; unless set, there is one if it is defined anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// checks say when a Machine is unhealthy.
    #[serde(skip_serializing_if = "is_blank")]
    pub checks: Option<HealthChecks>,
    /// remediation says what is done about unhealthy Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub remediation: Option<ControlPlaneRemediation>,
}

/// When a Machine is unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct HealthChecks {
    /// nodeStartupTimeoutSeconds is how long a Machine may take to get its Node; 10 minutes unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// unhealthyNodeConditions make a Machine unhealthy if its Node has any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Vec<UnhealthyNodeCondition>,
    /// unhealthyMachineConditions make a Machine unhealthy if it has any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
}

/// A condition of a Node that makes its Machine unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "timeoutSeconds", "type"]))]
pub struct UnhealthyNodeCondition {
    /// type of the condition.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub type_: String,
    /// status of the condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub status: String,
    /// timeoutSeconds is how long the condition must have had this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub timeout_seconds: Option<i32>,
}

/// A condition of a Machine that makes it unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "timeoutSeconds", "type"]))]
pub struct UnhealthyMachineCondition {
    /// type of the condition; not one that the controllers derive from health themselves.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(min = 1, max = 316),
        regex(pattern = CONDITION_TYPE),
        extend("x-kubernetes-validations" = [super::common::not_a_health_condition()])
    )]
    pub type_: String,
    /// status of the condition: True, False or Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// timeoutSeconds is how long the condition must have had this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub timeout_seconds: Option<i32>,
}

/// What is done about unhealthy control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneRemediation {
    /// triggerIf holds remediation back while too many Machines are unhealthy.
    #[serde(skip_serializing_if = "is_blank")]
    pub trigger_if: Option<RemediationTrigger>,
    /// templateRef names a template for an object that remediates in place of the Machine's owner.
    #[serde(skip_serializing_if = "is_blank")]
    pub template_ref: Option<TemplateReference>,
}

/// What is done about unhealthy Machines of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRemediation {
    /// maxInFlight is how many Machines, or what share of them, are remediated at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<IntOrString>,
    /// triggerIf holds remediation back while too many Machines are unhealthy.
    #[serde(skip_serializing_if = "is_blank")]
    pub trigger_if: Option<RemediationTrigger>,
    /// templateRef names a template for an object that remediates in place of the Machine's owner.
    #[serde(skip_serializing_if = "is_blank")]
    pub template_ref: Option<TemplateReference>,
}

/// When unhealthy Machines are remediated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct RemediationTrigger {
    /// unhealthyLessThanOrEqualTo is the greatest number or share of unhealthy Machines to remediate at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
    /// unhealthyInRange is a range such as [3-5] for the number of unhealthy Machines; it wins over the other field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = UNHEALTHY_RANGE))]
    pub unhealthy_in_range: Option<String>,
}

/// Names a template in the Cluster's namespace, with its API version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "name"]))]
pub struct TemplateReference {
    /// kind of the template.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = KIND))]
    pub kind: String,
    /// name of the template.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// apiVersion of the template: group/version.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 317), regex(pattern = API_VERSION))]
    pub api_version: String,
}

/// How Machines are deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeletion {
    /// nodeDrainTimeoutSeconds is how long draining a Node may take; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// nodeVolumeDetachTimeoutSeconds is how long to wait for volumes to be detached; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// nodeDeletionTimeoutSeconds is how long to try to delete the Node; 10 seconds unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// How Machines of a MachineDeployment are deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentDeletion {
    /// order says which Machines go first when scaling down: Random (the default), Newest or Oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub order: Option<String>,
    /// nodeDrainTimeoutSeconds is how long draining a Node may take; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// nodeVolumeDetachTimeoutSeconds is how long to wait for volumes to be detached; 0 or unset for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// nodeDeletionTimeoutSeconds is how long to try to delete the Node; 10 seconds unless set, 0 for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// The groups of worker Machines of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct WorkersTopology {
    /// machineDeployments are groups whose Machines are managed one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 2000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub machine_deployments: Vec<MachineDeploymentTopology>,
    /// machinePools are groups whose Machines the infrastructure manages together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 2000),
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
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// class names one of the ClusterClass's MachineDeployment classes.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// name of the group, unique among the topology's MachineDeployments.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// failureDomain is where the Machines are placed; one of the names in the Cluster's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// replicas is the number of Machines; unless set, another controller scales the MachineDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// healthCheck overrides the class's health check.
    #[serde(skip_serializing_if = "is_blank")]
    pub health_check: Option<MachineDeploymentHealthCheck>,
    /// deletion says how Machines are deleted.
    #[serde(skip_serializing_if = "is_blank")]
    pub deletion: Option<MachineDeploymentDeletion>,
    /// taints are set on the Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<Taint>,
    /// minReadySeconds is how long a new Machine must be ready before it counts as available; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// readinessGates are further conditions that a Machine's Ready condition depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"])
    )]
    pub readiness_gates: Vec<ReadinessGate>,
    /// rollout says when and how Machines are replaced.
    #[serde(skip_serializing_if = "is_blank")]
    pub rollout: Option<MachineDeploymentRollout>,
    /// variables overrides values of the topology's variables.
    #[serde(skip_serializing_if = "is_blank")]
    pub variables: Option<Variables>,
}

/// The health check of a MachineDeployment's Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentHealthCheck {
    /// enabled says whether there is a MachineHealthCheck; unless set, there is one if it is defined anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// checks say when a Machine is unhealthy.
    #[serde(skip_serializing_if = "is_blank")]
    pub checks: Option<HealthChecks>,
    /// remediation says what is done about unhealthy Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub remediation: Option<MachineDeploymentRemediation>,
}

/// When and how the Machines of a MachineDeployment are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRollout {
    /// after is the time from which Machines that are older than it are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// strategy says how Machines are replaced.
    #[serde(skip_serializing_if = "is_blank")]
    pub strategy: Option<RolloutStrategy>,
}

/// How Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "required" = ["type"]))]
pub struct RolloutStrategy {
    /// type of the strategy: RollingUpdate or OnDelete.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["RollingUpdate", "OnDelete"]))]
    pub type_: String,
    /// rollingUpdate bounds a rolling update.
    #[serde(skip_serializing_if = "is_blank")]
    pub rolling_update: Option<RollingUpdate>,
}

/// The bounds of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct RollingUpdate {
    /// maxUnavailable is how many Machines, or what share, may be missing meanwhile; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// maxSurge is how many Machines, or what share, may be added meanwhile; 1 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
}

/// A MachinePool of a topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["class", "name"]))]
pub struct MachinePoolTopology {
    /// metadata is added to the MachinePool and its Machines.
    #[serde(skip_serializing_if = "is_blank")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// class names one of the ClusterClass's MachinePool classes.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// name of the group, unique among the topology's MachinePools.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// failureDomains are where the Machines are placed; names from the Cluster's status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub failure_domains: Vec<String>,
    /// deletion says how Machines are deleted.
    #[serde(skip_serializing_if = "is_blank")]
    pub deletion: Option<MachineDeletion>,
    /// taints are set on the Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub taints: Vec<Taint>,
    /// minReadySeconds is how long a new Machine must be ready before it counts as available; 0 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
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
#[schemars(extend("minProperties" = 1))]
pub struct Variables {
    /// overrides are the values that differ from the topology's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
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
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// value of the variable: any JSON that the ClusterClass's schema for it allows.
    #[schemars(schema_with = "super::common::any_json")]
    pub value: Value,
}

/// What a Cluster is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterStatus {
    /// conditions say what is true of the Cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// initialization says which first steps are done; other controllers wait for them.
    #[serde(skip_serializing_if = "is_blank")]
    pub initialization: Option<Initialization>,
    /// controlPlane counts the control plane's Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub control_plane: Option<ControlPlaneStatus>,
    /// workers counts all worker Machines.
    #[serde(skip_serializing_if = "is_blank")]
    pub workers: Option<WorkersStatus>,
    /// failureDomains are the places that Machines can be spread over, as the infrastructure reports them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
    /// phase is how far the Cluster has come, for people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]
    ))]
    pub phase: Option<String>,
    /// observedGeneration is the newest generation that the controller has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// deprecated holds what older API versions still show.
    #[serde(skip_serializing_if = "is_blank")]
    pub deprecated: Option<Deprecated>,
}

/// Which first steps are done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Initialization {
    /// infrastructureProvisioned is true once the infrastructure object has said that it is provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// controlPlaneInitialized is true once the cluster's API server has accepted requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// A place that Machines can be put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct FailureDomain {
    /// name of the failure domain.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// controlPlane says whether control plane Machines may be put there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// attributes are whatever the infrastructure wants to say about it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// What older API versions still show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Deprecated {
    /// v1beta1 holds what the v1beta1 API shows.
    #[serde(skip_serializing_if = "is_blank")]
    pub v1beta1: Option<DeprecatedV1Beta1>,
}

/// What the v1beta1 API shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeprecatedV1Beta1 {
    /// conditions in the style of v1beta1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
    /// failureReason is a word for a failure that no controller recovers from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// failureMessage describes that failure for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
}
