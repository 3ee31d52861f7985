//! What others change of installed objects is restored; what users add stays.

use std::time::Duration;

use capstan_repository::Environment;
use capstan_testkit::{
    faults::{Transport, Verb},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Service, ServiceAccount},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::world::{CORE, LIMIT, World, arguments, condition, replicas, run_operator, until_event};

const MANAGER: &str = "capi-controller-manager";

async fn edit(deployments: &Api<Deployment>, patch: serde_json::Value) {
    let hand = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    deployments.patch(MANAGER, &hand, &Patch::Strategic(patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_healed_and_reported() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let deployments = world.deployment(CORE);

    edit(
        &deployments,
        json!({"spec": {"replicas": 5}, "metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "y"}}}),
    )
    .await;
    let healed = wait::until_is(&deployments, MANAGER, "healed", LIMIT, |it| replicas(it) == 1).await;
    assert_eq!((healed.labels()["mine"].as_str(), healed.annotations()["mine"].as_str()), ("x", "y"));
    let args =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "manager", "args": ["--hacked"]}]}}}});
    edit(&deployments, args).await;
    wait::until_is(&deployments, MANAGER, "healed", LIMIT, |it| {
        !arguments(it).contains(&"--hacked".to_owned())
    })
    .await;

    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), CORE);
    let uid = accounts.get("capi-manager").await.unwrap().uid();
    accounts.delete("capi-manager", &DeleteParams::default()).await.unwrap();
    wait::until_is(&accounts, "capi-manager", "there again", LIMIT, |it| it.uid() != uid).await;
    world.core().until_ready().await;
    let drifted = until_event(&world.client, CORE, "cluster-api", "Warning Drifted").await;
    let message = drifted.message.unwrap_or_default();
    assert!(
        message.contains("replicas: 5") || message.contains("--hacked") || message.contains("missing"),
        "{message}"
    );
    until_event(&world.client, CORE, "cluster-api", "Normal DriftHealed").await;

    // Changed while the operator was away.
    operator.stop().await;
    edit(&deployments, json!({"spec": {"replicas": 4}})).await;
    let operator = world.operator();
    wait::until_is(&deployments, MANAGER, "healed", LIMIT, |it| replicas(it) == 1).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_only_reported_where_that_is_asked_for() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let core = world.core();
    core.edit(json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/drift": "report"}}})).await;
    let services: Api<Service> = Api::namespaced(world.client.clone(), CORE);
    let patch = json!({"spec": {"selector": {"app": "other"}}});
    services.patch("capi-webhook-service", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let drifted = core.until_condition("Drifted", "True", "ObjectsChanged").await;
    let message = condition(&drifted, "Drifted").2;
    assert!(
        message.contains("Service capi-system/capi-webhook-service") && message.contains("app: other"),
        "{message}"
    );
    let service = services.get("capi-webhook-service").await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["app"], "other");

    core.edit(json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/drift": null}}})).await;
    wait::until_is(&services, "capi-webhook-service", "healed", LIMIT, |it| {
        it.spec.as_ref().unwrap().selector.as_ref().unwrap()["app"] == "capi"
    })
    .await;
    core.until("without drift", |it| condition(it, "Drifted").0.is_empty()).await;
    operator.stop().await;
}

/// How long the operator sends nothing once it has come to rest.
const REST: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_at_rest_writes_nothing() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    operator.stop().await;

    // After a start everything is compared once more.
    let transport = Transport::new(world.client.clone(), None);
    let operator = run_operator(transport.client(), Environment::default());
    transport.quiet_for(REST).await;
    // A label of the user's is looked at, and left alone.
    edit(&world.deployment(CORE), json!({"metadata": {"labels": {"mine": "x"}}})).await;
    transport.quiet_for(REST).await;
    let requests = transport.requests();
    assert!(requests.iter().any(|it| it.verb == Verb::DryRun), "nothing was compared: {requests:?}");
    let writes: Vec<_> = requests.iter().filter(|it| it.is_write()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    let count = requests.len();
    transport.quiet_for(REST).await;
    assert_eq!(transport.requests().len(), count, "requests without a reason");
    operator.stop().await;
}
