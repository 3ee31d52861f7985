//! Short forms for the tables of tests.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::{Condition, ConditionStatus};

/// Conditions written as `type=status[/reason][@second] message`, separated by `; `. The reason is `R` if not given.
pub(super) fn conditions(text: &str) -> Vec<Condition> {
    text.split("; ")
        .filter_map(|entry| entry.split_once('='))
        .map(|(type_, entry)| {
            let (head, message) = entry.split_once(' ').unwrap_or((entry, ""));
            let (head, second) = head.split_once('@').unwrap_or((head, "0"));
            let (status, reason) = head.split_once('/').unwrap_or((head, "R"));
            Condition {
                type_: type_.to_owned(),
                status: match status {
                    "True" => ConditionStatus::True,
                    "False" => ConditionStatus::False,
                    _ => ConditionStatus::Unknown,
                },
                observed_generation: None,
                last_transition_time: Time(Timestamp::from_second(second.parse().unwrap()).unwrap()),
                reason: reason.to_owned(),
                message: message.to_owned(),
            }
        })
        .collect()
}

/// Any condition, often the same.
pub(super) fn condition() -> impl Strategy<Value = Condition> {
    "[A-F]=(True|False|Unknown)@[0-3] (|m|n|[*] x|x\n[*] y)".prop_map(|text| conditions(&text).remove(0))
}
