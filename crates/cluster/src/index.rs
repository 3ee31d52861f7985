//! Which Clusters refer to which objects, so that an object's first sign of life wakes its Cluster.

use std::{
    collections::{HashMap, HashSet},
    sync::{PoisonError, RwLock},
};

use capstan_api::{
    cluster::v1beta2::ObjectReference,
    contract::{GroupKind, crd_name},
};
use capstan_runtime::ObjectKey;

use crate::snapshot::ClusterRecord;

/// Holds what each Cluster referred to last, so that it is never behind the cache.
#[derive(Debug, Default)]
pub(crate) struct ReferenceIndex {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Kind, then object, then the Clusters that refer to it.
    kinds: HashMap<GroupKind, HashMap<ObjectKey, HashSet<ObjectKey>>>,
    clusters: HashMap<ObjectKey, Vec<ObjectReference>>,
}

impl ReferenceIndex {
    /// Records what a Cluster refers to now; nothing if it was deleted.
    pub(crate) fn update(&self, cluster: &ObjectKey, now: Option<&ClusterRecord>) {
        let now: Vec<_> = now.into_iter().flat_map(references).collect();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { kinds, clusters } = &mut *state;
        let before = clusters.get(cluster).map(Vec::as_slice).unwrap_or_default();
        if before == now {
            return;
        }
        for reference in before {
            let kind = group_kind(reference);
            if let Some(objects) = kinds.get_mut(&kind) {
                let object = cluster.beside(&reference.name);
                if let Some(users) = objects.get_mut(&object) {
                    users.remove(cluster);
                    if users.is_empty() {
                        objects.remove(&object);
                    }
                }
                if objects.is_empty() {
                    kinds.remove(&kind);
                }
            }
        }
        for reference in &now {
            let object = cluster.beside(&reference.name);
            let objects = kinds.entry(group_kind(reference)).or_default();
            objects.entry(object).or_default().insert(cluster.clone());
        }
        if now.is_empty() {
            clusters.remove(cluster);
        } else {
            clusters.insert(cluster.clone(), now);
        }
    }

    /// The Clusters that refer to an object.
    pub(crate) fn clusters_of(&self, kind: &GroupKind, object: &ObjectKey) -> Vec<ObjectKey> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let clusters = state.kinds.get(kind).and_then(|objects| objects.get(object));
        clusters.into_iter().flatten().cloned().collect()
    }

    /// The Clusters that refer to any object of a kind that fits.
    pub(crate) fn clusters_of_kinds(&self, fits: impl Fn(&GroupKind) -> bool) -> Vec<ObjectKey> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let objects =
            state.kinds.iter().filter(|(kind, _)| fits(kind)).flat_map(|(_, objects)| objects.values());
        objects.flatten().cloned().collect()
    }

    /// Whether any Cluster refers to the kind of a CRD.
    pub(crate) fn uses_crd(&self, crd: &str) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.kinds.keys().any(|kind| crd_name(&kind.group, &kind.kind) == crd)
    }

    /// Whether any Cluster refers to a kind.
    pub(crate) fn uses(&self, kind: &GroupKind) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).kinds.contains_key(kind)
    }
}

fn references(cluster: &ClusterRecord) -> impl Iterator<Item = ObjectReference> + use<> {
    let references = [cluster.spec.infrastructure_ref.clone(), cluster.spec.control_plane_ref.clone()];
    references.into_iter().flatten()
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
        index.update(&a, Some(&cluster("x")));
        index.update(&b, Some(&cluster("x")));
        let mut found = index.clusters_of(&kind, &ObjectKey::new("n", "x"));
        found.sort();
        assert_eq!(found, [a.clone(), b.clone()]);
        assert!(index.clusters_of(&kind, &ObjectKey::new("other", "x")).is_empty());

        index.update(&a, Some(&cluster("y")));
        assert_eq!(index.clusters_of(&kind, &ObjectKey::new("n", "x")), std::slice::from_ref(&b));
        assert_eq!(index.clusters_of(&kind, &ObjectKey::new("n", "y")), std::slice::from_ref(&a));

        index.update(&a, None);
        index.update(&b, None);
        assert!(!index.uses(&kind));
    }
}
