//! Deleting providers: blocked while they are used, and clean when they go.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{AWS, CORE, World, condition, until_event};

fn api(world: &World, group: &str, kind: &str) -> Api<DynamicObject> {
    let kind = capstan_management::Kind::namespaced(group, "v1beta1", kind);
    Api::namespaced_with(world.client.clone(), "default", &kind.resource)
}

async fn create(world: &World, object: Value) {
    let (group, _) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let api = api(world, group, object["kind"].as_str().unwrap());
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_used_stays_until_its_clusters_are_gone() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let reference =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster", "name": "a"});
    create(
        &world,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "default"}, "spec": {"infrastructureRef": reference}}),
    )
    .await;
    // What no Cluster refers to blocks nothing.
    create(
        &world,
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster",
        "metadata": {"name": "left-over", "namespace": "default"}}),
    )
    .await;

    world.aws().delete().await;
    let blocked = world.aws().until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    let message = condition(&blocked, "DeletionBlocked").2;
    assert!(message.contains("Cluster default/a"), "{message}");
    world.core().delete().await;
    let blocked = world.core().until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    let message = condition(&blocked, "DeletionBlocked").2;
    assert!(message.contains("InfrastructureProvider capa-system/aws"), "{message}");
    for (namespace, name) in [(AWS, "capa-controller-manager"), (CORE, "capi-controller-manager")] {
        assert!(world.deployment(namespace).get_opt(name).await.unwrap().is_some());
    }
    until_event(&world.client, AWS, "aws", "Warning ProviderInUse").await;

    api(&world, "cluster.x-k8s.io", "Cluster").delete("a", &DeleteParams::default()).await.unwrap();
    world.aws().until_gone().await;
    world.core().until_gone().await;
    let left: Vec<String> = world.installed().await.into_keys().collect();
    let expected = [
        "CustomResourceDefinition awsclusters.infrastructure.cluster.x-k8s.io",
        "CustomResourceDefinition clusters.cluster.x-k8s.io",
        "Namespace capa-system",
        "Namespace capi-system",
    ];
    assert_eq!(left, expected, "only CRDs and namespaces stay");
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(world.client.clone(), AWS);
    let names: Vec<String> =
        secrets.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["aws-variables"], "what the operator kept is gone");
    assert!(api(&world, "infrastructure.cluster.x-k8s.io", "AWSCluster").get("left-over").await.is_ok());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_deletion_asks_nobody() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let reference =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster", "name": "a"});
    create(
        &world,
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "default"}, "spec": {"infrastructureRef": reference}}),
    )
    .await;
    world.aws().delete().await;
    world.aws().until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    let force = json!({"metadata": {"annotations": {"management.cluster.x-k8s.io/force-delete": "true"}}});
    world.aws().edit(force).await;
    world.aws().until_gone().await;
    assert!(world.deployment(AWS).get_opt("capa-controller-manager").await.unwrap().is_none());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_can_be_deleted_and_created_again() {
    let world = World::new().await;
    let operator = world.operator();
    world.with_providers().await;
    let installed = world.installed().await;
    let spec = world.aws().get().await.data["spec"].clone();
    world.aws().delete().await;
    world.aws().until_gone().await;
    world.aws().create(spec).await;
    world.aws().until_ready().await;
    assert_eq!(world.installed().await, installed);
    operator.stop().await;
}
