//! A provider whose admission does not let core write is found out.

use std::time::Duration;

use capstan_conformance::{
    Outcome,
    dynamic::{Options, check},
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{Story, generic, wait::LIMIT};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{broken, options, target, text};

const KIND: &str = "StubbornCluster";

/// Forbids owner references on the kind, as a webhook that knows only its own fields would.
async fn refuse_owners(story: &Story) {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "stubborn"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [generic::GROUP], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["stubbornclusters"],
            }]},
            "validations": [{"expression": "!has(object.metadata.ownerReferences)", "message": "no owners here"}],
        },
    }))
    .unwrap();
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "stubborn"},
        "spec": {"policyName": "stubborn", "validationActions": ["Deny"]},
    }))
    .unwrap();
    Api::all(story.client.clone()).create(&PostParams::default(), &policy).await.unwrap();
    Api::all(story.client.clone()).create(&PostParams::default(), &binding).await.unwrap();

    // No event tells when the server has learnt it.
    story.create_generic(KIND, "probe", json!({})).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "n", "uid": "u"});
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let refused = async {
        while story.generics(KIND).patch("probe", &dry, &patch).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, refused).await.expect("the policy works");
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_that_refuses_cores_owner_reference_breaks_the_contract() {
    let story = Story::begin("conformance-refusal").await;
    let crd = generic::crd(KIND, &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "refusal").await.unwrap();
    refuse_owners(&story).await;
    let options = Options { timeout: Duration::from_secs(4), ..options(&story.namespace) };
    let report = check(story.client.clone(), target(KIND, &json!({})), options, |_| {}).await.unwrap();
    assert_eq!(broken(&report), ["IC9"].into(), "{}", text(&report));
    let ownership = report.findings.iter().find(|finding| finding.rule.id == "IC9").unwrap();
    assert!(
        matches!(&ownership.outcome, Outcome::Failed { seen, .. } if seen.contains("no owners here")),
        "{}",
        text(&report)
    );
}
