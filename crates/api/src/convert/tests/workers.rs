//! `Machine` and the kinds around it.

use serde_json::{Value, json};

use super::check;

const TIME: &str = "2025-01-31T12:00:00Z";

#[test]
fn spec_of_a_machine() {
    check(
        "Machine",
        "spec",
        &[
            (
                json!({"clusterName": "c", "version": "v1", "providerID": "p", "failureDomain": "f"}),
                json!({"clusterName": "c", "version": "v1", "providerID": "p", "failureDomain": "f"}),
            ),
            (json!({"version": "", "bootstrap": {}, "infrastructureRef": {}}), Value::Null),
            (json!({"readinessGates": []}), json!({})),
            (json!({"bootstrap": {"dataSecretName": ""}}), json!({"bootstrap": {"dataSecretName": ""}})),
            (
                json!({"bootstrap": {"configRef": {"apiVersion": "g/v1", "kind": "K", "name": "n", "namespace": "x"}}}),
                json!({"bootstrap": {"configRef": {"apiGroup": "g", "kind": "K", "name": "n"}}}),
            ),
            (
                json!({"nodeDrainTimeout": "-1s", "nodeDeletionTimeout": "1000000h"}),
                json!({"deletion": {"nodeDrainTimeoutSeconds": -1, "nodeDeletionTimeoutSeconds": i32::MAX}}),
            ),
            (json!({"taints": [{"key": "a", "value": ""}]}), json!({"taints": [{"key": "a"}]})),
        ],
    );
}

#[test]
fn status_of_a_machine() {
    check(
        "Machine",
        "status",
        &[
            (
                json!({"nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}}),
                json!({"nodeRef": {"name": "n"}}),
            ),
            (
                json!({"bootstrapReady": true, "infrastructureReady": false}),
                json!({"initialization": {"bootstrapDataSecretCreated": true}}),
            ),
            (json!({"lastUpdated": TIME, "certificatesExpiryDate": null}), json!({"lastUpdated": TIME})),
            (json!({"deletion": {}}), json!({"deletion": {}})),
            (
                json!({"deletion": {"nodeDrainStartTime": TIME, "waitForPreDrainHookStartTime": null}}),
                json!({"deletion": {"nodeDrainStartTime": TIME}}),
            ),
            (
                json!({"addresses": [{"type": "Hostname", "address": ""}]}),
                json!({"addresses": [{"type": "Hostname"}]}),
            ),
            (json!({"failureMessage": "m"}), json!({"deprecated": {"v1beta1": {"failureMessage": "m"}}})),
        ],
    );
}

#[test]
fn machine_deployment() {
    check(
        "MachineDeployment",
        "spec",
        &[
            (json!({"selector": {"matchLabels": null}}), Value::Null),
            (json!({"selector": {"matchLabels": {}}}), json!({"selector": {}})),
            (
                json!({"minReadySeconds": 0, "template": {"spec": {"clusterName": "c"}}}),
                json!({"template": {"spec": {"clusterName": "c", "minReadySeconds": 0}}}),
            ),
            (json!({"rolloutAfter": TIME}), json!({"rollout": {"after": TIME}})),
            (
                json!({"machineNamingStrategy": {"template": "t"}}),
                json!({"machineNaming": {"template": "t"}}),
            ),
            (
                json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0, "deletePolicy": "Newest"},
                       "remediation": {"maxInFlight": "20%"}}}),
                json!({"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
                       "deletion": {"order": "Newest"}, "remediation": {"maxInFlight": "20%"}}),
            ),
            (json!({"paused": false, "replicas": 0}), json!({"paused": false, "replicas": 0})),
            (json!({"replicas": 3.0}), json!({"replicas": 3})),
        ],
    );
    check(
        "MachineDeployment",
        "status",
        &[
            (json!({}), Value::Null),
            (
                json!({"replicas": 3, "readyReplicas": 2, "v1beta2": {"readyReplicas": 0, "upToDateReplicas": 1}}),
                json!({"replicas": 3, "readyReplicas": 0, "upToDateReplicas": 1, "deprecated": {"v1beta1":
                       {"readyReplicas": 2, "availableReplicas": 0, "unavailableReplicas": 0, "updatedReplicas": 0}}}),
            ),
            (
                json!({"phase": "Running", "selector": "a=b", "versions": [{"version": "v1", "replicas": 0}]}),
                json!({"phase": "Running", "selector": "a=b", "versions": [{"version": "v1"}], "replicas": 0, "deprecated": {"v1beta1":
                       {"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 0, "updatedReplicas": 0}}}),
            ),
        ],
    );
}

#[test]
fn machine_set() {
    check(
        "MachineSet",
        "spec",
        &[
            (json!({"deletePolicy": "Oldest"}), json!({"deletion": {"order": "Oldest"}})),
            (json!({"minReadySeconds": 0}), Value::Null),
            (json!({"minReadySeconds": 7}), json!({"template": {"spec": {"minReadySeconds": 7}}})),
            (
                json!({"machineNamingStrategy": {"template": "t"}}),
                json!({"machineNaming": {"template": "t"}}),
            ),
        ],
    );
    check(
        "MachineSet",
        "status",
        &[(
            json!({"replicas": 1, "fullyLabeledReplicas": 1, "failureReason": "r"}),
            json!({"replicas": 1, "deprecated": {"v1beta1":
                   {"fullyLabeledReplicas": 1, "readyReplicas": 0, "availableReplicas": 0, "failureReason": "r"}}}),
        )],
    );
}

#[test]
fn machine_pool() {
    check(
        "MachinePool",
        "spec",
        &[
            (
                json!({"minReadySeconds": 0, "failureDomains": ["a"]}),
                json!({"template": {"spec": {"minReadySeconds": 0}}, "failureDomains": ["a"]}),
            ),
            (json!({"providerIDList": ["a"]}), json!({"providerIDList": ["a"]})),
        ],
    );
    check(
        "MachinePool",
        "status",
        &[
            (
                json!({"replicas": 2, "readyReplicas": 1, "unavailableReplicas": 0, "infrastructureReady": true}),
                json!({"replicas": 2, "initialization": {"infrastructureProvisioned": true}, "deprecated": {"v1beta1": {"readyReplicas": 1}}}),
            ),
            (
                json!({"nodeRefs": [{"kind": "Node", "name": "n", "namespace": ""}]}),
                json!({"replicas": 0, "nodeRefs": [{"kind": "Node", "name": "n"}]}),
            ),
        ],
    );
}

#[test]
fn machine_health_check() {
    let reference = json!({"apiVersion": "g/v1", "kind": "K", "name": "n"});
    check(
        "MachineHealthCheck",
        "spec",
        &[
            (
                json!({"nodeStartupTimeout": "10m", "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "5m"}],
                       "unhealthyMachineConditions": [{"type": "A", "status": "False"}]}),
                json!({"checks": {"nodeStartupTimeoutSeconds": 600,
                       "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}],
                       "unhealthyMachineConditions": [{"type": "A", "status": "False", "timeoutSeconds": 0}]}}),
            ),
            (
                json!({"maxUnhealthy": "40%", "unhealthyRange": "[1-2]", "remediationTemplate": reference}),
                json!({"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%", "unhealthyInRange": "[1-2]"}, "templateRef": reference}}),
            ),
            (
                json!({"maxUnhealthy": 0}),
                json!({"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": 0}}}),
            ),
            (json!({"unhealthyConditions": [], "unhealthyRange": ""}), Value::Null),
        ],
    );
    check(
        "MachineHealthCheck",
        "status",
        &[(
            json!({"expectedMachines": 3, "targets": ["a"], "conditions": [{"type": "A", "status": "True", "lastTransitionTime": TIME}]}),
            json!({"expectedMachines": 3, "currentHealthy": 0, "remediationsAllowed": 0, "targets": ["a"],
                   "deprecated": {"v1beta1": {"conditions": [{"type": "A", "status": "True", "lastTransitionTime": TIME}]}}}),
        )],
    );
}

#[test]
fn machine_drain_rule() {
    let spec = json!({"drain": {"behavior": "Drain", "order": 0}, "machines": [{"selector": {}}],
                      "pods": [{"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]});
    check("MachineDrainRule", "spec", &[(spec.clone(), spec)]);
}
