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
    put(&report.about);
    for note in &report.notes {
        put(&format!("  - {note}"));
    }
    for group in report.findings.chunk_by(|a, b| a.subject == b.subject) {
        let mut broken = group.iter().filter(|it| it.is_broken()).peekable();
        if broken.peek().is_none() {
            continue;
        }
        put("");
        put(group.first().map(|it| it.subject.as_str()).unwrap_or_default());
        for finding in broken {
            put(&describe(finding));
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

fn describe(finding: &Finding) -> String {
    let Outcome::Failed { seen, repair } = &finding.outcome else { return String::new() };
    let rule = finding.rule;
    let word = if finding.is_fatal() { "FAILED " } else { "WARNING" };
    let mut out = format!("  {word} {} ({}): {}", rule.id, rule.level, rule.statement);
    for (name, text) in [
        ("seen", seen.as_str()),
        ("repair", repair),
        ("otherwise", &format!("core {}", rule.otherwise)),
        ("see", rule.link),
    ] {
        // Writing to a String cannot fail.
        _ = write!(out, "\n    {:<10} {text}", format!("{name}:"));
    }
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
        .map(|(subject, why, rules)| format!("  {subject}: {}\n    {why}", rules.join(" ")))
        .collect()
}

fn summary(report: &Report) -> String {
    let counts = Counts::of(report);
    let verdict = match (report.is_failed(), counts.warnings) {
        (true, _) => "does not keep the contract",
        (false, 0) => "keeps the contract as far as was checked",
        (false, _) => "keeps the contract as far as was checked, with warnings",
    };
    format!(
        "{verdict}: {} passed, {} failed, {} warnings, {} not checked, {} not applicable",
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
}
