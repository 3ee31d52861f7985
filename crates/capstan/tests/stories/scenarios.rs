//! How a Cluster answers to its provider's objects, seen from outside: one story for each thing that can happen.

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::{Cluster, ClusterStatus},
    conditions,
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    story::reference,
    wait::{self, LIMIT},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// Speaks the contract v1beta2.
const INFRA: &str = "ScenarioCluster";
/// Speaks the contract v1beta1.
const OLD_INFRA: &str = "ScenarioOldCluster";
const CONTROL_PLANE: &str = "ScenarioControlPlane";

async fn begin(name: &str) -> Story {
    let story = Story::begin(name).await;
    let crds = [
        generic::crd(INFRA, &[("v1beta2", "v1beta2")]),
        generic::crd(OLD_INFRA, &[("v1beta1", "v1beta2")]),
        generic::crd(CONTROL_PLANE, &[("v1beta2", "v1beta2")]),
    ];
    install_crds(&story.client, &crds, "story").await.unwrap();
    story
}

fn endpoint(host: &str, port: u16) -> Value {
    json!({"controlPlaneEndpoint": {"host": host, "port": port}})
}

async fn until(story: &Story, what: &str, is_so: impl Fn(&ClusterStatus) -> bool) -> Cluster {
    wait::until_is(&story.clusters(), "c", what, LIMIT, |cluster| cluster.status.as_ref().is_some_and(&is_so))
        .await
}

/// Waits for a condition's status and reason; gives back its message.
async fn until_condition(story: &Story, type_: &str, status: &str, reason: &str) -> String {
    let cluster = until(story, reason, |found| {
        conditions::get(&found.conditions, type_)
            .is_some_and(|it| it.reason == reason && json!(it)["status"] == status)
    })
    .await;
    conditions::get(&cluster.status.unwrap().conditions, type_).unwrap().message.clone()
}

async fn patch_cluster(story: &Story, change: Value) {
    story.clusters().patch("c", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

/// Scenario 1.
#[tokio::test]
async fn a_control_plane_may_bring_its_own_infrastructure() {
    let story = begin("own-infra").await;
    let manager = story.manager(Which::Core);
    story.create_cluster_with("c", json!({"controlPlaneRef": reference(CONTROL_PLANE, "cp")})).await;
    let message = until_condition(&story, "ControlPlaneAvailable", "False", "ObjectDoesNotExist").await;
    assert_eq!(message, format!("{CONTROL_PLANE} does not exist"));
    let cluster = story.until_phase("c", "Provisioning", LIMIT).await;
    assert_eq!(cluster.finalizers(), ["cluster.cluster.x-k8s.io"]);
    let status = cluster.status.unwrap();
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    assert_eq!(conditions::get(&status.conditions, "Paused").unwrap().reason, "NotPaused");
    manager.stop().await;
}

/// Scenario 4.
#[tokio::test]
async fn infrastructure_is_adopted_and_awaited() {
    let story = begin("adopted").await;
    let manager = story.manager(Which::Core);
    story.create_generic(INFRA, "ic", json!({})).await;
    let cluster = story.create_cluster("c", INFRA, "ic").await;
    let message = until_condition(&story, "InfrastructureReady", "False", "NotReady").await;
    assert_eq!(message, format!("{INFRA} status.initialization.provisioned is false"));
    let adopted = story.generics(INFRA).get("ic").await.unwrap();
    assert_eq!(adopted.labels()["cluster.x-k8s.io/cluster-name"], "c");
    let owner = json!(adopted.owner_references());
    let expected = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": cluster.uid(),
    }]);
    assert_eq!(owner, expected, "an owner, not the controller");
    let cluster = story.until_phase("c", "Provisioning", LIMIT).await;
    let legacy = json!(cluster.status)["deprecated"]["v1beta1"]["conditions"].clone();
    let ready = legacy.as_array().unwrap().iter().find(|it| it["type"] == "InfrastructureReady").unwrap();
    let said = [&ready["status"], &ready["reason"], &ready["severity"]];
    assert_eq!(said, ["False", "WaitingForInfrastructure", "Info"]);
    manager.stop().await;
}

/// Scenario 8.
#[tokio::test]
async fn the_newest_version_of_the_newest_contract_is_read() {
    let story = Story::begin("two-versions").await;
    let mut crd =
        generic::crd("TwoVersionsCluster", &[("v1beta1", "v1beta1"), ("v1beta2", "v1beta1_v1beta2")]);
    let mut older = crd.spec.versions[0].clone();
    (older.name, older.storage) = ("v1beta1".to_owned(), false);
    crd.spec.versions.push(older);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story.create_generic("TwoVersionsCluster", "ic", endpoint("example.com", 6443)).await;
    story.set_generic_status("TwoVersionsCluster", "ic", json!({"ready": true})).await;
    story.create_cluster("c", "TwoVersionsCluster", "ic").await;
    let cluster = until(&story, "waiting", |status| {
        conditions::get(&status.conditions, "InfrastructureReady").is_some_and(|it| it.reason == "NotReady")
    })
    .await;
    assert_eq!(cluster.status.unwrap().initialization, None, "`ready` is a word of the older contract");
    let provisioned = json!({"initialization": {"provisioned": true}});
    story.set_generic_status("TwoVersionsCluster", "ic", provisioned).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    manager.stop().await;
}

async fn provisioning(name: &str, kind: &str, status: Value) {
    let story = begin(name).await;
    let manager = story.manager(Which::Core);
    story.create_generic(kind, "ic", endpoint("example.com", 6443)).await;
    story.create_cluster("c", kind, "ic").await;
    until_condition(&story, "InfrastructureReady", "False", "NotReady").await;
    story.set_generic_status(kind, "ic", status).await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let surfaced = cluster.spec.control_plane_endpoint.unwrap();
    assert_eq!((surfaced.host.as_str(), surfaced.port), ("example.com", 6443));
    let status = cluster.status.unwrap();
    let domains: Vec<_> = status
        .failure_domains
        .iter()
        .map(|it| (it.name.as_str(), it.control_plane.unwrap_or(false)))
        .collect();
    assert_eq!(domains, [("a", true), ("z", false)]);
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    assert_eq!(conditions::get(&status.conditions, "InfrastructureReady").unwrap().reason, "Ready");
    assert_eq!(status.observed_generation, cluster.metadata.generation);
    manager.stop().await;
}

/// Scenario 9.
#[tokio::test]
async fn what_is_provisioned_is_surfaced_all_at_once() {
    let domains = json!([{"name": "z"}, {"name": "a", "controlPlane": true}]);
    let status = json!({"initialization": {"provisioned": true}, "failureDomains": domains});
    provisioning("surfaced", INFRA, status).await;
}

/// Scenario 10.
#[tokio::test]
async fn the_older_contract_comes_to_the_same() {
    let status = json!({"ready": true, "failureDomains": {"z": {}, "a": {"controlPlane": true}}});
    provisioning("surfaced-old", OLD_INFRA, status).await;
}

/// Scenario 11.
#[tokio::test]
async fn failure_domains_in_the_form_of_the_other_contract_are_refused() {
    for (kind, status) in [
        (OLD_INFRA, json!({"ready": true, "failureDomains": [{"name": "a"}]})),
        (INFRA, json!({"initialization": {"provisioned": true}, "failureDomains": {"a": {}}})),
    ] {
        let story = begin("wrong-form").await;
        let manager = story.manager(Which::Core);
        story.create_generic(kind, "ic", endpoint("example.com", 6443)).await;
        story.set_generic_status(kind, "ic", status).await;
        story.create_cluster("c", kind, "ic").await;
        let message = until_condition(&story, "InfrastructureReady", "False", "ContractViolated").await;
        assert!(message.contains(&format!("{kind} ic: status.failureDomains must be")), "{message}");
        let cluster = story.clusters().get("c").await.unwrap();
        assert_eq!(cluster.spec.control_plane_endpoint, None);
        let status = cluster.status.unwrap();
        assert!(status.failure_domains.is_empty());
        assert_eq!(status.initialization, None);
        manager.stop().await;
    }
}

/// Scenario 12.
#[tokio::test]
async fn the_users_endpoint_and_what_was_reached_once_stay() {
    let story = begin("latch").await;
    let manager = story.manager(Which::Core);
    story.create_generic(INFRA, "ic", endpoint("example.com", 6443)).await;
    story.set_generic_status(INFRA, "ic", json!({"initialization": {"provisioned": true}})).await;
    let mut spec = endpoint("1.2.3.4", 8443);
    spec["infrastructureRef"] = reference(INFRA, "ic");
    story.create_cluster_with("c", spec).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    let lost = json!({
        "initialization": {"provisioned": false},
        "conditions": [{"type": "Ready", "status": "False", "reason": "Lost", "message": "gone astray"}],
    });
    story.set_generic_status(INFRA, "ic", lost).await;
    until_condition(&story, "InfrastructureReady", "False", "Lost").await;
    let cluster = story.clusters().get("c").await.unwrap();
    assert_eq!(cluster.spec.control_plane_endpoint.unwrap().host, "1.2.3.4");
    let status = cluster.status.unwrap();
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    manager.stop().await;
}

/// Scenario 13.
#[tokio::test]
async fn half_an_endpoint_is_awaited() {
    let story = begin("half").await;
    let manager = story.manager(Which::Core);
    story.create_generic(INFRA, "ic", json!({"controlPlaneEndpoint": {"host": "h"}})).await;
    story.set_generic_status(INFRA, "ic", json!({"initialization": {"provisioned": true}})).await;
    story.create_cluster("c", INFRA, "ic").await;
    let message = until_condition(&story, "InfrastructureReady", "False", "ContractViolated").await;
    assert!(message.contains("spec.controlPlaneEndpoint.port must be set"), "{message}");
    let cluster = story.until_phase("c", "Provisioning", LIMIT).await;
    assert_eq!(cluster.spec.control_plane_endpoint, None);
    let whole = Patch::Merge(json!({"spec": endpoint("h", 1)}));
    story.generics(INFRA).patch("ic", &PatchParams::default(), &whole).await.unwrap();
    story.until_phase("c", "Provisioned", LIMIT).await;
    manager.stop().await;
}

/// Scenario 14.
#[tokio::test]
async fn the_ready_condition_is_mirrored() {
    let story = begin("mirror").await;
    let manager = story.manager(Which::Core);
    story.create_generic(INFRA, "ic", json!({})).await;
    story.create_cluster("c", INFRA, "ic").await;
    let says = async |condition: Value| {
        story.set_generic_status(INFRA, "ic", json!({"conditions": [condition]})).await;
    };
    let ready =
        json!({"type": "Ready", "status": "False", "reason": "SomeReason", "message": "some message"});
    says(ready).await;
    let message = until_condition(&story, "InfrastructureReady", "False", "SomeReason").await;
    assert_eq!(message, "some message");
    says(json!({"type": "Ready", "status": "True"})).await;
    until_condition(&story, "InfrastructureReady", "True", "Ready").await;
    says(json!({"type": "Ready", "status": ""})).await;
    let message = until_condition(&story, "InfrastructureReady", "Unknown", "InvalidConditionReported").await;
    assert!(message.contains("status"), "{message}");
    manager.stop().await;
}

/// Scenario 15.
#[tokio::test]
async fn a_terminal_failure_is_final_in_the_older_contract_only() {
    let story = begin("failure").await;
    let manager = story.manager(Which::Core);
    let failure = json!({"ready": true, "initialization": {"provisioned": true},
        "failureReason": "X", "failureMessage": "boom"});
    for kind in [OLD_INFRA, INFRA] {
        story.create_generic(kind, "ic", endpoint("h", 1)).await;
        story.set_generic_status(kind, "ic", failure.clone()).await;
    }
    story.create_cluster("c", OLD_INFRA, "ic").await;
    story.create_cluster("newer", INFRA, "ic").await;
    let failed = story.until_phase("c", "Failed", LIMIT).await;
    let legacy = json!(failed.status)["deprecated"]["v1beta1"].clone();
    assert_eq!(legacy["failureReason"], "X");
    let words = format!("Kind={OLD_INFRA} with name \"ic\": boom");
    assert!(legacy["failureMessage"].as_str().unwrap().contains(&words), "{legacy}");
    let newer = story.until_phase("newer", "Provisioned", LIMIT).await;
    assert_eq!(json!(newer.status)["deprecated"]["v1beta1"]["failureReason"], Value::Null);

    // It stays, whatever the provider says later.
    let mended = json!({"failureReason": null, "failureMessage": null,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Mended"}]});
    story.set_generic_status(OLD_INFRA, "ic", mended).await;
    until_condition(&story, "InfrastructureReady", "True", "Mended").await;
    let status = story.clusters().get("c").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    manager.stop().await;
}

/// Scenario 16.
#[tokio::test]
async fn a_cluster_that_is_created_paused_touches_nothing() {
    let story = begin("born-paused").await;
    let manager = story.manager(Which::Core);
    let before = story.create_generic(INFRA, "ic", endpoint("h", 1)).await;
    let spec = json!({"infrastructureRef": reference(INFRA, "ic"), "paused": true});
    story.create_cluster_with("c", spec).await;
    let message = until_condition(&story, "Paused", "True", "Paused").await;
    assert_eq!(message, "Cluster spec.paused is set to true");
    // Something else that the controller must answer to shows that it had its chance.
    story.create_cluster("witness", INFRA, "none").await;
    story.until_phase("witness", "Provisioning", LIMIT).await;
    let after = story.generics(INFRA).get("ic").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    assert_eq!(story.clusters().get("c").await.unwrap().finalizers(), ["cluster.cluster.x-k8s.io"]);
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    story.clusters().delete("witness", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "witness", LIMIT).await;
    assert!(story.generics(INFRA).get("ic").await.unwrap().metadata.deletion_timestamp.is_none());
    patch_cluster(&story, json!({"spec": {"paused": null}})).await;
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.generics(INFRA).get_opt("ic").await.unwrap().is_none());
    manager.stop().await;
}

/// Scenario 17.
#[tokio::test]
async fn infrastructure_that_vanishes_is_missed_and_nothing_else_changes() {
    let story = begin("vanished").await;
    let manager = story.manager(Which::Core);
    story.create_generic(INFRA, "ic", endpoint("h", 1)).await;
    story.set_generic_status(INFRA, "ic", json!({"initialization": {"provisioned": true}})).await;
    story.create_cluster("c", INFRA, "ic").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    story.generics(INFRA).delete("ic", &DeleteParams::default()).await.unwrap();
    let message = until_condition(&story, "InfrastructureReady", "False", "ObjectDeleted").await;
    assert_eq!(message, format!("{INFRA} has been deleted while the cluster still exists"));
    let status = story.clusters().get("c").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    manager.stop().await;
}

/// Scenario 5, by the clock: no timer stands between the object's coming and its adoption.
#[tokio::test]
async fn infrastructure_that_comes_later_is_found_at_once() {
    let story = begin("later").await;
    let manager = story.manager(Which::Core);
    story.create_cluster("c", INFRA, "ic").await;
    until_condition(&story, "InfrastructureReady", "False", "ObjectDoesNotExist").await;
    story.create_generic(INFRA, "ic", json!({})).await;
    let soon = Duration::from_secs(5);
    wait::until_is(&story.generics(INFRA), "ic", "adopted", soon, |it| !it.owner_references().is_empty())
        .await;
    manager.stop().await;
}
