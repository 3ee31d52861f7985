//! The Machines of a Cluster and what makes them.
//!
//! They are counted in its status, their conditions are merged into its own, and they go before anything that they
//! stand on.

mod enumerate;
mod search;
mod versions;
mod watch;

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::{MachinesStatus, VersionStatus},
    conditions::{self, ConditionRef, ConditionStatus, Report, Source},
    contract::owned_by_cluster,
    names::label,
};
use capstan_runtime::{ObjectKey, Observed, cache::Cached};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

pub(crate) use enumerate::enumerate;
pub(crate) use search::search;
pub(crate) use versions::merge_versions;
pub(crate) use watch::DescendantWatch;

use crate::{core_kinds::CoreKind, snapshot::ClusterRecord};

/// The kinds that can belong to a Cluster, in the order in which they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Machines that the infrastructure keeps as a group.
    MachinePool,
    /// MachineSets, one for each template.
    MachineDeployment,
    /// Machines, all alike.
    MachineSet,
    /// One Machine.
    Machine,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MachinePool, Self::MachineDeployment, Self::MachineSet, Self::Machine];

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MachinePool => "MachinePool",
            Self::MachineDeployment => "MachineDeployment",
            Self::MachineSet => "MachineSet",
            Self::Machine => "Machine",
        }
    }

    /// The kind as one of the core group.
    pub(crate) const fn core(self) -> CoreKind {
        let plural = match self {
            Self::MachinePool => "machinepools",
            Self::MachineDeployment => "machinedeployments",
            Self::MachineSet => "machinesets",
            Self::Machine => "machines",
        };
        CoreKind { name: self.name(), plural }
    }
}

/// The conditions that are read; all others are forgotten.
const CONDITIONS: [&str; 8] = [
    "Available",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "Ready",
    "RollingOut",
    "ScalingDown",
    "ScalingUp",
    "UpToDate",
];

/// What is kept of an object that belongs to a Cluster.
#[derive(Clone, Debug, Default)]
pub struct Descendant {
    metadata: ObjectMeta,
    facts: Facts,
}

/// What a Cluster's status depends on.
#[derive(Clone, Debug, Default, PartialEq)]
struct Facts {
    counted: MachinesStatus,
    has_node: bool,
    conditions: Vec<Report>,
    /// What is wrong with the conditions, if they cannot be read.
    malformed: Option<String>,
}

impl Descendant {
    /// Reduces an object of a kind, in whichever version it was read.
    pub fn new(kind: &str, object: Observed) -> Self {
        let Observed { metadata, spec, status } = object;
        let labels = metadata.labels.unwrap_or_default();
        let kept = [label::CLUSTER_NAME, label::CONTROL_PLANE, label::MACHINE_POOL_NAME];
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: Some(labels.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect()),
            owner_references: metadata.owner_references,
            finalizers: metadata.finalizers,
            ..ObjectMeta::default()
        };
        let source = format!("{kind} {}", metadata.name.as_deref().unwrap_or_default());
        Self { metadata, facts: Facts::read(&source, &spec.value(), &status.value()) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether the Cluster itself owns it, so that no other controller deletes or counts it.
    pub fn is_child_of(&self, cluster: &ClusterRecord) -> bool {
        owned_by_cluster(&self.metadata).is_some_and(|owner| owner.name == cluster.name())
    }

    /// Whether it belongs to the control plane.
    pub fn is_control_plane(&self) -> bool {
        self.has_label(label::CONTROL_PLANE)
    }

    /// Whether it is a Machine of a MachinePool, whose provider reports no conditions on it.
    pub fn is_of_machine_pool(&self) -> bool {
        self.has_label(label::MACHINE_POOL_NAME)
    }

    /// Whether a Node has come of it.
    pub fn has_node(&self) -> bool {
        self.facts.has_node
    }

    /// The counters that it reports.
    pub fn counted(&self) -> &MachinesStatus {
        &self.facts.counted
    }

    /// How long it has been there.
    pub fn created(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// What it says about one condition.
    pub fn condition(&self, type_: &str) -> Option<ConditionRef<'_>> {
        if let Some(message) = &self.facts.malformed {
            return Some(ConditionRef {
                type_: "",
                status: ConditionStatus::Unknown,
                reason: conditions::reason::INVALID_CONDITION_REPORTED,
                message,
                since: None,
            });
        }
        self.facts.conditions.iter().find(|report| report.type_ == type_).map(ConditionRef::from)
    }

    /// Whether a condition has that status.
    pub fn is(&self, type_: &str, status: ConditionStatus) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == status)
    }

    /// The Clusters that it belongs to: by label, or by an owner reference that came before the label.
    fn clusters(&self) -> impl Iterator<Item = ObjectKey> {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        let labelled = self.metadata.labels.as_ref().and_then(|labels| labels.get(label::CLUSTER_NAME));
        let owner = owned_by_cluster(&self.metadata).map(|owner| &owner.name);
        let owner = owner.filter(|owner| Some(*owner) != labelled);
        labelled.into_iter().chain(owner).map(|name| ObjectKey::new(namespace, name))
    }

    /// Whether a Cluster would see a difference.
    fn differs(&self, other: &Self) -> bool {
        let essence = |it: &Self| {
            let metadata = &it.metadata;
            let labels = metadata.labels.clone();
            (labels, metadata.owner_references.clone(), metadata.finalizers.clone(), it.is_deleting())
        };
        self.facts != other.facts || essence(self) != essence(other)
    }

    /// Whether its deletion was requested.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn has_label(&self, name: &str) -> bool {
        self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(name))
    }
}

impl Cached for Descendant {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Facts {
    /// `source` is what errors call the object.
    fn read(source: &str, spec: &Value, status: &Value) -> Self {
        let count = |value: &Value| value.as_i64().and_then(|count| i32::try_from(count).ok());
        // In the v1beta1 API what is counted by today's rules stands in a corner of its own.
        let newer = status.get("v1beta2").unwrap_or(status);
        let up_to_date = newer.get("upToDateReplicas").unwrap_or(&status["updatedReplicas"]);
        let own_version = [&status["nodeInfo"]["kubeletVersion"], &spec["version"]];
        let own_version = own_version.into_iter().filter_map(Value::as_str).find(|it| !it.is_empty());
        let versions = match status["versions"].as_array() {
            Some(list) => list.iter().filter_map(version_status).collect(),
            None => own_version
                .into_iter()
                .map(|it| VersionStatus { version: it.to_owned(), replicas: Some(1) })
                .collect(),
        };
        let counted = MachinesStatus {
            desired_replicas: count(&spec["replicas"]),
            replicas: count(&status["replicas"]),
            ready_replicas: count(newer.get("readyReplicas").unwrap_or(&status["readyReplicas"])),
            available_replicas: count(newer.get("availableReplicas").unwrap_or(&status["availableReplicas"])),
            up_to_date_replicas: count(up_to_date),
            versions,
            upgrade_plan: Vec::new(),
        };
        let has_node = status["nodeRef"]["name"].as_str().is_some_and(|name| !name.is_empty());
        let reported = serde_json::json!({"status": {
            "conditions": status["conditions"], "v1beta2": status["v1beta2"],
        }});
        let (conditions, malformed) = match conditions::read_from(source, &reported) {
            Ok(mut reports) => {
                reports.retain(|report| CONDITIONS.contains(&report.type_.as_str()));
                (reports, None)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Self { counted, has_node, conditions, malformed }
    }
}

fn version_status(value: &Value) -> Option<VersionStatus> {
    let version = value["version"].as_str().filter(|version| !version.is_empty())?;
    let replicas = value["replicas"].as_i64().and_then(|count| i32::try_from(count).ok());
    Some(VersionStatus { version: version.to_owned(), replicas })
}

/// One object that belongs to a Cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its kind.
    pub kind: Kind,
    /// The version of the kind that it was read in.
    pub version: &'static str,
    /// What is known of it.
    pub object: Arc<Descendant>,
}

impl Member {
    /// The object as the source of an aggregated condition.
    pub(crate) fn source(&self, type_: &str) -> Source<'_> {
        Source {
            kind: self.kind.name(),
            name: self.object.name(),
            is_control_plane_machine: self.kind == Kind::Machine && self.object.is_control_plane(),
            condition: self.object.condition(type_),
        }
    }
}

/// All that belongs to a Cluster.
#[derive(Clone, Debug, Default)]
pub struct Descendants {
    /// The objects, by kind and name.
    pub members: Vec<Member>,
    /// Why this may not be all.
    pub trouble: Option<String>,
    /// What the server said when one of them was to be deleted.
    pub refusal: Option<String>,
}

impl Descendants {
    /// The objects of one kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.kind == kind)
    }

    /// The Machines of the control plane.
    pub fn control_plane_machines(&self) -> impl Iterator<Item = &Member> {
        self.of_kind(Kind::Machine).filter(|member| member.object.is_control_plane())
    }

    /// The Machines of workers.
    pub fn worker_machines(&self) -> impl Iterator<Item = &Member> {
        self.of_kind(Kind::Machine).filter(|member| !member.object.is_control_plane())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn descendant(metadata: Value, spec: Value, status: Value) -> Descendant {
        let metadata = serde_json::from_value(metadata).unwrap();
        Descendant::new("Machine", Observed { metadata, spec: spec.into(), status: status.into() })
    }

    #[test]
    fn both_versions_are_read() {
        let today = descendant(
            json!({}),
            json!({"replicas": 3}),
            json!({
                "replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 0,
                "versions": [{"version": "v1.33.0", "replicas": 3}],
                "conditions": [{"type": "Available", "status": "False"}, {"type": "Other", "status": "True"}],
            }),
        );
        let older = descendant(
            json!({}),
            json!({"replicas": 3}),
            json!({
                "replicas": 3, "readyReplicas": 7, "availableReplicas": 7, "updatedReplicas": 7,
                "versions": [{"version": "v1.33.0", "replicas": 3}],
                "conditions": [{"type": "Available", "status": "True"}],
                "v1beta2": {
                    "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 0,
                    "conditions": [{"type": "Available", "status": "False"}],
                },
            }),
        );
        assert_eq!(today.facts, older.facts);
        assert_eq!(today.counted().ready_replicas, Some(2));
        assert!(today.is("Available", ConditionStatus::False));
        assert_eq!(today.condition("Other"), None);

        let oldest = descendant(json!({}), json!({}), json!({"readyReplicas": 2, "updatedReplicas": 1}));
        assert_eq!(
            (oldest.counted().ready_replicas, oldest.counted().up_to_date_replicas),
            (Some(2), Some(1))
        );
    }

    #[test]
    fn a_machine_has_the_version_of_its_node() {
        for (spec, status, expected) in [
            (json!({"version": "v1.33.0"}), json!({}), Some("v1.33.0")),
            (
                json!({"version": "v1.33.0"}),
                json!({"nodeInfo": {"kubeletVersion": "v1.32.0"}}),
                Some("v1.32.0"),
            ),
            (json!({}), json!({}), None),
        ] {
            let machine = descendant(json!({}), spec, status);
            let versions: Vec<_> = machine.counted().versions.iter().map(|it| it.version.as_str()).collect();
            assert_eq!(versions.first().copied(), expected);
        }
    }

    #[test]
    fn an_object_belongs_to_whom_label_or_owner_names() {
        let owner = |name: &str| json!([{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "uid": "u"}]);
        let label = |name: &str| json!({"cluster.x-k8s.io/cluster-name": name});
        for (metadata, expected) in [
            (json!({"namespace": "n", "labels": label("a")}), vec!["a"]),
            (json!({"namespace": "n", "ownerReferences": owner("a")}), vec!["a"]),
            (json!({"namespace": "n", "labels": label("a"), "ownerReferences": owner("a")}), vec!["a"]),
            (json!({"namespace": "n", "labels": label("a"), "ownerReferences": owner("b")}), vec!["a", "b"]),
            (json!({"namespace": "n"}), vec![]),
        ] {
            let object = descendant(metadata, json!({}), json!({}));
            let clusters: Vec<_> = object.clusters().map(|key| key.name.to_string()).collect();
            assert_eq!(clusters, expected);
        }
    }

    #[test]
    fn conditions_that_are_none_are_unknown_in_words() {
        let machine = descendant(
            json!({"name": "m"}),
            json!({}),
            json!({"conditions": [{"type": "Ready", "status": 3}]}),
        );
        let ready = machine.condition("Ready").unwrap();
        assert_eq!((ready.status, ready.reason), (ConditionStatus::Unknown, "InvalidConditionReported"));
        assert_eq!(ready.message, "Machine m sets status.conditions[0].status to 3, but it must be a string");
    }
}
