//! Who an object belongs to, and who may touch it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::names::{CORE_GROUP, annotation, label};

/// The owner reference of kind Cluster, controller or not.
pub fn owned_by_cluster(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| is_cluster(owner))
}

/// Whether an object has this very owner (by uid).
pub fn has_owner(metadata: &ObjectMeta, uid: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

fn is_cluster(owner: &OwnerReference) -> bool {
    owner.kind == "Cluster"
        && owner.api_version.split_once('/').is_some_and(|(group, _version)| group == CORE_GROUP)
}

/// Whether the infrastructure is managed externally, so that the provider must not touch the object.
///
/// The contract's text names a label, upstream's code reads an annotation: either one counts.
pub fn is_externally_managed(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label::MANAGED_BY))
        || has_annotation(metadata, annotation::MANAGED_BY)
}

/// Whether the object itself carries the paused annotation, whatever its value.
pub fn is_paused(metadata: &ObjectMeta) -> bool {
    has_annotation(metadata, annotation::PAUSED)
}

fn has_annotation(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(api_version: &str, kind: &str) -> OwnerReference {
        OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "c".into(),
            uid: "u".into(),
            ..OwnerReference::default()
        }
    }

    #[test]
    fn any_owner_reference_of_kind_cluster_counts() {
        for (api_version, kind, expected) in [
            ("cluster.x-k8s.io/v1beta2", "Cluster", true),
            ("cluster.x-k8s.io/v1beta1", "Cluster", true),
            ("cluster.x-k8s.io/v1beta2", "ClusterClass", false),
            ("example.com/v1", "Cluster", false),
            ("v1", "Cluster", false),
        ] {
            let metadata = ObjectMeta {
                owner_references: Some(vec![owner("v1", "ConfigMap"), owner(api_version, kind)]),
                ..ObjectMeta::default()
            };
            assert_eq!(owned_by_cluster(&metadata).is_some(), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn label_or_annotation_mean_externally_managed() {
        let pair = Some([(label::MANAGED_BY.to_owned(), String::new())].into());
        let by_label = ObjectMeta { labels: pair.clone(), ..ObjectMeta::default() };
        let by_annotation = ObjectMeta { annotations: pair, ..ObjectMeta::default() };
        assert!(is_externally_managed(&by_label));
        assert!(is_externally_managed(&by_annotation));
        assert!(!is_externally_managed(&ObjectMeta::default()));
    }
}
