//! What became of each rule.

use serde::Serialize;

use crate::rule::{Level, Rule};

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// The rule is kept.
    Passed,
    /// The rule is broken.
    Failed {
        /// What was seen, with the name of the file or object and the field.
        seen: String,
        /// What to change.
        repair: String,
    },
    /// What was given cannot show it.
    NotChecked {
        /// Why not, and what would have to be given.
        why: String,
    },
    /// The rule does not bind this provider.
    NotApplicable {
        /// Why not.
        why: String,
    },
}

/// A rule and what became of it for one subject.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What it was checked on: a kind, an object or a file.
    pub subject: String,
    /// What the check came to.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Finding {
    /// Whether a rule that must be kept is broken.
    pub fn is_fatal(&self) -> bool {
        self.is_broken() && self.rule.level != Level::Should
    }

    /// Whether the rule is broken.
    pub fn is_broken(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

/// All findings of one run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was looked at.
    pub about: String,
    /// What core will make of it, e.g. which contract and version it picks, and why.
    pub notes: Vec<String>,
    /// The findings, by subject and in the order of the rules.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether the provider breaks something that it must keep.
    pub fn is_failed(&self) -> bool {
        self.findings.iter().any(Finding::is_fatal)
    }
}
