//! The graph of owner references among any objects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::{Identity, ObjectRef};

/// An object with its owner references.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnershipNode {
    /// The object.
    pub object: ObjectRef,
    /// Its uid; empty where it is not known.
    pub uid: String,
    /// Its owner references.
    pub owners: Vec<OwnerReference>,
}

impl OwnershipNode {
    /// What the graph needs of an object.
    pub fn of(object: &Value) -> Self {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        Self {
            object: ObjectRef::of(object),
            uid: object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned(),
            // The API server keeps no owner reference that it cannot read.
            owners: owners
                .into_iter()
                .flatten()
                .filter_map(|it| serde_json::from_value(it.clone()).ok())
                .collect(),
        }
    }
}

/// A node of an [`OwnershipGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// Objects, and which of them own which others.
///
/// An owner reference leads to the object of its uid. Where there is none, it leads to the object of its group, kind and
/// name, as controllers that compare names read it. The graph does not depend on the order of its objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnershipGraph {
    nodes: Vec<OwnershipNode>,
    by_name: BTreeMap<Identity, NodeId>,
    owners: BTreeMap<NodeId, BTreeSet<NodeId>>,
    dependents: BTreeMap<NodeId, BTreeSet<NodeId>>,
    controllers: BTreeMap<NodeId, NodeId>,
}

impl FromIterator<OwnershipNode> for OwnershipGraph {
    fn from_iter<T: IntoIterator<Item = OwnershipNode>>(nodes: T) -> Self {
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_by(|a, b| (&a.object, &a.uid).cmp(&(&b.object, &b.uid)));
        nodes.dedup_by(|a, b| a.object == b.object && a.uid == b.uid);
        let ids = || nodes.iter().enumerate().map(|(id, node)| (NodeId(id), node));
        let by_uid: BTreeMap<_, _> =
            ids().filter(|it| !it.1.uid.is_empty()).map(|(id, it)| (it.uid.as_str(), id)).collect();
        let by_name: BTreeMap<_, _> = ids().map(|(id, node)| (node.object.identity(), id)).collect();
        let find = |node: &OwnershipNode, owner: &OwnerReference| {
            let group = owner.api_version.split_once('/').map_or("", |it| it.0);
            let place = |it| by_name.get(&(group.to_owned(), owner.kind.clone(), it, owner.name.clone()));
            let named = || place(node.object.namespace.clone()).or_else(|| place(None));
            by_uid.get(owner.uid.as_str()).or_else(named).copied()
        };
        let (mut owners, mut dependents, mut controllers) =
            (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::new());
        for (id, node) in ids() {
            for reference in &node.owners {
                let Some(owner) = find(node, reference) else { continue };
                owners.entry(id).or_default().insert(owner);
                dependents.entry(owner).or_default().insert(id);
                if reference.controller == Some(true) {
                    controllers.insert(id, owner);
                }
            }
        }
        Self { nodes, by_name, owners, dependents, controllers }
    }
}

impl OwnershipGraph {
    /// The graph of these objects.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        objects.into_iter().map(OwnershipNode::of).collect()
    }

    /// All nodes, ordered by object.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// What is at a node.
    pub fn node(&self, id: NodeId) -> &OwnershipNode {
        &self.nodes[id.0]
    }

    /// The node of an object, in whichever version it is named.
    pub fn find(&self, object: &ObjectRef) -> Option<NodeId> {
        self.by_name.get(&object.identity()).copied()
    }

    /// The owners of an object that are in the graph.
    pub fn owners(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.owners.get(&id).into_iter().flatten().copied()
    }

    /// The objects that an object owns.
    pub fn dependents(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.dependents.get(&id).into_iter().flatten().copied()
    }

    /// The owner whose controller manages an object.
    pub fn controller(&self, id: NodeId) -> Option<NodeId> {
        self.controllers.get(&id).copied()
    }

    /// All that an object owns, directly or not, nearest first; never the object itself.
    pub fn descendants(&self, id: NodeId) -> Vec<NodeId> {
        let (mut seen, mut queue) = (BTreeSet::from([id]), VecDeque::from([id]));
        let mut found = Vec::new();
        while let Some(next) = queue.pop_front() {
            for dependent in self.dependents(next).filter(|it| seen.insert(*it)) {
                found.push(dependent);
                queue.push_back(dependent);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str, owners: &[(&str, &str, bool)]) -> Value {
        let owners: Vec<_> = owners
            .iter()
            .map(|(name, uid, controller)| {
                json!({"apiVersion": "g.io/v2", "kind": "Box", "name": name, "uid": uid, "controller": controller})
            })
            .collect();
        json!({
            "apiVersion": "g.io/v1", "kind": "Box",
            "metadata": {"namespace": "ns", "name": name, "uid": uid, "ownerReferences": owners},
        })
    }

    fn names(graph: &OwnershipGraph, ids: impl IntoIterator<Item = NodeId>) -> Vec<String> {
        ids.into_iter().map(|it| graph.node(it).object.name.clone()).collect()
    }

    #[test]
    fn owners_are_found_by_uid_and_else_by_name() {
        let objects = [
            object("a", "1", &[]),
            object("b", "2", &[("renamed", "1", true)]),
            object("c", "3", &[("a", "of another life", false), ("gone", "9", true)]),
            object("d", "4", &[("b", "2", false), ("c", "3", true)]),
        ];
        let graph = OwnershipGraph::of(&objects);
        let id = |name: &str| graph.ids().find(|it| graph.node(*it).object.name == name).unwrap();
        assert_eq!(names(&graph, graph.dependents(id("a"))), ["b", "c"]);
        assert_eq!(names(&graph, graph.owners(id("d"))), ["b", "c"]);
        assert_eq!(names(&graph, graph.controller(id("d"))), ["c"]);
        assert_eq!(names(&graph, graph.controller(id("c"))), [""; 0]);
        assert_eq!(graph.node(id("c")).owners.len(), 2, "a reference that leads nowhere is kept");
        assert_eq!(names(&graph, graph.descendants(id("a"))), ["b", "c", "d"]);
        let mut other = ObjectRef::of(&objects[1]);
        other.api_version = "g.io/v7".to_owned();
        assert_eq!(graph.find(&other), Some(id("b")));
    }

    /// Some objects; each owns some others by their numbers, itself and cycles included.
    fn objects() -> impl Strategy<Value = Vec<Value>> {
        let owners = prop::collection::vec((0usize..12, any::<bool>()), 0..4);
        prop::collection::vec(owners, 0..12).prop_map(|all| {
            let build = |(index, owners): (usize, &Vec<(usize, bool)>)| {
                let owners: Vec<_> =
                    owners.iter().map(|(of, by_uid)| (format!("n{of}"), format!("u{of}"), *by_uid)).collect();
                let owners: Vec<_> = owners
                    .iter()
                    .map(|(name, uid, by_uid)| (name.as_str(), if *by_uid { uid } else { "" }, false))
                    .collect();
                object(&format!("n{index}"), &format!("u{index}"), &owners)
            };
            all.iter().enumerate().map(build).collect()
        })
    }

    proptest! {
        #[test]
        fn the_order_of_objects_does_not_matter(objects in objects(), turn in 0usize..12) {
            let mut turned = objects.clone();
            turned.rotate_left(turn % objects.len().max(1));
            turned.reverse();
            turned.extend(objects.first().cloned());
            prop_assert_eq!(OwnershipGraph::of(&objects), OwnershipGraph::of(&turned));
        }

        #[test]
        fn no_object_and_no_owner_is_lost(objects in objects()) {
            let graph = OwnershipGraph::of(&objects);
            prop_assert_eq!(graph.ids().count(), objects.len());
            for object in &objects {
                let id = graph.find(&ObjectRef::of(object)).unwrap();
                prop_assert_eq!(graph.node(id), &OwnershipNode::of(object));
                for owner in &graph.node(id).owners {
                    let known = objects.iter().any(|it| it["metadata"]["name"] == owner.name.as_str());
                    let found: Vec<_> = graph.owners(id).filter(|it| graph.node(*it).object.name == owner.name).collect();
                    prop_assert_eq!(found.len(), usize::from(known));
                    prop_assert!(found.iter().all(|it| graph.dependents(*it).any(|it| it == id)));
                }
            }
        }

        #[test]
        fn descendants_are_all_that_can_be_reached_and_cycles_end(objects in objects()) {
            let graph = OwnershipGraph::of(&objects);
            for id in graph.ids() {
                let found = graph.descendants(id);
                let set: BTreeSet<_> = found.iter().copied().collect();
                prop_assert_eq!(set.len(), found.len());
                prop_assert!(!set.contains(&id));
                for next in found.iter().copied().chain([id]) {
                    prop_assert!(graph.dependents(next).all(|it| it == id || set.contains(&it)));
                }
            }
        }
    }
}
