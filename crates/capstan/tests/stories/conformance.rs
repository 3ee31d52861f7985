//! Providers that are installed, under the checks of the contract.

use std::process::{Command, Output};

use capstan_api::crd::Conversion;
use capstan_provider_local::api as local;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, generic};
use serde_json::{Value, json};

fn check(plane: &Plane, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(["conformance", "static", "-o", "json", "--kubeconfig"]).arg(plane.kubeconfig());
    command.args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_provider_is_checked_by_its_label() {
    let plane = Plane::start().await;
    let client = plane.client().await;
    let run = check(&plane, &[]);
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("has no CustomResourceDefinitions"), "{}", text(&run.stderr));

    let mut bad = generic::crd("FooCluster", &[("v1beta2", "v9")]);
    bad.metadata
        .labels
        .get_or_insert_default()
        .insert("cluster.x-k8s.io/provider".into(), "infrastructure-foo".into());
    let mut crds = local::crds(Conversion::Nobody);
    crds.push(bad);
    install_crds(&client, &crds, "story").await.unwrap();

    let run = check(&plane, &["--provider", "infrastructure-local"]);
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(run.status.success(), "{report:#}\n{}", text(&run.stderr));
    let subjects: Vec<_> =
        report["findings"].as_array().unwrap().iter().filter(|it| it["rule"]["id"] == "G1").collect();
    assert_eq!(subjects.len(), 2, "{report:#}");
    assert_eq!(report["counts"]["failed"], json!(0));

    // All of them: what is broken is the other provider's.
    let run = check(&plane, &[]);
    assert_eq!(run.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let broken: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["outcome"] == "failed" && it["rule"]["level"] != "SHOULD")
        .collect();
    assert_eq!(broken.len(), 1, "{broken:#?}");
    assert_eq!(broken[0]["rule"]["id"], "G4");
    assert!(broken[0]["subject"].as_str().unwrap().starts_with("FooCluster."), "{broken:#?}");
    assert!(text(&run.stderr).contains("does not keep the contract: 1 finding is"), "{}", text(&run.stderr));

    let run = check(&plane, &["--provider", "infrastructure-bar"]);
    let words = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1));
    assert!(words.contains("no CRD of provider infrastructure-bar is installed"), "{words}");
    assert!(words.contains("infrastructure-foo, infrastructure-local"), "{words}");
}
