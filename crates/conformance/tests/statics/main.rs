//! A provider that keeps the contract, and a twin of it for each rule that breaks it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod fixture;

use std::collections::BTreeSet;

use capstan_conformance::{
    Contracts, Finding, NothingToCheck, Origin, Outcome, Report, Source,
    rules::{self, SeenIn},
    statics,
};
use fixture::{boolean, find, good, good_v1beta1, integer, object, remove, replace, schema, string};
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

/// A CRD with the given fields in `spec` and `status`.
fn kind(group: &str, kind: &str, labelled: bool, spec: &Value, status: &Value) -> Source {
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
        // Somebody else's.
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
