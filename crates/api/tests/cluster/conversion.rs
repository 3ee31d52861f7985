//! What conversion does to each field.

use capstan_api::cluster::conversion::{
    CONVERSION_DATA, ConversionError, ReferenceVersions, V1BETA1_DATA, to_v1beta1, to_v1beta2,
};
use serde_json::{Map, Value, json};

fn unknown(_: &str, _: &str) -> Option<String> {
    None
}

fn object(version: &str, body: &Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("cluster.x-k8s.io/{version}"),
        "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "ns"},
    });
    object.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    object
}

/// What is left without type and metadata.
fn body(mut object: Value) -> Value {
    for field in ["apiVersion", "kind", "metadata"] {
        object.as_object_mut().unwrap().remove(field);
    }
    object
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// Sets a value at a path such as `spec.topology.controlPlane` in otherwise empty objects.
fn nested(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, field| match field.strip_suffix("[]") {
        Some(field) => json!({field: [value]}),
        None => json!({field: value}),
    })
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (field, value) in from {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Adds what v1beta1 always shows.
fn completed(mut old: Value) -> Value {
    if old["spec"].is_object() {
        let mut spec = json!({"controlPlaneEndpoint": {"host": "", "port": 0}});
        merge(&mut spec, old["spec"].take());
        old["spec"] = spec;
    }
    if old["status"].is_object() {
        let mut status = json!({"infrastructureReady": false, "controlPlaneReady": false});
        merge(&mut status, old["status"].take());
        old["status"] = status;
    }
    old
}

fn up(old: &Value) -> Value {
    to_v1beta2(object("v1beta1", old)).unwrap()
}

fn down(new: &Value) -> Value {
    to_v1beta1(object("v1beta2", new), &unknown).unwrap()
}

/// Pairs that say the same; nothing is lost either way, and nothing need be parked.
#[test]
fn fields_have_counterparts() {
    let cases = [
        (json!({"spec": {"paused": true}}), json!({"spec": {"paused": true}})),
        (
            json!({"spec": {"clusterNetwork": {
                "apiServerPort": 6443, "pods": {"cidrBlocks": ["10.0.0.0/8"]},
                "services": {"cidrBlocks": ["10.1.0.0/16"]}, "serviceDomain": "cluster.local",
            }}}),
            json!({"spec": {"clusterNetwork": {
                "apiServerPort": 6443, "pods": {"cidrBlocks": ["10.0.0.0/8"]},
                "services": {"cidrBlocks": ["10.1.0.0/16"]}, "serviceDomain": "cluster.local",
            }}}),
        ),
        (
            json!({"spec": {"paused": true, "controlPlaneEndpoint": {"host": "", "port": 0}}}),
            json!({"spec": {"paused": true}}),
        ),
        (
            json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 0}}}),
            json!({"spec": {"controlPlaneEndpoint": {"host": "h"}}}),
        ),
        (
            json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}}),
            json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}}),
        ),
        (
            json!({"spec": {"availabilityGates": [{"conditionType": "A", "polarity": "Negative"}]}}),
            json!({"spec": {"availabilityGates": [{"conditionType": "A", "polarity": "Negative"}]}}),
        ),
        (
            json!({"spec": {
                "controlPlaneRef": {"apiVersion": "c/v1beta2", "kind": "C", "name": "c", "namespace": "ns"},
                "infrastructureRef": {"apiVersion": "i/v1beta2", "kind": "I", "name": "i", "namespace": "ns"},
            }}),
            json!({"spec": {
                "controlPlaneRef": {"apiGroup": "c", "kind": "C", "name": "c"},
                "infrastructureRef": {"apiGroup": "i", "kind": "I", "name": "i"},
            }}),
        ),
        (
            json!({"spec": {"topology": {
                "class": "c", "classNamespace": "n", "version": "v1.33.0",
                "variables": [{"name": "v", "value": {"definitionFrom": "kept"}}],
            }}}),
            json!({"spec": {"topology": {
                "classRef": {"name": "c", "namespace": "n"}, "version": "v1.33.0",
                "variables": [{"name": "v", "value": {"definitionFrom": "kept"}}],
            }}}),
        ),
        (
            json!({"status": {"phase": "Pending", "observedGeneration": 3}}),
            json!({"status": {"phase": "Pending", "observedGeneration": 3}}),
        ),
        (
            json!({"status": {"infrastructureReady": true}}),
            json!({"status": {"initialization": {"infrastructureProvisioned": true}}}),
        ),
        (
            json!({"status": {"controlPlaneReady": true}}),
            json!({"status": {"initialization": {"controlPlaneInitialized": true}}}),
        ),
        (
            json!({"status": {"failureReason": "R", "failureMessage": "m"}}),
            json!({"status": {"deprecated": {"v1beta1": {"failureReason": "R", "failureMessage": "m"}}}}),
        ),
        // The two families of conditions change places and are never mixed.
        (
            json!({"status": {
                "conditions": [{"type": "Ready", "status": "True", "severity": "", "message": ""}],
                "v1beta2": {
                    "conditions": [{"type": "Available", "status": "True", "reason": "", "message": ""}],
                    "controlPlane": {"replicas": 0}, "workers": {"versions": [{"version": "v1"}]},
                },
            }}),
            json!({"status": {
                "deprecated": {"v1beta1": {
                    "conditions": [{"type": "Ready", "status": "True", "severity": "", "message": ""}],
                }},
                "conditions": [{"type": "Available", "status": "True", "reason": "", "message": ""}],
                "controlPlane": {"replicas": 0}, "workers": {"versions": [{"version": "v1"}]},
            }}),
        ),
        (json!({"metadataless": 1}), json!({"metadataless": 1})),
        (json!({}), json!({})),
    ];
    for (old, new) in cases {
        let up = up(&old);
        assert_eq!(body(up.clone()), new, "{old}");
        assert_eq!(annotation(&up, V1BETA1_DATA), None, "{old}");
        let down = down(&new);
        assert_eq!(body(down.clone()), completed(old), "{new}");
        assert_eq!(body(to_v1beta2(down).unwrap()), new);
    }
}

/// The same for what a topology says about groups of Machines.
#[test]
fn fields_of_topologies_have_counterparts() {
    let deletion = (
        json!({"nodeDrainTimeout": "1m30s", "nodeVolumeDetachTimeout": "0s", "nodeDeletionTimeout": "10s"}),
        json!({"deletion": {
            "nodeDrainTimeoutSeconds": 90, "nodeVolumeDetachTimeoutSeconds": 0, "nodeDeletionTimeoutSeconds": 10,
        }}),
    );
    let health_check = (
        json!({"machineHealthCheck": {
            "enable": false,
            "nodeStartupTimeout": "10m0s",
            "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5m0s"}],
            "unhealthyMachineConditions": [{"type": "X", "status": "Unknown", "timeout": "0s"}],
            "maxUnhealthy": "40%",
            "unhealthyRange": "[3-5]",
            "remediationTemplate": {"apiVersion": "r/v1", "kind": "R", "name": "r", "namespace": "ns"},
        }}),
        json!({"healthCheck": {
            "enabled": false,
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}],
                "unhealthyMachineConditions": [{"type": "X", "status": "Unknown", "timeoutSeconds": 0}],
            },
            "remediation": {
                "triggerIf": {"unhealthyLessThanOrEqualTo": "40%", "unhealthyInRange": "[3-5]"},
                "templateRef": {"apiVersion": "r/v1", "kind": "R", "name": "r"},
            },
        }}),
    );
    let variables = {
        let variables =
            json!({"variables": {"overrides": [{"name": "v", "value": null}, {"name": "w", "value": ""}]}});
        (variables.clone(), variables)
    };
    let plain = {
        let plain = json!({
            "metadata": {"labels": {"a": ""}, "annotations": {"b": "c"}},
            "replicas": 0,
            "taints": [{"key": "k", "effect": "NoExecute", "propagation": "Always"}],
        });
        (plain.clone(), plain)
    };
    let gates = {
        let gates =
            json!({"readinessGates": [{"conditionType": "X"}], "rollout": {"after": "2030-01-01T00:00:00Z"}});
        (gates.clone(), gates)
    };
    let strategies = [
        (
            json!({"strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "20%", "deletePolicy": "Oldest"},
                "remediation": {"maxInFlight": 1},
            }}),
            json!({
                "rollout": {"strategy": {
                    "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "20%"},
                }},
                "deletion": {"order": "Oldest"},
                "healthCheck": {"remediation": {"maxInFlight": 1}},
            }),
        ),
        (json!({"strategy": {"type": "OnDelete"}}), json!({"rollout": {"strategy": {"type": "OnDelete"}}})),
        (
            json!({"strategy": {"rollingUpdate": {"deletePolicy": "Newest"}}, "failureDomain": "f", "minReadySeconds": 0}),
            json!({"deletion": {"order": "Newest"}, "failureDomain": "f", "minReadySeconds": 0}),
        ),
    ];
    let pool = (
        json!({"failureDomains": ["a"], "minReadySeconds": 1}),
        json!({"failureDomains": ["a"], "minReadySeconds": 1}),
    );

    let control_plane =
        vec![deletion.clone(), health_check.clone(), variables.clone(), plain.clone(), gates.clone()];
    let deployment = [control_plane.clone(), strategies.to_vec()].concat();
    let pools = vec![deletion, variables, plain, pool];
    for (path, cases) in [
        ("spec.topology.controlPlane", control_plane),
        ("spec.topology.workers.machineDeployments[]", deployment),
        ("spec.topology.workers.machinePools[]", pools),
    ] {
        for (old, new) in cases {
            let (old, new) = (nested(path, old), nested(path, new));
            let up = up(&old);
            assert_eq!(body(up.clone()), new);
            assert_eq!(annotation(&up, V1BETA1_DATA), None, "{old}");
            let down = down(&new);
            assert_eq!(body(down.clone()), completed(old));
            assert_eq!(body(to_v1beta2(down).unwrap()), new);
        }
    }
}

/// What v1beta2 has no word for comes back from where it was parked.
#[test]
fn v1beta1_gets_back_what_v1beta2_cannot_say() {
    let topology = |field: Value| nested("spec.topology", field);
    for (old, new) in [
        (json!({"spec": {"paused": false}}), json!({"spec": {}})),
        (json!({"spec": {"availabilityGates": []}}), json!({"spec": {}})),
        (json!({"spec": {"clusterNetwork": {}}}), json!({"spec": {}})),
        (
            json!({"spec": {"clusterNetwork": {"apiServerPort": 0, "pods": {"cidrBlocks": []}}}}),
            json!({"spec": {}}),
        ),
        (json!({"spec": {"infrastructureRef": {}}}), json!({"spec": {}})),
        (
            json!({"spec": {"infrastructureRef": {
                "apiVersion": "i/v1alpha4", "kind": "I", "name": "i", "namespace": "elsewhere",
                "uid": "u", "resourceVersion": "1", "fieldPath": "f",
            }}}),
            json!({"spec": {"infrastructureRef": {"apiGroup": "i", "kind": "I", "name": "i"}}}),
        ),
        (
            json!({"spec": {"controlPlaneRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}}),
            json!({"spec": {"controlPlaneRef": {"kind": "ConfigMap", "name": "c"}}}),
        ),
        (
            topology(json!({"class": "c", "rolloutAfter": "2030-01-01T00:00:00Z"})),
            topology(json!({"classRef": {"name": "c"}})),
        ),
        (
            topology(json!({"variables": [{"name": "v", "definitionFrom": "d", "value": 1}]})),
            topology(json!({"variables": [{"name": "v", "value": 1}]})),
        ),
        (
            topology(json!({"controlPlane": {"nodeDrainTimeout": "1500ms"}})),
            topology(json!({"controlPlane": {"deletion": {"nodeDrainTimeoutSeconds": 1}}})),
        ),
        (
            topology(json!({"controlPlane": {"nodeDrainTimeout": "10m"}})),
            topology(json!({"controlPlane": {"deletion": {"nodeDrainTimeoutSeconds": 600}}})),
        ),
        (
            topology(json!({"controlPlane": {"nodeDrainTimeout": "1000000h"}})),
            topology(json!({"controlPlane": {"deletion": {"nodeDrainTimeoutSeconds": i32::MAX}}})),
        ),
        (
            topology(
                json!({"controlPlane": {"machineHealthCheck": {"unhealthyConditions": [{"type": "Ready"}]}}}),
            ),
            topology(json!({"controlPlane": {"healthCheck": {"checks": {
                "unhealthyNodeConditions": [{"type": "Ready", "timeoutSeconds": 0}],
            }}}})),
        ),
        (
            topology(json!({"version": "v1", "controlPlane": {"metadata": {}}})),
            topology(json!({"version": "v1"})),
        ),
        (
            topology(
                json!({"workers": {"machineDeployments": [{"name": "m", "failureDomain": "", "strategy": {}}]}}),
            ),
            topology(json!({"workers": {"machineDeployments": [{"name": "m"}]}})),
        ),
        (json!({"status": {}}), json!({})),
        (json!({"status": {"observedGeneration": 0, "v1beta2": {}}}), json!({})),
        (
            json!({"status": {"failureDomains": {"b": {"controlPlane": true}, "a": {"controlPlane": false, "attributes": {"x": ""}}}}}),
            json!({"status": {"failureDomains": [
                {"name": "a", "controlPlane": false, "attributes": {"x": ""}}, {"name": "b", "controlPlane": true},
            ]}}),
        ),
        (json!({"status": {"failureDomains": {}}}), json!({})),
    ] {
        let up = up(&old);
        assert_eq!(body(up.clone()), new);
        assert!(annotation(&up, V1BETA1_DATA).is_some(), "{old}");
        let down = to_v1beta1(up, &unknown).unwrap();
        assert_eq!(annotation(&down, V1BETA1_DATA), None);
        assert_eq!(body(down), completed(old));
    }
}

/// What v1beta1 has no word for comes back from where it was parked.
#[test]
fn v1beta2_gets_back_what_v1beta1_cannot_say() {
    for (new, old) in [
        (json!({"spec": {"paused": false}}), json!({"spec": {}})),
        (json!({"spec": {"controlPlaneEndpoint": {}}}), json!({"spec": {}})),
        (json!({"status": {"initialization": {}}}), json!({"status": {}})),
        (
            json!({"status": {"initialization": {"infrastructureProvisioned": false, "controlPlaneInitialized": true}}}),
            json!({"status": {"controlPlaneReady": true}}),
        ),
        (
            json!({"status": {"failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": false}, {"name": "c", "controlPlane": true}]}}),
            json!({"status": {"failureDomains": {"a": {}, "b": {}, "c": {"controlPlane": true}}}}),
        ),
        (json!({"status": {"deprecated": {"v1beta1": {}}}}), json!({"status": {}})),
        (
            nested(
                "spec.topology.controlPlane.healthCheck.checks.unhealthyNodeConditions[]",
                json!({"type": "Ready"}),
            ),
            nested(
                "spec.topology.controlPlane.machineHealthCheck.unhealthyConditions[]",
                json!({"type": "Ready", "timeout": "0s"}),
            ),
        ),
    ] {
        let down = down(&new);
        assert_eq!(body(down.clone()), completed(old));
        let up = to_v1beta2(down).unwrap();
        assert_eq!(body(up.clone()), new);
        assert_eq!(annotation(&up, CONVERSION_DATA), None);
    }
}

#[test]
fn false_is_restored_only_where_it_was_said_and_still_is() {
    // (v1beta1's paused, what was remembered, v1beta2's paused)
    for (paused, remembered, expected) in [
        (None, None, None),
        (Some(false), None, None),
        (Some(true), None, Some(true)),
        (None, Some(None), None),
        (None, Some(Some(false)), Some(false)),
        (Some(false), Some(Some(false)), Some(false)),
        (Some(false), Some(Some(true)), None),
        (None, Some(Some(true)), None),
        (Some(true), Some(Some(false)), Some(true)),
        (Some(true), Some(None), Some(true)),
    ] {
        let mut old = object("v1beta1", &json!({"spec": {}, "status": {}}));
        if let Some(paused) = paused {
            old["spec"]["paused"] = json!(paused);
            old["status"] = json!({"infrastructureReady": paused, "controlPlaneReady": paused});
        }
        if let Some(remembered) = remembered {
            let mut hub = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": {}});
            if let Some(paused) = remembered {
                hub["spec"]["paused"] = json!(paused);
                hub["status"] = json!({"initialization": {
                    "infrastructureProvisioned": paused, "controlPlaneInitialized": paused,
                }});
            }
            old["metadata"]["annotations"] = json!({CONVERSION_DATA: hub.to_string()});
        }
        let new = to_v1beta2(old).unwrap();
        let case = format!("{paused:?} {remembered:?}");
        assert_eq!(new["spec"].get("paused").and_then(Value::as_bool), expected, "{case}");
        let initialization = &new["status"]["initialization"];
        assert_eq!(initialization["infrastructureProvisioned"].as_bool(), expected, "{case}");
        assert_eq!(initialization["controlPlaneInitialized"].as_bool(), expected, "{case}");
    }
}

#[test]
fn the_whole_v1beta2_object_but_its_metadata_is_remembered() {
    let new =
        object("v1beta2", &json!({"spec": {"paused": false, "future": 1}, "status": {"phase": "Pending"}}));
    let old = to_v1beta1(new.clone(), &unknown).unwrap();
    let remembered: Value = serde_json::from_str(annotation(&old, CONVERSION_DATA).unwrap()).unwrap();
    let mut expected = new;
    expected.as_object_mut().unwrap().remove("metadata");
    assert_eq!(remembered, expected);
}

#[test]
fn what_somebody_edits_in_v1beta1_wins() {
    let new = object(
        "v1beta2",
        &json!({
            "spec": {
                "paused": false,
                "topology": {"classRef": {"name": "c"}, "version": "v1", "controlPlane": {
                    "deletion": {"nodeDrainTimeoutSeconds": 5},
                    "healthCheck": {"checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False"}]}},
                }},
            },
            "status": {"failureDomains": [{"name": "b"}, {"name": "a"}]},
        }),
    );
    let mut old = to_v1beta1(new, &unknown).unwrap();
    let control_plane = &mut old["spec"]["topology"]["controlPlane"];
    control_plane["nodeDrainTimeout"] = json!("7s");
    control_plane["machineHealthCheck"]["unhealthyConditions"][0]["timeout"] = json!("1s");
    old["spec"]["topology"]["class"] = json!("d");
    old["status"]["failureDomains"]["a"]["controlPlane"] = json!(true);
    assert_eq!(
        body(to_v1beta2(old.clone()).unwrap()),
        json!({
            "spec": {
                "paused": false,
                "topology": {"classRef": {"name": "d"}, "version": "v1", "controlPlane": {
                    "deletion": {"nodeDrainTimeoutSeconds": 7},
                    "healthCheck": {"checks": {"unhealthyNodeConditions": [
                        {"type": "Ready", "status": "False", "timeoutSeconds": 1},
                    ]}},
                }},
            },
            "status": {"failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": true}]},
        })
    );
    old["spec"] = json!({"paused": true});
    old["status"]["failureDomains"] = json!({"a": {}, "c": {}});
    assert_eq!(
        body(to_v1beta2(old).unwrap()),
        json!({
            "spec": {"paused": true},
            "status": {"failureDomains": [{"name": "a"}, {"name": "c", "controlPlane": false}]},
        })
    );
}

#[test]
fn what_somebody_edits_in_v1beta2_wins() {
    let old = object(
        "v1beta1",
        &json!({"spec": {
            "infrastructureRef": {"apiVersion": "i/v1alpha4", "kind": "I", "name": "i", "uid": "u"},
            "topology": {
                "class": "c",
                "version": "v1",
                "controlPlane": {"nodeDrainTimeout": "1500ms", "nodeDeletionTimeout": "90s"},
                "variables": [
                    {"name": "a", "definitionFrom": "x", "value": 1}, {"name": "b", "definitionFrom": "y", "value": 2},
                ],
            },
        }}),
    );
    let mut new = to_v1beta2(old).unwrap();
    new["spec"]["infrastructureRef"]["name"] = json!("j");
    let topology = &mut new["spec"]["topology"];
    topology["controlPlane"]["deletion"]["nodeDrainTimeoutSeconds"] = json!(2);
    topology["variables"] = json!([{"name": "b", "value": 3}, {"name": "c", "value": 4}]);
    assert_eq!(
        body(to_v1beta1(new, &unknown).unwrap()),
        completed(json!({"spec": {
            "infrastructureRef": {"apiVersion": "i/v1alpha4", "kind": "I", "name": "j", "namespace": "ns"},
            "topology": {
                "class": "c",
                "version": "v1",
                "controlPlane": {"nodeDrainTimeout": "2s", "nodeDeletionTimeout": "90s"},
                "variables": [{"name": "b", "definitionFrom": "y", "value": 3}, {"name": "c", "value": 4}],
            },
        }}))
    );
}

#[test]
fn references_are_written_in_the_version_that_is_known() {
    struct Installed;
    impl ReferenceVersions for Installed {
        fn version(&self, group: &str, kind: &str) -> Option<String> {
            ((group, kind) == ("i", "I")).then(|| "v1beta1".to_owned())
        }
    }
    let version = |object: &Value| object["spec"]["infrastructureRef"]["apiVersion"].clone();

    // Not remembered: the version that is known, or else the newest contract's.
    let new = object(
        "v1beta2",
        &json!({"spec": {"infrastructureRef": {"apiGroup": "i", "kind": "I", "name": "i"}}}),
    );
    assert_eq!(version(&to_v1beta1(new.clone(), &Installed).unwrap()), "i/v1beta1");
    assert_eq!(version(&to_v1beta1(new, &unknown).unwrap()), "i/v1beta2");

    // Remembered: only used if none is known.
    let old = object(
        "v1beta1",
        &json!({"spec": {"infrastructureRef": {"apiVersion": "i/v1alpha4", "kind": "I", "name": "i"}}}),
    );
    let new = to_v1beta2(old).unwrap();
    assert_eq!(version(&to_v1beta1(new.clone(), &Installed).unwrap()), "i/v1beta1");
    assert_eq!(version(&to_v1beta1(new.clone(), &unknown).unwrap()), "i/v1alpha4");

    // Of another kind: no longer remembered.
    let mut new = new;
    new["spec"]["infrastructureRef"]["kind"] = json!("Other");
    assert_eq!(version(&to_v1beta1(new, &unknown).unwrap()), "i/v1beta2");
}

#[test]
fn unknown_fields_stay_in_place() {
    let extra = |mut value: Value| {
        value["extra"] = json!({"a": [null, {}]});
        value
    };
    let old = extra(json!({
        "spec": extra(json!({
            "controlPlaneEndpoint": extra(json!({"host": "h", "port": 1})),
            "infrastructureRef": extra(json!({"apiVersion": "i/v1beta2", "kind": "I", "name": "i", "namespace": "ns"})),
            "topology": extra(json!({
                "class": "c",
                "version": "v",
                "controlPlane": extra(json!({"machineHealthCheck": extra(json!({"enable": true}))})),
                "workers": extra(json!({"machineDeployments": [extra(json!({
                    "class": "m", "name": "n", "strategy": extra(json!({"type": "OnDelete"})),
                }))]})),
            })),
        })),
        "status": extra(json!({
            "phase": "Pending", "v1beta2": extra(json!({"conditions": []})),
            "failureDomains": {"a": extra(json!({"controlPlane": true}))},
        })),
    }));
    let new = up(&old);
    for path in [
        "/extra",
        "/spec/extra",
        "/spec/controlPlaneEndpoint/extra",
        "/spec/infrastructureRef/extra",
        "/spec/topology/extra",
        "/spec/topology/controlPlane/extra",
        "/spec/topology/controlPlane/machineHealthCheck/extra",
        "/spec/topology/workers/extra",
        "/spec/topology/workers/machineDeployments/0/extra",
        "/spec/topology/workers/machineDeployments/0/strategy/extra",
        "/status/extra",
        "/status/v1beta2/extra",
        "/status/failureDomains/0/extra",
    ] {
        assert_eq!(new.pointer(path), Some(&json!({"a": [null, {}]})), "{path}");
    }
    assert_eq!(annotation(&new, V1BETA1_DATA), None);
    assert_eq!(body(to_v1beta1(new, &unknown).unwrap()), completed(old));
}

#[test]
fn an_object_may_have_next_to_nothing() {
    let bare =
        |version: &str| json!({"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster"});
    for metadata in [None, Some(Value::Null), Some(json!({}))] {
        let with_metadata = |version: &str, metadata: &Option<Value>| {
            let mut object = bare(version);
            if let Some(metadata) = metadata {
                object["metadata"] = metadata.clone();
            }
            object
        };
        let new = to_v1beta2(with_metadata("v1beta1", &metadata)).unwrap();
        assert_eq!(new, with_metadata("v1beta2", &Some(json!({}))));
        let old = to_v1beta1(with_metadata("v1beta2", &metadata), &unknown).unwrap();
        assert_eq!(body(old), json!({}));
    }
    // The API server converts objects of which only annotations are left.
    let mut old = to_v1beta1(object("v1beta2", &json!({"spec": {"paused": false}})), &unknown).unwrap();
    old.as_object_mut().unwrap().remove("spec");
    assert_eq!(to_v1beta2(old).unwrap(), object("v1beta2", &json!({})));
}

#[test]
fn the_same_version_is_left_alone() {
    let annotations = json!({CONVERSION_DATA: "{}", V1BETA1_DATA: "[]", "other": "x"});
    for version in ["v1beta1", "v1beta2"] {
        let mut object = object(version, &json!({"spec": {"paused": false, "x": []}, "status": 5}));
        object["metadata"]["annotations"] = annotations.clone();
        let converted = match version {
            "v1beta1" => to_v1beta1(object.clone(), &unknown),
            _ => to_v1beta2(object.clone()),
        };
        assert_eq!(converted.unwrap(), object);
    }
}

#[test]
fn other_annotations_are_kept_and_bad_ones_of_ours_are_ignored() {
    for bad in
        ["", "{", "[]", "5", "{}", r#"{"apiVersion":"cluster.x-k8s.io/v1alpha4","spec":{"paused":false}}"#]
    {
        let mut old = object("v1beta1", &json!({"spec": {"paused": true}}));
        old["metadata"]["annotations"] = json!({CONVERSION_DATA: bad, V1BETA1_DATA: bad, "other": "x"});
        let mut new = to_v1beta2(old).unwrap();
        assert_eq!(new["metadata"]["annotations"], json!({"other": "x"}), "{bad:?}");
        assert_eq!(new["spec"], json!({"paused": true}));

        new["metadata"]["annotations"][V1BETA1_DATA] = json!(bad);
        let old = to_v1beta1(new, &unknown).unwrap();
        let names: Vec<_> = old["metadata"]["annotations"].as_object().map(Map::keys).unwrap().collect();
        assert_eq!(names, [CONVERSION_DATA, "other"]);
    }
}

#[test]
fn values_without_meaning_are_named() {
    let error = |old: &Value| to_v1beta2(object("v1beta1", old)).unwrap_err().to_string();
    assert_eq!(
        error(&nested("spec.topology.controlPlane.nodeDrainTimeout", json!("soon"))),
        r#"spec.topology.controlPlane.nodeDrainTimeout: "soon" is not a duration such as 1h30m"#
    );
    assert_eq!(
        error(&nested(
            "spec.topology.workers.machineDeployments[].machineHealthCheck.unhealthyConditions[]",
            json!({"timeout": "5"})
        )),
        "spec.topology.workers.machineDeployments[0].machineHealthCheck.unhealthyConditions[0].timeout: \
         \"5\" is not a duration such as 1h30m"
    );
    assert_eq!(
        error(&json!({"spec": {"infrastructureRef": {"apiVersion": "a/b/c"}}})),
        r#"spec.infrastructureRef.apiVersion: "a/b/c" is not of the form group/version"#
    );
    assert_eq!(to_v1beta2(json!([])), Err(ConversionError::NotAnObject));
    for api_version in
        [json!(null), json!(5), json!("v1beta1"), json!("cluster.x-k8s.io/v1alpha4"), json!("other/v1beta1")]
    {
        let expected = ConversionError::UnknownVersion(api_version.as_str().unwrap_or_default().to_owned());
        assert_eq!(to_v1beta2(json!({"apiVersion": api_version})), Err(expected.clone()));
        assert_eq!(to_v1beta1(json!({"apiVersion": api_version}), &unknown), Err(expected));
    }
}

/// Values of the wrong type are not interpreted: they stay where they are.
#[test]
fn wrong_types_are_carried_through() {
    for old in [
        json!({"spec": 5}),
        json!({"spec": {"topology": []}}),
        json!({"spec": {"paused": "yes", "infrastructureRef": "x", "controlPlaneEndpoint": "h:1"}}),
        json!({"spec": {"infrastructureRef": {"apiVersion": 5, "kind": 1}}}),
        json!({"spec": {"topology": {"class": 5, "workers": {"machineDeployments": {"a": 1}, "machinePools": [1, null]}}}}),
        json!({"spec": {"topology": {"controlPlane": {"nodeDrainTimeout": 5, "machineHealthCheck": {"unhealthyConditions": {}}}}}}),
        json!({"spec": {"topology": {"controlPlane": {"deletion": "x", "nodeDrainTimeout": "5s"}}}}),
        json!({"spec": {"topology": {"controlPlane": {"machineHealthCheck": 5, "healthCheck": {"remediation": {"templateRef": {"name": "t"}}}}}}}),
        json!({"status": {"infrastructureReady": "yes", "failureDomains": ["a"], "conditions": 5, "v1beta2": 5}}),
        json!({"status": {"deprecated": 5, "conditions": []}}),
    ] {
        let new = to_v1beta2(object("v1beta1", &old)).unwrap();
        assert_eq!(body(to_v1beta1(new, &unknown).unwrap()), completed(old.clone()), "{old}");
        let as_new = object("v1beta2", &old);
        let back = to_v1beta2(to_v1beta1(as_new.clone(), &unknown).unwrap()).unwrap();
        assert_eq!(body(back), old, "as v1beta2");
    }
}

/// A type that fits neither version must not make the object unreadable.
#[test]
fn parked_data_cannot_spoil_an_object() {
    let spec = completed(json!({"spec": {"paused": true}}));
    for parked in [
        json!([{"at": ["spec", "paused"], "from": true, "to": "often"}]),
        json!([{"at": ["spec"], "from": spec["spec"], "to": []}]),
        json!([{"at": [], "from": spec, "to": 5}]),
    ] {
        let mut new = object("v1beta2", &json!({"spec": {"paused": true}}));
        new["metadata"]["annotations"] = json!({V1BETA1_DATA: parked.to_string()});
        assert_eq!(body(to_v1beta1(new, &unknown).unwrap()), spec, "{parked}");
    }

    let mut old = object("v1beta1", &json!({"spec": {"paused": true}}));
    let remembered = object("v1beta2", &json!({"spec": {"paused": true}, "status": {"failureDomains": [5]}}));
    old["metadata"]["annotations"] = json!({CONVERSION_DATA: remembered.to_string()});
    assert_eq!(body(to_v1beta2(old).unwrap()), json!({"spec": {"paused": true}}));

    let old = json!({"spec": {"paused": null}, "status": {"failureDomains": {"a": null}}});
    let new = up(&old);
    assert_eq!(
        body(new.clone()),
        json!({"spec": {}, "status": {"failureDomains": [{"name": "a", "controlPlane": false}]}})
    );
    assert_eq!(
        body(to_v1beta1(new, &unknown).unwrap()),
        completed(json!({"spec": {}, "status": {"failureDomains": {"a": {}}}}))
    );
}
