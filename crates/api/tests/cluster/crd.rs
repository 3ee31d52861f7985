//! The CRD that the API server gets.

use capstan_api::{
    cluster::{WEBHOOK_SERVICE, crd},
    crd::Conversion,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

fn as_json(crd: &CustomResourceDefinition) -> Value {
    serde_json::to_value(crd).unwrap()
}

fn schema(version: &str) -> Value {
    let crd = as_json(&crd(WEBHOOK_SERVICE));
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|candidate| candidate["name"] == version).unwrap();
    version["schema"]["openAPIV3Schema"].clone()
}

/// The schema at a path such as `spec.availabilityGates[].polarity`.
fn at<'a>(schema: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(schema, |schema, step| {
        let (name, suffix) = match step.find(['[', '{']) {
            Some(start) => step.split_at(start),
            None => (step, ""),
        };
        let property = &schema["properties"][name];
        match suffix {
            "[]" => &property["items"],
            "{}" => &property["additionalProperties"],
            _ => property,
        }
    })
}

#[test]
fn both_versions_are_served_and_converted_by_the_webhook() {
    let crd = as_json(&crd(WEBHOOK_SERVICE));
    assert_eq!(crd["metadata"]["name"], "clusters.cluster.x-k8s.io");
    assert_eq!(crd["metadata"]["labels"], json!({"cluster.x-k8s.io/provider": "cluster-api"}));
    assert_eq!(
        crd["spec"]["names"],
        json!({
            "kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster",
            "shortNames": ["cl"], "categories": ["cluster-api"],
        })
    );
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(
        crd["spec"]["conversion"],
        json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"service": {
                "namespace": "capi-system", "name": "capi-webhook-service", "path": "/convert",
            }},
            "conversionReviewVersions": ["v1"],
        }})
    );
    let versions: Vec<_> = crd["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            json!([
                version["name"],
                version["served"],
                version["storage"],
                version["deprecated"],
                version["subresources"]
            ])
        })
        .collect();
    let status = json!({"status": {}});
    assert_eq!(
        versions,
        [json!(["v1beta1", true, false, true, status]), json!(["v1beta2", true, true, null, status])]
    );
}

#[test]
fn without_a_webhook_only_the_stored_version_is_served() {
    let without = crd(Conversion::Nobody);
    assert_eq!(as_json(&without)["spec"]["conversion"], json!({"strategy": "None"}));
    let versions: Vec<_> = without
        .spec
        .versions
        .iter()
        .map(|version| (version.name.as_str(), version.served, version.storage))
        .collect();
    assert_eq!(versions, [("v1beta1", false, false), ("v1beta2", true, true)]);
    let mut expected = crd(WEBHOOK_SERVICE);
    expected.spec.conversion = without.spec.conversion.clone();
    expected.spec.versions[0].served = false;
    assert_eq!(without, expected);
}

#[test]
fn a_webhook_can_be_at_a_url() {
    let crd = as_json(&crd(Conversion::Url { url: "https://127.0.0.1:9443/convert", ca_bundle_pem: b"pem" }));
    assert_eq!(
        crd["spec"]["conversion"]["webhook"],
        json!({
            "clientConfig": {"url": "https://127.0.0.1:9443/convert", "caBundle": "cGVt"},
            "conversionReviewVersions": ["v1"],
        })
    );
}

const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const KIND: &str = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";

#[test]
fn v1beta2_constrains_its_fields() {
    let schema = schema("v1beta2");
    assert_eq!(schema["required"], json!(["spec"]));
    let machines = json!(["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    let phases = json!(["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]);
    let keyed_by = |key: &str, minimum: Option<u32>, maximum: u32| {
        let mut list = json!({
            "type": "array", "maxItems": maximum,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
        });
        if let Some(minimum) = minimum {
            list["minItems"] = json!(minimum);
        }
        list
    };
    let int_or_string =
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true});
    let seconds = json!({"type": "integer", "format": "int32", "minimum": 0.0, "maximum": null});
    for (path, constraints) in [
        ("metadata.name", json!({"type": "string", "maxLength": 63})),
        ("spec", json!({"minProperties": null, "required": null})),
        ("spec.paused", json!({"type": "boolean"})),
        ("spec.clusterNetwork", json!({"minProperties": 1})),
        (
            "spec.clusterNetwork.apiServerPort",
            json!({"type": "integer", "format": "int32", "minimum": 1.0, "maximum": 65535.0}),
        ),
        ("spec.clusterNetwork.pods", json!({"required": ["cidrBlocks"]})),
        (
            "spec.clusterNetwork.pods.cidrBlocks",
            json!({"minItems": 1, "maxItems": 100, "x-kubernetes-list-type": "atomic"}),
        ),
        ("spec.clusterNetwork.services.cidrBlocks[]", json!({"minLength": 1, "maxLength": 43})),
        ("spec.clusterNetwork.serviceDomain", json!({"minLength": 1, "maxLength": 253})),
        ("spec.controlPlaneEndpoint", json!({"minProperties": 1, "required": null})),
        ("spec.controlPlaneEndpoint.host", json!({"minLength": 1, "maxLength": 512})),
        ("spec.controlPlaneEndpoint.port", json!({"format": "int32", "minimum": 1.0, "maximum": 65535.0})),
        ("spec.controlPlaneRef", json!({"required": ["apiGroup", "kind", "name"]})),
        (
            "spec.controlPlaneRef.apiGroup",
            json!({"pattern": DNS_SUBDOMAIN, "minLength": 1, "maxLength": 253}),
        ),
        ("spec.infrastructureRef.kind", json!({"pattern": KIND, "minLength": 1, "maxLength": 63})),
        ("spec.infrastructureRef.name", json!({"pattern": DNS_SUBDOMAIN, "minLength": 1, "maxLength": 253})),
        ("spec.availabilityGates", keyed_by("conditionType", Some(1), 32)),
        ("spec.availabilityGates[]", json!({"required": ["conditionType"]})),
        ("spec.availabilityGates[].polarity", json!({"enum": ["Positive", "Negative"]})),
        ("spec.topology", json!({"required": ["classRef", "version"]})),
        ("spec.topology.classRef", json!({"required": ["name"]})),
        ("spec.topology.classRef.namespace", json!({"minLength": 1, "maxLength": 63})),
        ("spec.topology.version", json!({"minLength": 1, "maxLength": 256})),
        ("spec.topology.variables", keyed_by("name", Some(1), 1000)),
        ("spec.topology.variables[]", json!({"required": ["name", "value"]})),
        (
            "spec.topology.variables[].value",
            json!({"type": null, "x-kubernetes-preserve-unknown-fields": true}),
        ),
        ("spec.topology.controlPlane", json!({"minProperties": 1})),
        ("spec.topology.controlPlane.metadata", json!({"minProperties": 1})),
        ("spec.topology.controlPlane.metadata.labels{}", json!({"type": "string"})),
        ("spec.topology.controlPlane.replicas", json!({"format": "int32", "minimum": null})),
        ("spec.topology.controlPlane.rollout.after", json!({"type": "string", "format": "date-time"})),
        ("spec.topology.controlPlane.deletion.nodeDrainTimeoutSeconds", seconds.clone()),
        ("spec.topology.controlPlane.taints[].effect", json!({"enum": machines})),
        (
            "spec.topology.controlPlane.taints",
            json!({"minItems": 1, "maxItems": 64, "x-kubernetes-list-map-keys": ["key", "effect"]}),
        ),
        ("spec.topology.controlPlane.taints[].key", json!({"minLength": 1, "maxLength": 317})),
        ("spec.topology.controlPlane.taints[].value", json!({"minLength": 1, "maxLength": 63})),
        ("spec.topology.controlPlane.taints[].propagation", json!({"enum": ["Always", "OnInitialization"]})),
        ("spec.topology.controlPlane.healthCheck.checks.nodeStartupTimeoutSeconds", seconds.clone()),
        (
            "spec.topology.controlPlane.healthCheck.checks.unhealthyNodeConditions",
            json!({"minItems": 1, "maxItems": 100, "x-kubernetes-list-type": "atomic"}),
        ),
        (
            "spec.topology.controlPlane.healthCheck.checks.unhealthyNodeConditions[]",
            json!({"required": ["status", "timeoutSeconds", "type"]}),
        ),
        (
            "spec.topology.controlPlane.healthCheck.checks.unhealthyMachineConditions[].status",
            json!({"enum": ["True", "False", "Unknown"]}),
        ),
        (
            "spec.topology.controlPlane.healthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo",
            int_or_string.clone(),
        ),
        (
            "spec.topology.controlPlane.healthCheck.remediation.triggerIf.unhealthyInRange",
            json!({"pattern": r"^\[[0-9]+-[0-9]+\]$", "maxLength": 32}),
        ),
        (
            "spec.topology.controlPlane.healthCheck.remediation.templateRef",
            json!({"required": ["apiVersion", "kind", "name"]}),
        ),
        ("spec.topology.workers.machineDeployments", keyed_by("name", Some(1), 2000)),
        ("spec.topology.workers.machineDeployments[]", json!({"required": ["class", "name"]})),
        (
            "spec.topology.workers.machineDeployments[].name",
            json!({"pattern": DNS_SUBDOMAIN, "minLength": 1, "maxLength": 63}),
        ),
        ("spec.topology.workers.machineDeployments[].minReadySeconds", seconds),
        (
            "spec.topology.workers.machineDeployments[].deletion.order",
            json!({"enum": ["Random", "Newest", "Oldest"]}),
        ),
        ("spec.topology.workers.machineDeployments[].healthCheck.remediation.maxInFlight", int_or_string),
        (
            "spec.topology.workers.machineDeployments[].rollout.strategy",
            json!({"minProperties": 1, "required": ["type"]}),
        ),
        (
            "spec.topology.workers.machineDeployments[].rollout.strategy.type",
            json!({"enum": ["RollingUpdate", "OnDelete"]}),
        ),
        (
            "spec.topology.workers.machinePools[].failureDomains",
            json!({"minItems": 1, "maxItems": 100, "x-kubernetes-list-type": "atomic"}),
        ),
        ("spec.topology.workers.machinePools[].variables.overrides", keyed_by("name", Some(1), 1000)),
        ("status", json!({"minProperties": 1})),
        ("status.conditions", keyed_by("type", None, 32)),
        (
            "status.conditions[]",
            json!({"required": ["lastTransitionTime", "message", "reason", "status", "type"],
                   "x-kubernetes-map-type": "atomic"}),
        ),
        ("status.conditions[].status", json!({"type": "string", "enum": ["True", "False", "Unknown"]})),
        (
            "status.conditions[].reason",
            json!({"pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "minLength": 1, "maxLength": 1024}),
        ),
        ("status.conditions[].message", json!({"minLength": null, "maxLength": 32768})),
        ("status.conditions[].observedGeneration", json!({"format": "int64", "minimum": 0.0})),
        ("status.initialization", json!({"minProperties": 1})),
        ("status.controlPlane", json!({"minProperties": null})),
        ("status.controlPlane.versions", json!({"minItems": 1, "maxItems": 32})),
        ("status.controlPlane.versions[].replicas", json!({"minimum": 1.0})),
        ("status.workers.upgradePlan[]", json!({"required": ["version"]})),
        ("status.failureDomains", keyed_by("name", Some(1), 100)),
        ("status.failureDomains[].attributes{}", json!({"type": "string"})),
        ("status.phase", json!({"type": "string", "enum": phases})),
        ("status.observedGeneration", json!({"format": "int64", "minimum": 1.0})),
        (
            "status.deprecated.v1beta1.conditions[]",
            json!({"required": ["lastTransitionTime", "status", "type"]}),
        ),
        ("status.deprecated.v1beta1.conditions[].status", json!({"type": "string", "enum": null})),
        ("status.deprecated.v1beta1.conditions[].severity", json!({"maxLength": 32})),
        ("status.deprecated.v1beta1.failureMessage", json!({"minLength": 1, "maxLength": 10240})),
    ] {
        for (keyword, expected) in constraints.as_object().unwrap() {
            assert_eq!(&at(&schema, path)[keyword], expected, "{path}: {keyword}");
        }
    }
}

#[test]
fn v1beta1_is_looser() {
    let schema = schema("v1beta1");
    assert_eq!(schema["required"], Value::Null);
    for (path, constraints) in [
        ("metadata.name", json!({"type": "string", "maxLength": 63})),
        ("spec", json!({"minProperties": null})),
        ("spec.clusterNetwork.apiServerPort", json!({"format": "int32", "minimum": null, "maximum": null})),
        ("spec.clusterNetwork.pods.cidrBlocks", json!({"minItems": null, "x-kubernetes-list-type": null})),
        ("spec.controlPlaneEndpoint.host", json!({"minLength": null, "maxLength": 512})),
        ("spec.infrastructureRef", json!({"required": null, "x-kubernetes-map-type": "atomic"})),
        ("spec.topology", json!({"required": ["class", "version"]})),
        ("spec.topology.controlPlane.nodeDrainTimeout", json!({"type": "string", "format": null})),
        ("spec.topology.controlPlane.metadata", json!({"minProperties": null})),
        ("spec.topology.variables[].definitionFrom", json!({"minLength": null, "maxLength": 256})),
        ("status.conditions", json!({"maxItems": null, "x-kubernetes-list-type": null})),
        ("status.v1beta2.conditions[]", json!({"x-kubernetes-map-type": "atomic"})),
        ("status.failureDomains{}", json!({"type": "object"})),
        ("status.observedGeneration", json!({"minimum": null})),
    ] {
        for (keyword, expected) in constraints.as_object().unwrap() {
            assert_eq!(&at(&schema, path)[keyword], expected, "{path}: {keyword}");
        }
    }
}

#[test]
fn the_schema_is_structural_and_says_nothing_about_rust() {
    fn check(path: &str, schema: &Value) {
        let keywords = schema.as_object().unwrap();
        for foreign in ["nullable", "default", "title", "$ref", "oneOf", "allOf", "not", "definitions"] {
            assert!(!keywords.contains_key(foreign), "{path}: {foreign}");
        }
        let untyped = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
        assert!(
            keywords.contains_key("type") != untyped.iter().any(|key| keywords.contains_key(*key)),
            "{path}"
        );
        for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}.{name}");
            if path != ".metadata" {
                let description =
                    property["description"].as_str().unwrap_or_else(|| panic!("{path}: no description"));
                assert!(!description.contains('\n') && description.ends_with('.'), "{path}: {description}");
            }
            check(&path, property);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = keywords.get(inner) {
                check(&format!("{path}[]"), inner);
            }
        }
    }
    check("", &schema("v1beta1"));
    check("", &schema("v1beta2"));
}

#[test]
fn columns_are_those_that_people_are_used_to() {
    let crd = as_json(&crd(WEBHOOK_SERVICE));
    let columns = |index: usize| -> Vec<String> {
        let columns = crd["spec"]["versions"][index]["additionalPrinterColumns"].as_array().unwrap();
        let text = |column: &Value, field: &str| column[field].as_str().unwrap().to_owned();
        columns
            .iter()
            .map(|column| {
                let priority =
                    column.get("priority").map(|priority| format!(" {priority}")).unwrap_or_default();
                assert!(!text(column, "description").is_empty());
                format!(
                    "{} {} {}{priority}",
                    text(column, "name"),
                    text(column, "type"),
                    text(column, "jsonPath")
                )
            })
            .collect()
    };
    assert_eq!(
        columns(0),
        [
            "ClusterClass string .spec.topology.class",
            "Phase string .status.phase",
            "Age date .metadata.creationTimestamp",
            "Version string .spec.topology.version",
        ]
    );
    assert_eq!(
        columns(1),
        [
            "ClusterClass string .spec.topology.classRef.name",
            r#"Available string .status.conditions[?(@.type=="Available")].status"#,
            "CP Desired integer .status.controlPlane.desiredReplicas",
            "CP Current integer .status.controlPlane.replicas 10",
            "CP Ready integer .status.controlPlane.readyReplicas 10",
            "CP Available integer .status.controlPlane.availableReplicas",
            "CP Up-to-date integer .status.controlPlane.upToDateReplicas",
            "W Desired integer .status.workers.desiredReplicas",
            "W Current integer .status.workers.replicas 10",
            "W Ready integer .status.workers.readyReplicas 10",
            "W Available integer .status.workers.availableReplicas",
            "W Up-to-date integer .status.workers.upToDateReplicas",
            r#"Paused string .status.conditions[?(@.type=="Paused")].status 10"#,
            "Phase string .status.phase",
            "Age date .metadata.creationTimestamp",
            "Version string .spec.topology.version",
        ]
    );
}
