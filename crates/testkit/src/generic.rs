//! Kinds of generic providers: schema-less, with the contract labels that a story needs.

use capstan_api::names::CORE_GROUP;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

/// The group of generic kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Their only version.
pub const VERSION: &str = "v1beta2";

/// A CRD that accepts anything; `labels` are pairs of a contract and its versions, like `("v1beta2", "v1beta2")`.
pub fn crd(kind: &str, labels: &[(&str, &str)]) -> CustomResourceDefinition {
    let singular = kind.to_lowercase();
    let labels: serde_json::Map<_, _> = labels
        .iter()
        .map(|(contract, versions)| (format!("cluster.x-k8s.io/{contract}"), json!(versions)))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.{GROUP}"), "labels": labels},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": format!("{singular}s"), "singular": singular},
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
    .unwrap()
}

/// How clients address a generic kind.
pub fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(GROUP, VERSION, kind),
        &format!("{}s", kind.to_lowercase()),
    )
}

/// A CRD of the same kind in core's own group, for kinds that Capstan does not serve yet.
pub fn core_crd(kind: &str) -> CustomResourceDefinition {
    let mut crd = crd(kind, &[("v1beta2", VERSION)]);
    crd.metadata.name = Some(format!("{}s.{CORE_GROUP}", kind.to_lowercase()));
    CORE_GROUP.clone_into(&mut crd.spec.group);
    crd
}

/// How clients address a kind of [`core_crd`].
pub fn core_resource(kind: &str) -> ApiResource {
    let kind_of_group = GroupVersionKind::gvk(CORE_GROUP, VERSION, kind);
    ApiResource::from_gvk_with_plural(&kind_of_group, &format!("{}s", kind.to_lowercase()))
}
