//! What others change of installed objects is restored; what users add stays.

use std::time::Duration;

use capstan_repository::Environment;
use capstan_testkit::{
    faults::{Fault, Injection, RequestId, Transport, Verb},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Event, Service, ServiceAccount},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::world::{
    AWS, CORE, LIMIT, Release, World, arguments, condition, replicas, run_operator, selector, until_event,
};

const MANAGER: &str = "capi-controller-manager";

async fn edit(deployments: &Api<Deployment>, patch: serde_json::Value) {
    let hand = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    deployments.patch(MANAGER, &hand, &Patch::Strategic(patch)).await.unwrap();
}

/// How soon drift is healed, and several times that for a machine that has other things to do.
const HEALED_WITHIN: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_healed_and_reported() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let deployments = world.deployment(CORE);
    // Repeated drift in other words is another event.
    let reported = async |words: &'static str| {
        let events: Api<Event> = Api::namespaced(world.client.clone(), CORE);
        wait::until_any(&events, words, LIMIT, |it| {
            it.reason.as_deref() == Some("Drifted")
                && it.message.as_ref().is_some_and(|it| it.contains(words))
        })
        .await;
    };

    edit(
        &deployments,
        json!({"spec": {"replicas": 5}, "metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "y"}}}),
    )
    .await;
    let healed = wait::until_is(&deployments, MANAGER, "healed", HEALED_WITHIN, |it| replicas(it) == 1).await;
    assert_eq!((healed.labels()["mine"].as_str(), healed.annotations()["mine"].as_str()), ("x", "y"));
    reported("Deployment capi-system/capi-controller-manager (spec.replicas)").await;
    let args =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "manager", "args": ["--hacked"]}]}}}});
    edit(&deployments, args).await;
    wait::until_is(&deployments, MANAGER, "healed", HEALED_WITHIN, |it| {
        !arguments(it).contains(&"--hacked".to_owned())
    })
    .await;
    reported("(spec.template.spec.containers[manager].args)").await;

    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), CORE);
    let uid = accounts.get("capi-manager").await.unwrap().uid();
    accounts.delete("capi-manager", &DeleteParams::default()).await.unwrap();
    wait::until_is(&accounts, "capi-manager", "there again", HEALED_WITHIN, |it| it.uid() != uid).await;
    reported("ServiceAccount capi-system/capi-manager is missing").await;
    world.core().until_ready().await;
    until_event(&world.client, CORE, "cluster-api", "Normal DriftHealed").await;

    // Changed while the operator was away.
    operator.stop().await;
    edit(&deployments, json!({"spec": {"replicas": 4}})).await;
    let operator = world.operator();
    wait::until_is(&deployments, MANAGER, "healed", LIMIT, |it| replicas(it) == 1).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_report_of_drift_shows_a_value() {
    const VALUE: &str = "region-that-is-secret";
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    world.publish(&Release::aws("v2.2.0", "v1beta1")).await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", VALUE)]).await;
    world.aws().set_version("v2.2.0").await;
    world.aws().until_installed("v2.2.0").await;
    world
        .aws()
        .edit(json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/drift": "report"}}}))
        .await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "manager", "env": [{"name": "AWS_REGION", "value": "elsewhere"}]},
    ]}}}});
    let deployments = world.deployment(AWS);
    deployments
        .patch("capa-controller-manager", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
    let drifted = world.aws().until_condition("Drifted", "True", "ObjectsChanged").await;
    let message = condition(&drifted, "Drifted").2;
    assert!(message.contains("spec.template.spec.containers[manager].env[AWS_REGION].value"), "{message}");
    assert!(!drifted.data.to_string().contains(VALUE), "{}", drifted.data);
    until_event(&world.client, AWS, "aws", "Warning Drifted").await;
    let events: Api<Event> = Api::namespaced(world.client.clone(), AWS);
    let events = format!("{:?}", events.list(&ListParams::default()).await.unwrap().items);
    assert!(!events.contains(VALUE), "{events}");
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
    assert!(message.contains("Service capi-system/capi-webhook-service (spec.selector.app)"), "{message}");
    let service = services.get("capi-webhook-service").await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["app"], "other");

    // An edit of the spec writes what it is about, and the drift stays.
    core.edit(json!({"spec": {"manager": {"verbosity": 6}}})).await;
    wait::until_is(&world.deployment(CORE), MANAGER, "changed", LIMIT, |it| {
        arguments(it).contains(&"--v=6".to_owned())
    })
    .await;
    let changed = core
        .until("looked at", |it| it.data["status"]["observedGeneration"] == json!(it.metadata.generation))
        .await;
    assert_eq!(condition(&changed, "Drifted").0, "True");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_that_fails_changes_nothing_and_is_made_again() {
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    let core = world.core();
    core.create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    core.until_ready().await;
    operator.stop().await;
    core.edit(json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/drift": "report"}}})).await;
    let services: Api<Service> = Api::namespaced(world.client.clone(), CORE);
    let patch = json!({"spec": {"selector": {"app": "other"}}});
    services.patch("capi-webhook-service", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();

    // What is kept of the release cannot be read at first.
    let request = RequestId { verb: Verb::List, path: "secrets".to_owned(), number: 1 };
    let injection = Injection { request, fault: Fault::InternalError };
    let transport = Transport::new(world.client.clone(), Some(injection));
    let operator = run_operator(transport.client(), Environment::default());
    assert!(transport.fired_within(LIMIT).await, "{:?}", transport.requests());
    core.until("compared", |it| {
        assert_eq!(condition(it, "ProviderInstalled").0, "True", "{it:?}");
        condition(it, "Drifted").0 == "True"
    })
    .await;
    until_event(&world.client, CORE, "cluster-api", "Warning DriftCheckFailed").await;
    let service = services.get("capi-webhook-service").await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["app"], "other");
    operator.stop().await;
}
