//! Templates go to a namespace, and nothing else happens to them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use capstan_manifest::{template, yaml};
use serde_json::{Value, json};

fn documents(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn comes_out_as_from_clusterctl() {
    let documents = documents(include_str!("fixtures/template.jsonl"));
    let objects = template::render(documents, Some("elsewhere")).unwrap();
    assert_eq!(yaml::to_multi_document(&objects), include_str!("fixtures/template-by-clusterctl.yaml"));
}

#[test]
fn nothing_happens_without_a_namespace() {
    let documents = documents(include_str!("fixtures/template.jsonl"));
    assert_eq!(template::render(documents.clone(), None).unwrap(), documents);
    assert_eq!(template::render(documents.clone(), Some("")).unwrap(), documents);
}

#[test]
fn the_namespace_of_shared_components_means_nothing_here() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "capi-webhook-system"}});
    let objects = template::render(vec![Value::Null, secret], Some("a")).unwrap();
    assert_eq!(objects, [json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a"}})]);
}

#[test]
fn a_namespace_of_another_group_is_an_object_like_others() {
    let bus =
        json!({"apiVersion": "servicebus.azure.com/v1", "kind": "Namespace", "metadata": {"name": "bus"}});
    let objects = template::render(vec![bus], Some("a")).unwrap();
    assert_eq!(objects[0]["metadata"], json!({"name": "bus", "namespace": "a"}));
}

#[test]
fn errors_name_the_object() {
    for (document, expected) in [
        (json!([1]), "document 2: expected an object, found a list"),
        (json!({"metadata": {"name": "a"}}), "document 2: it has no kind"),
        (
            json!({"kind": "A", "metadata": 1}),
            "A without a name (document 2): metadata: expected an object, found the number 1",
        ),
        (
            json!({"apiVersion": "rbac.authorization.k8s.io/v1beta1", "kind": "RoleBinding", "metadata": {"name": "a"}}),
            "RoleBinding a: apiVersion \"rbac.authorization.k8s.io/v1beta1\" is not supported for this kind, \
             only rbac.authorization.k8s.io/v1",
        ),
    ] {
        let error = template::render(vec![json!({"kind": "B"}), document], Some("a")).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.object.document), (expected, 1));
    }
}
