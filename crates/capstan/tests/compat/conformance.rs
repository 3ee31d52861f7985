//! Upstream's providers under our checks of the contract, which they keep.

use std::process::Command;

use serde_json::Value;

use crate::management::kubeadm_components;

fn check(components: &std::path::Path) -> Value {
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
