//! The provider's twins: each breaks one rule, and no other with it.

use std::collections::BTreeSet;

use capstan_conformance::{
    Outcome, Source,
    rules::{self, SeenIn},
};
use serde_json::json;

use crate::{
    broken, check,
    fixture::{boolean, find, good, good_v1beta1, integer, object, remove, replace, schema, string},
};

/// One thing broken: the rule, the subject, and words of what is seen and how to repair it.
struct Twin {
    rule: &'static str,
    subject: &'static str,
    seen: &'static str,
    repair: &'static str,
    sources: Vec<Source>,
}

fn twin(
    rule: &'static str,
    subject: &'static str,
    seen: &'static str,
    repair: &'static str,
    spoil: impl FnOnce(&mut Vec<Source>),
) -> Twin {
    let mut sources = good();
    spoil(&mut sources);
    Twin { rule, subject, seen, repair, sources }
}

fn older(
    rule: &'static str,
    subject: &'static str,
    seen: &'static str,
    repair: &'static str,
    spoil: impl FnOnce(&mut Vec<Source>),
) -> Twin {
    let mut sources = good_v1beta1();
    spoil(&mut sources);
    Twin { rule, subject, seen, repair, sources }
}

fn drop_kind(sources: &mut Vec<Source>, kind: &str) {
    let before = sources.len();
    sources.retain(|it| it.object.pointer("/spec/names/kind").is_none_or(|it| it != kind));
    assert_eq!(sources.len() + 1, before, "{kind}");
}

fn label(contract: &str) -> String {
    format!("/metadata/labels/cluster.x-k8s.io~1{contract}")
}

fn twins_of_all_kinds() -> Vec<Twin> {
    vec![
        twin("G1", "FooCluster.", "spec.scope \"Cluster\"", "Namespaced", |it| {
            replace(it, "FooCluster", "/spec/scope", json!("Cluster"));
        }),
        twin(
            "G2",
            "FooConfig.",
            "core looks for fooconfigs.bootstrap",
            "spec.names.plural to fooconfigs",
            |it| {
                replace(it, "FooConfig", "/spec/names/plural", json!("fooconfig"));
                replace(it, "FooConfig", "/metadata/name", json!("fooconfig.bootstrap.cluster.x-k8s.io"));
            },
        ),
        twin(
            "G3",
            "FooMachine.",
            "neither label cluster.x-k8s.io/v1beta2 nor",
            "cluster.x-k8s.io/v1beta2: v1alpha2",
            |it| {
                remove(it, "FooMachine", &label("v1beta1"));
                remove(it, "FooMachine", &label("v1beta2"));
            },
        ),
        twin("G3", "FooConfig.", "neither label", "label the CRD", |it| {
            remove(it, "FooConfig", &label("v1beta1"));
            replace(it, "FooConfig", &label("v1beta2"), json!(""));
        }),
        twin("G4", "FooMachine.", "names v1alpha2, which is not served", "serve the version", |it| {
            replace(it, "FooMachine", "/spec/versions/0/served", json!(false));
        }),
        twin(
            "G4",
            "FooMachine.",
            "names v1, which is not in spec.versions",
            "take it out of the label",
            |it| {
                replace(it, "FooMachine", &label("v1beta1"), json!("v1"));
            },
        ),
        twin("G4b", "FooCluster.", "names v1, which is not in spec.versions", "take it out", |it| {
            replace(it, "FooCluster", &label("v1beta2"), json!("v1alpha2_v1"));
        }),
        twin(
            "G4b",
            "FooMachine.",
            "names old, which is not in spec.versions",
            "take it out of the label",
            |it| {
                replace(it, "FooMachine", &label("v1beta2"), json!("old_v1alpha2"));
            },
        ),
        twin(
            "G21",
            "FooCluster.",
            "core takes v1alpha2 and not the last",
            "v1beta2: v1alpha1_v1alpha2",
            |it| {
                replace(it, "FooCluster", &label("v1beta2"), json!("v1alpha2_v1alpha1"));
            },
        ),
        twin(
            "G5",
            "FooCluster.",
            "has status.ready and not status.initialization.provisioned",
            "report completion in",
            |it| {
                remove(it, "FooCluster", &schema(0, "status.initialization"));
                let status = find(it, "FooCluster").pointer_mut(&schema(0, "status")).unwrap();
                status["properties"]["ready"] = boolean();
            },
        ),
        older(
            "G5",
            "FooControlPlane.",
            "has status.initialization.controlPlaneInitialized and not",
            "label the version",
            |it| {
                replace(it, "FooControlPlane", &label("v1beta1"), json!("v1alpha2"));
                // All else is as contract v1beta1 has it.
                let older = find(it, "FooControlPlane").pointer("/spec/versions/1").unwrap().clone();
                replace(it, "FooControlPlane", "/spec/versions/0/schema", older["schema"].clone());
                remove(it, "FooControlPlane", &schema(0, "status.initialized"));
                let status = find(it, "FooControlPlane").pointer_mut(&schema(0, "status")).unwrap();
                status["properties"]["initialization"] =
                    object(&json!({"controlPlaneInitialized": boolean()}));
            },
        ),
        twin("G6", "FooMachinePool.", "subresources.status is missing", "subresource:status", |it| {
            remove(it, "FooMachinePool", "/spec/versions/0/subresources/status");
        }),
        twin("G7", "FooCluster.", "list kind FooClusters", "FooClusterList", |it| {
            replace(it, "FooCluster", "/spec/names/listKind", json!("FooClusters"));
        }),
        twin("G7", "FooCluster.", "metadata is not an object", "make metadata an object", |it| {
            replace(it, "FooCluster", &schema(0, "metadata"), string());
        }),
        twin("G8", "FooMachineTemplate.", "has the categories []", "categories=cluster-api", |it| {
            replace(it, "FooMachineTemplate", "/spec/names/categories", json!([]));
        }),
        twin(
            "G9",
            "FooMachineTemplate.",
            "has create, delete for foomachinetemplates in group infrastructure.foo.io",
            "add a ClusterRole",
            |it| {
                remove(it, "ClusterRole", "/rules/0/resources/2");
                replace(
                    it,
                    "ClusterRole",
                    "/rules/1/resources",
                    json!(["fooclustertemplates", "foomachinetemplates"]),
                );
            },
        ),
        twin(
            "G19",
            "FooClusterTemplate.",
            "spec.template.spec is not in the schema",
            "add spec.template.spec",
            |it| {
                remove(it, "FooClusterTemplate", &schema(0, "spec.template.spec"));
            },
        ),
        twin(
            "G22",
            "FooConfigTemplate.",
            "spec.template.metadata is not in the schema",
            "add spec.template.metadata",
            |it| {
                remove(it, "FooConfigTemplate", &schema(0, "spec.template.metadata"));
            },
        ),
    ]
}

fn twins_of_releases() -> Vec<Twin> {
    vec![
        twin("G17a", "release", "2 of 13 objects have no label", "label all components", |it| {
            remove(it, "Namespace", &label("provider"));
            remove(it, "FooCluster", &label("provider"));
        }),
        twin("G17a", "release", "is bar and infrastructure-foo", "the same label", |it| {
            replace(it, "Deployment", &label("provider"), json!("bar"));
        }),
        twin("G17b", "release", "has the containers proxy, controller", "manager", |it| {
            replace(it, "Deployment", "/spec/template/spec/containers/1/name", json!("controller"));
        }),
        twin(
            "G17c",
            "out/v0.3.1/metadata.yaml",
            "series 0.3 has contract v1alpha4",
            "give the series the contract",
            |it| {
                replace(it, "Metadata", "/releaseSeries/0/contract", json!("v1alpha4"));
            },
        ),
        twin(
            "G17c",
            "out/v0.3.1/metadata.yaml",
            "nothing for v0.3.1",
            "add {major, minor, contract}",
            |it| {
                remove(it, "Metadata", "/releaseSeries/0");
            },
        ),
        twin("G17c", "out/v0.3.1/metadata.yaml", "apiVersion is", "v1alpha3", |it| {
            replace(it, "Metadata", "/apiVersion", json!("clusterctl.cluster.x-k8s.io/v1"));
        }),
        twin("G17c", "out/v0.3.1/metadata.yaml", "kind is \"Metadatum\"", "Metadata", |it| {
            replace(it, "Metadata", "/kind", json!("Metadatum"));
        }),
        twin("G17c", "out/v0.3.1/metadata.yaml", "is not {major, minor, contract}", "a minor number", |it| {
            replace(it, "Metadata", "/releaseSeries/1/minor", json!("2"));
        }),
        twin("G17d", "release", "Namespace bar and Namespace foo-system", "one Namespace", |it| {
            let mut other = it[0].clone();
            other.object["metadata"]["name"] = json!("bar");
            it.push(other);
        }),
    ]
}

fn twins_of_infrastructure() -> Vec<Twin> {
    vec![
        twin("IC1", "FooCluster.", "spec is not in the schema", "add spec as an object", |it| {
            remove(it, "FooCluster", &schema(0, "spec"));
        }),
        twin(
            "IC2",
            "FooCluster.",
            "port is a string, not an integer",
            "make spec.controlPlaneEndpoint.port an integer",
            |it| {
                replace(it, "FooCluster", &schema(0, "spec.controlPlaneEndpoint.port"), string());
            },
        ),
        twin("IC2", "FooCluster.", "spec.controlPlaneEndpoint is a string", "an object", |it| {
            replace(it, "FooCluster", &schema(0, "spec.controlPlaneEndpoint"), string());
        }),
        twin("IC2", "FooCluster.", "host is not in the schema", "add spec.controlPlaneEndpoint.host", |it| {
            remove(it, "FooCluster", &schema(0, "spec.controlPlaneEndpoint.host"));
        }),
        twin("IC4", "FooCluster.", "provisioned is not in the schema", "let the controller set it", |it| {
            remove(it, "FooCluster", &schema(0, "status.initialization.provisioned"));
        }),
        older(
            "IC4",
            "FooCluster.",
            "status.ready is a string, not a boolean",
            "make status.ready a boolean",
            |it| {
                replace(it, "FooCluster", &schema(1, "status.ready"), string());
            },
        ),
        twin(
            "IC6",
            "FooCluster.",
            "status.failureDomains is a map, not a list",
            "as contract v1beta2 has it",
            |it| {
                let map =
                    find(it, "FooCluster").pointer(&schema(1, "status.failureDomains")).unwrap().clone();
                replace(it, "FooCluster", &schema(0, "status.failureDomains"), map);
            },
        ),
        older("IC6", "FooCluster.", "is a list of objects, not a map", "as contract v1beta1 has it", |it| {
            let list = find(it, "FooCluster").pointer(&schema(0, "status.failureDomains")).unwrap().clone();
            replace(it, "FooCluster", &schema(1, "status.failureDomains"), list);
        }),
        twin(
            "IC6",
            "FooCluster.",
            "entries of status.failureDomains have no name",
            "{name, controlPlane, attributes}",
            |it| {
                let pointer = format!("{}/items/properties/name", schema(0, "status.failureDomains"));
                remove(it, "FooCluster", &pointer);
            },
        ),
        twin("IC11", "FooCluster.", "no CRD for FooClusterTemplate", "add the kind", |it| {
            drop_kind(it, "FooClusterTemplate");
        }),
        twin(
            "IM1",
            "FooMachine.",
            "spec.providerID is not in the schema",
            "add spec.providerID as a string",
            |it| {
                remove(it, "FooMachine", &schema(0, "spec.providerID"));
            },
        ),
        twin("IM2", "FooMachine.", "is a string, not a boolean", "boolean", |it| {
            replace(it, "FooMachine", &schema(0, "status.initialization.provisioned"), string());
        }),
        twin("IM8", "FooMachine.", "no CRD for FooMachineTemplate", "add the kind", |it| {
            drop_kind(it, "FooMachineTemplate");
        }),
        twin(
            "MP1",
            "FooMachinePool.",
            "is a list of integers, not a list of strings",
            "list of strings",
            |it| {
                let list = json!({"type": "array", "items": integer()});
                replace(it, "FooMachinePool", &schema(0, "spec.providerIDList"), list);
            },
        ),
        twin("MP2", "FooMachinePool.", "status.replicas is not in the schema", "add status.replicas", |it| {
            remove(it, "FooMachinePool", &schema(0, "status.replicas"));
        }),
        older("MP3", "FooMachinePool.", "status.ready is not in the schema", "add status.ready", |it| {
            remove(it, "FooMachinePool", &schema(1, "status.ready"));
        }),
        twin("MP5", "FooMachinePool.", "no CRD for FooMachinePoolTemplate", "add the kind", |it| {
            drop_kind(it, "FooMachinePoolTemplate");
        }),
    ]
}

fn twins_of_bootstrap_and_control_plane() -> Vec<Twin> {
    vec![
        twin(
            "BC3",
            "FooConfig.",
            "dataSecretCreated is not in the schema",
            "add status.initialization.dataSecretCreated",
            |it| {
                remove(it, "FooConfig", &schema(0, "status.initialization"));
            },
        ),
        twin("BC3", "FooConfig.", "status.dataSecretName is not in the schema", "name the Secret", |it| {
            remove(it, "FooConfig", &schema(0, "status.dataSecretName"));
        }),
        twin("BC8", "FooConfig.", "no CRD for FooConfigTemplate", "add the kind", |it| {
            drop_kind(it, "FooConfigTemplate");
        }),
        twin("CP1", "FooControlPlane.", "controlPlaneInitialized is not in the schema", "boolean", |it| {
            remove(it, "FooControlPlane", &schema(0, "status.initialization"));
        }),
        older(
            "CP1",
            "FooControlPlane.",
            "status.initialized is not in the schema",
            "add status.initialized",
            |it| {
                remove(it, "FooControlPlane", &schema(1, "status.initialized"));
            },
        ),
        twin("CP3", "FooControlPlane.", "port is not in the schema", "as an integer", |it| {
            remove(it, "FooControlPlane", &schema(0, "spec.controlPlaneEndpoint.port"));
        }),
        twin(
            "CP4",
            "FooControlPlane.",
            "status.upToDateReplicas is not in the schema",
            "add status.upToDateReplicas",
            |it| {
                remove(it, "FooControlPlane", &schema(0, "status.upToDateReplicas"));
            },
        ),
        older(
            "CP4",
            "FooControlPlane.",
            "status.updatedReplicas is not in the schema",
            "add status.updatedReplicas",
            |it| {
                remove(it, "FooControlPlane", &schema(1, "status.updatedReplicas"));
            },
        ),
        twin(
            "CP4",
            "FooControlPlane.",
            "subresources.scale is missing",
            "specReplicasPath: .spec.replicas",
            |it| {
                remove(it, "FooControlPlane", "/spec/versions/0/subresources/scale");
            },
        ),
        twin(
            "CP5",
            "FooControlPlane.",
            "neither status.versions nor status.version",
            "add status.versions",
            |it| {
                remove(it, "FooControlPlane", &schema(0, "status.versions"));
            },
        ),
        twin(
            "CP5",
            "FooControlPlane.",
            "status.versions is a list of strings",
            "a list of {version, replicas}",
            |it| {
                let list = json!({"type": "array", "items": string()});
                replace(it, "FooControlPlane", &schema(0, "status.versions"), list);
            },
        ),
        twin(
            "CP6",
            "FooControlPlane.",
            "infrastructureRef.apiGroup is not in the schema",
            "infrastructureRef.apiGroup",
            |it| {
                let ours = schema(0, "spec.machineTemplate.spec.infrastructureRef");
                let older =
                    find(it, "FooControlPlane").pointer(&schema(1, "spec.machineTemplate.infrastructureRef"));
                let older = older.unwrap().clone();
                replace(it, "FooControlPlane", &ours, older);
            },
        ),
        older(
            "CP6",
            "FooControlPlane.",
            "spec.machineTemplate.nodeDrainTimeout is an integer",
            "a string",
            |it| {
                replace(
                    it,
                    "FooControlPlane",
                    &schema(1, "spec.machineTemplate.nodeDrainTimeout"),
                    integer(),
                );
            },
        ),
        twin("CP13", "FooControlPlane.", "no CRD for FooControlPlaneTemplate", "add the kind", |it| {
            drop_kind(it, "FooControlPlaneTemplate");
        }),
    ]
}

#[test]
fn each_rule_is_broken_by_a_twin_and_no_other_with_it() {
    let mut tried = BTreeSet::new();
    let twins = [
        twins_of_all_kinds(),
        twins_of_releases(),
        twins_of_infrastructure(),
        twins_of_bootstrap_and_control_plane(),
    ];
    for twin in twins.into_iter().flatten() {
        let report = check(&twin.sources);
        let broken = broken(&report);
        let [finding] = broken[..] else {
            panic!("{}: not exactly one rule is broken: {broken:#?}", twin.rule);
        };
        let Outcome::Failed { seen, repair } = &finding.outcome else { panic!("{finding:#?}") };
        assert_eq!(finding.rule.id, twin.rule, "{finding:#?}");
        assert!(finding.subject.starts_with(twin.subject), "{finding:#?}");
        assert!(seen.contains(twin.seen) && seen.starts_with("out/v0.3.1/"), "{}: {seen}", twin.rule);
        assert!(repair.contains(twin.repair), "{}: {repair}", twin.rule);
        assert_eq!(report.is_failed(), finding.is_fatal());
        tried.insert(twin.rule);
    }
    let in_files: BTreeSet<_> =
        rules::all().iter().filter(|it| it.seen_in == SeenIn::Files).map(|it| it.rule.id).collect();
    assert_eq!(tried, in_files, "every rule that files can show has a twin that breaks it");
}
