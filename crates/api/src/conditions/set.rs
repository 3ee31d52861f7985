//! Reading and writing one condition in an object's list.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Condition, ConditionStatus, Report, order};

/// Puts a report in the list and says whether that changed anything.
///
/// The time of the last transition changes only with the status; it is then the report's own, as for a
/// mirrored condition, or `now`. The list is put in [order](super::compare) when it changes.
pub fn set(conditions: &mut Vec<Condition>, report: Report, generation: Option<i64>, now: Timestamp) -> bool {
    let last_transition_time = Time(whole_seconds(report.since.unwrap_or(now)));
    let mut next = Condition {
        type_: report.type_,
        status: report.status,
        // Go leaves a zero out.
        observed_generation: generation.filter(|generation| *generation != 0),
        last_transition_time,
        reason: report.reason,
        message: report.message,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == next.type_) {
        Some(condition) => {
            if condition.status == next.status {
                next.last_transition_time = condition.last_transition_time.clone();
            }
            if *condition == next {
                return false;
            }
            *condition = next;
        }
        None => conditions.push(next),
    }
    conditions.sort_by(|a, b| order::compare(&a.type_, &b.type_));
    true
}

/// Takes a condition out of the list and says whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// The condition of this type, if there is one.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition exists and is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether the condition exists and is False.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::False)
}

/// Whether the condition is Unknown or not there at all.
pub fn is_unknown(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_none_or(|condition| condition.status == ConditionStatus::Unknown)
}

/// The wire has no fractions of a second; keeping them would make a list differ from what is read back.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    let second = time.as_nanosecond().div_euclid(1_000_000_000);
    i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn list(reports: impl IntoIterator<Item = Report>, at: i64) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for report in reports {
            set(&mut conditions, report, Some(1), time(at));
        }
        conditions
    }

    fn types(conditions: &[Condition]) -> Vec<&str> {
        conditions.iter().map(|condition| condition.type_.as_str()).collect()
    }

    #[test]
    fn a_new_condition_gets_its_place_generation_and_time() {
        let mut conditions = list([Report::new("Bar", true, "R"), Report::new("Zzz", true, "R")], 100);
        assert!(set(
            &mut conditions,
            Report::new("Foo", true, "FooReason").with_message("m"),
            Some(7),
            time(200)
        ));
        assert_eq!(types(&conditions), ["Bar", "Foo", "Zzz"]);
        assert_eq!(
            conditions[1],
            Condition {
                type_: "Foo".to_owned(),
                status: ConditionStatus::True,
                observed_generation: Some(7),
                last_transition_time: Time(time(200)),
                reason: "FooReason".to_owned(),
                message: "m".to_owned(),
            }
        );
    }

    #[test]
    fn the_time_changes_only_with_the_status() {
        let before = Report::new("Foo", true, "Before").with_message("before");
        for (what, report, generation, changes, at) in [
            ("nothing", before.clone(), Some(1), false, 100),
            ("nothing but a time of its own", before.clone().with_since(time(5)), Some(1), false, 100),
            ("the reason", Report::new("Foo", true, "After").with_message("before"), Some(1), true, 100),
            ("the message", before.clone().with_message("after"), Some(1), true, 100),
            ("the generation", before.clone(), Some(2), true, 100),
            ("no generation", before.clone(), None, true, 100),
            ("the status", Report::new("Foo", false, "Before").with_message("before"), Some(1), true, 200),
            (
                "the status, since then",
                Report::new("Foo", false, "Before").with_since(time(5)),
                Some(1),
                true,
                5,
            ),
        ] {
            let mut conditions = list([before.clone()], 100);
            assert_eq!(set(&mut conditions, report.clone(), generation, time(200)), changes, "{what}");
            assert_eq!(conditions[0].last_transition_time.0, time(at), "{what}");
            assert_eq!(
                (&conditions[0].reason, &conditions[0].message),
                (&report.reason, &report.message),
                "{what}"
            );
            assert_eq!(conditions[0].observed_generation, generation, "{what}");
        }
    }

    #[test]
    fn fractions_of_a_second_are_cut_off() {
        let half_past: Timestamp = "2020-01-01T00:00:00.5Z".parse().unwrap();
        let long_ago: Timestamp = "1969-12-31T23:59:58.5Z".parse().unwrap();
        let mut conditions = Vec::new();
        set(&mut conditions, Report::new("Now", true, "R"), None, half_past);
        set(&mut conditions, Report::new("Then", true, "R").with_since(long_ago), None, half_past);
        assert_eq!(conditions[0].last_transition_time.0.to_string(), "2020-01-01T00:00:00Z");
        assert_eq!(conditions[1].last_transition_time.0.to_string(), "1969-12-31T23:59:58Z");
    }

    #[test]
    fn a_generation_of_zero_is_none() {
        let mut conditions = Vec::new();
        set(&mut conditions, Report::new("Foo", true, "R"), Some(0), time(1));
        assert_eq!(conditions[0].observed_generation, None);
    }

    #[test]
    fn a_missing_condition_is_unknown() {
        let conditions = list(
            [
                Report::new("T", true, "R"),
                Report::new("F", false, "R"),
                Report::new("U", ConditionStatus::Unknown, "R"),
            ],
            1,
        );
        for (type_, expected) in [
            ("T", (true, false, false)),
            ("F", (false, true, false)),
            ("U", (false, false, true)),
            ("Missing", (false, false, true)),
        ] {
            let found =
                (is_true(&conditions, type_), is_false(&conditions, type_), is_unknown(&conditions, type_));
            assert_eq!(found, expected, "{type_}");
        }
    }

    #[test]
    fn a_condition_is_removed_once() {
        let mut conditions = list([Report::new("A", true, "R"), Report::new("B", true, "R")], 1);
        assert!(remove(&mut conditions, "A"));
        assert!(!remove(&mut conditions, "A"));
        assert_eq!(types(&conditions), ["B"]);
    }

    fn report() -> impl Strategy<Value = Report> {
        let type_ =
            prop::sample::select(vec!["Available", "Ready", "Paused", "Deleting", "Foo", "Bar", "a/B"]);
        let status = prop::sample::select(vec![
            ConditionStatus::True,
            ConditionStatus::False,
            ConditionStatus::Unknown,
        ]);
        (type_, status, "[AB]", "[ab]?", prop::option::of(0..5_i64)).prop_map(
            |(type_, status, reason, message, since)| Report {
                since: since.map(time),
                ..Report::new(type_, status, reason).with_message(message)
            },
        )
    }

    proptest! {
        #[test]
        fn to_set_twice_is_to_set_once(reports in prop::collection::vec(report(), 0..8), last in report()) {
            let mut once = list(reports, 10);
            set(&mut once, last.clone(), Some(2), time(20));
            let mut twice = once.clone();
            prop_assert!(!set(&mut twice, last, Some(2), time(30)));
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn what_is_set_last_is_what_is_read(reports in prop::collection::vec(report(), 0..8), last in report()) {
            let mut conditions = list(reports, 10);
            set(&mut conditions, last.clone(), Some(2), time(20));
            let found = get(&conditions, &last.type_).map(Report::from).unwrap();
            prop_assert_eq!(Report { since: None, ..found }, Report { since: None, ..last });
        }

        #[test]
        fn the_list_does_not_tell_in_which_order_it_was_made(
            (reports, shuffled) in prop::collection::btree_map("[A-D]|Ready|Paused", report(), 0..6).prop_flat_map(|by_type| {
                let reports: Vec<Report> = by_type.into_iter().map(|(type_, report)| Report { type_, ..report }).collect();
                (Just(reports.clone()), Just(reports).prop_shuffle())
            })
        ) {
            prop_assert_eq!(list(reports, 10), list(shuffled, 10));
        }
    }
}
