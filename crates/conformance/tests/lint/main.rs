//! Release files that keep all rules, and twins of them that break one each.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod components;
mod fixture;
mod templates;
mod twin;

use std::collections::BTreeSet;

use capstan_conformance::{
    Finding, Outcome, Report,
    lint::{check_components, check_templates},
    rule::Rule,
    rules,
};
use proptest::prelude::*;

fn ids(findings: &[Finding], is: fn(&Outcome) -> bool) -> BTreeSet<&'static str> {
    findings.iter().filter(|it| is(&it.outcome)).map(|it| it.rule.id).collect()
}

fn broken(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|it| it.is_broken()).collect()
}

/// Every rule was looked at, and in the order of the list.
fn assert_complete(report: &Report, rules: &[&Rule]) {
    let mut order: Vec<_> = report.findings.iter().map(|it| it.rule.id).collect();
    order.dedup();
    assert_eq!(order, rules.iter().map(|it| it.id).collect::<Vec<_>>());
}

#[test]
fn good_components_have_no_findings() {
    let report = check_components(&[fixture::components()]);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    assert_complete(&report, rules::COMPONENTS);
    // No file can show the one, and only releases with shared objects have the other.
    let unseen = ids(&report.findings, |it| matches!(it, Outcome::NotChecked { .. }));
    assert_eq!(unseen, ["R15"].into());
    let unbound = ids(&report.findings, |it| matches!(it, Outcome::NotApplicable { .. }));
    assert_eq!(unbound, ["R13"].into());
    assert_eq!(
        report.notes,
        [
            "infrastructure-foo/v0.3.1/infrastructure-components.yaml: 11 objects, one variable has to be set: \
          FOO_B64ENCODED_CREDENTIALS"
        ]
    );
}

/// Shared objects may bring their Namespace; where it is missing, it is added when the release is rendered.
#[test]
fn shared_objects_have_no_findings() {
    let mut given = fixture::components();
    let is_shared = |document: &&str| {
        ["CustomResourceDefinition", "Service", "Certificate", "Issuer", "ValidatingWebhookConfiguration"]
            .iter()
            .any(|kind| document.contains(&format!("kind: {kind}\nmetadata:")))
    };
    let documents = given.file.text.split("---\n");
    let moved: Vec<_> = documents
        .map(
            |it| {
                if is_shared(&it) { it.replace("foo-system", "capi-webhook-system") } else { it.to_owned() }
            },
        )
        .collect();
    given.file.text = moved.join("---\n");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: capi-webhook-system\n  labels:\n    cluster.x-k8s.io/provider: infrastructure-foo\n";
    let mut with_namespace = given.clone();
    with_namespace.file.text = format!("{namespace}---\n{}", given.file.text);
    let report = check_components(&[with_namespace]);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    assert!(given.file.text.matches("capi-webhook-system").count() > 5);
    let report = check_components(&[given]);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    let unbound = ids(&report.findings, |it| matches!(it, Outcome::NotApplicable { .. }));
    assert_eq!(unbound, [].into());
}

#[test]
fn good_templates_have_no_findings() {
    for given in [fixture::template(), fixture::topology(), fixture::class()] {
        let report = check_templates(&[given]);
        assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
        assert_complete(&report, rules::TEMPLATE);
        assert!(report.findings.iter().all(|it| it.outcome == Outcome::Passed), "{:#?}", report.findings);
    }
}

#[test]
fn files_without_a_folder_are_checked_as_far_as_they_show() {
    let mut given = fixture::components();
    given.folder = None;
    let report = check_components(&[given]);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    let unseen = ids(&report.findings, |it| matches!(it, Outcome::NotChecked { .. }));
    assert_eq!(unseen, ["G17c", "R15", "R5", "R6", "R7", "R8", "R9"].into());
    let mut given = fixture::topology();
    given.folder = None;
    let report = check_templates(&[given]);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    let unseen = ids(&report.findings, |it| matches!(it, Outcome::NotChecked { .. }));
    assert_eq!(unseen, ["T1", "T13", "T2"].into());
}

#[test]
fn a_document_that_is_a_block_of_text_has_a_place() {
    let mut given = fixture::components();
    given.file.text = "kind: A\n---\n|\nmetadata:\n${A}".to_owned();
    let report = check_components(&[given]);
    let places: Vec<_> = report
        .findings
        .iter()
        .filter(|it| it.rule.id == "R1" && it.is_broken())
        .map(|it| it.place.as_ref().map(|it| (it.line, it.column)))
        .collect();
    assert!(places.contains(&Some((4, 1))), "{places:?}");
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "([a-z${}:=#\"'|>&*!%@`,\\[\\]? -]|\n|---\n|kind: |metadata:\n|\\$\\{A\\}){0,60}") {
        let mut given = fixture::components();
        given.file.text = text;
        for report in [check_components(std::slice::from_ref(&given)), check_templates(&[given])] {
            prop_assert!(report.findings.iter().all(|it| !it.is_broken() || it.place.is_some()));
        }
    }
}

#[test]
fn each_file_is_a_subject_of_its_own() {
    let mut other = fixture::template();
    other.file.name = "infrastructure-foo/v0.3.1/cluster-template-dev.yaml".to_owned();
    let report = check_templates(&[fixture::template(), other]);
    let subjects: BTreeSet<_> = report.findings.iter().map(|it| it.subject.as_str()).collect();
    assert_eq!(subjects.len(), 2);
    assert_eq!(report.findings.len(), 2 * rules::TEMPLATE.len());
    assert_eq!(report.notes.len(), 2);
}

#[test]
fn every_rule_that_files_can_show_has_a_twin_that_breaks_it() {
    let with_twins: BTreeSet<_> =
        components::twins().iter().chain(&templates::twins()).map(|it| it.rule).collect();
    let all: BTreeSet<_> = rules::COMPONENTS.iter().chain(rules::TEMPLATE).map(|it| it.id).collect();
    let missing: Vec<_> = all.difference(&with_twins).collect();
    // Which flags a program has shows only when it runs.
    assert_eq!(missing, [&"R15"]);
    assert!(with_twins.is_subset(&all));
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let lists = [rules::COMPONENTS, rules::TEMPLATE];
    for list in lists {
        let names: BTreeSet<_> = list.iter().map(|it| it.id).collect();
        assert_eq!(names.len(), list.len());
    }
    let contract: BTreeSet<_> = rules::all().iter().map(|it| it.rule.id).collect();
    let shared: Vec<_> =
        rules::COMPONENTS.iter().map(|it| it.id).filter(|it| contract.contains(it)).collect();
    assert_eq!(shared, ["G17c", "G17d", "G17b", "G17a"]);
    for rule in lists.iter().copied().flatten() {
        for text in [rule.statement, rule.check, rule.otherwise] {
            assert!(text.len() > 10 && !text.ends_with('.'), "{}: {text:?}", rule.id);
        }
        let (page, anchor) = rule.link.split_once('#').unwrap();
        assert!(page.ends_with("/contracts/clusterctl") && !anchor.is_empty(), "{}", rule.link);
    }
}

#[test]
fn the_guide_lists_every_rule_as_it_is() {
    let guide = include_str!("../../../../docs/lint.md");
    let rows: Vec<_> =
        guide.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| rule ")).collect();
    let expected: Vec<_> = rules::COMPONENTS
        .iter()
        .chain(rules::TEMPLATE.iter().filter(|it| it.id.starts_with('T')))
        .map(|it| format!("| {} | {} | {} |", it.id, it.level, it.statement.replace('<', "&lt;")))
        .collect();
    assert_eq!(rows, expected);
}
