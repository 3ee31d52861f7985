//! Upgrades, with and without a change of contract, and pauses.

use capstan_api::operator::annotation::ORIGINAL_REPLICAS;
use capstan_testkit::wait;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::world::{AWS, CORE, LIMIT, Release, World, condition, replicas, second_deployment};

const CORE_MANAGER: &str = "capi-controller-manager";
const AWS_MANAGER: &str = "capa-controller-manager";

/// An object of the provider's kind, as a user makes it.
async fn create_aws_cluster(world: &World) -> DynamicObject {
    let kind =
        capstan_management::Kind::namespaced("infrastructure.cluster.x-k8s.io", "v1beta1", "AWSCluster");
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &kind.resource);
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster",
                        "metadata": {"name": "a"}, "spec": {}});
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_replaces_components_and_keeps_what_users_have() {
    let world = World::new().await;
    let operator = world.operator();
    let extra =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": AWS}});
    world.publish(&Release { more: vec![extra], ..Release::aws("v2.1.0", "v1beta1") }).await;
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": crate::world::selector("core")})).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": crate::world::selector("aws")});
    world.aws().create(spec).await;
    world.aws().until_ready().await;
    let own = create_aws_cluster(&world).await;
    // A provider that was never installed holds nothing up.
    let broken = world.aws().called("broken");
    broken.create(json!({"version": "v1.0.0", "fetchConfig": crate::world::selector("nothing")})).await;

    world.publish(&Release::aws("v2.2.0", "v1beta1")).await;
    world.aws().set_version("v2.2.0").await;
    let aws = world.aws().until_installed("v2.2.0").await;
    assert_eq!(condition(&aws, "ProviderUpgraded").0, "True");
    let manager = world.deployment(AWS).get(AWS_MANAGER).await.unwrap();
    let image = crate::world::container(&manager).image.clone().unwrap();
    assert!(image.ends_with(":v2.2.0"), "{image}");
    assert_eq!(replicas(&manager), 1);
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(world.client.clone(), AWS);
    wait::until_gone(&maps, "extra", LIMIT).await;
    let kind =
        capstan_management::Kind::namespaced("infrastructure.cluster.x-k8s.io", "v1beta1", "AWSCluster");
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &kind.resource);
    assert_eq!(api.get("a").await.unwrap().uid(), own.uid());

    // A patch version may go back.
    world.publish(&Release::aws("v2.2.1", "v1beta1")).await;
    world.aws().set_version("v2.2.1").await;
    world.aws().until_installed("v2.2.1").await;
    world.aws().set_version("v2.2.0").await;
    world.aws().until_installed("v2.2.0").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_changes_while_all_are_paused() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    for release in [Release::core("v1.11.0", "v1beta2"), Release::aws("v2.2.0", "v1beta2")] {
        world.publish(&release).await;
    }
    let (core, aws) = (world.core(), world.aws());

    // Nothing is paused.
    core.set_version("v1.11.0").await;
    let refused =
        core.until_condition("PreflightCheckPassed", "False", "WaitingForProvidersToBePaused").await;
    let message = condition(&refused, "PreflightCheckPassed").2;
    assert!(message.contains("InfrastructureProvider capa-system/aws"), "{message}");
    assert_eq!(refused.data["status"]["installedVersion"], "v1.10.0");

    // Core goes on by itself once all are paused.
    core.set_paused(true).await;
    aws.set_paused(true).await;
    aws.until_condition("Paused", "True", "Paused").await;
    let down = world.deployment(AWS).get(AWS_MANAGER).await.unwrap();
    assert_eq!((replicas(&down), down.annotations()[ORIGINAL_REPLICAS].as_str()), (0, "1"));
    let upgraded = core.until("v1.11.0", |it| it.data["status"]["installedVersion"] == "v1.11.0").await;
    assert_eq!(upgraded.data["status"]["contract"], "v1beta2");
    let down = world.deployment(CORE).get(CORE_MANAGER).await.unwrap();
    assert_eq!((replicas(&down), down.annotations()[ORIGINAL_REPLICAS].as_str()), (0, "1"));

    // Neither runs again while aws is on the old contract.
    core.set_paused(false).await;
    let refused = core.until_condition("Paused", "True", "WaitingForProvidersToBeUpgraded").await;
    let message = condition(&refused, "Paused").2;
    assert!(message.contains("InfrastructureProvider capa-system/aws (contract v1beta1)"), "{message}");
    aws.set_paused(false).await;
    aws.until_condition("Paused", "True", "WaitingForProvidersToBeUpgraded").await;
    assert_eq!(replicas(&world.deployment(AWS).get(AWS_MANAGER).await.unwrap()), 0);

    // Once aws is upgraded, both go on by themselves.
    aws.set_version("v2.2.0").await;
    for (provider, namespace, manager, version) in
        [(&core, CORE, CORE_MANAGER, "v1.11.0"), (&aws, AWS, AWS_MANAGER, "v2.2.0")]
    {
        let ready = provider.until_installed(version).await;
        assert_eq!(condition(&ready, "Paused").0, "", "{ready:?}");
        let deployment = world.deployment(namespace).get(manager).await.unwrap();
        assert_eq!(replicas(&deployment), 1);
        assert!(!deployment.annotations().contains_key(ORIGINAL_REPLICAS));
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_whose_end_was_not_reported_is_reported_later() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    world.publish(&Release::aws("v2.2.0", "v1beta1")).await;
    let aws = world.aws();
    let before = aws.get().await.data["status"].clone();
    aws.set_version("v2.2.0").await;
    let words = |it: &DynamicObject| {
        let conditions = ["PreflightCheckPassed", "ProviderInstalled", "ProviderUpgraded", "Ready"];
        (it.data["status"]["contract"].clone(), conditions.map(|type_| condition(it, type_)))
    };
    let upgraded = words(&aws.until_installed("v2.2.0").await);
    operator.stop().await;

    // The components and the inventory are those of the new version, and the status is the one before its end.
    let mut status = before;
    let now = status["conditions"][0]["lastTransitionTime"].clone();
    let under_way = json!({"type": "ProviderUpgraded", "status": "False", "reason": "InProgress",
                           "message": "Upgrading to v2.2.0", "lastTransitionTime": now});
    status["conditions"].as_array_mut().unwrap().push(under_way);
    status["contract"] = json!(null);
    let patch = Patch::Merge(json!({"status": status}));
    aws.api().patch_status(aws.name, &PatchParams::default(), &patch).await.unwrap();
    let operator = world.operator();
    aws.until("reported as it was", |it| words(it) == upgraded).await;
    operator.stop().await;
}

/// Scales a Deployment by hand.
async fn scale(deployments: &Api<Deployment>, name: &str, replicas: i64) {
    let patch = json!({"spec": {"replicas": replicas}});
    deployments.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_was_cut_off_loses_no_replicas() {
    const OTHER: &str = "capi-other";
    let world = World::new().await;
    let operator = world.operator();
    let release = |version| Release {
        replicas: None,
        more: vec![second_deployment(CORE, OTHER)],
        ..Release::core(version, "v1beta1")
    };
    world.publish(&release("v1.10.0")).await;
    world.publish(&release("v1.10.1")).await;
    let core = world.core();
    core.create(json!({"version": "v1.10.0", "fetchConfig": crate::world::selector("core")})).await;
    core.until_ready().await;
    let deployments = world.deployment(CORE);
    scale(&deployments, CORE_MANAGER, 3).await;
    scale(&deployments, OTHER, 0).await;
    core.set_paused(true).await;
    let paused = core.until_condition("Paused", "True", "Paused").await;
    // One that was at 0 before is noted as well, and stays there after an upgrade.
    assert_eq!(deployments.get(OTHER).await.unwrap().annotations()[ORIGINAL_REPLICAS], "0");
    core.set_version("v1.10.1").await;
    core.until("upgraded", |it| it.data["status"]["installedVersion"] == "v1.10.1").await;
    core.set_paused(false).await;
    core.until_installed("v1.10.1").await;
    let counts = async || {
        let count = async |name: &str| replicas(&deployments.get(name).await.unwrap());
        (count(CORE_MANAGER).await, count(OTHER).await)
    };
    assert_eq!(counts().await, (3, 0));

    // Everything runs again, and the status could not be written.
    operator.stop().await;
    scale(&deployments, OTHER, 2).await;
    let conditions = json!({"status": {"conditions": paused.data["status"]["conditions"]}});
    core.api().patch_status(core.name, &PatchParams::default(), &Patch::Merge(conditions)).await.unwrap();
    let operator = world.operator();
    core.until("not paused", |it| condition(it, "Paused").0.is_empty()).await;
    core.until_ready().await;
    assert_eq!(counts().await, (3, 2));

    // One runs again, the other does not, and the status says that both are paused.
    core.set_paused(true).await;
    let paused = core.until_condition("Paused", "True", "Paused").await;
    operator.stop().await;
    let up = json!({"metadata": {"annotations": {ORIGINAL_REPLICAS: null}}, "spec": {"replicas": 3}});
    deployments.patch(CORE_MANAGER, &PatchParams::default(), &Patch::Merge(up)).await.unwrap();
    core.set_paused(false).await;
    let operator = world.operator();
    core.until("not paused", |it| condition(it, "Paused").0.is_empty()).await;
    core.until_ready().await;
    assert_eq!(counts().await, (3, 2));
    assert_eq!(paused.data["spec"]["paused"], true);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_the_spec_are_for_the_manager_alone() {
    const OTHER: &str = "capi-other";
    let world = World::new().await;
    let operator = world.operator();
    let more = vec![second_deployment(CORE, OTHER)];
    world.publish(&Release { more, ..Release::core("v1.10.0", "v1beta1") }).await;
    let core = world.core();
    let spec = json!({"version": "v1.10.0", "fetchConfig": crate::world::selector("core"), "deployment": {"replicas": 4}});
    core.create(spec).await;
    core.until_ready().await;
    let deployments = world.deployment(CORE);
    scale(&deployments, OTHER, 2).await;
    core.set_paused(true).await;
    core.until_condition("Paused", "True", "Paused").await;
    core.set_paused(false).await;
    core.until_ready().await;
    assert_eq!(replicas(&deployments.get(CORE_MANAGER).await.unwrap()), 4);
    assert_eq!(replicas(&deployments.get(OTHER).await.unwrap()), 2);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_change_waits_for_everything_that_runs() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let (core, aws) = (world.core(), world.aws());
    let reference =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster", "name": "a"});
    let clusters = capstan_management::Kind::namespaced("cluster.x-k8s.io", "v1beta1", "Cluster");
    let clusters: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), "default", &clusters.resource);
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "a"},
                        "spec": {"infrastructureRef": reference}});
    clusters.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    // It is used, so that it runs on although its deletion was asked for.
    aws.delete().await;
    aws.until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    world.publish(&Release::core("v1.11.0", "v1beta2")).await;
    core.edit(json!({"spec": {"version": "v1.11.0", "paused": true}})).await;
    let refused =
        core.until_condition("PreflightCheckPassed", "False", "WaitingForProvidersToBePaused").await;
    let message = condition(&refused, "PreflightCheckPassed").2;
    assert!(message.ends_with("set spec.paused of InfrastructureProvider capa-system/aws"), "{message}");
    assert_eq!(condition(&refused, "ProviderUpgraded").0, "", "nothing is under way");
    aws.set_paused(true).await;
    core.until("upgraded", |it| it.data["status"]["installedVersion"] == "v1.11.0").await;
    assert_eq!(replicas(&world.deployment(AWS).get(AWS_MANAGER).await.unwrap()), 0);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_provider_gets_back_what_ran_before() {
    let world = World::new().await;
    let operator = world.operator();
    // Neither the release nor the spec says how many.
    world.publish(&Release { replicas: None, ..Release::core("v1.10.0", "v1beta1") }).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": crate::world::selector("core")})).await;
    world.core().until_ready().await;
    let deployments = world.deployment(CORE);
    let scaled = json!({"spec": {"replicas": 3}});
    deployments.patch(CORE_MANAGER, &PatchParams::default(), &Patch::Merge(scaled)).await.unwrap();
    world.core().set_paused(true).await;
    world.core().until_condition("Paused", "True", "Paused").await;
    let down = deployments.get(CORE_MANAGER).await.unwrap();
    assert_eq!((replicas(&down), down.annotations()[ORIGINAL_REPLICAS].as_str()), (0, "3"));

    // Other edits wait, also across a restart.
    world.core().edit(json!({"spec": {"manager": {"verbosity": 7}}})).await;
    operator.stop().await;
    let operator = world.operator();
    world
        .core()
        .until("looked at", |it| it.data["status"]["observedGeneration"] == json!(it.metadata.generation))
        .await;
    let down = deployments.get(CORE_MANAGER).await.unwrap();
    assert_eq!(replicas(&down), 0);
    assert!(!crate::world::arguments(&down).iter().any(|it| it == "--v=7"));

    world.core().set_paused(false).await;
    world.core().until_ready().await;
    let up = deployments.get(CORE_MANAGER).await.unwrap();
    assert_eq!(replicas(&up), 3);
    assert!(crate::world::arguments(&up).iter().any(|it| it == "--v=7"));
    assert!(!up.annotations().contains_key(ORIGINAL_REPLICAS));

    // What the spec says wins.
    world.core().set_paused(true).await;
    world.core().until_condition("Paused", "True", "Paused").await;
    world.core().edit(json!({"spec": {"paused": false, "deployment": {"replicas": 2}}})).await;
    wait::until_is(&deployments, CORE_MANAGER, "scaled to 2", LIMIT, |it| replicas(it) == 2).await;
    world.core().until_ready().await;
    operator.stop().await;
}
