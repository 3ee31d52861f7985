//! Many conditions of one object in one.

use super::merge::{MergeError, Polarity, Priority, Reasons, indented, not_yet_reported};
use super::{Condition, ConditionRef, Report};

/// A condition that a summary looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    type_: &'a str,
    polarity: Polarity,
    optional: bool,
}

impl<'a> Input<'a> {
    /// A condition of this polarity that the object should have; it counts as unknown while it is missing.
    pub const fn new(type_: &'a str, polarity: Polarity) -> Self {
        Self { type_, polarity, optional: false }
    }

    /// A condition that should be True.
    pub const fn positive(type_: &'a str) -> Self {
        Self::new(type_, Polarity::Positive)
    }

    /// A condition that should be False.
    pub const fn negative(type_: &'a str) -> Self {
        Self::new(type_, Polarity::Negative)
    }

    /// The same, of no account while it is missing.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

type Judge<'a> = Box<dyn Fn(ConditionRef<'_>) -> Option<Priority> + 'a>;

/// How to merge several conditions of one object into one.
///
/// ```
/// use capstan_api::conditions::{ConditionStatus, Input, Priority, Reasons, Summary};
///
/// let report = Summary::new("Available", &[Input::negative("Deleting"), Input::positive("InfrastructureReady")])
///     .reasons(Reasons { issue: "NotAvailable", unknown: "AvailableUnknown", info: "Available" })
///     .judge(|condition| (condition.reason == "ObjectDeleted").then_some(Priority::Info))
///     .merge(&[])?;
/// assert_eq!(report.status, ConditionStatus::Unknown);
/// assert_eq!(
///     report.message,
///     "* Deleting: Condition not yet reported\n* InfrastructureReady: Condition not yet reported"
/// );
/// # Ok::<(), capstan_api::conditions::MergeError>(())
/// ```
pub struct Summary<'a> {
    target: &'a str,
    inputs: &'a [Input<'a>],
    polarity: Polarity,
    reasons: Reasons<'a>,
    judge: Option<Judge<'a>>,
}

impl<'a> Summary<'a> {
    /// Computes `target` from the inputs; the message names them in this order.
    pub fn new(target: &'a str, inputs: &'a [Input<'a>]) -> Self {
        Self { target, inputs, polarity: Polarity::default(), reasons: Reasons::default(), judge: None }
    }

    /// The polarity of the result.
    #[must_use]
    pub const fn polarity(mut self, polarity: Polarity) -> Self {
        self.polarity = polarity;
        self
    }

    /// The reasons of the result.
    #[must_use]
    pub const fn reasons(mut self, reasons: Reasons<'a>) -> Self {
        self.reasons = reasons;
        self
    }

    /// Where this gives a priority, it counts instead of the one by polarity.
    #[must_use]
    pub fn judge(mut self, judge: impl Fn(ConditionRef<'_>) -> Option<Priority> + 'a) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }

    /// Merges an object's conditions.
    pub fn merge(&self, conditions: &[Condition]) -> Result<Report, MergeError> {
        if self.inputs.iter().any(|input| input.type_ == self.target) {
            return Err(MergeError::Circular { target: self.target.to_owned() });
        }
        let mut found: Vec<(usize, ConditionRef<'_>)> = conditions
            .iter()
            .filter_map(|condition| Some((self.place(&condition.type_)?, condition.into())))
            .collect();
        for (place, input) in self.inputs.iter().enumerate() {
            let is_missing = !conditions.iter().any(|condition| condition.type_ == input.type_);
            // A type may be listed twice, e.g. by an availability gate; the last one stands for both.
            if is_missing
                && self.place(input.type_) == Some(place)
                && !self.any(input.type_, |input| input.optional)
            {
                found.push((place, not_yet_reported(input.type_, "Condition not yet reported")));
            }
        }
        found.sort_by_key(|(place, condition)| (*place, condition.since));

        let judged: Vec<(Priority, ConditionRef<'_>)> =
            found.into_iter().map(|(_, condition)| (self.priority(condition), condition)).collect();
        let worst = judged
            .iter()
            .map(|(priority, _)| *priority)
            .min()
            .ok_or_else(|| MergeError::Nothing { target: self.target.to_owned() })?;
        let message = judged
            .iter()
            .filter(|(priority, condition)| match priority {
                Priority::Info => worst == Priority::Info && !condition.message.is_empty(),
                Priority::Issue | Priority::Unknown => true,
            })
            .map(|(_, condition)| match condition.message {
                "" => format!("* {}: {}", condition.type_, condition.reason),
                message => format!("* {}:{}", condition.type_, indented(message)),
            })
            .collect::<Vec<_>>()
            .join("\n");
        Ok(Report::new(self.target, worst.status(self.polarity), self.reasons.of(worst))
            .with_message(message))
    }

    fn place(&self, type_: &str) -> Option<usize> {
        self.inputs.iter().rposition(|input| input.type_ == type_)
    }

    fn any(&self, type_: &str, is_so: impl Fn(&Input<'_>) -> bool) -> bool {
        self.inputs.iter().any(|input| input.type_ == type_ && is_so(input))
    }

    fn priority(&self, condition: ConditionRef<'_>) -> Priority {
        self.judge.as_ref().and_then(|judge| judge(condition)).unwrap_or_else(|| {
            let is_negative = self.any(condition.type_, |input| input.polarity == Polarity::Negative);
            let polarity = if is_negative { Polarity::Negative } else { Polarity::Positive };
            Priority::of(condition.status, polarity)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ConditionStatus::{self, False, True, Unknown};
    use super::super::testing::{condition, conditions};
    use super::*;

    /// Inputs by type; those that begin with `!` are negative, those that end in `?` optional.
    fn inputs(types: &'static str) -> Vec<Input<'static>> {
        let input = |type_: &'static str| {
            let polarity = if type_.starts_with('!') { Polarity::Negative } else { Polarity::Positive };
            match type_.strip_suffix('?') {
                Some(type_) => Input::new(type_, polarity).optional(),
                None => Input::new(type_, polarity),
            }
        };
        types.split_whitespace().map(input).collect()
    }

    fn outcome(report: &Report) -> (ConditionStatus, &str, &str) {
        (report.status, &report.reason, &report.message)
    }

    #[test]
    fn the_worst_is_told() {
        let issue = |message| (False, "IssuesReported", message);
        let unknown = |message| (Unknown, "UnknownReported", message);
        let info = |message| (True, "InfoReported", message);
        for (what, reported, types, expected) in [
            ("one issue", "B=True b; A=True a; !C=True c", "A B !C", issue("* !C: c")),
            ("an issue without message", "B=True; A=True; !C=True", "A B !C", issue("* !C: R")),
            ("two issues, as listed", "!C=True c; A=True a; B=False b", "A B !C", issue("* B: b\n* !C: c")),
            (
                "messages of several lines",
                "A=True a; B=False b; !C=True * c1\n* c2; D=False d\n* more d",
                "A B !C D",
                issue("* B: b\n* !C:\n  * c1\n  * c2\n* D:\n  * d\n    * more d"),
            ),
            (
                "issues and an unknown, as listed",
                "B=False b; A=Unknown a; !C=True c",
                "A B !C",
                issue("* A: a\n* B: b\n* !C: c"),
            ),
            ("one unknown", "B=True b; A=True a; !C=Unknown c", "A B !C", unknown("* !C: c")),
            ("two unknowns", "B=Unknown b; A=True a; !C=Unknown c", "A B !C", unknown("* B: b\n* !C: c")),
            ("all well", "B=True b; A=True; !C=False c", "A B !C", info("* B: b\n* !C: c")),
            (
                "missing ones",
                "A=True a",
                "A B !C",
                unknown("* B: Condition not yet reported\n* !C: Condition not yet reported"),
            ),
            ("one is of no account", "A=True a", "A B? !C", unknown("* !C: Condition not yet reported")),
            ("all are of no account", "A=True a", "A B? !C?", info("* A: a")),
            ("others are not looked at", "B=True b; A=True; !C=Unknown c", "A B", info("* B: b")),
            (
                "a type that is listed twice counts where it is listed last",
                "A=False a; B=False b",
                "A B A",
                issue("* B: b\n* A: a"),
            ),
            (
                "a type that is listed twice is missing once",
                "",
                "A B A",
                unknown("* B: Condition not yet reported\n* A: Condition not yet reported"),
            ),
        ] {
            let inputs = inputs(types);
            let report = Summary::new("Available", &inputs).merge(&conditions(reported)).unwrap();
            assert_eq!(report.type_, "Available");
            assert_eq!(outcome(&report), expected, "{what}");
        }
    }

    #[test]
    fn a_type_that_is_once_negative_is_negative() {
        let inputs = [Input::negative("A"), Input::positive("A")];
        let report = Summary::new("Available", &inputs).merge(&conditions("A=False a")).unwrap();
        assert_eq!(report.status, True);
    }

    #[test]
    fn to_say_nothing_is_an_error() {
        let target = || "Available".to_owned();
        for (types, expected) in [
            ("", MergeError::Nothing { target: target() }),
            ("A?", MergeError::Nothing { target: target() }),
            ("A Available", MergeError::Circular { target: target() }),
        ] {
            assert_eq!(Summary::new("Available", &inputs(types)).merge(&[]), Err(expected));
        }
    }

    #[test]
    fn the_result_can_be_negative() {
        let reasons = Reasons { issue: "Troubled", unknown: "TroubleUnknown", info: "Fine" };
        let inputs = inputs("A !C");
        let summary = Summary::new("Troubled", &inputs).polarity(Polarity::Negative).reasons(reasons);
        for (reported, expected) in [
            ("A=False a; !C=False c", (True, "Troubled", "* A: a")),
            ("A=Unknown a; !C=False c", (Unknown, "TroubleUnknown", "* A: a")),
            ("A=True a; !C=False c", (False, "Fine", "* A: a\n* !C: c")),
        ] {
            assert_eq!(outcome(&summary.merge(&conditions(reported)).unwrap()), expected);
        }
    }

    /// A Cluster's Available condition is the summary with all the exceptions.
    #[test]
    fn a_clusters_availability() {
        let ok = |message| (True, "Available", message);
        let bad = |message| (False, "NotAvailable", message);
        let unknown = |message| (Unknown, "AvailableUnknown", message);
        let infra_gone = "InfrastructureReady=False/ObjectDeleted FooCluster has been deleted";
        let deleting = "Deleting=True/WaitingForInfrastructureDeletion waiting";
        let gate = Input::new("example.com/Broken", Polarity::Negative);
        for (what, changes, is_deleting, has_topology, gate, expected) in [
            ("all well", vec![], false, false, None, ok("")),
            (
                "infrastructure gone",
                vec![infra_gone],
                false,
                false,
                None,
                bad("* InfrastructureReady: FooCluster has been deleted"),
            ),
            (
                "gone while deleting",
                vec![infra_gone, deleting],
                true,
                false,
                None,
                bad("* Deleting: waiting"),
            ),
            (
                "topology missing",
                vec![],
                false,
                true,
                None,
                unknown("* TopologyReconciled: Condition not yet reported"),
            ),
            (
                "topology in progress",
                vec!["TopologyReconciled=False/ControlPlaneUpgradePending upgrading"],
                false,
                true,
                None,
                ok("* TopologyReconciled: upgrading"),
            ),
            (
                "topology failed",
                vec!["TopologyReconciled=False/ReconcileFailed oh no"],
                false,
                true,
                None,
                bad("* TopologyReconciled: oh no"),
            ),
            (
                "a gate not reported",
                vec![],
                false,
                false,
                Some(gate),
                unknown("* example.com/Broken: Condition not yet reported"),
            ),
            (
                "a gate closed",
                vec!["example.com/Broken=True it is"],
                false,
                false,
                Some(gate),
                bad("* example.com/Broken: it is"),
            ),
        ] {
            let topology = Input::positive("TopologyReconciled");
            let mut inputs = vec![
                Input::negative("Deleting"),
                Input::positive("RemoteConnectionProbe"),
                Input::positive("InfrastructureReady"),
                Input::positive("ControlPlaneAvailable"),
                Input::positive("WorkersAvailable"),
                if has_topology { topology } else { topology.optional() },
            ];
            inputs.extend(gate);

            let mut reported = conditions(
                "Deleting=False; RemoteConnectionProbe=True; InfrastructureReady=True; \
                 ControlPlaneAvailable=True; WorkersAvailable=True",
            );
            for change in conditions(&changes.join("; ")) {
                reported.retain(|condition| condition.type_ != change.type_);
                reported.push(change);
            }

            let report = Summary::new("Available", &inputs)
                .reasons(Reasons { issue: "NotAvailable", unknown: "AvailableUnknown", info: "Available" })
                .judge(|condition| match (condition.type_, condition.reason) {
                    (
                        "InfrastructureReady" | "ControlPlaneAvailable",
                        "ObjectDeleted" | "ObjectDoesNotExist",
                    ) => is_deleting.then_some(Priority::Info),
                    ("TopologyReconciled", "ReconcileFailed" | "ClusterClassNotReconciled") => None,
                    ("TopologyReconciled", _) => (condition.status == False).then_some(Priority::Info),
                    _ => None,
                })
                .merge(&reported)
                .unwrap();
            assert_eq!(outcome(&report), expected, "{what}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_the_list_does_not_matter(
            (ordered, shuffled) in prop::collection::btree_map("[A-F]", condition(), 0..6)
                .prop_map(|by_type| -> Vec<Condition> {
                    by_type.into_iter().map(|(type_, condition)| Condition { type_, ..condition }).collect()
                })
                .prop_flat_map(|ordered| (Just(ordered.clone()), Just(ordered).prop_shuffle()))
        ) {
            let inputs = inputs("D !A A C? B");
            let summary = Summary::new("Available", &inputs);
            prop_assert_eq!(summary.merge(&ordered), summary.merge(&shuffled));
        }
    }
}
