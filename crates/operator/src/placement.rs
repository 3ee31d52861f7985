//! Where the objects of a release say that they belong.
//!
//! Everything of a provider goes to the provider's namespace. An object that its author meant for another namespace would
//! be moved there silently, or, worse, take the place of another object if it were not: such a release is refused.

use std::collections::BTreeSet;

use capstan_api::names::SHARED_NAMESPACE;
use capstan_management::{Kinds, ObjectRef};
use serde_json::Value;

/// The Role that extension API servers are given; bindings to it have to be in `kube-system`.
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";
/// How many objects are named.
const NAMED: usize = 10;

/// The objects of a release that belong to a namespace of others, in words; none if there are none.
///
/// Its own namespaces are those that it creates and the provider's. A release that creates none may name one.
pub fn foreign(objects: &[&Value], kinds: &Kinds, namespace: &str) -> Option<String> {
    let mut own: BTreeSet<&str> = objects
        .iter()
        .filter(|it| it["kind"] == "Namespace" && it["apiVersion"] == "v1")
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    let in_namespaces: Vec<(&Value, &str)> = objects
        .iter()
        .filter(|it| kinds.of(it).is_some_and(|it| it.is_namespaced))
        .filter_map(|it| Some((*it, it["metadata"]["namespace"].as_str().filter(|it| !it.is_empty())?)))
        .collect();
    if own.is_empty() {
        let named: BTreeSet<&str> = in_namespaces.iter().map(|it| it.1).filter(|it| !is_system(it)).collect();
        if let (1, Some(only)) = (named.len(), named.first()) {
            own.insert(only);
        }
    }
    own.extend([namespace, SHARED_NAMESPACE]);
    let foreign: Vec<String> = in_namespaces
        .into_iter()
        .filter(|(object, namespace)| !own.contains(namespace) && !reads_authentication(object))
        .map(|(object, _)| ObjectRef::of(object).to_string())
        .collect();
    let more = foreign.len().saturating_sub(NAMED);
    let named: Vec<&str> = foreign.iter().take(NAMED).map(String::as_str).collect();
    match (named.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named.join(", ")),
        (false, more) => Some(format!("{} and {more} more", named.join(", "))),
    }
}

/// The objects of a document: a List stands for its items.
pub fn flat(document: &Value) -> Vec<&Value> {
    match document["items"].as_array() {
        Some(items) if document["kind"].as_str().is_some_and(|it| it.ends_with("List")) => {
            items.iter().flat_map(flat).collect()
        }
        _ => vec![document],
    }
}

fn is_system(namespace: &str) -> bool {
    namespace.starts_with("kube-") || namespace == "default"
}

/// Releases with an extension API server bind their account to this Role. The binding goes to the provider's namespace
/// like everything else, as it does with clusterctl.
fn reads_authentication(object: &Value) -> bool {
    object["kind"] == "RoleBinding" && object["roleRef"]["name"] == AUTHENTICATION_READER
}

#[cfg(test)]
mod tests {
    use capstan_management::Kind;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_stays_in_its_own_namespaces() {
        let object = |kind: &str, namespace: &str| {
            let api_version = if kind == "RoleBinding" { "rbac.authorization.k8s.io/v1" } else { "v1" };
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "namespace": namespace}})
        };
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capa-system"}});
        let mut reader = object("RoleBinding", "kube-system");
        reader["roleRef"]["name"] = json!(AUTHENTICATION_READER);
        let cluster_wide = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                                  "metadata": {"name": "it", "namespace": "kube-system"}});
        let kinds = Kinds::from_iter([
            Kind::cluster_scoped("", "v1", "Namespace"),
            Kind::namespaced("", "v1", "ConfigMap"),
            Kind::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding"),
            Kind::cluster_scoped("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ]);
        for (what, objects, expected) in [
            ("its own namespace", vec![own.clone(), object("ConfigMap", "capa-system")], None),
            ("the provider's namespace", vec![own.clone(), object("ConfigMap", "here")], None),
            ("no namespace", vec![object("ConfigMap", "")], None),
            ("shared objects", vec![own.clone(), object("ConfigMap", "capi-webhook-system")], None),
            ("a namespace that it only names", vec![object("ConfigMap", "capa-system")], None),
            ("a namespace that means nothing", vec![own.clone(), cluster_wide], None),
            ("an extension API server", vec![own.clone(), reader], None),
            (
                "kube-system",
                vec![own.clone(), object("ConfigMap", "kube-system")],
                Some("ConfigMap kube-system/it"),
            ),
            (
                "kube-system alone",
                vec![object("RoleBinding", "kube-system")],
                Some("RoleBinding kube-system/it"),
            ),
            (
                "other namespaces",
                vec![own, object("ConfigMap", "team"), object("RoleBinding", "default")],
                Some("ConfigMap team/it, RoleBinding default/it"),
            ),
        ] {
            let objects: Vec<&Value> = objects.iter().collect();
            assert_eq!(foreign(&objects, &kinds, "here").as_deref(), expected, "{what}");
        }
    }
}
