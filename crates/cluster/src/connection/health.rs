//! How a connection fares, and what a Cluster says about it.

use std::time::Duration;

use capstan_api::conditions::{Condition, ConditionStatus, Report};
use jiff::Timestamp;

/// The condition.
pub(crate) const CONDITION: &str = "RemoteConnectionProbe";
/// As many failures in a row end a connection, and end the doubt whether an earlier process knew better.
pub(crate) const FAILURES_TO_DISCONNECT: u32 = 5;

/// How the connection to a workload cluster fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// When its API server last answered as it should, to the second.
    pub last_success: Option<Timestamp>,
    /// How often in a row it did not since then.
    pub consecutive_failures: u32,
    /// What is wrong, in words for the reader; nothing if all is well or nothing was tried.
    pub trouble: Option<String>,
    /// Nothing but another kubeconfig helps: it makes no sense to wait and see.
    pub is_lasting: bool,
    /// Nothing was found out yet, but soon will be: the first attempt is under way.
    pub undecided: bool,
}

impl Health {
    /// Takes in an answer. Says whether a reader would see a difference.
    pub(crate) fn succeeded(&mut self, now: Timestamp) -> bool {
        let news = self.trouble.is_some() || self.last_success.is_none();
        let last_success = Some(Timestamp::from_second(now.as_second()).unwrap_or(now));
        *self = Self { last_success, ..Self::default() };
        news
    }

    /// Takes in a failure. Says whether a reader would see a difference.
    pub(crate) fn failed(&mut self, trouble: String, is_lasting: bool) -> bool {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.undecided = false;
        self.is_lasting = is_lasting;
        let trouble = Some(trouble);
        let is_given_up = self.last_success.is_none() && self.consecutive_failures == FAILURES_TO_DISCONNECT;
        let news = self.trouble != trouble || is_given_up;
        self.trouble = trouble;
        news
    }

    /// Age alone is no trouble: a machine that slept, or a clock that was set, says nothing about the other side.
    fn is_fresh(&self, grace: Duration, now: Timestamp) -> bool {
        let in_time = |at| self.trouble.is_none() || age(at, now) <= grace;
        !self.is_lasting && self.last_success.is_some_and(in_time)
    }
}

fn age(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

/// What the Cluster's condition says. Its words change only when the facts do.
pub(crate) fn report(
    health: &Health,
    previous: Option<&Condition>,
    grace: Duration,
    now: Timestamp,
) -> Report {
    if health.is_fresh(grace, now) {
        return Report::new(CONDITION, true, "ProbeSucceeded");
    }
    let words = if let Some(at) = health.last_success {
        format!("Remote connection probe failed, probe last succeeded at {at}")
    } else if health.consecutive_failures >= FAILURES_TO_DISCONNECT {
        "Remote connection probe failed".to_owned()
    } else {
        // An earlier process may have known better: it is believed until this one has found out for itself.
        let was_good = previous.is_some_and(|previous| previous.status == ConditionStatus::True);
        let may_pass = health.consecutive_failures > 0 && !health.is_lasting;
        let believed = health.undecided || (was_good && may_pass);
        if let Some(previous) = previous.filter(|_| believed) {
            return Report::from(previous);
        }
        "Remote connection not established yet".to_owned()
    };
    let message = match &health.trouble {
        Some(trouble) => format!("{words}: {trouble}"),
        None => words,
    };
    Report::new(CONDITION, false, "ProbeFailed").with_message(message)
}

/// When a failing connection is to be reported if it does not recover before: no event announces that.
pub(crate) fn stale_after(health: &Health, grace: Duration, now: Timestamp) -> Option<Duration> {
    let at = health.last_success.filter(|_| health.trouble.is_some() && health.is_fresh(grace, now))?;
    // Whole seconds are compared: a moment later, not the very moment.
    Some(grace.saturating_sub(age(at, now)) + Duration::from_millis(10))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const GRACE: Duration = Duration::from_secs(50);

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn previous(status: ConditionStatus, reason: &str, message: &str) -> Condition {
        Condition {
            type_: CONDITION.to_owned(),
            status,
            observed_generation: None,
            last_transition_time: Time(time(0)),
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn the_condition_says_what_is_known() {
        let good = previous(ConditionStatus::True, "ProbeSucceeded", "");
        let bad = previous(ConditionStatus::False, "ProbeFailed", "earlier words");
        let health = |last: Option<i64>, failures: u32, trouble: Option<&str>, undecided: bool| Health {
            last_success: last.map(time),
            consecutive_failures: failures,
            trouble: trouble.map(str::to_owned),
            is_lasting: trouble == Some("garbage"),
            undecided,
        };
        let not_yet = "Remote connection not established yet";
        let oops = Some("oops");
        for (name, health, previous, status, message) in [
            ("nothing tried", health(None, 0, None, false), None, "False", not_yet),
            ("no kubeconfig any more", health(None, 0, None, false), Some(&good), "False", not_yet),
            ("first attempt under way", health(None, 0, None, true), None, "False", not_yet),
            ("restarted, was good", health(None, 0, None, true), Some(&good), "True", ""),
            ("restarted, was bad", health(None, 0, None, true), Some(&bad), "False", "earlier words"),
            (
                "first attempt failed",
                health(None, 1, oops, false),
                Some(&bad),
                "False",
                &format!("{not_yet}: oops"),
            ),
            ("restarted, fails, was good", health(None, 4, oops, false), Some(&good), "True", ""),
            (
                "restarted, garbage, was good",
                health(None, 1, Some("garbage"), false),
                Some(&good),
                "False",
                &format!("{not_yet}: garbage"),
            ),
            (
                "garbage in place of a good one",
                health(Some(45), 1, Some("garbage"), false),
                Some(&good),
                "False",
                "Remote connection probe failed, probe last succeeded at 2026-01-01T00:00:45Z: garbage",
            ),
            (
                "restarted, given up",
                health(None, 5, oops, false),
                Some(&good),
                "False",
                "Remote connection probe failed: oops",
            ),
            (
                "no CA to make it from",
                health(None, 0, oops, false),
                Some(&good),
                "False",
                &format!("{not_yet}: oops"),
            ),
            ("fresh", health(Some(0), 0, None, false), Some(&bad), "True", ""),
            ("not asked for long", health(Some(-100), 0, None, false), Some(&bad), "True", ""),
            ("failing within grace", health(Some(0), 3, oops, false), Some(&good), "True", ""),
            (
                "stale",
                health(Some(-1), 6, oops, false),
                Some(&good),
                "False",
                "Remote connection probe failed, probe last succeeded at 2025-12-31T23:59:59Z: oops",
            ),
        ] {
            let report = report(&health, previous, GRACE, time(50));
            assert_eq!((report.status.as_str(), report.message.as_str()), (status, message), "{name}");
            let reason = if status == "True" { "ProbeSucceeded" } else { "ProbeFailed" };
            assert_eq!(report.reason, reason, "{name}");
        }
    }

    #[test]
    fn readers_are_told_of_differences_only() {
        let mut health = Health { undecided: true, ..Health::default() };
        assert!(health.failed("a".into(), false), "the first failure");
        assert!(!health.failed("a".into(), false), "the same again");
        assert!(health.failed("b".into(), false), "other words");
        assert!(!health.failed("b".into(), false));
        assert!(health.failed("b".into(), false), "the fifth: no more doubt");
        assert!(!health.failed("b".into(), false));
        assert!(health.succeeded(time(1)), "connected");
        assert!(!health.succeeded(time(11)), "at rest nothing is reported");
        assert_eq!(health, Health { last_success: Some(time(11)), ..Health::default() });
        assert!(health.failed("a".into(), false));
        assert!(health.succeeded(time(31)), "recovered");
    }

    #[test]
    fn a_failing_connection_is_looked_at_when_its_grace_ends() {
        let mut health = Health::default();
        assert_eq!(stale_after(&health, GRACE, time(0)), None);
        health.succeeded(time(0));
        assert_eq!(stale_after(&health, GRACE, time(10)), None, "healthy");
        health.failed("a".into(), false);
        let after = stale_after(&health, GRACE, time(10)).unwrap();
        assert_eq!(after.as_secs(), 40);
        let then = time(10) + jiff::SignedDuration::try_from(after).unwrap();
        assert_eq!(report(&health, None, GRACE, then).status, ConditionStatus::False);
        assert_eq!(stale_after(&health, GRACE, then), None, "reported once");
    }
}
