//! Reading the conditions that a provider reports on an object we have no type for.

use jiff::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{ConditionStatus, Report, reason};

/// A provider reports conditions that are not conditions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// A field that every condition has is not there.
    #[error("{object} does not set {path}, which every condition must have")]
    Missing {
        /// What the caller calls the object.
        object: String,
        /// Where in the object, e.g. `status.conditions[1].status`.
        path: String,
    },
    /// The status is none of the three words.
    #[error("{object} sets {path} to {found:?}, but it must be one of True, False, Unknown")]
    OddStatus {
        /// What the caller calls the object.
        object: String,
        /// Where in the object.
        path: String,
        /// The value found.
        found: String,
    },
    /// The conditions are not a list.
    #[error("{object} sets {path} to {found}, but it must be a list of conditions")]
    NotAList {
        /// What the caller calls the object.
        object: String,
        /// Where in the object, e.g. `status.conditions`.
        path: String,
        /// The value found, as JSON.
        found: String,
    },
    /// An entry of the list is not a condition at all.
    #[error("{object} sets {path} to {found}, but it must be an object with type and status")]
    NotACondition {
        /// What the caller calls the object.
        object: String,
        /// Where in the object, e.g. `status.conditions[1]`.
        path: String,
        /// The value found, as JSON.
        found: String,
    },
    /// A field has a value of another JSON type.
    #[error("{object} sets {path} to {found}, but it must be a string")]
    NotAString {
        /// What the caller calls the object.
        object: String,
        /// Where in the object.
        path: String,
        /// The value found, as JSON.
        found: String,
    },
    /// A time cannot be read.
    #[error("{object} sets {path} to {found:?}, but it must be a time like 2006-01-02T15:04:05Z")]
    OddTime {
        /// What the caller calls the object.
        object: String,
        /// Where in the object.
        path: String,
        /// The value found.
        found: String,
    },
}

/// The conditions in `status.v1beta2.conditions` if that is set, else in `status.conditions`.
///
/// One malformed condition spoils the list: what else is wrong with it is not known. Errors call the
/// object by its kind.
/// A condition without reason gets [`reason::NO_REASON_REPORTED`].
pub fn read(object: &Value) -> Result<Vec<Report>, ReadError> {
    read_from(object.get("kind").and_then(Value::as_str).unwrap_or("The object"), object)
}

/// The same, for callers that do not name the object beside the error: errors call it `source`.
pub fn read_from(source: &str, object: &Value) -> Result<Vec<Report>, ReadError> {
    for (pointer, path) in [
        ("/status/v1beta2/conditions", "status.v1beta2.conditions"),
        ("/status/conditions", "status.conditions"),
    ] {
        let list = match object.pointer(pointer) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(list)) => list,
            Some(found) => {
                let (object, path, found) = (source.to_owned(), path.to_owned(), brief(found));
                return Err(ReadError::NotAList { object, path, found });
            }
        };
        let entry = |(index, entry): (usize, &Value)| {
            let path = format!("{path}[{index}]");
            match entry.as_object() {
                Some(fields) => Entry { object: source, path, fields }.report(),
                None => {
                    Err(ReadError::NotACondition { object: source.to_owned(), path, found: brief(entry) })
                }
            }
        };
        return list.iter().enumerate().map(entry).collect();
    }
    Ok(Vec::new())
}

/// A value as a message shows it.
fn brief(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        scalar => scalar.to_string().chars().take(64).collect(),
    }
}

struct Entry<'a> {
    object: &'a str,
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
                    object: self.object.to_owned(),
                    path: self.path_of("status"),
                    found: found.to_owned(),
                });
            }
        };
        let since = match self.text("lastTransitionTime")? {
            "" => None,
            found => parse_time(found).map_err(|()| ReadError::OddTime {
                object: self.object.to_owned(),
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
            "" => Err(ReadError::Missing { object: self.object.to_owned(), path: self.path_of(field) }),
            text => Ok(text),
        }
    }

    /// The field's text; empty where there is none.
    fn text(&self, field: &str) -> Result<&str, ReadError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(found) => Err(ReadError::NotAString {
                object: self.object.to_owned(),
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
            (json!({"conditions": null}), vec![]),
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
            let found = read(&json!({"status": {"conditions": [condition]}}));
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
        for (conditions, expected) in [
            (
                json!("nonsense"),
                "Foo ic sets status.conditions to \"nonsense\", but it must be a list of conditions",
            ),
            (
                json!({"a": 1}),
                "Foo ic sets status.conditions to an object, but it must be a list of conditions",
            ),
            (
                json!([7]),
                "Foo ic sets status.conditions[0] to 7, but it must be an object with type and status",
            ),
            (
                json!([{"type": "Ready"}]),
                "Foo ic does not set status.conditions[0].status, which every condition must have",
            ),
        ] {
            let object = json!({"kind": "Foo", "status": {"conditions": conditions}});
            assert_eq!(read_from("Foo ic", &object).unwrap_err().to_string(), expected);
            assert_eq!(read(&object).unwrap_err().to_string(), expected.replace("Foo ic", "Foo"));
        }
        let object = json!({"status": {"v1beta2": {"conditions": [{}]}}});
        assert_eq!(
            read(&object).unwrap_err().to_string(),
            "The object does not set status.v1beta2.conditions[0].type, which every condition must have"
        );
    }
}
