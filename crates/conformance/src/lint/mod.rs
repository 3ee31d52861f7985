//! Release files as their author wrote them: components files and templates of workload clusters, before variables
//! are put in. No I/O.
//!
//! Every finding has a place. Checks look at values and say where by JSON pointers; [`text`] leads these back to
//! lines and columns of the text as it was written.

mod components;
mod links;
mod namespaces;
mod object;
mod objects;
mod repository;
mod template;
mod text;
mod variables;
mod workloads;
mod writing;

use std::collections::BTreeSet;

use self::text::Text;
use crate::{
    report::{Finding, Outcome, Report},
    rule::Rule,
    rules,
};

/// A file that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// What its reader calls it, e.g. its path.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A file and what is around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The file.
    pub file: File,
    /// The folder that it is in; nothing for standard input.
    pub folder: Option<Folder>,
}

/// The folder of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// The names of the folder and of those above it, nearest first.
    pub path: Vec<String>,
    /// The names of all files in it.
    pub files: BTreeSet<String>,
    /// Its metadata.yaml.
    pub metadata: Option<File>,
}

impl Given {
    /// The file's name without its folders.
    fn base_name(&self) -> &str {
        self.file.name.rsplit(['/', '\\']).next().unwrap_or_default()
    }
}

/// Where something is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Spot {
    /// In the file as a whole, or in its name; its place is where the file begins.
    File,
    /// In an object.
    Object { document: usize, pointer: String },
    /// At an offset of the text.
    Offset(usize),
    /// In the metadata.yaml beside the file.
    Metadata(String),
    /// At a place that a reader named.
    Place(crate::report::Place),
}

/// What became of a rule, and where that shows.
#[derive(Clone, Debug)]
struct Judged {
    rule: &'static Rule,
    spot: Spot,
    outcome: Outcome,
}

/// A rule is broken.
fn broken(rule: &'static Rule, spot: Spot, seen: impl Into<String>, repair: impl Into<String>) -> Judged {
    Judged { rule, spot, outcome: Outcome::Failed { seen: seen.into(), repair: repair.into() } }
}

/// What was given cannot show whether a rule is kept.
fn not_checked(rule: &'static Rule, why: impl Into<String>) -> Judged {
    Judged { rule, spot: Spot::File, outcome: Outcome::NotChecked { why: why.into() } }
}

/// A rule does not bind.
fn not_applicable(rule: &'static Rule, why: impl Into<String>) -> Judged {
    Judged { rule, spot: Spot::File, outcome: Outcome::NotApplicable { why: why.into() } }
}

/// Checks components files.
pub fn check_components(given: &[Given]) -> Report {
    report(given, rules::COMPONENTS, &[], components::check)
}

/// Checks templates of workload clusters.
pub fn check_templates(given: &[Given]) -> Report {
    report(given, rules::TEMPLATE, &variables::common::ALL, template::check)
}

fn report(
    given: &[Given],
    rules: &'static [&'static Rule],
    fixed: &[&str],
    check: fn(&Text<'_>) -> Vec<Judged>,
) -> Report {
    let names: Vec<_> = given.iter().map(|it| it.file.name.as_str()).collect();
    let mut report = Report { about: names.join(", "), ..Report::default() };
    for given in given {
        match Text::read(given, fixed) {
            Ok(text) => {
                report.notes.push(text.note());
                let mut judged = writing::check(&text);
                judged.extend(objects::check(&text));
                judged.extend(check(&text));
                report.findings.extend(findings(given, rules, &judged, |spot| text.place(spot)));
            }
            Err(unreadable) => {
                let (judged, place) = unreadable.judge(rules);
                report.findings.extend(findings(given, rules, &judged, |_| place.clone()));
            }
        }
    }
    report
}

/// The findings of a file in the order of the rules, and of one rule in the order of their places. Of rules about which
/// nothing was said it is said that they are kept.
fn findings(
    given: &Given,
    rules: &'static [&'static Rule],
    judged: &[Judged],
    place: impl Fn(&Spot) -> Option<crate::report::Place>,
) -> Vec<Finding> {
    let mut all = Vec::new();
    for rule in rules {
        let own = judged.iter().filter(|it| it.rule.id == rule.id);
        let mut own: Vec<_> = own
            .map(|it| {
                let place = matches!(it.outcome, Outcome::Failed { .. }).then(|| place(&it.spot)).flatten();
                Finding::new(rule, given.file.name.as_str(), as_written(&it.outcome)).at(place)
            })
            .collect();
        own.sort_by(|a, b| a.place.cmp(&b.place));
        if own.is_empty() {
            own.push(Finding::new(rule, given.file.name.as_str(), Outcome::Passed));
        }
        all.extend(own);
    }
    all
}

/// Readers know variables as they wrote them, and not their placeholders.
fn as_written(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { seen, repair } => {
            Outcome::Failed { seen: variables::as_written(seen), repair: variables::as_written(repair) }
        }
        other => other.clone(),
    }
}
