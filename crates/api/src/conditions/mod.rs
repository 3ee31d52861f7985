//! Conditions: the Kubernetes style of v1beta2, the legacy style of v1beta1, and the algebra over both.

mod aggregate;
pub mod legacy;
mod merge;
mod mirror;
mod order;
mod read;
pub mod reason;
mod report;
mod set;
mod summary;
#[cfg(test)]
mod testing;

pub use aggregate::{Aggregate, Source};
pub use merge::{MergeError, Polarity, Priority, Reasons};
pub use mirror::Mirror;
pub use order::compare;
pub use read::{ReadError, read, read_from};
pub use report::{ConditionRef, Report};
pub use set::{get, is_false, is_true, is_unknown, remove, set};
pub use summary::{Input, Summary};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const TYPE_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON_PATTERN: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The three states a condition can be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A condition as Kubernetes' API conventions define it.
// A controller always writes a whole condition, so it owns it as a whole: half of a Cluster's managedFields, which a
// server reads and writes with every change, would be the names of these fields, once a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "required" = ["lastTransitionTime", "message", "reason", "status", "type"],
    "x-kubernetes-map-type" = "atomic"
))]
pub struct Condition {
    /// type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(max = 316), regex(pattern = TYPE_PATTERN))]
    pub type_: String,
    /// status of the condition, one of True, False, Unknown.
    pub status: ConditionStatus,
    /// observedGeneration is the .metadata.generation that the condition was set from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// lastTransitionTime is the last time the condition went from one status to another.
    pub last_transition_time: Time,
    /// reason is a word in CamelCase that says why the condition is in this status.
    #[schemars(length(min = 1, max = 1024), regex(pattern = REASON_PATTERN))]
    pub reason: String,
    /// message describes the transition for people; it may be empty.
    #[serde(default)]
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// A condition as the v1beta1 API defined it, with a severity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyCondition {
    /// type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 256))]
    pub type_: String,
    /// status of the condition, one of True, False, Unknown.
    #[schemars(with = "String")]
    pub status: ConditionStatus,
    /// severity says how bad a False status is: Error, Warning or Info. It is empty unless the status is False.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub severity: String,
    /// lastTransitionTime is the last time the condition changed.
    pub last_transition_time: Time,
    /// reason is a word in CamelCase that says why the condition is in this status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// message describes the transition for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 10240))]
    pub message: String,
}
