//! Which kinds are judged, and as what.

use capstan_conformance::{NothingToCheck, Origin, Outcome, Source, statics};
use serde_json::{Value, json};

use crate::{
    check,
    fixture::{boolean, find, good, integer, object, string},
    outcome,
};

/// A CRD with the given fields in `spec` and `status`.
pub(crate) fn kind(group: &str, kind: &str, labelled: bool, spec: &Value, status: &Value) -> Source {
    let mut sources = good();
    let crd = find(&mut sources, "FooMachine");
    let plural = format!("{}s", kind.to_lowercase());
    crd["metadata"]["name"] = json!(format!("{plural}.{group}"));
    if !labelled {
        crd["metadata"]["labels"] = json!({});
    }
    crd["spec"]["group"] = json!(group);
    crd["spec"]["names"] = json!({"kind": kind, "plural": plural, "categories": ["cluster-api"]});
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"] =
            object(&json!({"spec": object(spec), "status": object(status)}));
    }
    Source { file: "f.yaml".to_owned(), object: crd.clone() }
}

#[test]
fn kinds_that_core_does_not_read_are_not_judged() {
    let infrastructure = "infrastructure.cluster.x-k8s.io";
    let (ready, none) = (|| json!({"ready": boolean()}), || json!({}));
    let endpoint = || json!({"controlPlaneEndpoint": object(&json!({"host": string(), "port": integer()}))});
    for (group, name, labelled, spec, status) in [
        // Settings, identities and parts of infrastructure, which carry the labels of all CRDs of a release.
        (infrastructure, "FooClusterIdentity", true, json!({"allowedNamespaces": string()}), none()),
        (infrastructure, "FooIsolatedNetwork", true, endpoint(), ready()),
        (infrastructure, "FooVM", true, json!({"host": string()}), ready()),
        (infrastructure, "FooRoleConfig", true, none(), ready()),
        (infrastructure, "FooPooledMachine", true, json!({"pool": string()}), json!({"reserved": boolean()})),
        (
            infrastructure,
            "FooDataTemplate",
            true,
            json!({"template": object(&json!({"spec": object(&none())}))}),
            none(),
        ),
        (infrastructure, "FooRemediationTemplate", true, none(), none()),
        // Core's own, and those of its tools.
        ("cluster.x-k8s.io", "MachinePool", false, json!({"providerIDList": string()}), none()),
        ("runtime.cluster.x-k8s.io", "ExtensionConfig", false, none(), none()),
        ("operator.cluster.x-k8s.io", "InfrastructureProvider", false, none(), ready()),
        // Of another group.
        ("redis.example.com", "RedisCluster", false, none(), ready()),
        ("example.com", "Cluster", true, none(), ready()),
    ] {
        let sources = [kind(group, name, labelled, &spec, &status)];
        let answer = statics::check("f.yaml", &sources, Origin::Files);
        assert!(matches!(answer, Err(NothingToCheck::NoContractKinds { .. })), "{name}: {answer:#?}");
    }
}

#[test]
fn kinds_that_core_reads_are_found_wherever_they_are() {
    let endpoint = || json!({"controlPlaneEndpoint": object(&json!({"host": string(), "port": integer()}))});
    let provider = || json!({"providerID": string()});
    let ready = || json!({"ready": boolean()});
    for (group, name, labelled, spec, status, expected) in [
        (
            "infrastructure.cluster.x-k8s.io",
            "FooManagedControlPlane",
            true,
            json!({}),
            json!({"initialized": boolean()}),
            "ControlPlane",
        ),
        ("infrastructure.cluster.x-k8s.io", "FooManagedCluster", true, endpoint(), ready(), "InfraCluster"),
        (
            "infrastructure.cluster.x-k8s.io",
            "FooMachinePoolMachine",
            true,
            provider(),
            ready(),
            "InfraMachine",
        ),
        (
            "infrastructure.cluster.x-k8s.io",
            "FooConfig",
            true,
            json!({}),
            json!({"dataSecretName": string()}),
            "BootstrapConfig",
        ),
        (
            "bootstrap.cluster.x-k8s.io",
            "FooScript",
            true,
            json!({}),
            json!({"dataSecretName": string()}),
            "BootstrapConfig",
        ),
        (
            "controlplane.cluster.x-k8s.io",
            "FooPlane",
            true,
            json!({}),
            json!({"initialized": boolean()}),
            "ControlPlane",
        ),
        ("foo.io", "FooMachine", true, json!({}), ready(), "InfraMachine"),
        ("foo.io", "FooMachine", false, provider(), ready(), "InfraMachine"),
    ] {
        let sources = [kind(group, name, labelled, &spec, &status)];
        let report = statics::check("f.yaml", &sources, Origin::Files).unwrap();
        let (expected, note) = (format!("{expected} ("), &report.notes[0]);
        assert!(note.starts_with(&format!("{name} is a")) && note.contains(&expected), "{note}");
    }
    // A pool makes its machines itself.
    let pooled =
        kind("infrastructure.cluster.x-k8s.io", "FooMachinePoolMachine", true, &provider(), &ready());
    let report = check(&[pooled]);
    assert!(matches!(outcome(&report, "IM8", "FooMachinePoolMachine."), Outcome::NotApplicable { .. }));
}
