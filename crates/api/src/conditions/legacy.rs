//! The v1beta1 style: conditions with a severity, kept for those who still read
//! `status.deprecated.v1beta1.conditions`.

use std::cmp::Ordering;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::read::parse_time;
use super::set::whole_seconds;
use super::{ConditionStatus, LegacyCondition};

const READY: &str = "Ready";

/// How bad a False condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It needs a person or a retry.
    Error,
    /// It may need attention.
    Warning,
    /// It takes its time.
    Info,
}

impl Severity {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// What is said about one legacy condition, before it is in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The type of the condition.
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// How bad that is; any word can come off the wire.
    pub severity: String,
    /// Why, as one CamelCase word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
    /// Since when, if that is known better than by looking at the clock now.
    pub since: Option<Timestamp>,
}

impl Report {
    /// All is well.
    pub fn holds(type_: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::True, "", "")
    }

    /// Something is missing.
    pub fn fails(
        type_: impl Into<String>,
        severity: Severity,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: severity.as_str().to_owned(),
            ..Self::new(type_, ConditionStatus::False, reason, message)
        }
    }

    /// The status is unknown.
    pub fn unknown(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::Unknown, reason, message)
    }

    fn new(
        type_: impl Into<String>,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status,
            severity: String::new(),
            reason: reason.into(),
            message: message.into(),
            since: None,
        }
    }
}

impl From<Report> for super::Report {
    fn from(legacy: Report) -> Self {
        let Report { type_, status, reason, message, since, .. } = legacy;
        Self { type_, status, reason, message, since }
    }
}

/// Puts a report in the list and says whether that changed anything.
///
/// Unlike with today's conditions, every change of status, severity, reason or message is a transition,
/// and its time is `now`. A report's own time counts only for a condition that the list did not have.
pub fn set(conditions: &mut Vec<LegacyCondition>, report: Report, now: Timestamp) -> bool {
    let mut next = LegacyCondition {
        type_: report.type_,
        status: report.status,
        severity: report.severity,
        last_transition_time: Time(whole_seconds(now)),
        reason: report.reason,
        message: report.message,
    };
    let existing = conditions.iter_mut().find(|condition| condition.type_ == next.type_);
    if let Some(condition) = existing {
        let is_same = condition.status == next.status
            && condition.severity == next.severity
            && condition.reason == next.reason
            && condition.message == next.message;
        if is_same {
            return false;
        }
        *condition = next;
    } else {
        if let Some(since) = report.since {
            next.last_transition_time = Time(whole_seconds(since));
        }
        conditions.push(next);
    }
    conditions.sort_by(|a, b| compare(&a.type_, &b.type_));
    true
}

/// The condition of this type, if there is one.
pub fn get<'a>(conditions: &'a [LegacyCondition], type_: &str) -> Option<&'a LegacyCondition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition exists and is True.
pub fn is_true(conditions: &[LegacyCondition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Compares two condition types by their place in a list: `Ready` first, the others by alphabet.
pub fn compare(a: &str, b: &str) -> Ordering {
    (a != READY, a).cmp(&(b != READY, b))
}

/// The legacy conditions of an object we have no type for: those in `status.deprecated.v1beta1.conditions`,
/// else those in `status.conditions`.
///
/// A list that cannot be read counts as not there: [`read`](super::read()) is the one that complains.
pub fn read(object: &Value) -> Vec<Report> {
    ["/status/deprecated/v1beta1/conditions", "/status/conditions"]
        .into_iter()
        .find_map(|pointer| object.pointer(pointer)?.as_array()?.iter().map(read_entry).collect())
        .unwrap_or_default()
}

/// One legacy condition; none where it cannot be read.
pub fn read_entry(entry: &Value) -> Option<Report> {
    let entry = entry.as_object()?;
    let text = |field: &str| match entry.get(field) {
        None | Some(Value::Null) => Some(""),
        Some(value) => value.as_str(),
    };
    let status = match text("status")? {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    let since = match entry.get("lastTransitionTime") {
        None | Some(Value::Null) => None,
        Some(value) => parse_time(value.as_str()?).ok()?,
    };
    Some(Report {
        severity: text("severity")?.to_owned(),
        since,
        ..Report::new(text("type")?, status, text("reason")?, text("message")?)
    })
}

/// Another object's `Ready`, as it is, under another type; nothing where it does not report it.
pub fn mirror(source: &[Report], target: &str) -> Option<Report> {
    let ready = source.iter().find(|report| report.type_ == READY)?;
    Some(Report { type_: target.to_owned(), ..ready.clone() })
}

/// `Ready` as the summary of the existing conditions of the given types; `None` if there are none.
///
/// The worst wins: False by severity, then True, then Unknown. Of several that are equally bad, the one
/// listed first gives reason and message.
pub fn summary(conditions: &[LegacyCondition], types: &[&str]) -> Option<Report> {
    let worst = types
        .iter()
        .filter(|type_| **type_ != READY)
        .filter_map(|type_| get(conditions, type_))
        .min_by_key(|condition| weight(condition))?;
    Some(match worst.status {
        ConditionStatus::True => Report::holds(READY),
        ConditionStatus::False => Report {
            severity: worst.severity.clone(),
            ..Report::new(READY, worst.status, &worst.reason, &worst.message)
        },
        ConditionStatus::Unknown => Report::new(READY, worst.status, &worst.reason, &worst.message),
    })
}

fn weight(condition: &LegacyCondition) -> u8 {
    match (condition.status, condition.severity.as_str()) {
        (ConditionStatus::False, "Error") => 0,
        (ConditionStatus::False, "Warning") => 1,
        (ConditionStatus::False, "Info") => 2,
        (ConditionStatus::True, _) => 3,
        (ConditionStatus::Unknown, _) => 4,
        (ConditionStatus::False, _) => 5,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn list(reports: impl IntoIterator<Item = Report>, at: i64) -> Vec<LegacyCondition> {
        let mut conditions = Vec::new();
        for report in reports {
            set(&mut conditions, report, time(at));
        }
        conditions
    }

    #[test]
    fn ready_comes_first() {
        let conditions = list(["b", "a", "Ready", "A"].map(Report::holds), 1);
        let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "A", "a", "b"]);
    }

    #[test]
    fn the_time_changes_with_everything() {
        let before = Report::fails("Foo", Severity::Info, "Before", "before");
        for (what, report, changes, at) in [
            ("nothing", before.clone(), false, 100),
            ("nothing but a time of its own", Report { since: Some(time(5)), ..before.clone() }, false, 100),
            ("the status", Report { status: ConditionStatus::Unknown, ..before.clone() }, true, 200),
            ("the severity", Report { severity: "Error".to_owned(), ..before.clone() }, true, 200),
            ("the reason", Report { reason: "After".to_owned(), ..before.clone() }, true, 200),
            ("the message", Report { message: "after".to_owned(), ..before.clone() }, true, 200),
            ("the status, since then", Report { since: Some(time(5)), ..Report::holds("Foo") }, true, 200),
        ] {
            let mut conditions = list([before.clone()], 100);
            assert_eq!(set(&mut conditions, report, time(200)), changes, "{what}");
            assert_eq!(conditions[0].last_transition_time.0, time(at), "{what}");
        }
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, Report { since: Some(time(5)), ..before }, time(200)));
        assert_eq!(conditions[0].last_transition_time.0, time(5));
    }

    #[test]
    fn conditions_are_read_from_two_places() {
        let full = json!({"type": "Ready", "status": "False", "severity": "Warning", "reason": "Foo", "message": "m",
            "lastTransitionTime": "2024-05-06T07:08:09Z"});
        let expected = Report {
            since: Some("2024-05-06T07:08:09Z".parse().unwrap()),
            ..Report::fails("Ready", Severity::Warning, "Foo", "m")
        };
        let bare = json!([{"type": "Ready", "status": "True"}]);
        for (status, expected) in [
            (json!({"conditions": [full]}), vec![expected.clone()]),
            (json!({"conditions": bare, "deprecated": {"v1beta1": {"conditions": [full]}}}), vec![expected]),
            (json!({"conditions": bare, "deprecated": {"v1beta1": {"conditions": []}}}), vec![]),
            (
                json!({"conditions": bare, "deprecated": {"v1beta1": {"conditions": null}}}),
                vec![Report::holds("Ready")],
            ),
            (
                json!({"conditions": bare, "deprecated": {"v1beta1": {"conditions": [1]}}}),
                vec![Report::holds("Ready")],
            ),
            (
                json!({"conditions": [{"type": "Ready", "status": "odd"}]}),
                vec![Report::unknown("Ready", "", "")],
            ),
            (json!({"conditions": [{"type": "Ready", "status": true}]}), vec![]),
            (json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "x"}]}), vec![]),
            (json!({}), vec![]),
        ] {
            assert_eq!(read(&json!({"status": status})), expected, "{status}");
        }
        assert_eq!(read(&json!({})), vec![]);
    }

    #[test]
    fn ready_is_mirrored_as_it_is() {
        let ready = Report { since: Some(time(5)), ..Report::fails("Ready", Severity::Error, "Foo", "m") };
        let mirrored = mirror(&[Report::holds("Other"), ready.clone()], "InfrastructureReady");
        assert_eq!(mirrored, Some(Report { type_: "InfrastructureReady".to_owned(), ..ready }));
        assert_eq!(mirror(&[Report::holds("Other")], "InfrastructureReady"), None);
    }

    #[test]
    fn the_worst_makes_the_summary() {
        let good = || Report::holds("Good");
        let unknown = || Report::unknown("Unknown", "RU", "mu");
        let info = || Report::fails("Info", Severity::Info, "RI", "mi");
        let warning = || Report::fails("Warning", Severity::Warning, "RW", "mw");
        let error = || Report::fails("Error", Severity::Error, "RE", "me");
        let odd =
            || Report { severity: "Odd".to_owned(), ..Report::fails("Odd", Severity::Info, "RO", "mo") };
        let all = ["Odd", "Unknown", "Good", "Info", "Warning", "Error"];
        let ready = |report: Report| Some(Report { type_: "Ready".to_owned(), ..report });
        for (what, reports, types, expected) in [
            ("error", vec![unknown(), good(), info(), warning(), error()], &all[..], ready(error())),
            ("warning", vec![unknown(), good(), info(), warning()], &all[..], ready(warning())),
            ("info", vec![unknown(), good(), info()], &all[..], ready(info())),
            ("true", vec![odd(), unknown(), good()], &all[..], ready(good())),
            ("unknown", vec![odd(), unknown()], &all[..], ready(unknown())),
            ("odd", vec![odd()], &all[..], ready(odd())),
            ("nothing", vec![], &all[..], None),
            ("only what is listed", vec![good(), error()], &["Good"][..], ready(good())),
            ("not itself", vec![Report::holds("Ready")], &["Ready"][..], None),
        ] {
            assert_eq!(summary(&list(reports, 1), types), expected, "{what}");
        }
    }

    #[test]
    fn of_equals_the_first_listed_speaks() {
        let conditions = list(
            [
                Report::fails("Bar", Severity::Info, "RBar", "bar"),
                Report::fails("Foo", Severity::Info, "RFoo", "foo"),
            ],
            1,
        );
        for (types, reason) in
            [(["Foo", "Bar"], "RFoo"), (["Bar", "Foo"], "RBar"), (["Missing", "Foo"], "RFoo")]
        {
            assert_eq!(summary(&conditions, &types).unwrap().reason, reason);
        }
    }

    fn report() -> impl Strategy<Value = Report> {
        ("Ready|[a-c]", "(True|False|Unknown)", "(|Info|Error)", "[AB]").prop_map(
            |(type_, status, severity, reason)| {
                let status = match status.as_str() {
                    "True" => ConditionStatus::True,
                    "False" => ConditionStatus::False,
                    _ => ConditionStatus::Unknown,
                };
                Report { severity, ..Report::new(type_, status, reason, "") }
            },
        )
    }

    proptest! {
        #[test]
        fn to_set_twice_is_to_set_once(reports in prop::collection::vec(report(), 0..6), last in report()) {
            let mut once = list(reports, 10);
            set(&mut once, last.clone(), time(20));
            let mut twice = once.clone();
            prop_assert!(!set(&mut twice, last, time(30)));
            prop_assert_eq!(once, twice);
        }
    }
}
