//! A report as text: for people, for programs, and for a build server.

pub mod json;
pub mod junit;
pub mod rules;
pub mod table;

use crate::report::{Outcome, Report};

/// How many findings came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rules that are kept.
    pub passed: usize,
    /// Broken rules that must be kept.
    pub failed: usize,
    /// Broken rules that should be kept.
    pub warnings: usize,
    /// Broken rules whose author should know what follows.
    pub notices: usize,
    /// Rules that could not be checked.
    pub not_checked: usize,
    /// Rules that do not bind.
    pub not_applicable: usize,
}

impl Counts {
    /// Counts the findings of a report.
    pub fn of(report: &Report) -> Self {
        let mut counts = Self::default();
        for finding in &report.findings {
            match finding.outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed { .. } if finding.is_fatal() => counts.failed += 1,
                Outcome::Failed { .. } if finding.is_warning() => counts.warnings += 1,
                Outcome::Failed { .. } => counts.notices += 1,
                Outcome::NotChecked { .. } => counts.not_checked += 1,
                Outcome::NotApplicable { .. } => counts.not_applicable += 1,
            }
        }
        counts
    }
}

#[cfg(test)]
pub(crate) mod example {
    use crate::{
        report::{Finding, Outcome, Place, Report},
        rule::Rule,
        rules,
    };

    /// One rule broken at two places, and a notice.
    pub(crate) fn places() -> Report {
        let finding = |rule: &'static Rule, line, seen: &str| {
            let outcome = Outcome::Failed { seen: seen.into(), repair: "repair it".into() };
            Finding::new(rule, "a.yaml", outcome).at(Some(Place { file: "a.yaml".into(), line, column: 3 }))
        };
        Report {
            about: "a.yaml".into(),
            notes: Vec::new(),
            findings: vec![
                finding(&rules::R5, 2, "one"),
                finding(&rules::R5, 7, "another"),
                finding(&rules::R20, 9, "a link"),
            ],
        }
    }

    /// One finding of each sort.
    pub(crate) fn report() -> Report {
        let finding = |rule: &'static Rule, subject: &str, outcome| Finding::new(rule, subject, outcome);
        let failed = |seen: &str, repair: &str| Outcome::Failed { seen: seen.into(), repair: repair.into() };
        let running = || Outcome::NotChecked { why: "it must run".into() };
        Report {
            about: "foo.yaml".into(),
            notes: vec!["FooCluster is an InfraCluster".into()],
            findings: vec![
                finding(&rules::G1, "FooCluster.g.io", Outcome::Passed),
                finding(&rules::G8, "FooCluster.g.io", failed("no category", "add it")),
                finding(
                    &rules::IC4,
                    "FooCluster.g.io",
                    failed("\"ready\" <string> & more", "make it a boolean"),
                ),
                finding(&rules::G11, "FooCluster.g.io", running()),
                finding(&rules::G12, "FooCluster.g.io", running()),
                finding(&rules::IC6, "FooCluster.g.io", Outcome::NotApplicable { why: "no domains".into() }),
                finding(&rules::G17B, "release", Outcome::NotChecked { why: "no Deployment".into() }),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_once() {
        let report = example::report();
        let counts = Counts::of(&report);
        let expected =
            Counts { passed: 1, failed: 1, warnings: 1, notices: 0, not_checked: 3, not_applicable: 1 };
        assert_eq!(counts, expected);
        assert!(report.is_failed());
    }
}
