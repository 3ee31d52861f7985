//! Which Clusters refer to which objects, so that an object's first sign of life wakes its Cluster.

use std::{
    collections::{HashMap, HashSet},
    sync::{PoisonError, RwLock},
};

use capstan_api::{cluster::v1beta2::ObjectReference, contract::GroupKind};
use capstan_runtime::ObjectKey;

use crate::snapshot::ClusterRecord;

/// Kind, then object, then the Clusters that refer to it.
#[derive(Debug, Default)]
pub(crate) struct ReferenceIndex {
    kinds: RwLock<HashMap<GroupKind, HashMap<ObjectKey, HashSet<ObjectKey>>>>,
}

impl ReferenceIndex {
    /// Takes in a change of a Cluster.
    pub(crate) fn update(
        &self,
        cluster: &ObjectKey,
        before: Option<&ClusterRecord>,
        now: Option<&ClusterRecord>,
    ) {
        if before.map(references) == now.map(references) {
            return;
        }
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        for reference in before.into_iter().flat_map(references).flatten() {
            let kind = group_kind(reference);
            if let Some(objects) = kinds.get_mut(&kind) {
                let object = cluster.beside(&reference.name);
                if let Some(clusters) = objects.get_mut(&object) {
                    clusters.remove(cluster);
                    if clusters.is_empty() {
                        objects.remove(&object);
                    }
                }
                if objects.is_empty() {
                    kinds.remove(&kind);
                }
            }
        }
        for reference in now.into_iter().flat_map(references).flatten() {
            let object = cluster.beside(&reference.name);
            let objects = kinds.entry(group_kind(reference)).or_default();
            objects.entry(object).or_default().insert(cluster.clone());
        }
    }

    /// The Clusters that refer to an object.
    pub(crate) fn clusters_of(&self, kind: &GroupKind, object: &ObjectKey) -> Vec<ObjectKey> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let clusters = kinds.get(kind).and_then(|objects| objects.get(object));
        clusters.into_iter().flatten().cloned().collect()
    }

    /// The Clusters that refer to any object of a kind that fits.
    pub(crate) fn clusters_of_kinds(&self, fits: impl Fn(&GroupKind) -> bool) -> Vec<ObjectKey> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let objects = kinds.iter().filter(|(kind, _)| fits(kind)).flat_map(|(_, objects)| objects.values());
        objects.flatten().cloned().collect()
    }

    /// Whether any Cluster refers to a kind.
    pub(crate) fn uses(&self, kind: &GroupKind) -> bool {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).contains_key(kind)
    }
}

fn references(cluster: &ClusterRecord) -> [Option<&ObjectReference>; 2] {
    [cluster.spec.infrastructure_ref.as_ref(), cluster.spec.control_plane_ref.as_ref()]
}

/// The kind that a reference names.
pub(crate) fn group_kind(reference: &ObjectReference) -> GroupKind {
    GroupKind::new(&reference.api_group, &reference.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(infrastructure: &str) -> ClusterRecord {
        let mut record = ClusterRecord::default();
        record.spec.infrastructure_ref =
            Some(ObjectReference { api_group: "g".into(), kind: "K".into(), name: infrastructure.into() });
        record
    }

    #[test]
    fn the_index_follows_references() {
        let index = ReferenceIndex::default();
        let kind = GroupKind::new("g", "K");
        let (a, b) = (ObjectKey::new("n", "a"), ObjectKey::new("n", "b"));
        index.update(&a, None, Some(&cluster("x")));
        index.update(&b, None, Some(&cluster("x")));
        let mut found = index.clusters_of(&kind, &ObjectKey::new("n", "x"));
        found.sort();
        assert_eq!(found, [a.clone(), b.clone()]);
        assert!(index.clusters_of(&kind, &ObjectKey::new("other", "x")).is_empty());

        index.update(&a, Some(&cluster("x")), Some(&cluster("y")));
        assert_eq!(index.clusters_of(&kind, &ObjectKey::new("n", "x")), std::slice::from_ref(&b));
        assert_eq!(index.clusters_of(&kind, &ObjectKey::new("n", "y")), std::slice::from_ref(&a));

        index.update(&a, Some(&cluster("y")), None);
        index.update(&b, Some(&cluster("x")), None);
        assert!(!index.uses(&kind));
    }
}
