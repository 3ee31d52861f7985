//! Validation of provider objects, for those who can still change them.
//!
//! The schema and the controller judge a provider without this webhook. With it, mistakes that a schema cannot describe
//! are refused at once, and what has no effect is answered with a warning.
//!
//! Rules about the new object alone may be newer than an object that is stored already, so on update only what the
//! update itself breaks counts; the rest becomes warnings. They do not apply to an object that is being deleted: nothing
//! may keep its finalizers from being removed. Rules about a change always hold.

mod webhooks;

use std::collections::HashSet;

use serde_json::Value;
pub use webhooks::{validate_path, webhook_configuration};

use super::{SpecProblem, change_problems, problems, read_spec, warnings};
use crate::{
    admission::{Errors, Fault, Field, FieldError, Verdict, shown},
    provider::ProviderType,
};

/// Warnings about what was wrong before are cut after so many.
const MOST_TOLERATED: usize = 5;
/// All warnings are cut after so many.
const MOST_WARNINGS: usize = 20;

/// Judges a new provider of a type, or a new state of one.
pub fn judge(kind: ProviderType, new: &Value, old: Option<&Value>) -> Verdict {
    let mut verdict = Verdict::default();
    if let Some(Ok(old)) = old.map(read_spec)
        && let Ok(new) = read_spec(new)
    {
        verdict.errors.extend(change_problems(&old, &new).iter().map(to_error));
    }
    if !Field::root(new).descend("metadata.deletionTimestamp").is_blank() {
        return verdict;
    }
    let changes_spec = old.is_none_or(|old| old.get("spec") != new.get("spec"));
    // The controller reports a version that it cannot read, and leaves everything as it is until it is mended.
    let (versions, broken): (Vec<_>, Vec<_>) =
        check_state(kind, new).into_iter().partition(|it| matches!(it, SpecProblem::Version { .. }));
    let known: HashSet<FieldError> =
        old.into_iter().flat_map(|old| check_state(kind, old)).map(|it| to_error(&it)).collect();
    let mut tolerated = Errors::default();
    for error in broken.iter().map(to_error) {
        if known.contains(&error) { tolerated.extend([error]) } else { verdict.errors.extend([error]) }
    }
    if changes_spec {
        let words = tolerated.iter().take(MOST_TOLERATED);
        verdict.warnings.extend(words.map(|it| format!("left as it was, but not valid: {it}")));
        verdict.warnings.extend(
            versions.iter().map(|it| format!("the provider is not installed or upgraded while {it}")),
        );
        verdict.warnings.extend(read_spec(new).iter().flat_map(warnings));
        verdict.warnings.truncate(MOST_WARNINGS);
    }
    verdict
}

fn check_state(kind: ProviderType, object: &Value) -> Vec<SpecProblem> {
    let name = Field::root(object).descend("metadata.name");
    match read_spec(object) {
        Ok(spec) => problems(kind, name.value.as_str().unwrap_or_default(), &spec),
        Err(problem) => vec![problem],
    }
}

fn to_error(problem: &SpecProblem) -> FieldError {
    let found = || problem.found().as_ref().map(shown).unwrap_or_default();
    let fault = match problem {
        SpecProblem::Version { .. }
        | SpecProblem::Url { .. }
        | SpecProblem::Selector { .. }
        | SpecProblem::Duration { .. }
        | SpecProblem::Argument { .. } => Fault::Invalid(found()),
        SpecProblem::Unreadable { .. } => Fault::Invalid("an object".to_owned()),
        SpecProblem::DuplicateContainer { .. } => Fault::Duplicate(found()),
        SpecProblem::NoUrlOrSelector | SpecProblem::EmptySelector => Fault::Required,
        SpecProblem::UrlAndSelector | SpecProblem::DebugLocked { .. } => Fault::Forbidden,
        SpecProblem::Name { .. } => Fault::TooLong,
    };
    FieldError { path: problem.field(), fault, detail: problem.detail() }
}

#[cfg(test)]
mod tests;
