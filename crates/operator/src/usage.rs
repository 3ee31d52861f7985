//! Who uses a provider: workload clusters whose objects are of its kinds.

use std::collections::BTreeSet;

use capstan_api::{
    names::{CORE_GROUP, label},
    provider::ProviderType,
};
use capstan_management::{Kind, Kinds, ManagementCluster, ServerError, sweep};
use kube::api::DynamicObject;
use serde_json::Value;

/// Kinds of core whose objects belong to a Cluster and refer to objects of other providers.
const PARTS_OF_CLUSTERS: [&str; 4] = ["Machine", "MachineSet", "MachineDeployment", "MachinePool"];
/// How long a list of users may be. What reads a condition has to take all of its message.
const LONGEST: usize = 14 << 10;

/// A kind without its version.
type GroupKind = (String, String);

/// What uses a provider, in words; nothing if it is empty.
pub async fn find(
    cluster: &ManagementCluster,
    kind: ProviderType,
    provider: &str,
) -> Result<Vec<String>, ServerError> {
    let kinds = cluster.kinds().await?;
    let own = kinds_of(cluster, &kinds, provider).await?;
    let mut users = match kind {
        ProviderType::Core => names("Cluster", &of_core(cluster, &kinds, "Cluster").await?),
        ProviderType::Bootstrap | ProviderType::ControlPlane | ProviderType::Infrastructure => {
            referring(cluster, &kinds, &own).await?
        }
        ProviderType::Addon | ProviderType::Ipam | ProviderType::RuntimeExtension => {
            labelled(cluster, &own).await?
        }
    };
    users.sort();
    Ok(users)
}

/// A list of users for a message.
pub fn in_words(users: &[String]) -> String {
    let mut length = 0;
    let fits = |it: &&String| {
        length += it.len() + 2;
        length <= LONGEST
    };
    let fitting: Vec<&str> = users.iter().take_while(fits).map(String::as_str).collect();
    let named = fitting.join(", ");
    match users.len() - fitting.len() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The kinds that a provider's CRDs define.
async fn kinds_of(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    provider: &str,
) -> Result<Vec<Kind>, ServerError> {
    let crds = cluster.list_metadata(&Kind::crd(), None, &sweep::selector_of(provider)).await?;
    let names = crds.into_iter().filter_map(|it| it.metadata.name);
    Ok(names.filter_map(|it| kinds.defined_by(&it).cloned()).collect())
}

/// The objects of a kind of core; none if it is not installed.
async fn of_core(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    kind: &str,
) -> Result<Vec<DynamicObject>, ServerError> {
    match kinds.any_version(CORE_GROUP, kind) {
        Some(kind) => cluster.list(kind, None, "").await,
        None => Ok(Vec::new()),
    }
}

/// Clusters, and parts of them, that refer to one of these kinds.
async fn referring(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    own: &[Kind],
) -> Result<Vec<String>, ServerError> {
    let own = own.iter().map(|it| (it.resource.group.clone(), it.resource.kind.clone())).collect();
    let clusters = of_core(cluster, kinds, "Cluster").await?;
    let classes = of_core(cluster, kinds, "ClusterClass").await?;
    let mut users = Vec::new();
    for found in &clusters {
        let class = class_of(found).and_then(|it| classes.iter().find(|class| name_of(class) == it));
        let via_class = class.map(|it| used(&it.data["spec"], &own)).unwrap_or_default();
        users.extend(user("Cluster", found, &[used(&found.data["spec"], &own), via_class].concat()));
    }
    for kind in PARTS_OF_CLUSTERS {
        let parts = of_core(cluster, kinds, kind).await?;
        let parts = parts
            .iter()
            .filter(|it| it.data["spec"]["clusterName"].as_str().is_some_and(|it| !it.is_empty()));
        users.extend(parts.filter_map(|it| user(kind, it, &used(&it.data["spec"], &own))));
    }
    Ok(users)
}

/// Objects of these kinds that belong to a Cluster.
async fn labelled(cluster: &ManagementCluster, own: &[Kind]) -> Result<Vec<String>, ServerError> {
    let mut users = Vec::new();
    for kind in own {
        let found = cluster.list_metadata(kind, None, label::CLUSTER_NAME).await?;
        users.extend(found.iter().map(|it| {
            let place = full_name(it.metadata.namespace.as_deref(), it.metadata.name.as_deref());
            format!("{} {place}", kind.resource.kind)
        }));
    }
    Ok(users)
}

fn names(kind: &str, objects: &[DynamicObject]) -> Vec<String> {
    objects.iter().map(|it| format!("{kind} {}", name_of(it))).collect()
}

fn name_of(object: &DynamicObject) -> String {
    full_name(object.metadata.namespace.as_deref(), object.metadata.name.as_deref())
}

fn full_name(namespace: Option<&str>, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    namespace.map_or_else(|| name.to_owned(), |it| format!("{it}/{name}"))
}

/// An object that uses kinds, in words.
fn user(kind: &str, object: &DynamicObject, used: &[GroupKind]) -> Option<String> {
    let kinds: BTreeSet<&str> = used.iter().map(|it| it.1.as_str()).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    (!kinds.is_empty()).then(|| format!("{kind} {} (refers to {kinds})", name_of(object)))
}

/// The ClusterClass of a Cluster, as `namespace/name`.
fn class_of(cluster: &DynamicObject) -> Option<String> {
    let topology = &cluster.data["spec"]["topology"];
    let text = |pointer: &str| topology.pointer(pointer)?.as_str().filter(|it| !it.is_empty());
    let name = text("/classRef/name").or_else(|| text("/class"))?;
    let namespace = text("/classRef/namespace").or_else(|| text("/classNamespace"));
    Some(full_name(namespace.or(cluster.metadata.namespace.as_deref()), Some(name)))
}

/// Those of the kinds that a value refers to, wherever in it.
fn used(value: &Value, own: &BTreeSet<GroupKind>) -> Vec<GroupKind> {
    let mut found = BTreeSet::new();
    collect(value, &mut found);
    found.intersection(own).cloned().collect()
}

fn collect(value: &Value, found: &mut BTreeSet<GroupKind>) {
    match value {
        Value::Array(items) => items.iter().for_each(|it| collect(it, found)),
        Value::Object(fields) => {
            found.extend(reference(value));
            fields.values().for_each(|it| collect(it, found));
        }
        _ => {}
    }
}

/// The kind that a reference is to, in the form of either contract.
fn reference(value: &Value) -> Option<GroupKind> {
    let kind = value["kind"].as_str()?;
    let group = match (value["apiGroup"].as_str(), value["apiVersion"].as_str()) {
        (Some(group), _) => group,
        (None, Some(version)) => version.split_once('/').map_or("", |it| it.0),
        (None, None) => return None,
    };
    Some((group.to_owned(), kind.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_found_wherever_they_are() {
        let own: BTreeSet<GroupKind> = [
            ("infra.io".to_owned(), "FooCluster".to_owned()),
            ("infra.io".to_owned(), "FooMachineTemplate".to_owned()),
        ]
        .into();
        for (spec, expected) in [
            (
                json!({"infrastructureRef": {"apiGroup": "infra.io", "kind": "FooCluster", "name": "a"}}),
                &["FooCluster"][..],
            ),
            (
                json!({"infrastructureRef": {"apiVersion": "infra.io/v1", "kind": "FooCluster"}}),
                &["FooCluster"],
            ),
            (json!({"infrastructureRef": {"apiVersion": "other.io/v1", "kind": "FooCluster"}}), &[]),
            (json!({"infrastructureRef": {"kind": "FooCluster"}}), &[]),
            (
                json!({"workers": {"machineDeployments": [{"infrastructure": {"templateRef":
                    {"apiVersion": "infra.io/v1", "kind": "FooMachineTemplate"}}}]}}),
                &["FooMachineTemplate"],
            ),
            (json!(null), &[]),
        ] {
            let kinds: Vec<String> = used(&spec, &own).into_iter().map(|it| it.1).collect();
            assert_eq!(kinds, expected, "{spec}");
        }
    }

    #[test]
    fn a_class_is_named_in_either_version() {
        for (topology, expected) in [
            (json!({"classRef": {"name": "c"}}), Some("n/c")),
            (json!({"classRef": {"name": "c", "namespace": "m"}}), Some("m/c")),
            (json!({"class": "c", "classNamespace": "m"}), Some("m/c")),
            (json!({"class": "c"}), Some("n/c")),
            (json!(null), None),
        ] {
            let cluster =
                json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"topology": topology}});
            let cluster: DynamicObject = serde_json::from_value(cluster).unwrap();
            assert_eq!(class_of(&cluster).as_deref(), expected, "{topology}");
        }
    }

    #[test]
    fn many_users_are_counted() {
        let users: Vec<String> = (0..2000).map(|it| format!("Cluster n/{it:04}")).collect();
        assert!(in_words(&users[..800]).ends_with("Cluster n/0799"), "hundreds are named");
        let text = in_words(&users);
        assert!(text.len() < 15 << 10 && text.ends_with(" more"), "{text}");
        assert_eq!(in_words(&users[..2]), "Cluster n/0000, Cluster n/0001");
    }
}
