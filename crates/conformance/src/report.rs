//! What became of each rule.

use std::fmt;

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
        /// The reason, and the input that is needed.
        why: String,
    },
    /// The rule does not bind this provider.
    NotApplicable {
        /// The reason.
        why: String,
    },
}

/// Where something was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A rule and what became of it for one subject.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What it was checked on: a kind, an object or a file.
    pub subject: String,
    /// Where it was seen, if a place in a file shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What the check came to.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How much the rule binds in this run.
    #[serde(skip)]
    binds: Level,
}

impl Finding {
    /// What became of a rule as a whole.
    pub fn new(rule: &'static Rule, subject: impl Into<String>, outcome: Outcome) -> Self {
        Self { rule, subject: subject.into(), place: None, outcome, binds: rule.level }
    }

    /// Names the place where it was seen.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// Whether a rule that must be kept is broken.
    pub fn is_fatal(&self) -> bool {
        self.is_broken() && matches!(self.binds, Level::Must | Level::May)
    }

    /// Whether a rule that should be kept is broken.
    pub fn is_warning(&self) -> bool {
        self.is_broken() && self.binds == Level::Should
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
    /// The same, where what should be kept must be.
    #[must_use]
    pub fn strict(mut self) -> Self {
        for finding in self.findings.iter_mut().filter(|it| it.binds == Level::Should) {
            finding.binds = Level::Must;
        }
        self
    }

    /// Whether the provider breaks something that it must keep.
    pub fn is_failed(&self) -> bool {
        self.findings.iter().any(Finding::is_fatal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn what_should_be_kept_fails_only_a_strict_run_and_notices_never_do() {
        let broken = || Outcome::Failed { seen: String::new(), repair: String::new() };
        for (rule, fails, strictly) in
            [(&rules::R1, true, true), (&rules::R5, false, true), (&rules::R20, false, false)]
        {
            let report = Report { findings: vec![Finding::new(rule, "", broken())], ..Report::default() };
            assert_eq!(report.is_failed(), fails, "{}", rule.id);
            assert_eq!(report.strict().is_failed(), strictly, "{}", rule.id);
            let kept =
                Report { findings: vec![Finding::new(rule, "", Outcome::Passed)], ..Report::default() };
            assert!(!kept.strict().is_failed());
        }
    }
}
