//! A provider that keeps the contract, and a twin of it for each rule that breaks it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod fixture;
mod kinds;
mod twins;

use std::collections::BTreeSet;

use capstan_conformance::{
    Contracts, Finding, Origin, Outcome, Report, Source,
    rules::{self, SeenIn},
    statics,
};
use fixture::{good, good_v1beta1, remove, replace, schema};
use kinds::kind;
use serde_json::{Value, json};

fn check(sources: &[Source]) -> Report {
    statics::check("foo", sources, Origin::Files).unwrap()
}

fn broken(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|it| it.is_broken()).collect()
}

fn outcome<'a>(report: &'a Report, rule: &str, subject: &str) -> &'a Outcome {
    let found = report.findings.iter().find(|it| it.rule.id == rule && it.subject.starts_with(subject));
    &found.unwrap_or_else(|| panic!("no finding of {rule} on {subject}")).outcome
}

#[test]
fn a_provider_that_keeps_the_contract_passes_every_rule() {
    for sources in [good(), good_v1beta1()] {
        let report = check(&sources);
        assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
        assert!(!report.is_failed());
        let passed: BTreeSet<_> =
            report.findings.iter().filter(|it| it.outcome == Outcome::Passed).map(|it| it.rule.id).collect();
        let in_files: BTreeSet<_> =
            rules::all().iter().filter(|it| it.seen_in == SeenIn::Files).map(|it| it.rule.id).collect();
        assert_eq!(passed, in_files, "every rule that files can show is passed by something");
        let unseen: BTreeSet<_> = report
            .findings
            .iter()
            .filter(|it| matches!(it.outcome, Outcome::NotChecked { .. }))
            .map(|it| it.rule.id)
            .collect();
        let spoken = if report.notes[0].contains("contract v1beta2") {
            Contracts::V1Beta2
        } else {
            Contracts::V1Beta1
        };
        let running: BTreeSet<_> = rules::all()
            .iter()
            .filter(|it| it.seen_in == SeenIn::RunningProvider)
            .filter(|it| [Contracts::All, spoken].contains(&it.rule.contracts))
            .map(|it| it.rule.id)
            .collect();
        assert_eq!(unseen, running, "every other rule is listed as not checked");
    }
}

#[test]
fn notes_say_what_core_picks_and_why() {
    let report = check(&good());
    assert!(
        report.notes.contains(
            &"FooCluster is an InfraCluster (its name, and it has spec.controlPlaneEndpoint); core speaks contract v1beta2 \
              with its version v1alpha2 (label cluster.x-k8s.io/v1beta2: v1alpha2; v1beta2 comes before v1beta1)"
                .to_owned()
        ),
        "{:#?}",
        report.notes
    );
    let report = check(&good_v1beta1());
    let note = report.notes.iter().find(|it| it.starts_with("FooConfigTemplate ")).unwrap();
    assert_eq!(
        note,
        "FooConfigTemplate is a BootstrapConfigTemplate (it is the template of FooConfig); core speaks contract v1beta1 \
         with its version v1alpha1 (label cluster.x-k8s.io/v1beta1: v1alpha1)"
    );
}

#[test]
fn what_a_schema_leaves_open_is_not_judged() {
    let mut sources = good();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for kind in ["FooCluster", "FooMachine", "FooMachinePool", "FooConfig", "FooControlPlane"] {
        for path in ["spec", "status"] {
            for version in [0, 1] {
                replace(&mut sources, kind, &schema(version, path), open.clone());
            }
        }
    }
    let report = check(&sources);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    for (rule, subject) in [
        ("IC2", "FooCluster."),
        ("IC4", "FooCluster."),
        ("IC6", "FooCluster."),
        ("IM1", "FooMachine."),
        ("IM2", "FooMachine."),
        ("MP1", "FooMachinePool."),
        ("BC3", "FooConfig."),
        ("CP1", "FooControlPlane."),
        ("CP4", "FooControlPlane."),
        ("CP5", "FooControlPlane."),
        ("CP6", "FooControlPlane."),
    ] {
        let Outcome::NotChecked { why } = outcome(&report, rule, subject) else { panic!("{rule} is judged") };
        assert!(why.contains("keeps unknown fields"), "{why}");
    }
}

#[test]
fn what_a_provider_leaves_out_as_it_may_does_not_count_against_it() {
    let mut sources = good();
    remove(&mut sources, "FooCluster", &schema(0, "spec.controlPlaneEndpoint"));
    remove(&mut sources, "FooCluster", &schema(0, "status.failureDomains"));
    for path in ["controlPlaneEndpoint", "replicas", "version", "machineTemplate"] {
        remove(&mut sources, "FooControlPlane", &schema(0, &format!("spec.{path}")));
    }
    remove(&mut sources, "Metadata", "/kind");
    let report = check(&sources);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    for (rule, subject) in [
        ("IC2", "FooCluster."),
        ("IC6", "FooCluster."),
        ("CP3", "FooControlPlane."),
        ("CP4", "FooControlPlane."),
        ("CP5", "FooControlPlane."),
        ("CP6", "FooControlPlane."),
    ] {
        assert!(matches!(outcome(&report, rule, subject), Outcome::NotApplicable { .. }), "{rule}");
    }
}

#[test]
fn a_machine_template_that_leads_to_no_machines_is_not_judged() {
    let mut sources = good();
    remove(&mut sources, "FooControlPlane", &schema(0, "spec.machineTemplate.spec.infrastructureRef"));
    let report = check(&sources);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    assert!(matches!(outcome(&report, "CP6", "FooControlPlane."), Outcome::NotApplicable { .. }));
}

#[test]
fn what_was_not_given_is_not_checked() {
    let mut sources = good();
    sources.retain(|it| it.object["kind"] == "CustomResourceDefinition");
    let report = check(&sources);
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    for (rule, subject) in [("G9", "FooCluster."), ("G17b", "release"), ("G17c", "metadata.yaml")] {
        assert!(matches!(outcome(&report, rule, subject), Outcome::NotChecked { .. }), "{rule}");
    }
    let report = statics::check("a cluster", &sources, Origin::Cluster).unwrap();
    assert!(matches!(outcome(&report, "G17d", "installation"), Outcome::NotApplicable { .. }));
}

#[test]
fn core_is_let_in_by_wildcards_and_by_roles_of_roles_but_not_by_names() {
    let role = |name: &str, labels: Value, rest: Value| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels},
        });
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Source { file: "out/v0.3.1/components.yaml".to_owned(), object }
    };
    let with = |roles: Vec<Source>| {
        let mut sources = good();
        sources.retain(|it| it.object["kind"] != "ClusterRole");
        sources.extend(roles);
        let report = check(&sources);
        report.findings.iter().filter(|it| it.rule.id == "G9" && it.is_broken()).count()
    };
    let to_core = json!({"cluster.x-k8s.io/aggregate-to-manager": "true"});
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    assert_eq!(with(vec![role("a", to_core.clone(), json!({"rules": everything}))]), 0);
    let collects =
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"foo": "yes"}}]}, "rules": []});
    let collector = || role("a", to_core.clone(), collects.clone());
    assert_eq!(with(vec![collector(), role("b", json!({"foo": "yes"}), json!({"rules": everything}))]), 0);
    assert_eq!(with(vec![collector(), role("b", json!({"foo": "no"}), json!({"rules": everything}))]), 6);
    let named = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["x"]}]);
    assert_eq!(with(vec![role("a", to_core.clone(), json!({"rules": named}))]), 6);
    let unlabelled = json!({"cluster.x-k8s.io/aggregate-to-manager": "false"});
    assert_eq!(with(vec![role("a", unlabelled, json!({"rules": everything}))]), 6);
}

#[test]
fn nothing_to_check_says_why() {
    let mut core = kind("cluster.x-k8s.io", "Cluster", false, &json!({}), &json!({}));
    core.object["metadata"]["name"] = json!("clusters.cluster.x-k8s.io");
    let error = statics::check("core.yaml", &[core], Origin::Files).unwrap_err();
    assert!(error.to_string().starts_with("core.yaml holds core's own kinds (Cluster)"), "{error}");
    let deployment =
        Source { file: "f.yaml".to_owned(), object: json!({"apiVersion": "apps/v1", "kind": "Deployment"}) };
    let error = statics::check("f.yaml", &[deployment], Origin::Files).unwrap_err();
    assert_eq!(error.to_string(), "f.yaml has no CustomResourceDefinitions");

    let mut sources = good();
    sources.push(Source { file: "copy.yaml".to_owned(), ..sources[3].clone() });
    assert!(!check(&sources).is_failed(), "the same CRD may be in two files");
    let last = sources.len() - 1;
    sources[last].object["spec"]["scope"] = json!("Cluster");
    let error = statics::check("foo", &sources, Origin::Files).unwrap_err();
    assert!(error.to_string().contains("out/v0.3.1/components.yaml and differently in copy.yaml"), "{error}");
}
