//! The ClusterClasses that a template's Clusters need and the management cluster does not have.

use capstan_api::names::CORE_GROUP;
use serde_json::Value;

use super::{
    cluster::{Lazy, Release, render},
    source::Text,
};
use crate::{error::CommandError, management::Management, session::Session};

/// The objects of all classes that are needed and missing, each class once.
pub(super) async fn missing(
    objects: &[Value],
    release: &Release,
    session: &Session,
    cluster: &Lazy<'_>,
) -> Result<Vec<Value>, CommandError> {
    let mut all = Vec::new();
    for class in needed(objects) {
        // A kubeconfig that names no management cluster (yet) is no reason to leave the class out.
        let cluster = cluster.get().await?;
        if let Some(cluster) = cluster
            && cluster.has_cluster_class(&class.namespace, &class.name).await?
        {
            continue;
        }
        let file = release.repository.cluster_class(&release.version, &class.name).await?;
        let text = Text { text: file.text, origin: file.origin };
        let objects = render(&text, &class.namespace, session)?;
        if let Some(cluster) = cluster {
            refuse_existing(&objects, cluster, &class, &text.origin).await?;
        }
        all.extend(objects);
    }
    Ok(all)
}

/// A ClusterClass of which only a part exists was installed by another tool, and must not be overwritten.
async fn refuse_existing(
    objects: &[Value],
    cluster: &Management,
    class: &Class,
    origin: &str,
) -> Result<(), CommandError> {
    for object in objects {
        if cluster.has(object).await? {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            return Err(CommandError::plain(format!(
                "ClusterClass {} is not in namespace {}, but {} {} of {origin} is",
                class.name,
                class.namespace,
                text("/kind"),
                text("/metadata/name"),
            ))
            .hint("delete that object, install the ClusterClass yourself, or use another namespace"));
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    namespace: String,
    name: String,
}

/// The classes that the Clusters of a template refer to.
fn needed(objects: &[Value]) -> Vec<Class> {
    let mut classes = Vec::new();
    for class in objects.iter().filter_map(class_of) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    classes
}

fn class_of(object: &Value) -> Option<Class> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|it| !it.is_empty());
    let (group, version) = text("/apiVersion")?.split_once('/')?;
    if (group, text("/kind")?) != (CORE_GROUP, "Cluster") || !matches!(version, "v1beta1" | "v1beta2") {
        return None;
    }
    let (name, namespace) = match version {
        "v1beta1" => ("/spec/topology/class", "/spec/topology/classNamespace"),
        _ => ("/spec/topology/classRef/name", "/spec/topology/classRef/namespace"),
    };
    let namespace = text(namespace).or_else(|| text("/metadata/namespace"))?;
    Some(Class { namespace: namespace.to_owned(), name: text(name)?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn classes_are_found_in_both_versions_and_once() {
        let cluster = |version: &str, topology: Value| {
            json!({"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster",
                   "metadata": {"name": "c", "namespace": "mine"}, "spec": {"topology": topology}})
        };
        let objects = [
            cluster("v1beta1", json!({"class": "a"})),
            cluster("v1beta2", json!({"classRef": {"name": "a"}})),
            cluster("v1beta2", json!({"classRef": {"name": "a", "namespace": "theirs"}})),
            cluster("v1beta1", json!({"class": "b", "classNamespace": "theirs"})),
            cluster("v1beta2", json!({"class": "of another version"})),
            cluster("v1alpha4", json!({"class": "c"})),
            json!({"apiVersion": "v1", "kind": "Cluster"}),
        ];
        let found: Vec<_> = needed(&objects).into_iter().map(|it| (it.namespace, it.name)).collect();
        let expected = [("mine", "a"), ("theirs", "a"), ("theirs", "b")];
        assert_eq!(found, expected.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())));
    }
}
