//! Showing another object's condition as one of our own.

use super::{ConditionStatus, ReadError, Report, reason};

/// Which condition to mirror, and what to say where there is none.
///
/// ```
/// use capstan_api::conditions::{self, ConditionStatus, Mirror};
///
/// let infra = serde_json::json!({"kind": "LocalCluster", "status": {"conditions": [
///     {"type": "Ready", "status": "True"},
/// ]}});
/// let report = Mirror::of("Ready")
///     .to("InfrastructureReady")
///     .reason_if_true("Ready")
///     .or_else(false, "NotReady", "LocalCluster status.initialization.provisioned is false")
///     .apply(&conditions::read(&infra));
/// assert_eq!((report.status, report.reason.as_str()), (ConditionStatus::True, "Ready"));
/// ```
#[derive(Clone, Debug)]
pub struct Mirror<'a> {
    source: &'a str,
    target: &'a str,
    reason_if_true: Option<&'a str>,
    fallback: Option<(ConditionStatus, &'a str, String)>,
}

impl<'a> Mirror<'a> {
    /// Mirrors the condition of this type under the same type.
    pub const fn of(source: &'a str) -> Self {
        Self { source, target: source, reason_if_true: None, fallback: None }
    }

    /// The type that the mirror gets.
    #[must_use]
    pub const fn to(mut self, target: &'a str) -> Self {
        self.target = target;
        self
    }

    /// The reason to show where the source is True and gives none, as legacy conditions do.
    #[must_use]
    pub const fn reason_if_true(mut self, reason: &'a str) -> Self {
        self.reason_if_true = Some(reason);
        self
    }

    /// What to say where the source does not have the condition; without this it is Unknown.
    #[must_use]
    pub fn or_else(
        mut self,
        status: impl Into<ConditionStatus>,
        reason: &'a str,
        message: impl Into<String>,
    ) -> Self {
        self.fallback = Some((status.into(), reason, message.into()));
        self
    }

    /// The mirror of what was [read](super::read) from the source. A malformed source is reported as such.
    pub fn apply(&self, source: &Result<Vec<Report>, ReadError>) -> Report {
        let found = match source {
            Ok(reports) => reports.iter().find(|report| report.type_ == self.source),
            Err(error) => {
                return Report::new(
                    self.target,
                    ConditionStatus::Unknown,
                    reason::INVALID_CONDITION_REPORTED,
                )
                .with_message(error.to_string());
            }
        };
        if let Some(report) = found {
            let mut mirror = Report { type_: self.target.to_owned(), ..report.clone() };
            if let Some(reason) = self.reason_if_true
                && mirror.status == ConditionStatus::True
                && mirror.reason == reason::NO_REASON_REPORTED
            {
                reason.clone_into(&mut mirror.reason);
            }
            return mirror;
        }
        match &self.fallback {
            Some((status, reason, message)) => {
                Report::new(self.target, *status, *reason).with_message(message.as_str())
            }
            None => Report::new(self.target, ConditionStatus::Unknown, reason::NOT_YET_REPORTED)
                .with_message(format!("Condition {} not yet reported", self.source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Condition, read, set};
    use super::*;

    const UNKNOWN: ConditionStatus = ConditionStatus::Unknown;

    #[test]
    fn a_condition_is_mirrored() {
        let since: Timestamp = "2024-05-06T07:08:09Z".parse().unwrap();
        let good = Report::new("Ready", true, "AllGood").with_message("We are good").with_since(since);
        let other = Report::new("Other", false, "R");
        let no_reason = Report::new("Ready", true, "NoReasonReported");
        let bad_no_reason = Report::new("Ready", false, "NoReasonReported");
        let mirror = Mirror::of("Ready").to("InfrastructureReady").reason_if_true("Ready");
        let waiting = mirror.clone().or_else(false, "NotReady", "not yet");
        let provisioned = mirror.clone().or_else(true, "Ready", "");
        let renamed = |report: &Report| Report { type_: "InfrastructureReady".to_owned(), ..report.clone() };
        for (what, mirror, source, expected) in [
            ("under its own type", Mirror::of("Ready"), vec![other.clone(), good.clone()], good.clone()),
            ("under another type", mirror.clone(), vec![good.clone()], renamed(&good)),
            ("not the fallback", waiting.clone(), vec![good.clone()], renamed(&good)),
            (
                "a reason for what is True",
                mirror.clone(),
                vec![no_reason.clone()],
                Report::new("InfrastructureReady", true, "Ready"),
            ),
            (
                "no reason for what is False",
                mirror.clone(),
                vec![bad_no_reason.clone()],
                renamed(&bad_no_reason),
            ),
            ("no reason unless asked", Mirror::of("Ready"), vec![no_reason.clone()], no_reason),
            (
                "nothing yet",
                mirror,
                vec![other.clone()],
                Report::new("InfrastructureReady", UNKNOWN, "NotYetReported")
                    .with_message("Condition Ready not yet reported"),
            ),
            (
                "the fallback",
                waiting,
                vec![other],
                Report::new("InfrastructureReady", false, "NotReady").with_message("not yet"),
            ),
            ("the good fallback", provisioned, vec![], Report::new("InfrastructureReady", true, "Ready")),
        ] {
            assert_eq!(mirror.apply(&Ok(source)), expected, "{what}");
        }
    }

    #[test]
    fn a_malformed_source_is_told() {
        let object = json!({"kind": "Foo", "status": {"conditions": [{"type": "Ready"}]}});
        let report = Mirror::of("Ready").or_else(true, "Ready", "").apply(&read(&object));
        assert_eq!(
            report,
            Report::new("Ready", UNKNOWN, "InvalidConditionReported").with_message(
                "Foo does not set status.conditions[0].status, which every condition must have"
            )
        );
    }

    proptest! {
        #[test]
        fn mirrored_twice_is_mirrored_once(
            reports in prop::collection::vec(("(Ready|Other)", any::<bool>(), "[AB]|NoReasonReported", prop::option::of(0..9_i64)), 0..3),
            now in 10..20_i64,
            later in 20..30_i64,
        ) {
            let source = Ok(reports.into_iter().map(|(type_, status, reason, since)| Report {
                since: since.and_then(|since| Timestamp::from_second(since).ok()),
                ..Report::new(type_, status, reason)
            }).collect());
            let mirror = Mirror::of("Ready").to("InfrastructureReady").reason_if_true("Ready");
            let mut once: Vec<Condition> = Vec::new();
            set(&mut once, mirror.apply(&source), Some(1), Timestamp::from_second(now).unwrap());
            let mut twice = once.clone();
            prop_assert!(!set(&mut twice, mirror.apply(&source), Some(1), Timestamp::from_second(later).unwrap()));
            prop_assert_eq!(once, twice);
        }
    }
}
