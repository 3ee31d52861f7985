//! What becomes of each field, and laws that hold for all objects.

mod cluster;
mod properties;
mod workers;

use serde_json::{Value, json};

use super::{ConvertError, Converted, to_v1beta2};

/// Converts the parts of an object, without its type and metadata.
fn convert(kind: &str, mut body: Value) -> Result<(Value, Vec<String>), ConvertError> {
    body["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    body["kind"] = json!(kind);
    match to_v1beta2(body)? {
        Converted::Unchanged(_) => panic!("{kind} is not known"),
        Converted::Changed { mut object, lost, .. } => {
            let members = object.as_object_mut().unwrap();
            assert_eq!(members.remove("apiVersion"), Some(json!("cluster.x-k8s.io/v1beta2")));
            assert_eq!(members.remove("kind"), Some(json!(kind)));
            if members.get("metadata") == Some(&json!({})) {
                members.remove("metadata");
            }
            Ok((object, lost))
        }
    }
}

/// Checks a table: the part of an object at `path` as it was, and what becomes of it; null if nothing.
fn check(kind: &str, path: &str, table: &[(Value, Value)]) {
    for (old, new) in table {
        let (converted, _) = convert(kind, wrap(path, old.clone())).unwrap();
        let mut new = if new.is_null() { json!({}) } else { wrap(path, new.clone()) };
        // A Cluster always has a spec.
        if kind == "Cluster" && new.get("spec").is_none() {
            new["spec"] = json!({});
        }
        assert_eq!(converted, new, "{kind} {path} {old}");
    }
}

fn wrap(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, step| match step.strip_suffix("[]") {
        Some(step) => json!({step: [value]}),
        None => json!({step: value}),
    })
}

#[test]
fn what_is_none_of_ours_is_unchanged() {
    for (version, kind) in [
        ("cluster.x-k8s.io/v1beta2", "Cluster"),
        ("cluster.x-k8s.io/v1alpha4", "Cluster"),
        ("cluster.x-k8s.io/v1beta1", "Flotilla"),
        ("cluster.x-k8s.io/v1beta1", "List"),
        ("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane"),
        ("addons.cluster.x-k8s.io/v1beta1", "ClusterResourceSet"),
        ("v1", "Machine"),
    ] {
        let object =
            json!({"apiVersion": version, "kind": kind, "spec": {"paused": false, "labels": {}, "x": null}});
        assert_eq!(to_v1beta2(object.clone()), Ok(Converted::Unchanged(object)));
    }
}

#[test]
fn what_does_not_say_what_it_is_is_refused() {
    for (object, error) in [
        (json!([]), ConvertError::NotAnObject),
        (json!("x"), ConvertError::NotAnObject),
        (json!({"kind": "Cluster"}), ConvertError::Missing("apiVersion")),
        (json!({"kind": "Cluster", "apiVersion": ""}), ConvertError::Missing("apiVersion")),
        (json!({"apiVersion": "cluster.x-k8s.io/v1beta1"}), ConvertError::Missing("kind")),
        (json!({"apiVersion": "v1", "kind": 1}), ConvertError::Missing("kind")),
    ] {
        assert_eq!(to_v1beta2(object), Err(error));
    }
}

#[test]
fn values_that_mean_nothing_are_refused_by_their_path() {
    for (kind, body, error) in [
        (
            "Machine",
            json!({"spec": {"nodeDrainTimeout": "soon"}}),
            r#"spec.nodeDrainTimeout: "soon" is not a duration such as 1h30m"#,
        ),
        (
            "Machine",
            json!({"spec": {"nodeDrainTimeout": 10}}),
            "spec.nodeDrainTimeout: 10 is not a duration such as 1h30m",
        ),
        (
            "Machine",
            json!({"spec": {"version": 1.3}}),
            "spec.version: 1.3 is not a text; does it lack quotes?",
        ),
        (
            "Machine",
            json!({"status": {"lastUpdated": "today"}}),
            r#"status.lastUpdated: "today" is not a time such as 2025-01-31T12:00:00Z"#,
        ),
        ("MachineSet", json!({"spec": {"replicas": "3"}}), r#"spec.replicas: "3" is not a whole number"#),
        ("MachineSet", json!({"spec": {"replicas": 1.5}}), "spec.replicas: 1.5 is not a whole number"),
        ("MachineSet", json!({"spec": []}), "spec: [] is not an object"),
        (
            "MachineSet",
            json!({"spec": {"template": {"spec": {"infrastructureRef": {"apiVersion": "a/b/c"}}}}}),
            r#"spec.template.spec.infrastructureRef.apiVersion: "a/b/c" is not of the form group/version"#,
        ),
        (
            "Cluster",
            json!({"spec": {"topology": {"workers": {"machineDeployments": [{}, {"variables": {"overrides": {}}}]}}}}),
            "spec.topology.workers.machineDeployments[1].variables.overrides: {} is not a list",
        ),
        ("Cluster", json!({"spec": {"paused": "no"}}), r#"spec.paused: "no" is not true or false"#),
        (
            "Cluster",
            json!({"metadata": {"labels": {"a": true}}}),
            "metadata.labels.a: true is not a text; does it lack quotes?",
        ),
    ] {
        assert_eq!(convert(kind, body).unwrap_err().to_string(), error);
    }
}

#[test]
fn fields_that_are_not_known_stay() {
    let (new, lost) = convert(
        "MachineDeployment",
        json!({
            "extra": 1,
            "metadata": {"extra": null},
            "spec": {
                "extra": {"a": []},
                "rollout": {"extra": 2},
                "rolloutAfter": "2025-01-31T12:00:00Z",
                "strategy": {"type": "OnDelete", "extra": 3},
                "template": {"spec": {"infrastructureRef": {"extra": 4}}},
            },
        }),
    )
    .unwrap();
    assert_eq!(
        new,
        json!({
            "extra": 1,
            "metadata": {"extra": null},
            "spec": {
                "extra": {"a": []},
                "rollout": {"after": "2025-01-31T12:00:00Z", "strategy": {"type": "OnDelete"}, "extra": 2},
                "strategy": {"extra": 3},
                "template": {"spec": {"infrastructureRef": {"extra": 4}}},
            },
        })
    );
    assert!(lost.is_empty());
}

#[test]
fn fields_that_are_gone_are_told() {
    for (kind, body, gone) in [
        (
            "MachineDeployment",
            json!({"spec": {"progressDeadlineSeconds": 600, "revisionHistoryLimit": 1}}),
            &["spec.revisionHistoryLimit", "spec.progressDeadlineSeconds"][..],
        ),
        ("MachineDeployment", json!({"spec": {"progressDeadlineSeconds": null}}), &[]),
        ("Cluster", json!({"spec": {"topology": {"rolloutAfter": "x"}}}), &["spec.topology.rolloutAfter"]),
        (
            "Cluster",
            json!({"spec": {"topology": {"variables": [{"definitionFrom": "x"}]}}}),
            &["spec.topology.variables[0].definitionFrom"],
        ),
        ("Machine", json!({"spec": {"infrastructureRef": {"name": "x", "namespace": "y", "uid": "z"}}}), &[]),
    ] {
        assert_eq!(convert(kind, body).unwrap().1, gone);
    }
}

#[test]
fn variables_of_templates_stay_where_a_number_will_be() {
    let spec = json!({"replicas": "${COUNT}", "paused": "${PAUSED:=true}", "clusterName": "${NAME}"});
    check("MachineDeployment", "spec", &[(spec.clone(), spec)]);
    let timeout = json!({"spec": {"nodeDrainTimeout": "${TIMEOUT}"}});
    assert!(convert("Machine", timeout).is_err(), "10m would become 10m seconds");
}

#[test]
fn metadata_keeps_what_it_says() {
    check(
        "MachineDrainRule",
        "metadata",
        &[
            (
                json!({"name": "x", "labels": {}, "annotations": null, "creationTimestamp": null}),
                json!({"name": "x"}),
            ),
            (json!({"generation": 0, "finalizers": [], "namespace": ""}), Value::Null),
            (
                json!({"creationTimestamp": "2025-01-31T12:00:00.9+01:00", "deletionGracePeriodSeconds": 0}),
                json!({"creationTimestamp": "2025-01-31T11:00:00Z", "deletionGracePeriodSeconds": 0}),
            ),
            (
                json!({"ownerReferences": [{"name": "x", "controller": false}]}),
                json!({"ownerReferences": [{"apiVersion": "", "kind": "", "name": "x", "uid": "", "controller": false}]}),
            ),
            (
                json!({"managedFields": [{"fieldsV1": {"f:a": {}}}]}),
                json!({"managedFields": [{"fieldsV1": {"f:a": {}}}]}),
            ),
        ],
    );
}

#[test]
fn what_a_server_remembers_of_a_machine_comes_back() {
    let data = json!({"spec": {"minReadySeconds": 5, "version": "v9"}, "status": {"phase": "Updating", "failureDomain": "a"}});
    let annotations = json!({"cluster.x-k8s.io/conversion-data": data.to_string()});
    let body = |annotations| json!({"metadata": {"annotations": annotations}, "spec": {"clusterName": "c"}, "status": {"phase": "Running"}});
    let (new, _) = convert("Machine", body(annotations.clone())).unwrap();
    assert_eq!(
        new,
        json!({"spec": {"clusterName": "c", "minReadySeconds": 5}, "status": {"phase": "Updating", "failureDomain": "a"}}),
    );
    let (new, _) = convert("MachineSet", json!({"metadata": {"annotations": annotations}})).unwrap();
    assert_eq!(new, json!({}), "only Machines remember");
    let (new, _) =
        convert("Machine", body(json!({"cluster.x-k8s.io/conversion-data": "?", "a": "b"}))).unwrap();
    assert_eq!(new["metadata"], json!({"annotations": {"a": "b"}}));
}

#[test]
fn lists_of_a_kind_are_converted_item_by_item() {
    let list = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineSetList",
        "items": [{"metadata": {"name": "x"}, "spec": {"deletePolicy": "Oldest"}}],
    });
    let Ok(Converted::Changed { object, .. }) = to_v1beta2(list) else { panic!("not converted") };
    assert_eq!(object["apiVersion"], "cluster.x-k8s.io/v1beta2");
    assert_eq!(object["items"][0]["spec"], json!({"deletion": {"order": "Oldest"}}));
    let list = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineSetList",
        "items": [{}, {"spec": {"replicas": "x"}}],
    });
    let error = to_v1beta2(list).unwrap_err().to_string();
    assert_eq!(error, r#"items[1].spec.replicas: "x" is not a whole number"#);
}
