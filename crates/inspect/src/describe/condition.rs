//! What objects report of themselves, in the current and in the legacy style.

use capstan_api::{
    conditions::{self, ReadError, Report},
    names::CORE_GROUP,
};
use jiff::Timestamp;
use serde_json::Value;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const READY: &str = "Ready";
pub(super) const UP_TO_DATE: &str = "UpToDate";
pub(super) const TRUE: &str = "True";

/// Conditions for which "False" is good news.
const NEGATIVE: [&str; 7] =
    ["Paused", "Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Remediating"];

/// Which conditions are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionStyle {
    /// Those of v1beta2, with a reason for every status.
    #[default]
    Current,
    /// Those of v1beta1, with a severity.
    Legacy,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub type_: String,
    /// True, False or Unknown, and what else may come off the wire.
    pub status: String,
    /// How bad it is; in the legacy style only.
    pub severity: String,
    /// Why, as one word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl Condition {
    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        self.status == TRUE
    }

    /// Whether it is bad news if it holds.
    pub(super) fn is_negative(&self) -> bool {
        NEGATIVE.contains(&self.type_.as_str())
    }

    /// Whether it has nothing to tell: it is as it should be, and has no message.
    pub(super) fn is_zero(&self) -> bool {
        let normal = if self.is_negative() { "False" } else { TRUE };
        self.status == normal && self.message.is_empty()
    }

    /// What two objects must have in common to be in the same state.
    pub(super) fn verdict(&self) -> (String, String, String) {
        (self.status.clone(), self.severity.clone(), self.reason.clone())
    }
}

impl From<Report> for Condition {
    fn from(report: Report) -> Self {
        Self {
            type_: report.type_,
            status: report.status.as_str().to_owned(),
            severity: String::new(),
            reason: report.reason,
            message: report.message,
            since: report.since,
        }
    }
}

/// The conditions of an object in one style.
pub(super) fn read(object: &Value, style: ConditionStyle) -> Result<Vec<Condition>, ReadError> {
    match style {
        ConditionStyle::Current => Ok(conditions::read(object)?.into_iter().map(Condition::from).collect()),
        ConditionStyle::Legacy => Ok(read_legacy(object)),
    }
}

fn read_legacy(object: &Value) -> Vec<Condition> {
    const DEPRECATED: &str = "/status/deprecated/v1beta1/conditions";
    const PLAIN: &str = "/status/conditions";
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let places: &[&str] = match api_version.split_once('/') {
        Some((CORE_GROUP, "v1beta1")) => &[PLAIN],
        Some((CORE_GROUP, _)) => &[DEPRECATED],
        _ => &[DEPRECATED, PLAIN],
    };
    let list = places.iter().find_map(|place| object.pointer(place).and_then(Value::as_array));
    list.into_iter().flatten().filter_map(legacy).collect()
}

fn legacy(entry: &Value) -> Option<Condition> {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let type_ = entry.get("type")?.as_str()?.to_owned();
    Some(Condition {
        type_,
        status: text("status"),
        severity: text("severity"),
        reason: text("reason"),
        message: text("message"),
        since: entry["lastTransitionTime"].as_str().and_then(|it| it.parse().ok()),
    })
}

/// The condition of a type.
pub(super) fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.type_ == type_)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn legacy_conditions_are_where_the_version_has_them() {
        let old = json!([{"type": "Old", "status": "False", "severity": "Info"}, {"status": "True"}, 3]);
        let new = json!([{"type": "New", "status": "True"}]);
        for (api_version, status, expected) in [
            ("cluster.x-k8s.io/v1beta2", json!({"conditions": new}), vec![]),
            (
                "cluster.x-k8s.io/v1beta2",
                json!({"conditions": new, "deprecated": {"v1beta1": {"conditions": old}}}),
                vec!["Old"],
            ),
            (
                "cluster.x-k8s.io/v1beta1",
                json!({"conditions": old, "v1beta2": {"conditions": new}}),
                vec!["Old"],
            ),
            ("other.example.com/v1", json!({"conditions": new}), vec!["New"]),
            (
                "other.example.com/v1",
                json!({"conditions": new, "deprecated": {"v1beta1": {"conditions": old}}}),
                vec!["Old"],
            ),
            ("other.example.com/v1", json!({"conditions": "nonsense"}), vec![]),
        ] {
            let object = json!({"apiVersion": api_version, "status": status});
            let found = read(&object, ConditionStyle::Legacy).unwrap();
            let types: Vec<_> = found.iter().map(|it| it.type_.as_str()).collect();
            assert_eq!(types, expected, "{object}");
        }
    }

    #[test]
    fn what_is_as_it_should_be_has_nothing_to_tell() {
        for (type_, status, message, expected) in [
            ("Ready", "True", "", true),
            ("Ready", "True", "m", false),
            ("Ready", "False", "", false),
            ("Ready", "Unknown", "", false),
            ("Paused", "False", "", true),
            ("Paused", "True", "", false),
            ("Paused", "Unknown", "", false),
        ] {
            let condition = Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                message: message.to_owned(),
                ..Condition::default()
            };
            assert_eq!(condition.is_zero(), expected, "{condition:?}");
        }
    }
}
