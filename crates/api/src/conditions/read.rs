//! Reading the conditions that a provider reports on an object we have no type for.

use jiff::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{ConditionStatus, Report, reason};

/// A provider reports conditions that are not conditions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// A field that every condition has is not there.
    #[error("{kind} does not set {path}, which every condition must have")]
    Missing {
        /// The kind of the object.
        kind: String,
        /// Where in the object, e.g. `status.conditions[1].status`.
        path: String,
    },
    /// The status is none of the three words.
    #[error("{kind} sets {path} to {found:?}, but it must be one of True, False, Unknown")]
    OddStatus {
        /// The kind of the object.
        kind: String,
        /// Where in the object.
        path: String,
        /// What is there.
        found: String,
    },
    /// A field has a value of another JSON type.
    #[error("{kind} sets {path} to {found}, but it must be a string")]
    NotAString {
        /// The kind of the object.
        kind: String,
        /// Where in the object.
        path: String,
        /// What is there, as JSON.
        found: String,
    },
    /// A time cannot be read.
    #[error("{kind} sets {path} to {found:?}, but it must be a time like 2006-01-02T15:04:05Z")]
    OddTime {
        /// The kind of the object.
        kind: String,
        /// Where in the object.
        path: String,
        /// What is there.
        found: String,
    },
}

/// The conditions in `status.v1beta2.conditions` if that list exists, else in `status.conditions`.
///
/// One malformed condition spoils the list, because nobody can tell what else is wrong with it.
/// A condition without reason gets [`reason::NO_REASON_REPORTED`].
pub fn read(object: &Value) -> Result<Vec<Report>, ReadError> {
    for (pointer, path) in [
        ("/status/v1beta2/conditions", "status.v1beta2.conditions"),
        ("/status/conditions", "status.conditions"),
    ] {
        if let Some(list) = object.pointer(pointer).and_then(Value::as_array) {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or("The object");
            return list
                .iter()
                .enumerate()
                .filter_map(|(index, entry)| {
                    let (fields, path) = (entry.as_object()?, format!("{path}[{index}]"));
                    Some(Entry { kind, path, fields }.report())
                })
                .collect();
        }
    }
    Ok(Vec::new())
}

struct Entry<'a> {
    kind: &'a str,
    path: String,
    fields: &'a Map<String, Value>,
}

impl Entry<'_> {
    fn report(&self) -> Result<Report, ReadError> {
        let type_ = self.required("type")?;
        let status = match self.required("status")? {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            "Unknown" => ConditionStatus::Unknown,
            found => {
                return Err(ReadError::OddStatus {
                    kind: self.kind.to_owned(),
                    path: self.path_of("status"),
                    found: found.to_owned(),
                });
            }
        };
        let since = match self.text("lastTransitionTime")? {
            "" => None,
            found => parse_time(found).map_err(|()| ReadError::OddTime {
                kind: self.kind.to_owned(),
                path: self.path_of("lastTransitionTime"),
                found: found.to_owned(),
            })?,
        };
        let reason = match self.text("reason")? {
            "" => reason::NO_REASON_REPORTED,
            reason => reason,
        };
        let mut report = Report::new(type_, status, reason).with_message(self.text("message")?);
        report.since = since;
        Ok(report)
    }

    fn required(&self, field: &str) -> Result<&str, ReadError> {
        match self.text(field)? {
            "" => Err(ReadError::Missing { kind: self.kind.to_owned(), path: self.path_of(field) }),
            text => Ok(text),
        }
    }

    /// The field's text; empty where there is none.
    fn text(&self, field: &str) -> Result<&str, ReadError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(found) => Err(ReadError::NotAString {
                kind: self.kind.to_owned(),
                path: self.path_of(field),
                found: found.to_string(),
            }),
        }
    }

    fn path_of(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }
}

/// A time; `None` for the zero time of Go, which means "not set".
pub(super) fn parse_time(text: &str) -> Result<Option<Timestamp>, ()> {
    const GO_ZERO_TIME: i64 = -62_135_596_800;
    let time: Timestamp = text.parse().map_err(|_| ())?;
    Ok(Some(time).filter(|time| time.as_second() != GO_ZERO_TIME))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn todays_list_is_preferred() {
        let old = json!([{"type": "Old", "status": "True"}]);
        let new = json!([{"type": "New", "status": "True"}]);
        for (status, expected) in [
            (json!({"conditions": old, "v1beta2": {"conditions": new}}), vec!["New"]),
            (json!({"conditions": old, "v1beta2": {"conditions": []}}), vec![]),
            (json!({"conditions": old, "v1beta2": {"conditions": null}}), vec!["Old"]),
            (json!({"conditions": old, "v1beta2": {}}), vec!["Old"]),
            (json!({"conditions": old, "deprecated": {"v1beta1": {"conditions": new}}}), vec!["Old"]),
            (json!({"conditions": "nonsense"}), vec![]),
            (json!({}), vec![]),
            (json!(null), vec![]),
        ] {
            let found = read(&json!({"kind": "Foo", "status": status})).unwrap();
            let types: Vec<&str> = found.iter().map(|report| report.type_.as_str()).collect();
            assert_eq!(types, expected, "{status}");
        }
        assert_eq!(read(&json!({})), Ok(vec![]));
    }

    #[test]
    fn a_condition_needs_only_type_and_status() {
        let since: Timestamp = "2024-05-06T07:08:09Z".parse().unwrap();
        for (condition, expected) in [
            (
                json!({"type": "Ready", "status": "False", "reason": "Foo", "message": "m", "observedGeneration": 3,
                    "lastTransitionTime": "2024-05-06T07:08:09Z", "severity": "Info"}),
                Report::new("Ready", false, "Foo").with_message("m").with_since(since),
            ),
            (json!({"type": "Ready", "status": "True"}), Report::new("Ready", true, "NoReasonReported")),
            (
                json!({"type": "Ready", "status": "Unknown", "reason": "", "message": null, "lastTransitionTime": ""}),
                Report::new("Ready", ConditionStatus::Unknown, "NoReasonReported"),
            ),
            (
                json!({"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": null}),
                Report::new("Ready", true, "R"),
            ),
            (
                json!({"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "0001-01-01T00:00:00Z"}),
                Report::new("Ready", true, "R"),
            ),
        ] {
            let found = read(&json!({"status": {"conditions": ["nonsense", condition]}}));
            assert_eq!(found, Ok(vec![expected]), "{condition}");
        }
    }

    #[test]
    fn a_malformed_condition_is_named() {
        for (condition, expected) in [
            (
                json!({"status": "True"}),
                "Foo does not set status.conditions[1].type, which every condition must have",
            ),
            (
                json!({"type": "", "status": "True"}),
                "Foo does not set status.conditions[1].type, which every condition must have",
            ),
            (
                json!({"type": "Ready"}),
                "Foo does not set status.conditions[1].status, which every condition must have",
            ),
            (
                json!({"type": "Ready", "status": "true"}),
                "Foo sets status.conditions[1].status to \"true\", but it must be one of True, False, Unknown",
            ),
            (
                json!({"type": "Ready", "status": true}),
                "Foo sets status.conditions[1].status to true, but it must be a string",
            ),
            (
                json!({"type": "Ready", "status": "True", "reason": {"a": 1}}),
                "Foo sets status.conditions[1].reason to {\"a\":1}, but it must be a string",
            ),
            (
                json!({"type": "Ready", "status": "True", "lastTransitionTime": "yesterday"}),
                "Foo sets status.conditions[1].lastTransitionTime to \"yesterday\", \
                 but it must be a time like 2006-01-02T15:04:05Z",
            ),
        ] {
            let good = json!({"type": "Good", "status": "True"});
            let object = json!({"kind": "Foo", "status": {"conditions": [good, condition]}});
            assert_eq!(read(&object).unwrap_err().to_string(), expected);
        }
        let object = json!({"status": {"v1beta2": {"conditions": [{}]}}});
        assert_eq!(
            read(&object).unwrap_err().to_string(),
            "The object does not set status.v1beta2.conditions[0].type, which every condition must have"
        );
    }
}
