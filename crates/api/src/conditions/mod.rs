//! Conditions: the Kubernetes style of v1beta2, the legacy style of v1beta1, and the algebra over both.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// status of the condition, one of True, False, Unknown.
    pub status: ConditionStatus,
    /// observedGeneration is the .metadata.generation that the condition was set from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// lastTransitionTime is the last time the condition went from one status to another.
    pub last_transition_time: Time,
    /// reason is a word in CamelCase that says why the condition is in this status.
    pub reason: String,
    /// message tells a person about the transition; it may be empty.
    #[serde(default)]
    pub message: String,
}

/// A condition as the v1beta1 API defined it, with a severity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyCondition {
    /// type of condition in CamelCase or in foo.example.com/CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// status of the condition, one of True, False, Unknown.
    pub status: ConditionStatus,
    /// severity says how bad a False status is: Error, Warning or Info. It is empty unless the status is False.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// lastTransitionTime is the last time the condition changed.
    pub last_transition_time: Time,
    /// reason is a word in CamelCase that says why the condition is in this status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// message tells a person about the transition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
