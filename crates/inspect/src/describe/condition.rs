//! What objects report of themselves, in the current and in the legacy style.

use capstan_api::{
    conditions::{self, ReadError, Report, legacy},
    names::CORE_GROUP,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::fields::{api_version, is_negative};

/// The condition that sums up an object with replicas.
pub const AVAILABLE: &str = "Available";
/// The condition that sums up every other object.
pub const READY: &str = "Ready";
pub(super) const UP_TO_DATE: &str = "UpToDate";

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
        self.status == "True"
    }

    /// Whether it is bad news if it holds.
    pub fn is_negative(&self) -> bool {
        is_negative(&self.type_)
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

impl From<legacy::Report> for Condition {
    fn from(legacy: legacy::Report) -> Self {
        let severity = legacy.severity.clone();
        Self { severity, ..Report::from(legacy).into() }
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
    let places: &[&str] = match api_version(object).split_once('/') {
        Some((CORE_GROUP, "v1beta1")) => &[PLAIN],
        Some((CORE_GROUP, _)) => &[DEPRECATED],
        _ => &[DEPRECATED, PLAIN],
    };
    let list = places.iter().find_map(|place| object.pointer(place).and_then(Value::as_array));
    let reports = list.into_iter().flatten().filter_map(legacy::read_entry);
    reports.filter(|it| !it.type_.is_empty()).map(Condition::from).collect()
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
}
