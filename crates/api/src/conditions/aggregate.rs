//! The same condition of many objects in one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::merge::{MergeError, Polarity, Priority, Reasons, indented, not_yet_reported};
use super::{ConditionRef, Report};
use crate::contract::plural::pluralize;

/// An object that an aggregate looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The object's kind.
    pub kind: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// Control plane Machines are named before all others.
    pub is_control_plane_machine: bool,
    /// The object's condition of the type that is aggregated, if it reports it.
    pub condition: Option<ConditionRef<'a>>,
}

/// How to merge the same condition of several objects into one.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate<'a> {
    source: &'a str,
    target: &'a str,
    source_polarity: Polarity,
    target_polarity: Polarity,
    reasons: Reasons<'a>,
}

impl<'a> Aggregate<'a> {
    /// Aggregates the condition of this type under the same type.
    pub fn new(source: &'a str) -> Self {
        Self {
            source,
            target: source,
            source_polarity: Polarity::default(),
            target_polarity: Polarity::default(),
            reasons: Reasons::default(),
        }
    }

    /// The type that the result gets.
    #[must_use]
    pub const fn to(mut self, target: &'a str) -> Self {
        self.target = target;
        self
    }

    /// The polarity of the condition, on the objects and in the result.
    #[must_use]
    pub const fn polarity(mut self, polarity: Polarity) -> Self {
        self.source_polarity = polarity;
        self.target_polarity = polarity;
        self
    }

    /// The polarity of the result, where it differs from that on the objects.
    #[must_use]
    pub const fn target_polarity(mut self, polarity: Polarity) -> Self {
        self.target_polarity = polarity;
        self
    }

    /// The reasons of the result.
    #[must_use]
    pub const fn reasons(mut self, reasons: Reasons<'a>) -> Self {
        self.reasons = reasons;
        self
    }

    /// Merges the conditions of several objects. The order of the objects does not matter.
    pub fn merge(&self, sources: &[Source<'_>]) -> Result<Report, MergeError> {
        let missing = format!("Condition {} not yet reported", self.source);
        let mut judged: Vec<Judged<'_>> = sources
            .iter()
            .map(|source| {
                let condition = source.condition.unwrap_or_else(|| not_yet_reported(self.source, &missing));
                Judged {
                    priority: Priority::of(condition.status, self.source_polarity),
                    condition,
                    kind: source.kind,
                    name: source.name,
                    is_control_plane_machine: source.is_control_plane_machine,
                }
            })
            .collect();
        let worst = judged
            .iter()
            .map(|judged| judged.priority)
            .min()
            .ok_or_else(|| MergeError::Nothing { target: self.target.to_owned() })?;
        judged.retain(|judged| match judged.priority {
            Priority::Info => worst == Priority::Info && !judged.condition.message.is_empty(),
            Priority::Issue | Priority::Unknown => true,
        });
        judged.sort_by_key(|judged| (judged.priority, judged.condition.since, judged.kind, judged.name));
        Ok(Report::new(self.target, worst.status(self.target_polarity), self.reasons.of(worst))
            .with_message(who_says_what(&judged)))
    }
}

struct Judged<'a> {
    priority: Priority,
    condition: ConditionRef<'a>,
    kind: &'a str,
    name: &'a str,
    is_control_plane_machine: bool,
}

const MAX_MESSAGES: usize = 3;
const MAX_NAMES: usize = 3;

/// At most three messages, each with at most three of the objects that report it, and a count of the rest.
fn who_says_what(judged: &[Judged<'_>]) -> String {
    // A message has one weight, whatever the kinds of the objects that report it.
    let mut priority_of: BTreeMap<&str, Priority> = BTreeMap::new();
    let mut goes_first: BTreeSet<&str> = BTreeSet::new();
    let mut control_plane_machines: BTreeSet<&str> = BTreeSet::new();
    let mut names_by_kind: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for Judged { priority, condition, kind, name, is_control_plane_machine } in judged {
        let message = condition.message;
        let heaviest = priority_of.entry(message).or_insert(*priority);
        *heaviest = (*heaviest).min(*priority);
        if *is_control_plane_machine {
            goes_first.insert(message);
            control_plane_machines.insert(name);
        }
        names_by_kind.entry(kind).or_default().entry(message).or_default().push(name);
    }

    let mut lines = Vec::new();
    let mut shown = 0;
    for (kind, names_by_message) in names_by_kind {
        let kinds = pluralize(kind);
        let mut groups: Vec<(&str, Priority, Vec<&str>)> = names_by_message
            .into_iter()
            .map(|(message, names)| (message, priority_of[message], names))
            .collect();
        groups.sort_by_cached_key(|(message, priority, names)| {
            (!goes_first.contains(message), *priority, Reverse(names.len()), names.join(","))
        });

        let mut others: BTreeMap<Priority, usize> = BTreeMap::new();
        for (message, priority, mut names) in groups {
            if shown == MAX_MESSAGES {
                *others.entry(priority).or_default() += names.len();
                continue;
            }
            shown += 1;
            names.sort_by_key(|name| (!control_plane_machines.contains(name), *name));
            let message = indented(message);
            lines.push(match names.split_at_checked(MAX_NAMES) {
                _ if names.len() == 1 => format!("* {kind} {}:{message}", names.join(", ")),
                Some((first, rest)) if !rest.is_empty() => {
                    format!("* {kinds} {}, ... ({} more):{message}", first.join(", "), rest.len())
                }
                _ => format!("* {kinds} {}:{message}", names.join(", ")),
            });
        }
        for (priority, count) in others {
            let kind = if count == 1 { kind } else { &kinds };
            let what = match priority {
                Priority::Issue => "with other issues",
                Priority::Unknown => "with status unknown",
                Priority::Info => "with additional info",
            };
            lines.push(format!("And {count} {kind} {what}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ConditionStatus::{self, False, True, Unknown};
    use super::super::testing::conditions;
    use super::super::{Condition, get};
    use super::*;

    /// Merges objects written as `kind/name=status message`; a star behind the name is for a control plane
    /// Machine, and `-` for the status means that nothing is reported.
    fn merge(aggregate: Aggregate<'_>, objects: &str) -> (ConditionStatus, String, String) {
        let objects: Vec<(&str, Vec<Condition>)> = objects
            .split("; ")
            .filter_map(|object| object.split_once('='))
            .map(|(object, reported)| match reported {
                "-" => (object, Vec::new()),
                _ => (object, conditions(&format!("{}={reported}", aggregate.source))),
            })
            .collect();
        let sources: Vec<Source<'_>> = objects
            .iter()
            .map(|(object, conditions)| {
                let (kind, name) = object.split_once('/').unwrap();
                Source {
                    kind,
                    name: name.trim_end_matches('*'),
                    is_control_plane_machine: name.ends_with('*'),
                    condition: get(conditions, aggregate.source).map(ConditionRef::from),
                }
            })
            .collect();
        let report = aggregate.merge(&sources).unwrap();
        assert_eq!(report.type_, aggregate.target);
        (report.status, report.reason, report.message)
    }

    #[test]
    fn it_is_told_who_says_what() {
        let issue = |message| (False, "IssuesReported", message);
        let unknown = |message| (Unknown, "UnknownReported", message);
        let info = |message| (True, "InfoReported", message);
        // The objects are called 0, 1, 2, ... in this order.
        for (what, reported, expected) in [
            ("one issue", "False m1; True ok", issue("* Thing 0: m1")),
            ("of three objects", "False m1; False m1; False m1; True ok", issue("* Things 0, 1, 2: m1")),
            (
                "of five objects",
                "False m1; False m1; False m1; False m1; False m1; True ok",
                issue("* Things 0, 1, 2, ... (2 more): m1"),
            ),
            (
                "three issues, the most frequent first",
                "False m1; False m2; False m2; False m1; False m1; False m3; True ok",
                issue("* Things 0, 3, 4: m1\n* Things 1, 2: m2\n* Thing 5: m3"),
            ),
            (
                "lists are indented",
                "False * m1; False * m2a\n* m2b; False * m2a\n* m2b; True ok",
                issue("* Things 1, 2:\n  * m2a\n  * m2b\n* Thing 0:\n  * m1"),
            ),
            (
                "more than three issues",
                "False m1; False m2; False m4; False m5; False m1; False m3; True ok",
                issue("* Things 0, 4: m1\n* Thing 1: m2\n* Thing 2: m4\nAnd 2 Things with other issues"),
            ),
            (
                "issues, then an unknown",
                "Unknown m1; False m2; False m3; True ok",
                issue("* Thing 1: m2\n* Thing 2: m3\n* Thing 0: m1"),
            ),
            (
                "no room for the unknown",
                "False m1; False m2; Unknown m3; False m4; True ok",
                issue("* Thing 0: m1\n* Thing 1: m2\n* Thing 3: m4\nAnd 1 Thing with status unknown"),
            ),
            (
                "no room for issues and the unknown",
                "False m1; False m2; Unknown m3; False m4; False m5; False m6; True ok",
                issue(
                    "* Thing 0: m1\n* Thing 1: m2\n* Thing 3: m4\n\
                     And 2 Things with other issues\nAnd 1 Thing with status unknown",
                ),
            ),
            (
                "unknowns",
                "Unknown m1; Unknown m2; Unknown m4; Unknown m5; Unknown m1; Unknown m3; True ok",
                unknown("* Things 0, 4: m1\n* Thing 1: m2\n* Thing 2: m4\nAnd 2 Things with status unknown"),
            ),
            (
                "all well, one without message",
                "True m1; True m2; True m4; True; True m1; True m3",
                info("* Things 0, 4: m1\n* Thing 1: m2\n* Thing 2: m4\nAnd 1 Thing with additional info"),
            ),
            ("all well and nothing to say", "True; True", info("")),
            ("an issue without message", "False; True ok", issue("* Thing 0: ")),
            (
                "a missing condition",
                "False m1; -",
                issue("* Thing 0: m1\n* Thing 1: Condition Ready not yet reported"),
            ),
        ] {
            let named =
                reported.split("; ").enumerate().map(|(index, reported)| format!("Thing/{index}={reported}"));
            let objects = named.collect::<Vec<_>>().join("; ");
            let (status, reason, message) = merge(Aggregate::new("Ready").to("ThingsReady"), &objects);
            assert_eq!((status, reason.as_str(), message.as_str()), expected, "{what}");
        }
    }

    #[test]
    fn kinds_and_control_plane_machines_have_an_order() {
        for (what, objects, expected) in [
            (
                "kind by kind, with room for three messages in all",
                "Set/s1=False m1; Set/s2=False m1; Pool/p2=False m1; Pool/p1=False m1; Pool/p3=False * m2; \
                 Pool/p4=False m3; Pool/p5=False m4",
                "* Pools p1, p2: m1\n* Pool p3:\n  * m2\n* Pool p4: m3\n\
                 And 1 Pool with other issues\nAnd 2 Sets with other issues",
            ),
            (
                "issues before unknowns, however many",
                "Pool/p1=Unknown m1; Pool/p2=Unknown m1; Pool/p3=False m2\n* more m2",
                "* Pool p3:\n  * m2\n    * more m2\n* Pools p1, p2: m1",
            ),
            (
                "control plane Machines first",
                "Machine/m2*=Unknown m1; Machine/m1=Unknown m1; \
                 Machine/m4=False m2; Machine/m3=False m2; Machine/m5=False m2",
                "* Machines m2, m1: m1\n* Machines m3, m4, m5: m2",
            ),
            (
                "a message weighs the same in all kinds",
                "Machine/m1=False shared; Pool/p1=Unknown shared; Pool/p2=Unknown other; Pool/p3=Unknown other",
                "* Machine m1: shared\n* Pool p1: shared\n* Pools p2, p3: other",
            ),
            (
                "plurals are English",
                "Policy/a=False m; Policy/b=False m; GatewayClass/a=False n; GatewayClass/b=False n",
                "* GatewayClasses a, b: n\n* Policies a, b: m",
            ),
            (
                "of equally frequent messages, names from the oldest on decide",
                "Machine/a=False@2 same; Machine/z=False@1 same; Machine/b=False@2 other; Machine/c=False@3 other",
                "* Machines b, c: other\n* Machines a, z: same",
            ),
        ] {
            assert_eq!(merge(Aggregate::new("Ready"), objects).2, expected, "{what}");
        }
    }

    #[test]
    fn the_result_has_polarity_and_reasons() {
        let scaling = Aggregate::new("ScalingUp").polarity(Polarity::Negative);
        let named = scaling.reasons(Reasons { issue: "bad", unknown: "unknown", info: "good" });
        for (what, aggregate, objects, expected) in [
            ("negative", scaling, "Set/s=True m; Set/t=False", (True, "IssuesReported", "* Set s: m")),
            ("with reasons", named, "Set/s=True m; Set/t=False", (True, "bad", "* Set s: m")),
            ("nothing wrong", named, "Set/s=False m; Set/t=False", (False, "good", "* Set s: m")),
            (
                "to positive",
                named.target_polarity(Polarity::Positive),
                "Set/s=True m; Set/t=False",
                (False, "bad", "* Set s: m"),
            ),
        ] {
            let (status, reason, message) = merge(aggregate, objects);
            assert_eq!((status, reason.as_str(), message.as_str()), expected, "{what}");
        }
        assert_eq!(scaling.to("X").merge(&[]), Err(MergeError::Nothing { target: "X".to_owned() }));
    }

    proptest! {
        #[test]
        fn the_order_of_the_objects_does_not_matter(
            (ordered, shuffled) in prop::collection::btree_map(
                "Machine/[a-c]|Machine/[x-z][*]|Policy/[a-e]",
                "(True|False|Unknown)@[0-3] (|m|n|[*] x|x\n[*] y)",
                1..8,
            )
            .prop_map(|objects| objects.iter().map(|(object, reported)| format!("{object}={reported}")).collect())
            .prop_flat_map(|ordered: Vec<String>| (Just(ordered.clone()), Just(ordered).prop_shuffle()))
        ) {
            let [ordered, shuffled] = [ordered, shuffled].map(|objects| merge(Aggregate::new("A"), &objects.join("; ")));
            prop_assert_eq!(ordered, shuffled);
        }
    }
}
