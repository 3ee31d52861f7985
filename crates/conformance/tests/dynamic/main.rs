//! The dynamic checks against providers on a real control plane.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod cleanup;
mod local;
mod refusal;
mod twin;
mod twins;

use std::{collections::BTreeSet, time::Duration};

use capstan_conformance::{
    Outcome, Report,
    dynamic::{Options, Target},
};
use capstan_testkit::generic;
use serde_json::{Value, json};

/// Options for providers that keep to the contract: the limit is long enough for a busy machine.
fn options(namespace: &str) -> Options {
    Options {
        namespace: Some(namespace.to_owned()),
        timeout: Duration::from_secs(20),
        quiet_time: Duration::from_millis(800),
        ..Options::default()
    }
}

fn target(kind: &str, spec: &Value) -> Target {
    let document = json!({
        "apiVersion": format!("{}/{}", generic::GROUP, generic::VERSION), "kind": kind,
        "metadata": {"name": "from-the-manifest"}, "spec": spec,
    });
    Target { kind: kind.to_owned(), group: None, version: None, documents: vec![document] }
}

fn broken(report: &Report) -> BTreeSet<&'static str> {
    report.findings.iter().filter(|finding| finding.is_broken()).map(|finding| finding.rule.id).collect()
}

/// The rules of which at least one finding says that they are kept.
fn kept(report: &Report) -> BTreeSet<&'static str> {
    let passed = report.findings.iter().filter(|finding| finding.outcome == Outcome::Passed);
    passed.map(|finding| finding.rule.id).collect()
}

fn text(report: &Report) -> String {
    let mut lines = vec![report.about.clone()];
    lines.extend(report.notes.iter().map(|note| format!("  note: {note}")));
    lines.extend(
        report
            .findings
            .iter()
            .map(|finding| format!("  {} {}: {:?}", finding.rule.id, finding.subject, finding.outcome)),
    );
    lines.join("\n")
}
