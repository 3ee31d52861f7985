//! The owner reference and label that core puts on a provider's object.

use capstan_api::{
    contract::owned_by_cluster,
    names::{CORE_GROUP, label},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use crate::snapshot::ClusterRecord;

/// The version that owner references name: the storage version.
const OWNER_VERSION: &str = "v1beta2";

/// Another Cluster has the object already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedByAnother {
    pub(crate) cluster: String,
}

/// The patch that makes an object the Cluster's own; nothing where it is so already.
pub(crate) fn adopt(cluster: &ClusterRecord, object: &ObjectMeta) -> Result<Option<Value>, OwnedByAnother> {
    if let Some(other) = other_owner(cluster, object) {
        return Err(OwnedByAnother { cluster: other.name.clone() });
    }
    let wanted = owner_reference(cluster);
    let owners = object.owner_references.as_deref().unwrap_or_default();
    let labelled = object.labels.as_ref().and_then(|labels| labels.get(label::CLUSTER_NAME));
    if owners.iter().any(|owner| is_same(owner, &wanted))
        && labelled.map(String::as_str) == Some(cluster.name())
    {
        return Ok(None);
    }
    // References to an earlier life of the Cluster, or in an older form, give way to the one that is right.
    let mut next: Vec<_> = owners.iter().filter(|owner| !is_this_cluster(owner, cluster)).cloned().collect();
    next.push(wanted);
    Ok(Some(json!({"metadata": {
        "resourceVersion": object.resource_version,
        "labels": {label::CLUSTER_NAME: cluster.name()},
        "ownerReferences": next,
    }})))
}

/// The Cluster of another name that owns the object.
pub(crate) fn other_owner<'a>(cluster: &ClusterRecord, object: &'a ObjectMeta) -> Option<&'a OwnerReference> {
    owned_by_cluster(object).filter(|owner| owner.name != cluster.name())
}

fn owner_reference(cluster: &ClusterRecord) -> OwnerReference {
    // Only a managed topology makes the Cluster the controller of its objects.
    let controller = cluster.has_topology().then_some(true);
    OwnerReference {
        api_version: format!("{CORE_GROUP}/{OWNER_VERSION}"),
        kind: "Cluster".to_owned(),
        name: cluster.name().to_owned(),
        uid: cluster.uid().to_owned(),
        controller,
        block_owner_deletion: controller,
    }
}

fn is_same(owner: &OwnerReference, wanted: &OwnerReference) -> bool {
    owner.api_version == wanted.api_version
        && owner.kind == wanted.kind
        && owner.name == wanted.name
        && owner.uid == wanted.uid
        && owner.controller.unwrap_or(false) == wanted.controller.unwrap_or(false)
}

fn is_this_cluster(owner: &OwnerReference, cluster: &ClusterRecord) -> bool {
    let group = owner.api_version.split('/').next();
    owner.kind == "Cluster" && group == Some(CORE_GROUP) && owner.name == cluster.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterRecord {
        let metadata =
            ObjectMeta { name: Some("c".into()), uid: Some("uid-c".into()), ..ObjectMeta::default() };
        ClusterRecord { metadata, ..ClusterRecord::default() }
    }

    fn owner(
        api_version: &str,
        kind: &str,
        name: &str,
        uid: &str,
        controller: Option<bool>,
    ) -> OwnerReference {
        OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller,
            block_owner_deletion: None,
        }
    }

    fn object(owners: Vec<OwnerReference>, label: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            resource_version: Some("7".into()),
            owner_references: Some(owners),
            labels: label.map(|name| [(label::CLUSTER_NAME.to_owned(), name.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_object_is_adopted_once() {
        let right = owner("cluster.x-k8s.io/v1beta2", "Cluster", "c", "uid-c", None);
        let patch = adopt(&cluster(), &object(vec![], None)).unwrap().unwrap();
        assert_eq!(
            patch,
            json!({"metadata": {
                "resourceVersion": "7",
                "labels": {"cluster.x-k8s.io/cluster-name": "c"},
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}],
            }})
        );
        assert_eq!(adopt(&cluster(), &object(vec![right], Some("c"))), Ok(None));
    }

    #[test]
    fn wrong_references_are_put_right_and_strangers_kept() {
        let stranger = owner("v1", "ConfigMap", "c", "uid-m", Some(true));
        for stale in [
            owner("cluster.x-k8s.io/v1beta1", "Cluster", "c", "uid-c", None),
            owner("cluster.x-k8s.io/v1beta2", "Cluster", "c", "uid-of-an-earlier-life", None),
            owner("cluster.x-k8s.io/v1beta2", "Cluster", "c", "uid-c", Some(true)),
        ] {
            let patch =
                adopt(&cluster(), &object(vec![stranger.clone(), stale], Some("c"))).unwrap().unwrap();
            let owners = patch["metadata"]["ownerReferences"].as_array().unwrap().clone();
            assert_eq!(owners.len(), 2);
            assert_eq!(owners[0]["uid"], "uid-m");
            assert_eq!(owners[1], json!(owner_reference(&cluster())));
        }
    }

    #[test]
    fn a_topology_makes_the_cluster_the_controller() {
        let mut managed = cluster();
        managed.spec.topology = Some(Box::default());
        let patch = adopt(&managed, &object(vec![], None)).unwrap().unwrap();
        assert_eq!(patch["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(patch["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    }

    #[test]
    fn what_belongs_to_another_cluster_is_left_alone() {
        let other = owner("cluster.x-k8s.io/v1beta2", "Cluster", "d", "uid-d", None);
        assert_eq!(
            adopt(&cluster(), &object(vec![other], None)),
            Err(OwnedByAnother { cluster: "d".into() })
        );
    }
}
