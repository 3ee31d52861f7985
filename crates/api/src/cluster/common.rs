//! What both versions of `Cluster` say in the same words.

// The comments are what `kubectl explain` prints, as it is.
#![allow(clippy::doc_markdown)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) use crate::conditions::TYPE_PATTERN as CONDITION_TYPE;
pub(super) use crate::crd::{DNS_LABEL, DNS_SUBDOMAIN};

pub(super) const KIND: &str = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
pub(super) const API_VERSION: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$";
pub(super) const TAINT_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
pub(super) const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
pub(super) const UNHEALTHY_RANGE: &str = r"^\[[0-9]+-[0-9]+\]$";

/// Whether a field would be written as nothing at all or as `{}`, which the schema refuses in most places.
#[allow(clippy::ref_option)] // the signature is serde's
pub(super) fn is_blank<T: Serialize>(value: &Option<T>) -> bool {
    value.as_ref().is_none_or(|value| {
        serde_json::to_value(value)
            .is_ok_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    })
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
pub(super) fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
pub(super) fn is_false(value: &bool) -> bool {
    !*value
}

/// A condition that counts when the Cluster's `Available` condition is computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["conditionType"]))]
pub struct AvailabilityGate {
    /// conditionType is the type of a condition in the Cluster's status.
    #[schemars(length(min = 1, max = 316), regex(pattern = CONDITION_TYPE))]
    pub condition_type: String,
    /// polarity says which status is good: Positive (the default) for True, Negative for False.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Positive", "Negative"]))]
    pub polarity: Option<String>,
}

/// A condition that counts when a Machine's `Ready` condition is computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["conditionType"]))]
pub struct ReadinessGate {
    /// conditionType is the type of a condition in the Machine's status.
    #[schemars(length(min = 1, max = 316), regex(pattern = CONDITION_TYPE))]
    pub condition_type: String,
    /// polarity says which status is good: Positive (the default) for True, Negative for False.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Positive", "Negative"]))]
    pub polarity: Option<String>,
}

/// Labels and annotations for objects that the topology controller makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// labels are added to the object, and to the Machines under it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// annotations are added to the object, and to the Machines under it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A taint for the Nodes of a group of Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["effect", "key", "propagation"]))]
pub struct Taint {
    /// key of the taint.
    #[schemars(length(min = 1, max = 317), regex(pattern = TAINT_KEY))]
    pub key: String,
    /// value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = LABEL_VALUE))]
    pub value: Option<String>,
    /// effect on Pods that do not tolerate the taint: NoSchedule, PreferNoSchedule or NoExecute.
    #[schemars(extend("enum" = ["NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    pub effect: String,
    /// propagation says when the taint is set on a Node: Always, or only OnInitialization.
    #[schemars(extend("enum" = ["Always", "OnInitialization"]))]
    pub propagation: String,
}

/// When Machines are replaced although nothing about them has changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Rollout {
    /// after is the time from which Machines that are older than it are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
}

/// How many Machines a control plane has, or all workers together have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MachinesStatus {
    /// desiredReplicas is the number of Machines that are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// replicas is the number of Machines that exist, deleting ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// upToDateReplicas is the number of Machines whose UpToDate condition is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// readyReplicas is the number of Machines whose Ready condition is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// availableReplicas is the number of Machines whose Available condition is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// versions are the Kubernetes versions that the Machines run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub versions: Vec<VersionStatus>,
    /// upgradePlan lists the Kubernetes versions still to go through, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub upgrade_plan: Vec<UpgradePlanStep>,
}

/// The control plane's Machines.
pub type ControlPlaneStatus = MachinesStatus;
/// The workers' Machines.
pub type WorkersStatus = MachinesStatus;

/// How many Machines run one version of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["version"]))]
pub struct VersionStatus {
    /// version of Kubernetes.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// replicas is the number of Machines at this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub replicas: Option<i32>,
}

/// A version on the way to the wanted one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["version"]))]
pub struct UpgradePlanStep {
    /// version of Kubernetes.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// The schema of a value that may be any JSON.
pub(super) fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// The rule that keeps a health check from looking at conditions that health checks themselves cause.
pub(super) fn not_a_health_condition() -> Value {
    json!({
        "rule": "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
        "message": "type cannot be Ready, Available, HealthCheckSucceeded, OwnerRemediated or ExternallyRemediated",
    })
}
