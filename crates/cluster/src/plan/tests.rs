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
use crate::snapshot::{Descendant, Descendants, Foreign, Health, Kind, Member};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Builds snapshots, and plays the API server when a plan is carried out.
#[derive(Clone)]
struct World {
    cluster: ClusterRecord,
    infrastructure: Option<Observed>,
    control_plane: Option<Observed>,
    contract: ContractVersion,
    descendants: Descendants,
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
            control_plane: None,
            contract: ContractVersion::V1Beta2,
            descendants: Descendants::default(),
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
        let referenced =
            |reference: &Option<ObjectReference>, object: &Option<Observed>| match (reference, object) {
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
            infrastructure: referenced(&self.cluster.spec.infrastructure_ref, &self.infrastructure),
            control_plane: referenced(&self.cluster.spec.control_plane_ref, &self.control_plane),
            descendants: self.descendants.clone(),
            class_gates: Ok(Vec::new()),
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
            let is_control_plane =
                self.cluster.spec.control_plane_ref.as_ref().is_some_and(|it| it.name == *adoption.key.name);
            let object = if is_control_plane { &mut self.control_plane } else { &mut self.infrastructure };
            let object = object.as_mut().unwrap();
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

    /// Status, severity, reason and message of a condition in the style of v1beta1.
    fn legacy_condition(&self, type_: &str) -> (&str, &str, &str, &str) {
        let legacy = self.status().deprecated.as_ref().and_then(|it| it.v1beta1.as_ref()).unwrap();
        let found =
            conditions::legacy::get(&legacy.conditions, type_).unwrap_or_else(|| panic!("no {type_}"));
        (found.status.as_str(), &found.severity, &found.reason, &found.message)
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
    world.infrastructure.as_mut().unwrap().spec = endpoint().into();
    let world = world.settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
}

#[test]
fn the_users_endpoint_stays_and_provisioned_is_never_taken_back() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    world.cluster.spec.control_plane_endpoint = Some(ApiEndpoint { host: "1.2.3.4".into(), port: 8443 });
    let mut world = world.settle();
    world.infrastructure.as_mut().unwrap().status = json!({"initialization": {"provisioned": false}}).into();
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
    world.infrastructure.as_mut().unwrap().status = json!({"ready": true}).into();
    assert_eq!(world.settle().status().phase.as_deref(), Some("Failed"), "there is no way back");

    let mut both = failing;
    merge(&mut both, &provisioned(json!({})));
    let world = World::new(infrastructure(endpoint(), both)).settle();
    assert_eq!(world.status().phase.as_deref(), Some("Provisioned"));
}

/// A control plane object beside the infrastructure.
fn with_control_plane(mut world: World, metadata: Value, status: Value) -> World {
    let mut object =
        json!({"metadata": {"name": "cp", "uid": "uid-cp", "resourceVersion": "5"}, "status": status});
    merge(&mut object["metadata"], &metadata);
    world.cluster.spec.control_plane_ref =
        Some(ObjectReference { api_group: "g.io".into(), kind: "FooControlPlane".into(), name: "cp".into() });
    world.control_plane = Some(serde_json::from_value(object).unwrap());
    world
}

fn owned_by(name: &str, uid: &str) -> Value {
    json!({"ownerReferences": [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": uid},
    ]})
}

#[test]
fn only_the_clusters_own_objects_make_it_fail() {
    let failing = json!({"failureReason": "X", "failureMessage": "boom"});
    let deleting = |mut metadata: Value| {
        merge(&mut metadata, &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        metadata
    };
    for (what, metadata, fails) in [
        ("about to be adopted", json!({}), true),
        ("owned by this Cluster", owned_by("c", "uid-c"), true),
        ("owned by an earlier Cluster of the same name", owned_by("c", "uid-before"), true),
        ("owned by another Cluster", owned_by("other", "uid-other"), false),
        ("deleted and owned by this Cluster", deleting(owned_by("c", "uid-c")), true),
        ("deleted and never adopted", deleting(json!({})), false),
        ("deleted and owned by another Cluster", deleting(owned_by("other", "uid-other")), false),
    ] {
        let mut object = infrastructure(json!({}), failing.clone()).unwrap();
        merge(&mut object["metadata"], &metadata);
        let mut world = World::new(Some(object));
        world.contract = ContractVersion::V1Beta1;
        let expected = if fails { "Failed" } else { "Provisioning" };
        assert_eq!(world.settle().status().phase.as_deref(), Some(expected), "infrastructure {what}");

        let world = World::new(infrastructure(json!({}), json!({})));
        let mut world = with_control_plane(world, metadata, failing.clone());
        world.contract = ContractVersion::V1Beta1;
        assert_eq!(world.settle().status().phase.as_deref(), Some(expected), "control plane {what}");
    }
}

#[test]
fn nothing_is_counted_of_another_clusters_control_plane() {
    let status = json!({"replicas": 3, "readyReplicas": 3, "initialization": {"controlPlaneInitialized": true},
        "conditions": [{"type": "ScalingUp", "status": "True", "reason": "R"}]});
    let world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let world = with_control_plane(world, owned_by("other", "uid-other"), status).settle();
    assert_eq!(world.status().control_plane, None);
    assert_eq!(world.condition("ScalingUp").0, "False");
    assert_eq!(world.condition("ControlPlaneInitialized").0, "False");
}

#[test]
fn nothing_is_taken_from_another_clusters_objects_during_deletion() {
    let ready = |type_: &str| json!([{"type": type_, "status": "True"}]);
    for (deletes_cluster, deletes_objects) in [(true, false), (false, true), (true, true)] {
        let what = format!("Cluster is deleting: {deletes_cluster}, objects are: {deletes_objects}");
        let mut metadata = owned_by("other", "uid-other");
        let deleting = json!({"deletionTimestamp": now().to_string()});
        if deletes_objects {
            merge(&mut metadata, &deleting);
        }
        let domains = json!({"failureDomains": [{"name": "z"}], "conditions": ready("Ready")});
        let mut object = infrastructure(endpoint(), provisioned(domains)).unwrap();
        merge(&mut object["metadata"], &metadata);
        let status = json!({"replicas": 3, "initialization": {"controlPlaneInitialized": true},
            "conditions": ready("Available")});
        let mut world = with_control_plane(World::new(Some(object)), metadata, status);
        world.cluster.metadata.finalizers = Some(vec![finalizer::CLUSTER.to_owned()]);
        if deletes_cluster {
            // A worker that is being deleted holds the Cluster.
            let worker = both(child(), deleting);
            world.descendants.members = vec![member(Kind::Machine, "w", worker, json!({}), json!({}))];
            world.cluster.metadata.deletion_timestamp = Some(Time(now()));
        }
        let world = world.settle();
        for type_ in ["InfrastructureReady", "ControlPlaneAvailable"] {
            let (status, reason, _) = world.condition(type_);
            assert_eq!((status, reason), ("False", "OwnedByAnotherCluster"), "{type_}, {what}");
        }
        for type_ in ["InfrastructureReady", "ControlPlaneReady"] {
            let (status, _, reason, _) = world.legacy_condition(type_);
            assert_eq!((status, reason), ("False", "OwnedByAnotherCluster"), "{type_} in v1beta1, {what}");
        }
        assert!(!world.cluster.was_provisioned() && !world.cluster.was_initialized(), "{what}");
        assert_eq!(
            (&world.status().failure_domains, &world.status().control_plane),
            (&vec![], &None),
            "{what}"
        );
    }
}

#[test]
fn the_conditions_of_v1beta1_agree() {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let half = json!({"controlPlaneEndpoint": {"host": "h"}});
    let other = owned_by("other", "uid-other");
    let says_other = "belongs to Cluster other: refer to an object of this Cluster's own";
    for (what, spec, metadata, status, expected) in [
        (
            "provisioned",
            endpoint(),
            json!({}),
            provisioned(ready.clone()),
            ("True", "", "", String::new()),
        ),
        (
            "breaks the contract",
            half,
            json!({}),
            provisioned(ready.clone()),
            (
                "False",
                "Error",
                "ContractViolated",
                "FooCluster ic: spec.controlPlaneEndpoint.port must be set as well once the infrastructure is provisioned"
                    .to_owned(),
            ),
        ),
        (
            "another Cluster's",
            endpoint(),
            other.clone(),
            provisioned(ready.clone()),
            ("False", "Error", "OwnedByAnotherCluster", format!("FooCluster ic {says_other}")),
        ),
        (
            "not a condition",
            endpoint(),
            json!({}),
            provisioned(json!({"conditions": [{"type": "Ready", "status": 7}]})),
            (
                "Unknown",
                "",
                "InvalidConditionReported",
                "FooCluster ic sets status.conditions[0].status to 7, but it must be a string".to_owned(),
            ),
        ),
        (
            "a reason that is not a word",
            endpoint(),
            json!({}),
            provisioned(json!({"conditions": [{"type": "Ready", "status": "True", "reason": "not a word!"}]})),
            (
                "Unknown",
                "",
                "InvalidConditionReported",
                "FooCluster ic: the reason \"not a word!\" of condition Ready must be a word of letters and digits \
                 that begins with a letter"
                    .to_owned(),
            ),
        ),
        (
            "beside something that is not a condition",
            endpoint(),
            json!({}),
            provisioned(json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "X"}]})),
            (
                "Unknown",
                "",
                "InvalidConditionReported",
                "FooCluster ic does not set status.conditions[1].status, which every condition must have".to_owned(),
            ),
        ),
    ] {
        let mut object = infrastructure(spec, status).unwrap();
        merge(&mut object["metadata"], &metadata);
        let world = World::new(Some(object)).settle();
        let (status, severity, reason, message) = world.legacy_condition("InfrastructureReady");
        assert_eq!((status, severity, reason, message.to_owned()), expected, "{what}");
        assert_eq!(world.legacy_condition("Ready").0, status, "{what}");
        assert_eq!(world.condition("InfrastructureReady").0, status, "{what}");
    }

    let world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let done =
        json!({"initialization": {"controlPlaneInitialized": true}, "conditions": ready["conditions"]});
    let world = with_control_plane(world, other, done).settle();
    let (status, severity, reason, message) = world.legacy_condition("ControlPlaneReady");
    assert_eq!((status, severity, reason), ("False", "Error", "OwnedByAnotherCluster"));
    assert_eq!(message, format!("FooControlPlane cp {says_other}"));
    assert_eq!(world.legacy_condition("ControlPlaneInitialized").0, "False");

    let world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let odd =
        json!({"initialization": {"controlPlaneInitialized": "yes"}, "conditions": ready["conditions"]});
    let world = with_control_plane(world, json!({}), odd).settle();
    let (status, severity, reason, _) = world.legacy_condition("ControlPlaneReady");
    assert_eq!((status, severity, reason), ("False", "Error", "ContractViolated"));
}

#[test]
fn a_kind_that_cannot_be_resolved_any_more_is_not_ready_in_v1beta1_either() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    assert_eq!(world.legacy_condition("InfrastructureReady").0, "True");
    let mut snapshot = world.snapshot();
    snapshot.infrastructure = Referenced::Unresolved {
        reference: world.cluster.spec.infrastructure_ref.clone().unwrap(),
        reason: "install the provider".into(),
        kind_missing: true,
    };
    world.apply(&plan(&snapshot, now()));
    let expected = ("Unknown", "", "InternalError", "install the provider");
    assert_eq!(world.legacy_condition("InfrastructureReady"), expected);
}

#[test]
fn what_is_not_ready_is_named_by_the_contract_in_force() {
    for (contract, infrastructure_path, control_plane_path) in [
        (ContractVersion::V1Beta1, "status.ready", "status.initialized"),
        (
            ContractVersion::V1Beta2,
            "status.initialization.provisioned",
            "status.initialization.controlPlaneInitialized",
        ),
    ] {
        let mut world = World::new(infrastructure(json!({}), json!({})));
        world.contract = contract;
        let world = with_control_plane(world, json!({}), json!({})).settle();
        let message = format!("FooCluster {infrastructure_path} is false");
        assert_eq!(world.condition("InfrastructureReady"), ("False", "NotReady", message.as_str()));
        let message = format!("FooControlPlane {control_plane_path} is false");
        assert_eq!(world.condition("ControlPlaneAvailable"), ("False", "NotAvailable", message.as_str()));
    }
}

#[test]
fn malformed_conditions_are_blamed_on_the_object() {
    for (conditions, expected) in [
        (
            json!("none"),
            "FooCluster ic sets status.conditions to \"none\", but it must be a list of conditions",
        ),
        (
            json!([{"status": "True"}]),
            "FooCluster ic does not set status.conditions[0].type, which every condition must have",
        ),
        (
            json!([{"type": "Ready"}]),
            "FooCluster ic does not set status.conditions[0].status, which every condition must have",
        ),
    ] {
        let status = provisioned(json!({ "conditions": conditions }));
        let world = World::new(infrastructure(endpoint(), status)).settle();
        assert_eq!(world.condition("InfrastructureReady"), ("Unknown", "InvalidConditionReported", expected));
    }
}

#[test]
fn a_control_plane_with_malformed_conditions_leaves_scaling_unknown() {
    let status = json!({"conditions": [{"type": "Available", "status": 7}]});
    let world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let world = with_control_plane(world, json!({}), status).settle();
    let blame = "FooControlPlane cp sets status.conditions[0].status to 7, but it must be a string";
    for type_ in ["RollingOut", "ScalingUp", "ScalingDown"] {
        let (reason, message) = (format!("{type_}Unknown"), format!("* FooControlPlane cp: {blame}"));
        assert_eq!(world.condition(type_), ("Unknown", reason.as_str(), message.as_str()));
    }
}

#[test]
fn a_cluster_scoped_kind_breaks_the_contract_and_holds_no_deletion() {
    let mut world = World::new(None);
    let mut snapshot = world.snapshot();
    snapshot.infrastructure = Referenced::ClusterScoped {
        reference: world.cluster.spec.infrastructure_ref.clone().unwrap(),
        crd: "fooclusters.g.io".to_owned(),
    };
    world.apply(&plan(&snapshot, now()));
    let message = "FooCluster is cluster-scoped: the contract requires spec.scope Namespaced in \
                   CustomResourceDefinition fooclusters.g.io";
    assert_eq!(world.condition("InfrastructureReady"), ("False", "ContractViolated", message));
    assert_eq!(
        world.legacy_condition("InfrastructureReady"),
        ("False", "Error", "ContractViolated", message)
    );
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.cluster = Arc::new(world.cluster.clone());
    assert!(plan(&snapshot, now()).release.is_some());
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

/// An object that belongs to the Cluster; `more` goes into its metadata.
fn member(kind: Kind, name: &str, more: Value, spec: Value, status: Value) -> Member {
    let mut metadata = json!({"name": name, "namespace": "n", "uid": name});
    merge(&mut metadata, &more);
    let metadata = serde_json::from_value(metadata).unwrap();
    let object = Observed { metadata, spec: spec.into(), status: status.into() };
    Member { kind, version: "v1beta2", object: Arc::new(Descendant::new(kind.name(), object)) }
}

fn child() -> Value {
    json!({"ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}]})
}

fn of_control_plane() -> Value {
    json!({"labels": {"cluster.x-k8s.io/control-plane": ""}})
}

fn both(mut a: Value, b: Value) -> Value {
    merge(&mut a, &b);
    a
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": message})
}

#[test]
fn machines_go_first() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    world.descendants.members = vec![
        member(
            Kind::MachineDeployment,
            "md",
            both(child(), json!({"finalizers": ["f"]})),
            json!({}),
            json!({}),
        ),
        member(Kind::Machine, "cp-1", both(child(), of_control_plane()), json!({}), json!({})),
        member(Kind::Machine, "md-1", json!({}), json!({}), json!({})),
    ];
    let deleted = |plan: &Plan| plan.deletions.iter().map(|it| it.uid.clone()).collect::<Vec<_>>();
    let first = world.plan();
    assert_eq!(deleted(&first), ["md", "cp-1"], "children only, and not the infrastructure");
    assert_eq!(first.deletions[0].resource.plural, "machinedeployments");
    assert!(!first.only_if_childless);
    world.apply(&first);
    assert_eq!(
        world.condition("Deleting"),
        (
            "True",
            "WaitingForWorkersDeletion",
            "* Control plane Machines: cp-1\n* MachineDeployments: md (held by f)\n* Worker Machines: md-1"
        )
    );

    // With a control plane provider, its Machines are its own affair.
    world.cluster.spec.control_plane_ref =
        Some(ObjectReference { api_group: "g.io".into(), kind: "FooControlPlane".into(), name: "cp".into() });
    world.descendants.members.remove(0);
    assert_eq!(deleted(&world.plan()), Vec::<String>::new(), "md-1 is its owner's to delete");
    world.descendants.members.pop();
    let last = world.plan();
    assert_eq!(deleted(&last), ["uid-ic"], "nothing is left but the control plane's own");
    assert!(last.only_if_childless, "a Machine may have come up unseen");
}

#[test]
fn what_cannot_be_read_holds_a_deletion() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    world.cluster.metadata.deletion_timestamp = Some(Time(now()));
    world.descendants.trouble = Some("Cannot read Machines: forbidden".into());
    let plan = world.plan();
    assert!(plan.deletions.is_empty() && plan.release.is_none());
    world.apply(&plan);
    assert_eq!(world.condition("Deleting"), ("True", "InternalError", "Cannot read Machines: forbidden"));
    assert_eq!(
        world.condition("WorkersAvailable"),
        ("Unknown", "InternalError", "Cannot read Machines: forbidden")
    );
}

#[test]
fn without_machines_there_is_nothing_to_complain_about() {
    let world = World::new(infrastructure(endpoint(), provisioned(json!({})))).settle();
    for (type_, status, reason) in [
        ("WorkersAvailable", "True", "NoWorkers"),
        ("ControlPlaneMachinesReady", "True", "NoReplicas"),
        ("WorkerMachinesReady", "True", "NoReplicas"),
        ("ControlPlaneMachinesUpToDate", "True", "NoReplicas"),
        ("WorkerMachinesUpToDate", "True", "NoReplicas"),
        ("RollingOut", "False", "NotRollingOut"),
        ("ScalingUp", "False", "NotScalingUp"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("Remediating", "False", "NotRemediating"),
    ] {
        assert_eq!(world.condition(type_), (status, reason, ""), "{type_}");
    }
    assert_eq!(world.status().workers, None);
    assert_eq!(world.status().control_plane, None);
}

#[test]
fn a_control_plane_of_single_machines_is_counted_and_initialized_by_its_first_node() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let machine = |name: &str, status: Value| {
        let old = json!({"creationTimestamp": "2025-01-01T00:00:00Z"});
        member(
            Kind::Machine,
            name,
            both(both(child(), of_control_plane()), old),
            json!({"version": "v1.33.0"}),
            status,
        )
    };
    world.descendants.members = vec![machine("cp-1", json!({})), machine("cp-2", json!({}))];
    world = world.settle();
    assert_eq!(
        world.condition("ControlPlaneInitialized"),
        ("False", "NotInitialized", "Waiting for the first control plane machine to have status.nodeRef set")
    );
    assert_eq!(
        world.condition("ControlPlaneAvailable"),
        ("Unknown", "AvailableUnknown", "* Machines cp-1, cp-2: Condition Available not yet reported")
    );
    let ready = json!({
        "nodeRef": {"name": "node"},
        "conditions": [condition("Ready", "True", ""), condition("Available", "True", ""), condition("UpToDate", "True", "")],
    });
    world.descendants.members = vec![machine("cp-1", ready.clone()), machine("cp-2", ready)];
    world = world.settle();
    assert_eq!(world.condition("ControlPlaneInitialized").0, "True");
    assert_eq!(world.condition("ControlPlaneAvailable"), ("True", "Available", ""));
    assert_eq!(world.condition("ControlPlaneMachinesReady"), ("True", "Ready", ""));
    let counted = json!(world.status().control_plane);
    assert_eq!(
        counted,
        json!({
            "desiredReplicas": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 2,
            "versions": [{"version": "v1.33.0", "replicas": 2}],
        })
    );
    // Once true, for ever.
    world.descendants.members.clear();
    world = world.settle();
    assert_eq!(world.condition("ControlPlaneInitialized").0, "True");
    assert!(world.cluster.was_initialized());
}

#[test]
fn workers_are_summed_up() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let group = |replicas: i32| {
        json!({
            "replicas": replicas, "readyReplicas": 1, "upToDateReplicas": 1,
            "versions": [{"version": "v1.33.0", "replicas": replicas}],
            "conditions": [
                condition("Available", "False", "too few"), condition("RollingOut", "True", "rolling"),
                condition("ScalingUp", "False", ""), condition("ScalingDown", "True", "shrinking"),
            ],
        })
    };
    world.descendants.members = vec![
        member(Kind::MachinePool, "mp", child(), json!({"replicas": 2}), group(2)),
        member(Kind::MachineDeployment, "md", child(), json!({"replicas": 3}), group(3)),
        member(Kind::MachineSet, "md-abc", json!({}), json!({"replicas": 3}), group(3)),
        member(Kind::MachineSet, "ms", child(), json!({"replicas": 1}), group(1)),
        member(Kind::Machine, "m", child(), json!({"version": "v1.32.0"}), json!({})),
        member(Kind::Machine, "md-abc-1", json!({}), json!({}), json!({})),
    ];
    world = world.settle();
    assert_eq!(
        json!(world.status().workers),
        json!({
            "desiredReplicas": 7, "replicas": 7, "readyReplicas": 3, "upToDateReplicas": 3,
            "versions": [{"version": "v1.32.0", "replicas": 1}, {"version": "v1.33.0", "replicas": 6}],
        })
    );
    assert_eq!(
        world.condition("WorkersAvailable"),
        ("False", "NotAvailable", "* MachineDeployment md: too few")
    );
    assert_eq!(world.condition("RollingOut"), ("True", "RollingOut", "* MachineDeployment md: rolling"));
    assert_eq!(world.condition("ScalingUp"), ("False", "NotScalingUp", ""));
    assert_eq!(
        world.condition("ScalingDown"),
        ("True", "ScalingDown", "* MachineDeployment md: shrinking\n* MachineSet ms: shrinking")
    );
}

#[test]
fn a_young_machine_is_not_asked_whether_it_is_up_to_date() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let born = |time: &str| {
        vec![member(Kind::Machine, "m", json!({"creationTimestamp": time}), json!({}), json!({}))]
    };
    world.descendants.members = born("2025-12-31T23:59:55Z");
    let plan = world.plan();
    assert_eq!(plan.again, Some(Duration::from_secs(6)));
    world.apply(&plan);
    assert_eq!(world.condition("WorkerMachinesUpToDate"), ("True", "NoReplicas", ""));
    world.descendants.members = born("2025-12-31T23:59:45Z");
    let plan = world.plan();
    assert_eq!(plan.again, None);
    world.apply(&plan);
    assert_eq!(
        world.condition("WorkerMachinesUpToDate"),
        ("Unknown", "UpToDateUnknown", "* Machine m: Condition UpToDate not yet reported")
    );
}

#[test]
fn unhealthy_machines_are_named() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    let sick = |name: &str, more: Vec<Value>| {
        let conditions: Vec<_> =
            std::iter::once(condition("HealthCheckSucceeded", "False", "")).chain(more).collect();
        member(Kind::Machine, name, json!({}), json!({}), json!({"conditions": conditions}))
    };
    world.descendants.members = vec![sick("a", vec![]), sick("b", vec![])];
    world.apply(&world.plan());
    assert_eq!(
        world.condition("Remediating"),
        ("False", "NotRemediating", "Machines a, b are not healthy (not to be remediated)")
    );
    world.descendants.members.push(sick("c", vec![condition("OwnerRemediated", "False", "waiting")]));
    world.apply(&world.plan());
    assert_eq!(world.condition("Remediating"), ("True", "Remediating", "* Machine c: waiting"));
}

#[test]
fn available_sums_up() {
    let mut world = World::new(infrastructure(endpoint(), provisioned(json!({}))));
    world.cluster.spec.control_plane_ref =
        Some(ObjectReference { api_group: "g.io".into(), kind: "FooControlPlane".into(), name: "cp".into() });
    world = world.settle();
    let (status, reason, message) = world.condition("Available");
    assert_eq!((status, reason), ("False", "NotAvailable"));
    assert!(message.ends_with("* ControlPlaneAvailable: FooControlPlane does not exist"), "{message}");

    world.control_plane = Some(
        serde_json::from_value(json!({
            "metadata": {"name": "cp", "namespace": "n", "uid": "uid-cp"},
            "status": {
                "initialization": {"controlPlaneInitialized": true},
                "conditions": [condition("Available", "True", "words")],
            },
        }))
        .unwrap(),
    );
    world.cluster.spec.availability_gates =
        serde_json::from_value(json!([{"conditionType": "Smoke", "polarity": "Negative"}])).unwrap();
    world.apply(&world.plan());
    let (_, _, message) = world.condition("Available");
    assert!(message.contains("* Smoke: Condition not yet reported"), "{message}");
    assert!(!message.contains("ControlPlaneAvailable"), "{message}");
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
