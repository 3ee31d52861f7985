//! Objects come out as they come out of Go's structs, and nothing of them is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use capstan_manifest::typed::{Mismatch, Struct};
use capstan_manifest::yaml;
use serde_json::{Value, json};

/// One JSON object a line: a name for the case, an object of our making, and what Go made of it.
const NORMALISED_BY_GO: &str = include_str!("fixtures/normalised-by-go.jsonl");

fn normalised(object: &Value) -> Result<Value, Mismatch> {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let mut content = object.as_object().unwrap().clone();
    Struct::of(group, version, object["kind"].as_str().unwrap()).unwrap().normalise(&mut content)?;
    Ok(Value::Object(content))
}

fn deployment(pod: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}})
}

#[test]
fn does_what_go_does() {
    for line in NORMALISED_BY_GO.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        // Numbers are the same if they are written the same.
        let written = yaml::to_string(&normalised(&case["in"]).unwrap());
        assert_eq!(written, yaml::to_string(&case["out"]), "case: {}", case["case"]);
    }
    assert!(NORMALISED_BY_GO.lines().count() > 80);
}

#[test]
fn doing_it_again_changes_nothing() {
    for line in NORMALISED_BY_GO.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        assert_eq!(normalised(&case["out"]).unwrap(), case["out"], "case: {}", case["case"]);
    }
}

#[test]
fn unknown_fields_are_kept() {
    let pod =
        json!({"containers": [{"name": "a", "resources": {}, "novelty": {"a": [null]}}], "novelty": null});
    let object = normalised(&deployment(&pod)).unwrap();
    assert_eq!(object["spec"]["template"]["spec"], pod);
}

/// Go writes null first, and nothing when it reads that again.
#[test]
fn an_empty_list_of_schemas_is_left_out() {
    let crd = |schema: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    };
    assert_eq!(normalised(&crd(json!({"items": []}))).unwrap(), normalised(&crd(json!({}))).unwrap());
}

/// Go drops the suffix, and with it the size.
#[test]
fn quantities_beyond_the_largest_suffix_keep_their_size() {
    for (quantity, expected) in
        [("1000E", "1000E"), ("100000000000000000000000", "100000E"), ("12000000P", "12000E")]
    {
        let object = normalised(&deployment(&json!({"overhead": {"cpu": quantity}}))).unwrap();
        assert_eq!(object["spec"]["template"]["spec"]["overhead"]["cpu"], expected, "{quantity}");
    }
}

#[test]
fn mismatches_say_where_they_are() {
    let container = |field: &str, value: Value| deployment(&json!({"containers": [{}, {field: value}]}));
    let crd = |schema: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    };
    let at = |rest: &str| format!("spec.template.spec.containers[1].{rest}");
    let in_schema = |rest: &str| format!("spec.versions[0].schema.openAPIV3Schema.{rest}");
    let long = "x".repeat(100);
    for (object, expected) in [
        (container("name", json!(1)), at("name: expected a string, found the number 1")),
        (container("tty", json!("true")), at("tty: expected a boolean, found the string \"true\"")),
        (container("args", json!("a")), at("args: expected a list, found the string \"a\"")),
        (container("args", json!(["a", 1.5])), at("args[1]: expected a string, found the number 1.5")),
        (container("resources", json!([])), at("resources: expected an object, found a list")),
        (
            container("resources", json!({"limits": {"cpu": "much"}})),
            at("resources.limits.cpu: expected a quantity like 100m or 64Mi, found the string \"much\""),
        ),
        (
            container("resources", json!({"limits": {"cpu": true}})),
            at("resources.limits.cpu: expected a quantity like 100m or 64Mi, found the boolean true"),
        ),
        (
            container("ports", json!([{"containerPort": 80.5}])),
            at("ports[0].containerPort: expected an integer of 32 bits, found the number 80.5"),
        ),
        (
            container("ports", json!([{"containerPort": 4_294_967_296_u64}])),
            at("ports[0].containerPort: expected an integer of 32 bits, found the number 4294967296"),
        ),
        (
            container("livenessProbe", json!({"tcpSocket": {"port": {}}})),
            at("livenessProbe.tcpSocket.port: expected an integer of 32 bits or a string, found an object"),
        ),
        (container("image", json!({"a": 1})), at("image: expected a string, found an object")),
        (
            deployment(&json!({"terminationGracePeriodSeconds": long})),
            format!(
                "spec.template.spec.terminationGracePeriodSeconds: expected an integer of 64 bits, found the string {:?}…",
                "x".repeat(40)
            ),
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"creationTimestamp": "2021-02-29T00:00:00Z"}}),
            "metadata.creationTimestamp: expected a time like 2006-01-02T15:04:05Z, found the string \
             \"2021-02-29T00:00:00Z\""
                .to_owned(),
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "x"}),
            "spec: expected an object, found the string \"x\"".to_owned(),
        ),
        (
            crd(json!({"items": true})),
            in_schema("items: expected a schema or a list of schemas, found the boolean true"),
        ),
        (
            crd(json!({"properties": {"a": {"additionalProperties": "x"}}})),
            in_schema(
                "properties.a.additionalProperties: expected a schema or a boolean, found the string \"x\"",
            ),
        ),
        (
            crd(json!({"dependencies": {"a": [1]}})),
            in_schema("dependencies.a[0]: expected a string, found the number 1"),
        ),
        (
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "webhooks": [{"clientConfig": {"caBundle": "?"}}]}),
            "webhooks[0].clientConfig.caBundle: expected a string in base64, found the string \"?\""
                .to_owned(),
        ),
    ] {
        assert_eq!(normalised(&object).unwrap_err().to_string(), expected);
    }
}
