//! `Cluster` and `ClusterClass`.

use serde_json::{Value, json};

use super::{check, convert};

const TIME: &str = "2025-01-31T12:00:00Z";

#[test]
fn spec_of_a_cluster() {
    check(
        "Cluster",
        "spec",
        &[
            (json!({"paused": true}), json!({"paused": true})),
            (json!({"paused": false}), json!({"paused": false})),
            (json!({"clusterNetwork": {"apiServerPort": 0, "serviceDomain": ""}}), Value::Null),
            (
                json!({"clusterNetwork": {"pods": {"cidrBlocks": []}}}),
                json!({"clusterNetwork": {"pods": {}}}),
            ),
            (json!({"controlPlaneEndpoint": {"host": "", "port": 0}}), Value::Null),
            (
                json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}),
                json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}),
            ),
            (
                json!({"infrastructureRef": {"apiVersion": "g/v1", "kind": "K", "name": "n", "namespace": "x", "uid": "u",
                       "resourceVersion": "1", "fieldPath": "f"}}),
                json!({"infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}),
            ),
            (
                json!({"controlPlaneRef": {"apiVersion": "v1", "kind": "K", "name": "n"}}),
                json!({"controlPlaneRef": {"kind": "K", "name": "n"}}),
            ),
            (
                json!({"availabilityGates": [{"conditionType": "a", "polarity": ""}]}),
                json!({"availabilityGates": [{"conditionType": "a"}]}),
            ),
        ],
    );
}

#[test]
fn topology_of_a_cluster() {
    check(
        "Cluster",
        "spec.topology",
        &[
            (
                json!({"class": "c", "classNamespace": "n", "version": "v1"}),
                json!({"classRef": {"name": "c", "namespace": "n"}, "version": "v1"}),
            ),
            (json!({"rolloutAfter": TIME}), Value::Null),
            (
                json!({"variables": [{"name": "a", "value": null, "definitionFrom": "x"}, {"name": "b", "value": {"c": null}}]}),
                json!({"variables": [{"name": "a"}, {"name": "b", "value": {"c": null}}]}),
            ),
        ],
    );
    check(
        "Cluster",
        "spec.topology.controlPlane",
        &[
            (json!({"replicas": 0}), json!({"replicas": 0})),
            (json!({"metadata": {"labels": {"a": "b"}}}), json!({"metadata": {"labels": {"a": "b"}}})),
            (json!({"rollout": {"after": "2025-01-31T13:00:00+01:00"}}), json!({"rollout": {"after": TIME}})),
            (
                json!({"nodeDrainTimeout": "10m", "nodeVolumeDetachTimeout": "0s", "nodeDeletionTimeout": "1h0m0.9s"}),
                json!({"deletion": {"nodeDrainTimeoutSeconds": 600, "nodeVolumeDetachTimeoutSeconds": 0, "nodeDeletionTimeoutSeconds": 3600}}),
            ),
            (json!({"machineHealthCheck": {"enable": false}}), json!({"healthCheck": {"enabled": false}})),
        ],
    );
    check(
        "Cluster",
        "spec.topology.workers.machineDeployments[]",
        &[
            (
                json!({"class": "c", "name": "n", "failureDomain": "f"}),
                json!({"class": "c", "name": "n", "failureDomain": "f"}),
            ),
            (json!({"minReadySeconds": 0}), json!({"minReadySeconds": 0})),
            (
                json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "5%", "deletePolicy": "Oldest"},
                       "remediation": {"maxInFlight": 1}}}),
                json!({"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "5%"}}},
                       "deletion": {"order": "Oldest"}, "healthCheck": {"remediation": {"maxInFlight": 1}}}),
            ),
            (
                json!({"rollout": {"after": TIME}, "strategy": {"type": "OnDelete"}, "nodeDrainTimeout": "1s"}),
                json!({"rollout": {"after": TIME, "strategy": {"type": "OnDelete"}}, "deletion": {"nodeDrainTimeoutSeconds": 1}}),
            ),
            (
                json!({"machineHealthCheck": {"maxUnhealthy": 1}, "strategy": {"remediation": {"maxInFlight": 2}}}),
                json!({"healthCheck": {"remediation": {"maxInFlight": 2, "triggerIf": {"unhealthyLessThanOrEqualTo": 1}}}}),
            ),
            (
                json!({"variables": {"overrides": [{"name": "a", "value": 1}]}}),
                json!({"variables": {"overrides": [{"name": "a", "value": 1}]}}),
            ),
        ],
    );
    check(
        "Cluster",
        "spec.topology.workers.machinePools[]",
        &[(
            json!({"name": "n", "failureDomains": ["a"], "nodeDeletionTimeout": "1m"}),
            json!({"name": "n", "failureDomains": ["a"], "deletion": {"nodeDeletionTimeoutSeconds": 60}}),
        )],
    );
}

#[test]
fn status_of_a_cluster() {
    let old = json!({"type": "Ready", "status": "True", "severity": "", "lastTransitionTime": TIME});
    let new = json!({"type": "Ready", "status": "True", "lastTransitionTime": TIME});
    check(
        "Cluster",
        "status",
        &[
            (json!({}), Value::Null),
            (json!({"infrastructureReady": false, "controlPlaneReady": false}), Value::Null),
            (
                json!({"infrastructureReady": true, "controlPlaneReady": true}),
                json!({"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}),
            ),
            (
                json!({"failureDomains": {"b": {"attributes": {"x": "y"}}, "a": {"controlPlane": true}}}),
                json!({"failureDomains": [{"name": "a", "controlPlane": true}, {"name": "b", "controlPlane": false, "attributes": {"x": "y"}}]}),
            ),
            (
                json!({"conditions": [old], "failureReason": "r", "failureMessage": ""}),
                json!({"deprecated": {"v1beta1": {"conditions": [new], "failureReason": "r", "failureMessage": ""}}}),
            ),
            (json!({"conditions": []}), Value::Null),
            (
                json!({"v1beta2": {"conditions": [{"type": "A", "status": "True", "observedGeneration": 0}], "controlPlane": {"replicas": 0}, "workers": {}}}),
                json!({"conditions": [{"type": "A", "status": "True", "reason": "", "message": "", "lastTransitionTime": null}],
                       "controlPlane": {"replicas": 0}, "workers": {}}),
            ),
            (
                json!({"phase": "Provisioned", "observedGeneration": 2}),
                json!({"phase": "Provisioned", "observedGeneration": 2}),
            ),
        ],
    );
}

#[test]
fn spec_of_a_class() {
    let reference = json!({"apiVersion": "g/v1", "kind": "K", "name": "n", "namespace": "x"});
    let kept = json!({"apiVersion": "g/v1", "kind": "K", "name": "n"});
    check(
        "ClusterClass",
        "spec",
        &[
            (json!({"infrastructure": {"ref": reference}}), json!({"infrastructure": {"templateRef": kept}})),
            (
                json!({"infrastructure": {"ref": reference}, "infrastructureNamingStrategy": {"template": "t"}}),
                json!({"infrastructure": {"templateRef": kept, "naming": {"template": "t"}}}),
            ),
            (
                json!({"controlPlane": {"ref": reference, "machineInfrastructure": {"ref": reference}, "namingStrategy": {"template": "t"},
                       "nodeDrainTimeout": "1s", "machineHealthCheck": {"nodeStartupTimeout": "2s"}}}),
                json!({"controlPlane": {"templateRef": kept, "machineInfrastructure": {"templateRef": kept}, "naming": {"template": "t"},
                       "deletion": {"nodeDrainTimeoutSeconds": 1}, "healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 2}}}}),
            ),
            (
                json!({"upgrade": {"external": {"generateUpgradePlanExtension": "e"}}}),
                json!({"upgrade": {"external": {"generateUpgradePlanExtension": "e"}}}),
            ),
            (json!({"kubernetesVersions": ["v1"]}), json!({"kubernetesVersions": ["v1"]})),
        ],
    );
    let template = json!({"metadata": {"labels": {"a": "b"}}, "bootstrap": {"ref": reference}, "infrastructure": {"ref": reference}});
    let moved = json!({"metadata": {"labels": {"a": "b"}}, "bootstrap": {"templateRef": kept}, "infrastructure": {"templateRef": kept}});
    let with = |mut value: Value, more: Value| {
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    check(
        "ClusterClass",
        "spec.workers.machineDeployments[]",
        &[(
            json!({"class": "c", "template": template, "namingStrategy": {"template": "t"}, "strategy": {"type": "OnDelete"}}),
            with(
                moved.clone(),
                json!({"class": "c", "naming": {"template": "t"}, "rollout": {"strategy": {"type": "OnDelete"}}}),
            ),
        )],
    );
    check(
        "ClusterClass",
        "spec.workers.machinePools[]",
        &[(
            json!({"class": "c", "template": template, "minReadySeconds": 0, "nodeDrainTimeout": "1s"}),
            with(
                moved,
                json!({"class": "c", "minReadySeconds": 0, "deletion": {"nodeDrainTimeoutSeconds": 1}}),
            ),
        )],
    );
}

#[test]
fn variables_and_patches_of_a_class() {
    let schema = json!({
        "type": "object", "description": "", "minLength": 0, "uniqueItems": false, "default": false, "enum": ["", null],
        "properties": {"a": {"items": {"type": "string", "format": ""}}, "b": {}},
        "x-metadata": {"labels": {"a": "b"}}, "not": {}, "allOf": [{"maximum": 1}],
    });
    let kept = json!({
        "type": "object", "minLength": 0, "uniqueItems": false, "default": false, "enum": ["", null],
        "properties": {"a": {"items": {"type": "string"}}, "b": {}},
        "x-metadata": {"labels": {"a": "b"}}, "not": {}, "allOf": [{"maximum": 1}],
    });
    check(
        "ClusterClass",
        "spec.variables[]",
        &[
            (
                json!({"name": "v", "required": true, "metadata": {"labels": {"a": "b"}}, "schema": {"openAPIV3Schema": schema}}),
                json!({"name": "v", "required": true, "deprecatedV1Beta1Metadata": {"labels": {"a": "b"}}, "schema": {"openAPIV3Schema": kept}}),
            ),
            (json!({"name": "v"}), json!({"name": "v", "required": false})),
        ],
    );
    check(
        "ClusterClass",
        "spec.patches[]",
        &[
            (json!({"name": "p", "enabledIf": ""}), json!({"name": "p"})),
            (
                json!({"external": {"generateExtension": "g", "validateExtension": "v", "discoverVariablesExtension": "d", "settings": {"a": "b"}}}),
                json!({"external": {"generatePatchesExtension": "g", "validateTopologyExtension": "v", "discoverVariablesExtension": "d", "settings": {"a": "b"}}}),
            ),
            (
                json!({"definitions": [{"selector": {"apiVersion": "g/v1", "kind": "K", "matchResources": {"controlPlane": false, "machinePoolClass": {}}},
                       "jsonPatches": [{"op": "add", "path": "/a", "value": false}, {"op": "add", "valueFrom": {"variable": "v", "template": ""}}]}]}),
                json!({"definitions": [{"selector": {"apiVersion": "g/v1", "kind": "K", "matchResources": {"controlPlane": false, "machinePoolClass": {}}},
                       "jsonPatches": [{"op": "add", "path": "/a", "value": false}, {"op": "add", "valueFrom": {"variable": "v"}}]}]}),
            ),
        ],
    );
    check(
        "ClusterClass",
        "status.variables[]",
        &[(
            json!({"name": "v", "definitionsConflict": false, "definitions": [{"from": "inline", "required": true, "metadata": {"annotations": {"a": "b"}}}]}),
            json!({"name": "v", "definitionsConflict": false, "definitions": [{"from": "inline", "required": true, "deprecatedV1Beta1Metadata": {"annotations": {"a": "b"}}}]}),
        )],
    );
    let (new, _) =
        convert("ClusterClass", json!({"status": {"v1beta2": {"conditions": []}, "observedGeneration": 1}}))
            .unwrap();
    assert_eq!(new, json!({"status": {"observedGeneration": 1}}));
}
