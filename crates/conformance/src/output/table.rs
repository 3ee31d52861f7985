//! For people.

use std::fmt::Write;

use super::Counts;
use crate::report::{Finding, Outcome, Report};

/// The report in the order in which a reader wants it: what core makes of the kinds, what is broken and how to repair
/// it, what could not be seen, and a line that sums it up.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let mut put = |line: &str| {
        out.push_str(line.trim_end());
        out.push('\n');
    };
    put(&hang(&report.about, 2));
    for note in &report.notes {
        put(&format!("  - {}", hang(note, 4)));
    }
    for group in report.findings.chunk_by(|a, b| a.subject == b.subject) {
        let mut broken = group.iter().filter(|it| it.is_broken()).peekable();
        if broken.peek().is_none() {
            continue;
        }
        put("");
        put(&group.first().map(|it| hang(&it.subject, 2)).unwrap_or_default());
        let broken: Vec<_> = broken.collect();
        for findings in broken.chunk_by(|a, b| a.rule.id == b.rule.id) {
            put(&describe(findings));
        }
    }
    let unseen = unseen(&report.findings);
    if !unseen.is_empty() {
        put("");
        put("Not checked");
        for line in unseen {
            put(&line);
        }
    }
    put("");
    put(&summary(report));
    out
}

/// What is broken of one rule, at one place or many.
fn describe(findings: &[&Finding]) -> String {
    let Some(first) = findings.first() else { return String::new() };
    let rule = first.rule;
    let word = match (first.is_fatal(), first.is_warning()) {
        (true, _) => "FAILED ",
        (false, true) => "WARNING",
        (false, false) => "NOTICE ",
    };
    let mut out = format!("  {word} {} ({}): {}", rule.id, rule.level, rule.statement);
    // Writing to a String cannot fail.
    let mut put = |name: &str, text: &str| _ = write!(out, "\n    {name:<10} {}", hang(text, 15));
    for finding in findings {
        let Outcome::Failed { seen, repair } = &finding.outcome else { continue };
        if let Some(place) = &finding.place {
            put("at:", &place.to_string());
        }
        put("seen:", seen);
        put("repair:", repair);
    }
    put("otherwise:", &format!("{} {}", rule.reader, rule.otherwise));
    put("see:", rule.link);
    out
}

/// What was not checked, with the rules of a subject that share a reason in one line.
fn unseen(findings: &[Finding]) -> Vec<String> {
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for finding in findings {
        let Outcome::NotChecked { why } = &finding.outcome else { continue };
        match groups.iter_mut().find(|(subject, reason, _)| *subject == finding.subject && reason == why) {
            Some((_, _, rules)) => rules.push(finding.rule.id),
            None => groups.push((&finding.subject, why, vec![finding.rule.id])),
        }
    }
    groups
        .into_iter()
        .map(|(subject, why, rules)| {
            format!("  {}: {}\n    {}", hang(subject, 4), rules.join(" "), hang(why, 4))
        })
        .collect()
}

/// Line breaks in what was seen do not end the paragraph that it belongs to.
fn hang(text: &str, columns: usize) -> String {
    text.replace('\n', &format!("\n{:columns$}", ""))
}

fn summary(report: &Report) -> String {
    let counts = Counts::of(report);
    let verdict = match (report.is_failed(), counts.warnings) {
        (true, _) => "does not keep the contract",
        (false, 0) => "keeps the contract as far as was checked",
        (false, _) => "keeps the contract as far as was checked, with warnings",
    };
    let notices = if counts.notices == 0 { String::new() } else { format!(" {} notices,", counts.notices) };
    format!(
        "{verdict}: {} passed, {} failed, {} warnings,{notices} {} not checked, {} not applicable",
        counts.passed, counts.failed, counts.warnings, counts.not_checked, counts.not_applicable
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::example;

    #[test]
    fn a_reader_finds_what_is_broken_how_to_repair_it_and_what_was_not_seen() {
        let expected = "\
foo.yaml
  - FooCluster is an InfraCluster

FooCluster.g.io
  WARNING G8 (SHOULD): the kind is in the category cluster-api
    seen:      no category
    repair:    add it
    otherwise: core does not care, but `kubectl get cluster-api` does not show the objects
    see:       https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-cluster#infracluster-infraclusterlist-resource-definition
  FAILED  IC4 (MUST): an InfraCluster reports completion: status.initialization.provisioned (v1beta1: status.ready)
    seen:      \"ready\" <string> & more
    repair:    make it a boolean
    otherwise: core never sees the infrastructure as provisioned: the Cluster stays in phase Provisioning
    see:       https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-cluster#infracluster-initialization-completed

Not checked
  FooCluster.g.io: G11 G12
    it must run
  release: G17b
    no Deployment

does not keep the contract: 1 passed, 1 failed, 1 warnings, 3 not checked, 1 not applicable
";
        assert_eq!(render(&example::report()), expected);
    }

    #[test]
    fn what_is_seen_cannot_pass_for_a_finding() {
        let mut report = example::report();
        let hostile = "x\n  FAILED  IC4 (MUST)".to_owned();
        report.notes.push(hostile.clone());
        report.findings[1].outcome = Outcome::Failed { seen: hostile.clone(), repair: hostile.clone() };
        report.findings[3].outcome = Outcome::NotChecked { why: hostile };
        let text = render(&report);
        assert_eq!(text.lines().filter(|line| line.starts_with("  FAILED")).count(), 1, "{text}");
        assert_eq!(text.matches("FAILED").count(), 5, "{text}");
    }

    #[test]
    fn the_places_of_a_rule_are_told_one_after_the_other() {
        let expected = "\
a.yaml

a.yaml
  WARNING R5 (SHOULD): the components file is named after the provider's type
    at:        a.yaml:2:3
    seen:      one
    repair:    repair it
    at:        a.yaml:7:3
    seen:      another
    repair:    repair it
    otherwise: clusterctl finds the file only if its configuration names it
    see:       https://cluster-api.sigs.k8s.io/developer/providers/contracts/clusterctl#naming-conventions
  NOTICE  R20 (NOTICE): the components have all objects that they refer to
    at:        a.yaml:9:3
    seen:      a link
    repair:    repair it
    otherwise: clusterctl installs, moves and deletes only what is in the file: the rest is the author's to bring and to document
    see:       https://cluster-api.sigs.k8s.io/developer/providers/contracts/clusterctl#links-to-external-objects

keeps the contract as far as was checked, with warnings: 0 passed, 0 failed, 2 warnings, 1 notices, 0 not checked, 0 not applicable
";
        assert_eq!(render(&example::places()), expected);
    }
}
