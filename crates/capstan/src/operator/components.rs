//! The operator's components.

use capstan_api::{
    names::label,
    operator::{GROUP, VERSION as API_VERSION, plural},
    provider::ProviderType,
};
use serde_json::{Value, json};

use super::{CORE_LABEL, DEPLOYMENT, NAMESPACE, VERSION_LABEL};
use crate::commands::version::VERSION;

/// All objects of this version of the operator.
pub(crate) fn components(image: &str) -> Vec<Value> {
    let account = json!({"kind": "ServiceAccount", "name": DEPLOYMENT, "namespace": NAMESPACE});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let app = json!({"app": COMPONENT_LABEL});
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": DEPLOYMENT},
            "roleRef": role,
            "subjects": [account],
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": app},
                    "spec": {
                        "serviceAccountName": DEPLOYMENT,
                        "containers": [{
                            "name": "manager",
                            "image": image,
                            "args": ["manager", "operator", "--leader-elect"],
                        }],
                    },
                },
            },
        }),
    ];
    objects.extend(ProviderType::ALL.map(crd));
    objects.iter_mut().for_each(mark);
    objects
}

const COMPONENT_LABEL: &str = "capstan-operator";

fn crd(kind: ProviderType) -> Value {
    let (name, plural) = (kind.as_str(), plural(kind));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": name, "listKind": format!("{name}List"), "plural": plural,
                      "singular": name.to_lowercase()},
            "versions": [{
                "name": API_VERSION,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
                "subresources": {"status": {}},
            }],
        },
    })
}

fn mark(object: &mut Value) {
    object["metadata"]["labels"] = json!({label::CLUSTERCTL_CORE: CORE_LABEL, VERSION_LABEL: VERSION});
}
