//! Decisions as tables: a snapshot in, writes out.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "tables read best with values in place"
)]

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::{ClusterStatus, ObjectReference},
    conditions,
    contract::ContractVersion,
};
use capstan_runtime::Observed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;
use crate::snapshot::{Descendant, Foreign, Health};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Builds snapshots, and plays the API server when a plan is carried out.
#[derive(Clone)]
struct World {
    cluster: ClusterRecord,
    infrastructure: Option<Observed>,
    contract: ContractVersion,
}

impl World {
    fn new(infrastructure: Option<Value>) -> Self {
        let metadata = ObjectMeta {
            name: Some("c".into()),
            namespace: Some("n".into()),
            uid: Some("uid-c".into()),
            resource_version: Some("1".into()),
            generation: Some(1),
            ..ObjectMeta::default()
        };
        let mut cluster = ClusterRecord { metadata, ..ClusterRecord::default() };
        cluster.spec.infrastructure_ref =
            Some(ObjectReference { api_group: "g.io".into(), kind: "FooCluster".into(), name: "ic".into() });
        Self {
            cluster,
            infrastructure: infrastructure.map(|object| serde_json::from_value(object).unwrap()),
            contract: ContractVersion::V1Beta2,
        }
    }

    fn resource() -> ApiResource {
        ApiResource {
            group: "g.io".into(),
            version: "v1".into(),
            api_version: "g.io/v1".into(),
            kind: "FooCluster".into(),
            plural: "fooclusters".into(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let infrastructure = match (&self.cluster.spec.infrastructure_ref, &self.infrastructure) {
            (None, _) => Referenced::Nothing,
            (Some(reference), None) => {
                Referenced::Missing { reference: reference.clone(), resource: Self::resource() }
            }
            (Some(reference), Some(object)) => Referenced::Found(FoundObject {
                reference: reference.clone(),
                contract: self.contract,
                resource: Self::resource(),
                object: Arc::new(Foreign::new(object.clone())),
            }),
        };
        Snapshot {
            cluster: Arc::new(self.cluster.clone()),
            infrastructure,
            control_plane: Referenced::Nothing,
            descendants: Vec::new(),
            connection: Health::default(),
            connection_grace: Duration::from_secs(50),
        }
    }

    fn plan(&self) -> Plan {
        plan(&self.snapshot(), now())
    }

    /// Carries a plan out as an API server would.
    fn apply(&mut self, plan: &Plan) {
        if let Some(patch) = &plan.cluster {
            if let Some(finalizers) = patch["metadata"].get("finalizers") {
                self.cluster.metadata.finalizers = serde_json::from_value(finalizers.clone()).unwrap();
            }
            if let Some(endpoint) = patch.pointer("/spec/controlPlaneEndpoint") {
                self.cluster.spec.control_plane_endpoint = serde_json::from_value(endpoint.clone()).unwrap();
                *self.cluster.metadata.generation.as_mut().unwrap() += 1;
            }
        }
        for adoption in &plan.adoptions {
            let object = self.infrastructure.as_mut().unwrap();
            let metadata = &adoption.patch["metadata"];
            object.metadata.labels = serde_json::from_value(metadata["labels"].clone()).unwrap();
            object.metadata.owner_references =
                serde_json::from_value(metadata["ownerReferences"].clone()).unwrap();
        }
        if let Some(patch) = &plan.status {
            let mut status = json!(self.cluster.status);
            merge(&mut status, &patch["status"]);
            self.cluster.status = serde_json::from_value(status).unwrap();
        }
    }

    /// Plans and carries out until nothing is left to do; a single pass must be enough.
    fn settle(mut self) -> Self {
        let first = self.plan();
        self.apply(&first);
        let second = self.plan();
        assert!(second.is_idle(), "a second pass must have nothing to do: {second:?}");
        assert_eq!(second.events, [], "nothing is told twice");
        self
    }

    fn status(&self) -> &ClusterStatus {
        &self.cluster.status
    }

    /// Status, reason and message of a condition.
    fn condition(&self, type_: &str) -> (&str, &str, &str) {
        let found = conditions::get(&self.status().conditions, type_).unwrap_or_else(|| panic!("no {type_}"));
        (found.status.as_str(), &found.reason, &found.message)
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

fn infrastructure(spec: Value, status: Value) -> Option<Value> {
    Some(
        json!({"metadata": {"name": "ic", "uid": "uid-ic", "resourceVersion": "5"}, "spec": spec, "status": status}),
    )
}

fn endpoint() -> Value {
    json!({"controlPlaneEndpoint": {"host": "example.com", "port": 6443}})
}

fn provisioned(more: Value) -> Value {
    let mut status = json!({"initialization": {"provisioned": true}});
    merge(&mut status, &more);
    status
}

#[test]
fn one_pass_does_all_that_can_be_done() {
    let mut world = World::new(infrastructure(
        endpoint(),
        provisioned(json!({"failureDomains": [{"name": "z"}, {"name": "a", "controlPlane": true}]})),
    ));
    let plan = world.plan();
    assert_eq!(
        plan.cluster,
        Some(json!({
            "metadata": {"resourceVersion": "1", "finalizers": ["cluster.cluster.x-k8s.io"]},
            "spec": {"controlPlaneEndpoint": {"host": "example.com", "port": 6443}},
        }))
    );
    assert_eq!(plan.adoptions.len(), 1);
    let reasons: Vec<_> = plan.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["InfrastructureReady", "Provisioned"]);
    world.apply(&plan);
    assert!(world.plan().is_idle());
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
    assert_eq!(world.status().observed_generation, Some(2), "the generation after the endpoint was set");
    let names: Vec<_> = world.status().failure_domains.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "z"]);
    assert_eq!(world.condition("InfrastructureReady"), ("True", "Ready", ""));
}

#[test]
fn what_is_not_ready_is_awaited() {
    let world = World::new(infrastructure(endpoint(), json!({"ready": true}))).settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioning"));
    assert_eq!(
        world.condition("InfrastructureReady"),
        ("False", "NotReady", "FooCluster status.initialization.provisioned is false")
    );
    assert_eq!(world.cluster.spec.control_plane_endpoint, None, "not before it is provisioned");
    let legacy = world.status().deprecated.clone().unwrap().v1beta1.unwrap().conditions;
    let ready = conditions::legacy::get(&legacy, "InfrastructureReady").unwrap();
    assert_eq!((ready.reason.as_str(), ready.severity.as_str()), ("WaitingForInfrastructure", "Info"));
}

#[test]
fn the_older_contract_has_its_own_fields() {
    let mut world = World::new(infrastructure(
        endpoint(),
        json!({"ready": true, "failureDomains": {"z": {}, "a": {"controlPlane": true}}}),
    ));
    world.contract = ContractVersion::V1Beta1;
    let world = world.settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
    assert_eq!(world.status().failure_domains.len(), 2);
}

#[test]
fn half_an_endpoint_is_none() {
    let half = json!({"controlPlaneEndpoint": {"host": "h"}});
    let mut world = World::new(infrastructure(half, provisioned(json!({})))).settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioning"));
    assert_eq!(world.cluster.spec.control_plane_endpoint, None);
    let (_, reason, message) = world.condition("InfrastructureReady");
    assert_eq!(reason, "ContractViolated");
    assert!(message.contains("spec.controlPlaneEndpoint.port must be set as well"), "{message}");
    world.infrastructure.as_mut().unwrap().spec = endpoint();
    let world = world.settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
}

#[test]
fn the_users_endpoint_stays_and_provisioned_is_never_taken_back() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    world.cluster.spec.control_plane_endpoint = Some(ApiEndpoint { host: "1.2.3.4".into(), port: 8443 });
    let mut world = world.settle();
    world.infrastructure.as_mut().unwrap().status = json!({"initialization": {"provisioned": false}});
    let world = world.settle();
    assert_eq!(world.cluster.spec.control_plane_endpoint.as_ref().unwrap().host, "1.2.3.4");
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
    assert!(world.cluster.was_provisioned());
}

#[test]
fn what_breaks_the_contract_is_named_and_nothing_is_taken_from_it() {
    for (spec, status, field) in [
        (
            json!({"controlPlaneEndpoint": {"host": "h", "port": "x"}}),
            provisioned(json!({})),
            "spec.controlPlaneEndpoint.port",
        ),
        (json!({"controlPlaneEndpoint": "h:1"}), provisioned(json!({})), "spec.controlPlaneEndpoint"),
        (endpoint(), provisioned(json!({"failureDomains": {"a": {}}})), "status.failureDomains"),
        (endpoint(), json!({"initialization": {"provisioned": "yes"}}), "status.initialization.provisioned"),
    ] {
        let world = World::new(infrastructure(spec, status)).settle();
        let (status, reason, message) = world.condition("InfrastructureReady");
        assert_eq!((status, reason), ("False", "ContractViolated"));
        assert!(message.starts_with("FooCluster ic: ") && message.contains(field), "{message}");
        assert_eq!(world.status().phase.as_deref(), Some("Provisioning"));
        assert!(!world.cluster.was_provisioned());
    }
}

#[test]
fn the_ready_condition_is_mirrored() {
    for (ready, expected) in [
        (
            json!({"type": "Ready", "status": "False", "reason": "SomeReason", "message": "some message"}),
            ("False", "SomeReason", "some message"),
        ),
        (json!({"type": "Ready", "status": "True"}), ("True", "Ready", "")),
    ] {
        let status = provisioned(json!({"conditions": [ready]}));
        let world = World::new(infrastructure(endpoint(), status)).settle();
        assert_eq!(world.condition("InfrastructureReady"), expected);
    }
    let status = provisioned(json!({"conditions": [{"type": "Ready", "status": ""}]}));
    let world = World::new(infrastructure(endpoint(), status)).settle();
    let (status, reason, message) = world.condition("InfrastructureReady");
    assert_eq!((status, reason), ("Unknown", "InvalidConditionReported"));
    assert!(message.contains("status.conditions[0].status"), "{message}");
}

#[test]
fn words_that_the_schema_would_reject_are_made_presentable() {
    let ready = json!({"type": "Ready", "status": "False", "reason": "not ready!", "message": "m"});
    let status = provisioned(json!({"conditions": [ready]}));
    let world = World::new(infrastructure(endpoint(), status)).settle();
    let (status, reason, message) = world.condition("InfrastructureReady");
    assert_eq!((status, reason), ("Unknown", "InvalidConditionReported"));
    assert!(message.contains("\"not ready!\""), "{message}");

    let long = "x".repeat(40_000);
    let ready = json!({"type": "Ready", "status": "False", "reason": "R", "message": long});
    let status = provisioned(json!({"conditions": [ready]}));
    let world = World::new(infrastructure(endpoint(), status)).settle();
    assert_eq!(world.condition("InfrastructureReady").2.len(), 32768);
    let legacy = world.status().deprecated.clone().unwrap().v1beta1.unwrap().conditions;
    assert!(legacy.iter().all(|it| it.message.len() <= 10240));
}

#[test]
fn an_object_that_is_missing_or_vanished_is_told_apart() {
    let world = World::new(None).settle();
    assert_eq!(
        world.condition("InfrastructureReady"),
        ("False", "ObjectDoesNotExist", "FooCluster does not exist")
    );
    assert_eq!(world.status().phase.as_deref(), Some("Provisioning"));

    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    world.infrastructure = None;
    let world = world.settle();
    assert_eq!(
        world.condition("InfrastructureReady"),
        ("False", "ObjectDeleted", "FooCluster has been deleted while the cluster still exists")
    );
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
}

#[test]
fn a_cluster_without_references_is_pending() {
    let mut world = World::new(None);
    world.cluster.spec.infrastructure_ref = None;
    let world = world.settle();
    assert_eq!(world.status().phase.as_deref(), Some("Pending"));
    assert!(!world.cluster.was_provisioned(), "a reference may still come");
}

#[test]
fn terminal_failures_are_final_in_the_older_contract_only() {
    let failing = json!({"ready": true, "failureReason": "X", "failureMessage": "boom"});
    let mut world = World::new(infrastructure(endpoint(), failing.clone()));
    world.contract = ContractVersion::V1Beta1;
    let mut world = world.settle();
    assert_eq!(world.status().phase.as_deref(), Some("Failed"));
    let failure = world.status().deprecated.clone().unwrap().v1beta1.unwrap();
    assert_eq!(failure.failure_reason.as_deref(), Some("X"));
    assert_eq!(
        failure.failure_message.as_deref(),
        Some("Failure detected from referenced resource g.io/v1, Kind=FooCluster with name \"ic\": boom")
    );
    world.infrastructure.as_mut().unwrap().status = json!({"ready": true});
    assert_eq!(world.settle().status().phase.as_deref(), Some("Failed"), "there is no way back");

    let mut both = failing;
    merge(&mut both, &provisioned(json!({})));
    let world = World::new(infrastructure(endpoint(), both)).settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
}

#[test]
fn a_paused_cluster_is_left_alone() {
    for by_annotation in [false, true] {
        let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
        if by_annotation {
            world.cluster.metadata.annotations =
                Some([("cluster.x-k8s.io/paused".to_owned(), String::new())].into());
        } else {
            world.cluster.spec.paused = Some(true);
        }
        let plan = world.plan();
        assert!(plan.adoptions.is_empty());
        let mut world = world.settle();
        let (status, reason, message) = world.condition("Paused");
        assert_eq!((status, reason), ("True", "Paused"));
        let words = if by_annotation {
            "Cluster has the cluster.x-k8s.io/paused annotation"
        } else {
            "Cluster spec.paused is set to true"
        };
        assert_eq!(message, words);
        assert_eq!(world.status().phase, None);
        world.cluster.metadata.deletion_timestamp = Some(Time(now()));
        assert!(world.plan().is_idle(), "deletion waits too");
    }
}

#[test]
fn an_object_of_another_cluster_is_refused() {
    let mut object = infrastructure(endpoint(), provisioned(json!({}))).unwrap();
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "other", "uid": "u"}]);
    let mut world = World::new(Some(object));
    assert!(world.plan().adoptions.is_empty());
    world = world.settle();
    let (_, reason, message) = world.condition("InfrastructureReady");
    assert_eq!(reason, "OwnedByAnotherCluster");
    assert!(message.contains("FooCluster ic belongs to Cluster other"), "{message}");
    assert_eq!(world.status().phase.as_deref(), Some("Provisioning"));

    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    let plan = world.plan();
    assert!(plan.deletions.is_empty(), "it is not ours to delete");
    assert!(plan.release.is_some());
}

#[test]
fn deletion_waits_for_the_infrastructure_and_then_lets_go() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    world.infrastructure.as_mut().unwrap().metadata.finalizers = Some(vec!["foo.io/x".to_owned()]);

    let plan = world.plan();
    assert_eq!(plan.deletions.len(), 1);
    assert_eq!(plan.deletions[0].uid, "uid-ic");
    assert_eq!(plan.release, None);
    world.apply(&plan);
    assert_eq!(world.status().phase.as_deref(), Some("Deleting"));
    assert_eq!(
        world.condition("Deleting"),
        (
            "True",
            "WaitingForInfrastructureDeletion",
            "Waiting for FooCluster ic to be deleted; held by its finalizers foo.io/x"
        )
    );

    world.infrastructure.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(now()));
    let plan = world.plan();
    assert_eq!((plan.deletions.len(), plan.release), (0, None), "asked for once is enough");

    world.infrastructure = None;
    let plan = world.plan();
    let release = plan.release.unwrap();
    assert_eq!(release.gone, [(World::resource(), ObjectKey::new("n", "ic"))]);
    assert_eq!(release.patch, json!({"metadata": {"resourceVersion": "1", "finalizers": []}}));
    assert_eq!(plan.status, None);

    world.cluster.metadata.finalizers = None;
    assert!(world.plan().is_idle());
}

#[test]
fn machines_go_first() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    let descendant = |kind: &str, name: &str, child: bool, control_plane: bool| {
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}]);
        let labels = if control_plane { json!({"cluster.x-k8s.io/control-plane": ""}) } else { json!({}) };
        let metadata = json!({
            "name": name, "uid": name, "labels": labels,
            "ownerReferences": if child { owner } else { json!([]) },
        });
        Descendant {
            resource: ApiResource { kind: kind.into(), ..World::resource() },
            metadata: serde_json::from_value(metadata).unwrap(),
        }
    };
    let mut snapshot = world.snapshot();
    snapshot.descendants = vec![
        descendant("MachineDeployment", "md", true, false),
        descendant("Machine", "md-1", false, false),
        descendant("Machine", "cp-1", true, true),
    ];
    let deleted = |plan: &Plan| plan.deletions.iter().map(|it| it.uid.clone()).collect::<Vec<_>>();
    let first = plan(&snapshot, now());
    assert_eq!(deleted(&first), ["md", "cp-1"], "children only, and not the infrastructure");
    let status = first.status.unwrap().to_string();
    assert!(status.contains("WaitingForWorkersDeletion"), "{status}");
    assert!(status.contains(r"* MachineDeployments: md\n* Machines: cp-1, md-1"), "{status}");
    assert!(first.again.is_some());

    // With a control plane provider, its Machines are its own affair.
    let mut managed = (*snapshot.cluster).clone();
    managed.spec.control_plane_ref = Some(ObjectReference::default());
    snapshot.cluster = Arc::new(managed);
    snapshot.descendants.remove(0);
    assert_eq!(deleted(&plan(&snapshot, now())), Vec::<String>::new(), "md-1 is its owner's to delete");
    snapshot.descendants.remove(0);
    assert_eq!(deleted(&plan(&snapshot, now())), ["uid-ic"], "nothing is left but the control plane's own");
}

#[test]
fn a_missing_kind_does_not_hold_a_deletion_but_an_unreadable_one_does() {
    let mut world = World::new(None);
    world.cluster.metadata.finalizers = Some(vec![finalizer::CLUSTER.to_owned()]);
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    for (kind_missing, released) in [(true, true), (false, false)] {
        let mut snapshot = world.snapshot();
        snapshot.infrastructure = Referenced::Unresolved {
            reference: world.cluster.spec.infrastructure_ref.clone().unwrap(),
            reason: "label missing".into(),
            kind_missing,
        };
        let plan = plan(&snapshot, now());
        assert_eq!(plan.release.is_some(), released);
        if !released {
            let status = plan.status.unwrap().to_string();
            assert!(status.contains("Cannot delete FooCluster ic: label missing"), "{status}");
        }
    }
}

#[test]
fn an_unresolved_kind_is_explained_in_the_condition() {
    let mut snapshot = World::new(None).snapshot();
    snapshot.infrastructure = Referenced::Unresolved {
        reference: snapshot.cluster.spec.infrastructure_ref.clone().unwrap(),
        reason: "install the provider".into(),
        kind_missing: true,
    };
    let plan = plan(&snapshot, now());
    let status = plan.status.unwrap();
    let conditions = status["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|it| it["type"] == "InfrastructureReady").unwrap();
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (&json!("Unknown"), &json!("InternalError"), &json!("install the provider"))
    );
    assert!(
        plan.events
            .iter()
            .any(|event| event.severity == Severity::Warning && event.message == "install the provider")
    );
}

#[test]
fn other_peoples_conditions_survive() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    world.cluster.status = serde_json::from_value(json!({"conditions": [{
        "type": "example.com/Blessed", "status": "True", "reason": "Yes", "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }]}))
    .unwrap();
    let world = world.settle();
    assert_eq!(world.condition("example.com/Blessed"), ("True", "Yes", ""));
}

#[test]
fn a_foreign_finalizer_is_kept() {
    let mut world = World::new(None);
    world.cluster.metadata.finalizers = Some(vec!["example.com/x".to_owned()]);
    let plan = world.plan();
    assert_eq!(plan.cluster.unwrap()["metadata"]["finalizers"], json!(["example.com/x", finalizer::CLUSTER]));
}
