#![expect(clippy::needless_pass_by_value, reason = "tables read best with values in place")]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::names::annotation;

fn cluster(spec: Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"}, "spec": spec})
}

fn errors(verdict: &Verdict) -> Vec<String> {
    verdict.errors.iter().map(ToString::to_string).collect()
}

fn reference() -> Value {
    json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "K", "name": "n"})
}

fn topology() -> Value {
    json!({"classRef": {"name": "cc"}, "version": "v1.30.0"})
}

/// A topology with one part replaced.
fn with(path: &str, value: Value) -> Value {
    let mut topology = topology();
    let mut at = &mut topology;
    for name in path.split('.') {
        at = &mut at[name];
    }
    *at = value;
    json!({ "topology": topology })
}

#[test]
fn state_rules() {
    let labels = |labels: Value| json!({ "labels": labels });
    let deployment = |more: Value| {
        let mut one = json!({"class": "w", "name": "md"});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with("workers.machineDeployments", json!([one]))
    };
    let rolling = |unavailable: Value, surge: Value| {
        deployment(json!({"rollout": {"strategy": {"rollingUpdate": {
            "maxUnavailable": unavailable, "maxSurge": surge}}}}))
    };
    let taint = |key: &str| with("controlPlane.taints", json!([{"key": key, "effect": "NoSchedule"}]));
    let scaled = |name: &str| deployment(json!({"replicas": 1, "metadata": {"annotations": {name: "1"}}}));
    for (spec, expected) in [
        (json!({"infrastructureRef": reference()}), &[][..]),
        (json!({"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/48"]}}}), &[]),
        (
            json!({"clusterNetwork": {"pods": {"cidrBlocks": ["abc"]}, "services": {"cidrBlocks": ["10.0.0.0/8", "1.2.3.4"]}}}),
            &[
                r#"spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: "abc": must be a network"#,
                r#"spec.clusterNetwork.services.cidrBlocks[1]: Invalid value: "1.2.3.4": must be a network"#,
            ],
        ),
        (
            json!({"clusterNetwork": {"pods": {"cidrBlocks": "abc"}}}),
            &["spec.clusterNetwork.pods.cidrBlocks: Invalid value: \"abc\": must be a list"],
        ),
        (
            json!({"clusterNetwork": {"pods": {"cidrBlocks": [1]}}}),
            &["spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: 1: must be a string"],
        ),
        (json!("text"), &["spec: Invalid value: \"text\": must be an object"]),
        (json!({"topology": "text"}), &["spec.topology: Invalid value: \"text\": must be an object"]),
        (json!({"topology": {}}), &[]),
        (json!({ "topology": topology() }), &[]),
        (with("classRef.name", json!("")), &["spec.topology.classRef.name: Required value"]),
        (with("classRef", json!(null)), &["spec.topology.classRef.name: Required value"]),
        (with("version", json!("v1.30.0-rc.1+build")), &[]),
        (with("version", json!("")), &["spec.topology.version: Required value"]),
        (
            with("version", json!(1.3)),
            &[
                "spec.topology.version: Invalid value: 1.3: must be a string",
                "spec.topology.version: Required value",
            ],
        ),
        (
            with("version", json!("1.30.0")),
            &["spec.topology.version: Invalid value: \"1.30.0\": must start with v"],
        ),
        (
            with("version", json!("v1.30")),
            &["spec.topology.version: Invalid value: \"v1.30\": must be a semantic version"],
        ),
        (with("controlPlane.metadata", labels(json!({"a": "b"}))), &[]),
        (
            with("controlPlane.metadata", labels(json!({"a": "b c"}))),
            &["spec.topology.controlPlane.metadata.labels[a]: Invalid value: \"b c\""],
        ),
        (
            deployment(json!({"metadata": labels(json!({"/": "b"}))})),
            &["spec.topology.workers.machineDeployments[md].metadata.labels: Invalid value: \"/\""],
        ),
        (
            with("workers.machinePools", json!([{"name": "mp", "metadata": {"annotations": {" ": ""}}}])),
            &["spec.topology.workers.machinePools[mp].metadata.annotations: Invalid value: \" \""],
        ),
        (rolling(json!(0), json!(1)), &[]),
        (rolling(json!("25%"), json!(0)), &[]),
        (
            rolling(json!(0), json!("0%")),
            &[
                "spec.topology.workers.machineDeployments[md].rollout.strategy.rollingUpdate: Invalid value: 0: maxUnavailable and maxSurge cannot both be 0",
            ],
        ),
        (
            rolling(json!("x"), json!(-1)),
            &[
                "spec.topology.workers.machineDeployments[md].rollout.strategy.rollingUpdate.maxUnavailable: Invalid value: \"x\"",
                "spec.topology.workers.machineDeployments[md].rollout.strategy.rollingUpdate.maxSurge: Invalid value: -1",
            ],
        ),
        (taint("example.com/gpu"), &[]),
        (taint("node.kubernetes.io/out-of-service"), &[]),
        (taint("node.kubernetes.io/not-ready"), &["spec.topology.controlPlane.taints[0].key: Invalid value"]),
        (
            taint("node.cluster.x-k8s.io/uninitialized"),
            &["spec.topology.controlPlane.taints[0].key: Invalid value"],
        ),
        (
            taint("node.cloudprovider.kubernetes.io/x"),
            &["spec.topology.controlPlane.taints[0].key: Invalid value"],
        ),
        (
            taint("node-role.kubernetes.io/master"),
            &["spec.topology.controlPlane.taints[0].key: Invalid value"],
        ),
        (taint("a b"), &["spec.topology.controlPlane.taints[0].key: Invalid value"]),
        (
            with("workers.machineDeployments", json!([{"name": "a"}, {"name": "b"}, {"name": "a"}, {}])),
            &[
                "spec.topology.workers.machineDeployments[2].name: Duplicate value: \"a\"",
                "spec.topology.workers.machineDeployments[3].name: Required value",
            ],
        ),
        (
            with("workers.machinePools", json!([{"name": "a"}, {"name": "a"}])),
            &["spec.topology.workers.machinePools[1].name: Duplicate value: \"a\""],
        ),
        (deployment(json!({"healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 0}}})), &[]),
        (
            deployment(json!({"healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 29}}})),
            &[
                "spec.topology.workers.machineDeployments[md].healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 29",
            ],
        ),
        (
            with(
                "controlPlane.healthCheck",
                json!({"checks": {"nodeStartupTimeoutSeconds": 1}, "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "many"}}}),
            ),
            &[
                "spec.topology.controlPlane.healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 1",
                "spec.topology.controlPlane.healthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: \"many\"",
            ],
        ),
        (
            deployment(json!({"healthCheck": {"remediation": {"maxInFlight": "x%"}}})),
            &[
                "spec.topology.workers.machineDeployments[md].healthCheck.remediation.maxInFlight: Invalid value",
            ],
        ),
        (scaled("other"), &[]),
        (
            scaled(annotation::AUTOSCALER_MIN_SIZE),
            &["spec.topology.workers.machineDeployments[md].replicas: Invalid value: 1"],
        ),
        (
            scaled(annotation::AUTOSCALER_MAX_SIZE),
            &["spec.topology.workers.machineDeployments[md].replicas: Invalid value: 1"],
        ),
    ] {
        let found = errors(&validate(&cluster(spec.clone()), None));
        assert_eq!(found.len(), expected.len(), "{spec}: {found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{spec}: {found}");
        }
    }
}

#[test]
fn names_and_annotations() {
    for (name, allowed) in [("c", true), ("a.b", true), (&"x".repeat(63), true), (&"x".repeat(64), false)] {
        let mut object = cluster(json!({"infrastructureRef": reference()}));
        object["metadata"]["name"] = json!(name);
        let found = errors(&validate(&object, None));
        assert_eq!(found.is_empty(), allowed, "{name}: {found:?}");
        assert_eq!(errors(&default(&object, None)), found, "the schema would echo the whole name");
        let expected = "metadata.name: Too long: may not be more than 63 bytes, but is 64: ";
        assert!(found.iter().all(|it| it.starts_with(expected) && !it.contains(name)), "{found:?}");
    }
    let mut object = cluster(json!({"infrastructureRef": reference()}));
    object["metadata"]["name"] = json!("a..b_");
    let found = errors(&validate(&object, None));
    assert!(
        found[0].starts_with("metadata.name: Invalid value: \"a..b_\": must be a valid label"),
        "{found:?}"
    );
    for (value, allowed) in
        [("1", true), ("20", true), ("0", false), ("-1", false), ("x", false), ("", false)]
    {
        let mut object = cluster(json!({ "topology": topology() }));
        object["metadata"]["annotations"] = json!({annotation::TOPOLOGY_UPGRADE_CONCURRENCY: value});
        assert_eq!(errors(&validate(&object, None)).is_empty(), allowed, "{value:?}");
        // Without a topology it is not read.
        object["spec"] = json!({"infrastructureRef": reference()});
        assert!(errors(&validate(&object, None)).is_empty());
    }
}

#[test]
fn a_cluster_without_references_is_warned_about_and_let_in() {
    let verdict = validate(&cluster(json!({"paused": true})), None);
    assert_eq!((verdict.errors.is_empty(), verdict.warnings), (true, vec![NO_REFERENCE.to_owned()]));
    // A controller that sets a finalizer is not warned again.
    let stored = cluster(json!({"paused": true}));
    let mut touched = stored.clone();
    touched["metadata"]["finalizers"] = json!(["f"]);
    assert_eq!(validate(&touched, Some(&stored)), Verdict::default());
}

#[test]
fn change_rules() {
    let both = json!({"infrastructureRef": reference(), "controlPlaneRef": reference()});
    let mut renamed = both.clone();
    renamed["infrastructureRef"]["name"] = json!("other");
    let version = |version: &str| with("version", json!(version));
    let note = |name: &str| Some(json!({ name: "" }));
    let not_removed = |field: &str| Some(format!("spec.{field}: Forbidden: cannot be removed"));
    for (old, new, annotations, expected) in [
        (both.clone(), both.clone(), None, None),
        (both.clone(), renamed, None, None),
        (both.clone(), json!({"controlPlaneRef": reference()}), None, not_removed("infrastructureRef")),
        (both.clone(), json!({"infrastructureRef": reference()}), None, not_removed("controlPlaneRef")),
        (version("v1.30.0"), both.clone(), None, not_removed("topology")),
        (version("v1.30.0"), json!({"topology": {}}), None, not_removed("topology")),
        (json!({}), both.clone(), None, None),
        (
            json!({"infrastructureRef": reference()}),
            json!({"infrastructureRef": reference(), "topology": topology()}),
            None,
            Some(
                "spec.topology.classRef: Forbidden: cannot be set on a Cluster that was created without"
                    .into(),
            ),
        ),
        (
            json!({"infrastructureRef": reference()}),
            json!({"infrastructureRef": reference(), "topology": topology()}),
            note(annotation::UNSAFE_UPDATE_CLASS),
            None,
        ),
        (version("v1.30.0"), version("v1.30.1"), None, None),
        (version("v1.30.0"), version("v1.31.9"), None, None),
        (version("v1.30.1-rc.1"), version("v1.30.1-rc.0"), None, None),
        (
            version("v1.30.1"),
            version("v1.30.0"),
            None,
            Some(
                "spec.topology.version: Invalid value: \"v1.30.0\": cannot be decreased from v1.30.1".into(),
            ),
        ),
        (version("v1.30.5"), version("v1.32.0"), None, None),
        (version("v1.30.5"), version("v2.0.0"), None, None),
        (
            json!({"topology": {"classRef": {"namespace": "n"}, "version": "v1.30.0"}}),
            json!({"topology": {"classRef": {"namespace": "n"}, "version": "v1.30.0"}, "paused": true}),
            None,
            None,
        ),
        (
            json!({"topology": {"classRef": {"namespace": "n"}, "version": "v1.30.0"}}),
            json!({"topology": topology()}),
            None,
            Some("spec.topology.classRef: Forbidden: cannot be set".into()),
        ),
        (version("v1.30.5"), version("v1.40.0"), note(annotation::UNSAFE_UPDATE_VERSION), None),
        (version("rubbish"), version("v1.40.0"), None, None),
    ] {
        let mut object = cluster(new.clone());
        if let Some(annotations) = &annotations {
            object["metadata"]["annotations"] = annotations.clone();
        }
        let found = errors(&validate(&object, Some(&cluster(old.clone()))));
        assert_eq!(found.len(), usize::from(expected.is_some()), "{old} -> {new}: {found:?}");
        if let Some(expected) = expected {
            assert!(found[0].starts_with(&expected), "{old} -> {new}: {found:?}");
        }
    }
    for (from, to, skips) in [
        ("v1.30.5", "v1.31.9", false),
        ("v1.30.5", "v1.32.0", true),
        ("v1.30.5", "v1.32.0-rc.1", true),
        ("v1.30.5", "v2.0.0", true),
    ] {
        let verdict = validate(&cluster(version(to)), Some(&cluster(version(from))));
        assert_eq!(
            verdict.warnings.iter().any(|it| it.contains("skips minor versions")),
            skips,
            "{verdict:?}"
        );
    }
    let mut bypassed = cluster(version("v1.40.0"));
    bypassed["metadata"]["annotations"] = json!({annotation::UNSAFE_UPDATE_VERSION: ""});
    let verdict = validate(&bypassed, Some(&cluster(version("v1.30.0"))));
    assert!(verdict.warnings[0].contains("is not checked"), "{:?}", verdict.warnings);
}

#[test]
fn what_was_wrong_before_does_not_block_an_update() {
    let broken =
        json!({"infrastructureRef": reference(), "clusterNetwork": {"pods": {"cidrBlocks": ["abc"]}}});
    let stored = cluster(broken.clone());
    let mut touched = stored.clone();
    touched["metadata"]["finalizers"] = json!(["f"]);
    assert_eq!(validate(&touched, Some(&stored)), Verdict::default(), "a finalizer is set without a word");
    let mut paused = stored.clone();
    paused["spec"]["paused"] = json!(true);
    let verdict = validate(&paused, Some(&stored));
    assert!(verdict.errors.is_empty() && verdict.warnings[0].contains("\"abc\""), "{verdict:?}");
    let mut worse = stored.clone();
    worse["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] = json!(["def"]);
    assert_eq!(errors(&validate(&worse, Some(&stored))).len(), 1, "what is changed must be right");

    // Nothing but a change rule keeps a Cluster that is being deleted.
    let mut deleting = worse.clone();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(validate(&deleting, Some(&stored)), Verdict::default());
    deleting["spec"]["infrastructureRef"] = json!(null);
    assert_eq!(errors(&validate(&deleting, Some(&stored))).len(), 1, "deletion still needs the reference");
}

#[test]
fn a_cluster_has_a_spec() {
    let empty = [json!({"op": "add", "path": "/spec", "value": {}})];
    let mut object = cluster(json!({}));
    assert_eq!(default(&object, None), Verdict::default());
    object["spec"] = json!(null);
    assert_eq!(default(&object, None).patch, empty);
    object.as_object_mut().unwrap().remove("spec");
    assert_eq!(default(&object, None).patch, empty);
    // One that was stored without must lose its finalizers.
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(default(&object, Some(&object)).patch, empty);
}

#[test]
fn references_are_complete() {
    let without = |field: &str| {
        let mut reference = reference();
        reference.as_object_mut().unwrap().remove(field);
        reference
    };
    for (name, group) in REFERENCES {
        for (part, words) in [
            (
                "apiGroup",
                format!(
                    "such as {group} (in v1beta1: apiVersion must have a group, such as {group}/v1beta1)"
                ),
            ),
            ("kind", "name the kind".to_owned()),
            ("name", "name the object".to_owned()),
        ] {
            let broken = cluster(json!({ name: without(part) }));
            let found = errors(&validate(&broken, None));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(&format!("spec.{name}.{part}: Required value: ")), "{found:?}");
            assert!(found[0].contains(&words), "{found:?}");
            assert_eq!(errors(&default(&broken, None)), found, "before the schema");
            let mut touched = broken.clone();
            touched["metadata"]["finalizers"] = json!(["f"]);
            assert_eq!(default(&touched, Some(&broken)), Verdict::default(), "stored as it is");
            assert_eq!(validate(&touched, Some(&broken)), Verdict::default(), "stored as it is");
        }
        assert!(validate(&cluster(json!({ name: {} })), None).errors.is_empty(), "not there at all");
    }
}

#[test]
fn references_of_v1beta1_stay_in_the_namespace() {
    let older = |namespace: &str| {
        let reference = json!({"apiVersion": "g.io/v1", "kind": "K", "name": "n", "namespace": namespace});
        conversion::to_v1beta2(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": "own"},
            "spec": {"infrastructureRef": reference, "controlPlaneRef": reference},
        }))
        .unwrap()
    };
    assert!(validate(&older("own"), None).errors.is_empty());
    assert!(validate(&older(""), None).errors.is_empty());
    let found = errors(&validate(&older("other"), None));
    assert_eq!(
        found,
        ["infrastructureRef", "controlPlaneRef"].map(|name| format!(
            "spec.{name}.namespace: Invalid value: \"other\": must be the Cluster's own namespace \"own\", or left out"
        ))
    );
    // A namespace that no API server lets in is not quoted as a whole.
    let mut long = older("other");
    long["metadata"]["namespace"] = json!("n".repeat(5000));
    for words in errors(&validate(&long, None)) {
        assert!(words.len() < 500 && words.contains("nnn…\" (5000 bytes), or left out"), "{words}");
    }
    // Stored before there was the rule, and another object since: what v1beta1 said is of no interest any more.
    let stored = older("other");
    assert!(validate(&stored, Some(&stored)).errors.is_empty());
    let mut renamed = stored.clone();
    for name in ["infrastructureRef", "controlPlaneRef"] {
        renamed["spec"][name]["name"] = json!("m");
    }
    let verdict = validate(&renamed, Some(&stored));
    assert!(verdict.errors.is_empty() && verdict.warnings.is_empty(), "{verdict:?}");
}

#[test]
fn only_a_topology_is_defaulted() {
    let of = |spec: Value| default(&cluster(spec), None);
    assert_eq!(of(json!({"clusterNetwork": {}})), Verdict::default());
    assert_eq!(of(json!({"topology": {}})), Verdict::default());
    assert_eq!(of(json!({ "topology": topology() })), Verdict::default());
    let bare = of(with("version", json!("1.30.0")));
    assert_eq!(bare.patch, [json!({"op": "add", "path": "/spec/topology/version", "value": "v1.30.0"})]);
    assert!(bare.errors.is_empty());
    assert_eq!(of(with("version", json!(7))), Verdict::default(), "the schema will say what is wrong");
    let nameless = with("classRef", json!(null));
    assert_eq!(errors(&of(nameless.clone())).len(), 1);
    assert!(
        default(&cluster(nameless.clone()), Some(&cluster(nameless))).errors.is_empty(),
        "stored as it is"
    );
}

#[test]
fn webhook_configurations_say_what_upstream_says() {
    let address = Address::Service { namespace: "capi-system", name: "capi-webhook-service" };
    let (mutating, validating) = webhook_configurations(address);
    let (mutating, validating) = (json!(mutating), json!(validating));
    for (configuration, name, path, operations) in [
        (&mutating, "default.cluster.cluster.x-k8s.io", MUTATE_PATH, json!(["CREATE", "UPDATE"])),
        (
            &validating,
            "validation.cluster.cluster.x-k8s.io",
            VALIDATE_PATH,
            json!(["CREATE", "UPDATE", "DELETE"]),
        ),
    ] {
        assert_eq!(
            configuration["webhooks"],
            json!([{
                "name": name,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "capi-system", "name": "capi-webhook-service", "path": path}},
                "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None",
                "rules": [{"apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["v1beta2"],
                    "operations": operations, "resources": ["clusters"]}],
            }])
        );
    }
    let (mutating, _) =
        webhook_configurations(Address::Url { base: "https://127.0.0.1:1", ca_bundle_pem: b"ca" });
    let webhook = &mutating.webhooks.unwrap()[0];
    let url = webhook.client_config.url.as_deref();
    assert_eq!(url, Some("https://127.0.0.1:1/mutate-cluster-x-k8s-io-v1beta2-cluster"));
}

/// Any JSON, with the names that the rules look at among its keys.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        "v[0-9]{1,3}\\.[0-9]{1,22}\\.[0-9]".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "metadata",
        "name",
        "spec",
        "topology",
        "classRef",
        "version",
        "controlPlane",
        "workers",
        "taints",
        "key",
        "machineDeployments",
        "machinePools",
        "healthCheck",
        "checks",
        "labels",
        "annotations",
        "clusterNetwork",
        "pods",
        "cidrBlocks",
        "infrastructureRef",
        "rollout",
        "strategy",
        "rollingUpdate",
        "maxSurge",
        "replicas",
        "namespace",
        "controlPlaneRef",
        "deletionTimestamp",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A Cluster whose topology has any class and version.
fn any_topology() -> impl Strategy<Value = Value> {
    (anything(), anything(), anything(), anything()).prop_map(|(name, namespace, version, workers)| {
        cluster(json!({"topology": {
            "classRef": {"name": name, "namespace": namespace}, "version": version, "workers": workers,
        }}))
    })
}

proptest! {
    #[test]
    fn a_topology_that_is_stored_can_be_stored_again(stored in any_topology(), paused: bool) {
        let mut new = stored.clone();
        new["spec"]["paused"] = json!(paused);
        let again = validate(&new, Some(&stored));
        prop_assert!(again.errors.is_empty(), "{:?}", again.errors);
    }

    #[test]
    fn no_object_is_too_strange_to_be_judged(new in anything(), old in anything()) {
        default(&new, Some(&old));
        validate(&new, None);
        validate(&new, Some(&old));
        // What is stored can always be stored again.
        let again = validate(&new, Some(&new));
        prop_assert!(again.errors.is_empty(), "{:?}", again.errors);
    }
}
