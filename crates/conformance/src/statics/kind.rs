//! A kind that core reads, and the version of it that core picks.

use capstan_api::contract::{ContractVersion, NoCompatibleContract, pick_served_version};

use super::{
    crd::{Crd, Version},
    role::Part,
    schema::{Field, Type, describe, find, is, is_untyped},
};
use crate::report::Outcome;

/// A kind that core reads.
#[derive(Clone, Debug)]
pub(super) struct Kind<'a> {
    pub(super) crd: &'a Crd<'a>,
    pub(super) part: Part,
    pub(super) picked: Picked<'a>,
}

/// The version of a kind that core picks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Picked<'a> {
    /// A served version.
    View(View<'a>),
    /// None: the labels name no version that is served.
    Unserved,
    /// None: no label names a contract.
    None,
}

/// A version of a kind under the contract that core speaks with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) crd: &'a Crd<'a>,
    pub(super) version: Version<'a>,
    pub(super) contract: ContractVersion,
}

impl<'a> Kind<'a> {
    pub(super) fn new(crd: &'a Crd<'a>, part: Part) -> Self {
        let picked = match pick_served_version(crd.name, &crd.labels, &crd.served()) {
            Err(NoCompatibleContract::Unlabelled { .. }) => Picked::None,
            Err(NoCompatibleContract::Unserved { .. }) => Picked::Unserved,
            Ok(pick) => crd.version(&pick.version).map_or(Picked::Unserved, |version| {
                Picked::View(View { crd, version, contract: pick.contract })
            }),
        };
        Self { crd, part, picked }
    }

    /// What the report calls it.
    pub(super) fn subject(&self) -> String {
        self.crd.id.to_string()
    }

    /// Checks something in the version that core picks.
    pub(super) fn with_view(&self, check: impl FnOnce(View<'a>) -> Outcome) -> Outcome {
        match self.picked {
            Picked::View(view) => check(view),
            Picked::Unserved => not_checked("the contract labels name no version that is served: see G4"),
            Picked::None => not_checked("core picks no version without a contract label: see G3"),
        }
    }
}

impl<'a> View<'a> {
    /// What the schema says of a field.
    pub(super) fn find(&self, path: &str) -> Field<'a> {
        find(self.version.schema, path)
    }

    /// Where something was seen.
    pub(super) fn seen(&self, what: &str) -> String {
        format!("{}: {} version {}: {what}", self.crd.file, self.crd.name, self.version.name)
    }

    /// What would be said of a field whose schema is open.
    pub(super) fn open(&self, path: &str) -> Outcome {
        not_checked(format!(
            "version {} keeps unknown fields there, so that its schema does not show {path}",
            self.version.name
        ))
    }

    /// A field must exist and have a type. `purpose` says what the provider does with it.
    pub(super) fn require(&self, path: &str, expected: Type, purpose: &str) -> Outcome {
        match self.find(path) {
            Field::Absent => failed(
                self.seen(&format!("{path} is not in the schema, so that the API server drops it")),
                format!("add {path} as {} to version {}{purpose}", expected.as_str(), self.version.name),
            ),
            _ => self.expect(path, expected, purpose),
        }
    }

    /// A field may be absent, but if it exists, it must have a type.
    pub(super) fn expect(&self, path: &str, expected: Type, purpose: &str) -> Outcome {
        match self.find(path) {
            Field::Absent => Outcome::Passed,
            Field::Open => self.open(path),
            Field::Found(schema) if is(schema, expected) => Outcome::Passed,
            Field::Found(schema) if is_untyped(schema) => self.open(path),
            Field::Found(schema) => failed(
                self.seen(&format!("{path} is {}, not {}", describe(schema), expected.as_str())),
                format!("make {path} {} in version {}{purpose}", expected.as_str(), self.version.name),
            ),
        }
    }
}

/// The rule is broken.
pub(super) fn failed(seen: impl Into<String>, repair: impl Into<String>) -> Outcome {
    Outcome::Failed { seen: seen.into(), repair: repair.into() }
}

/// What was given cannot show it.
pub(super) fn not_checked(why: impl Into<String>) -> Outcome {
    Outcome::NotChecked { why: why.into() }
}

/// The rule does not bind.
pub(super) fn not_applicable(why: impl Into<String>) -> Outcome {
    Outcome::NotApplicable { why: why.into() }
}

/// The rule is kept, or broken for a reason.
pub(super) fn keep_or(kept: bool, broken: impl FnOnce() -> Outcome) -> Outcome {
    if kept { Outcome::Passed } else { broken() }
}

/// Several checks of one rule: broken where one is, and not checked where one could not be.
pub(super) fn all(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    let mut kept = Outcome::Passed;
    let (mut all_seen, mut repairs): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::Failed { seen, repair } => {
                let seen = all_seen.first().map_or(seen.clone(), |first| without_common_place(first, &seen));
                all_seen.push(seen);
                repairs.push(repair);
            }
            Outcome::Passed => {}
            other => kept = other,
        }
    }
    if all_seen.is_empty() { kept } else { failed(all_seen.join("; "), repairs.join("; ")) }
}

/// What was seen, without the place (a file, a CRD, a version, each before a colon) that was named before.
fn without_common_place(first: &str, seen: &str) -> String {
    let same: usize = first
        .split_inclusive(": ")
        .zip(seen.split_inclusive(": "))
        .take_while(|(one, other)| one == other)
        .map(|(part, _)| part.len())
        .sum();
    seen[same..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_at_one_place_names_it_once() {
        let outcome = all([
            Outcome::Passed,
            failed("a.yaml: foos version v1: spec.x is missing", "add spec.x"),
            not_checked("open"),
            failed("a.yaml: foos version v1: spec.y is missing", "add spec.y"),
        ]);
        assert_eq!(
            outcome,
            failed("a.yaml: foos version v1: spec.x is missing; spec.y is missing", "add spec.x; add spec.y")
        );
        assert_eq!(all([Outcome::Passed, not_checked("open"), Outcome::Passed]), not_checked("open"));
        assert_eq!(all([]), Outcome::Passed);
    }
}
