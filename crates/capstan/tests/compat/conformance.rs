//! Upstream's providers under our checks of the contract, and our provider with upstream's core: all keep it.

use std::{fs, path::Path, process::Command, sync::Arc};

use capstan_api::crd::Conversion;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, Which};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::management::{folder, kubeadm_components, start_upstreams_core};

fn check(components: &Path) -> Value {
    let run = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["conformance", "static", "-o", "json", "--components"])
        .arg(components)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{words}");
    serde_json::from_slice(&run.stdout).unwrap()
}

#[test]
#[ignore = "needs upstream's manifests: make test-compat"]
fn upstreams_providers_keep_the_contract() {
    for (kind, role, rules) in [
        ("bootstrap", "KubeadmConfig is a BootstrapConfig", &["G4", "G5", "G19", "BC3", "BC8", "G17c"][..]),
        (
            "control-plane",
            "KubeadmControlPlane is a ControlPlane",
            &["G4", "G5", "G19", "CP1", "CP4", "CP5", "CP6", "CP13", "G17c"],
        ),
    ] {
        let file = kubeadm_components(kind);
        // With the folder comes metadata.yaml.
        let report = check(file.parent().unwrap());
        let findings = report["findings"].as_array().unwrap();
        let broken: Vec<_> = findings.iter().filter(|it| it["outcome"] == "failed").collect();
        assert!(broken.is_empty(), "{kind}: {broken:#?}");
        for rule in rules {
            let passed = findings.iter().any(|it| it["rule"]["id"] == *rule && it["outcome"] == "passed");
            assert!(passed, "{kind}: {rule} was not looked at");
        }
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.starts_with(role), "{note}");
        assert!(note.contains("contract v1beta2 with its version v1beta2"), "{note}");
        assert_eq!(check(&file)["failed"], false);
    }
}

/// Upstream's core manager on its own kinds, and our provider beside it: the same rules are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's core manager: make test-compat"]
async fn the_local_provider_keeps_the_contract_with_upstreams_core() {
    let upstream = folder("CAPSTAN_UPSTREAM_DIR");
    let plane = Plane::start_bare().await;
    let story = Story::begin_on(Arc::clone(&plane), "upstream-core").await;
    let module = fs::read_to_string(upstream.join("cluster-api.dir")).unwrap();
    let mut crds = Vec::new();
    for entry in fs::read_dir(Path::new(module.trim()).join("core/config/crd/bases")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        // What kustomize would add; there is no conversion here.
        crd.spec.conversion = None;
        let labels = crd.metadata.labels.get_or_insert_default();
        labels.insert("cluster.x-k8s.io/v1beta2".to_owned(), "v1beta2".to_owned());
        crds.push(crd);
    }
    crds.extend(capstan_provider_local::api::crds(Conversion::Nobody));
    install_crds(&story.client, &crds, "compat").await.unwrap();

    let (mut core, _) = start_upstreams_core(&plane, &story.namespace);
    let manager = story.manager(Which::Local);

    let manifest = plane.kubeconfig().with_file_name("local.yaml");
    let object = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: LocalCluster\nmetadata:\n  name: x\n\
                  spec:\n  failureDomains:\n  - name: a\n    controlPlane: true\n";
    fs::write(&manifest, object).unwrap();
    let run = tokio::process::Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["conformance", "infracluster", "--kind=LocalCluster", "--core=real", "-o=json"])
        .arg("--manifest")
        .arg(&manifest)
        .arg(format!("--namespace={}", story.namespace))
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .output()
        .await
        .unwrap();
    let words = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(core.try_wait().unwrap().is_none(), "upstream's core manager has ended");
    assert!(run.status.success(), "{words}\n{}", String::from_utf8_lossy(&run.stdout));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let broken: Vec<_> = findings.iter().filter(|it| it["outcome"] == "failed").collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for rule in
        ["G11", "G12", "G13", "G14", "IC2", "IC4", "IC6", "IC7", "IC8", "IC9", "IC10", "IC12", "IC14", "IC15"]
    {
        let passed = findings.iter().any(|it| it["rule"]["id"] == rule && it["outcome"] == "passed");
        assert!(passed, "{rule} was not looked at: {report:#}");
    }
    manager.stop().await;
    core.kill().await.unwrap();
}
