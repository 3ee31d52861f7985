//! Deleting providers: blocked while they are used, and clean when they go.

use capstan_api::provider::ProviderType;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{AWS, CORE, Release, World, condition, selector, until_event};

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
async fn a_forced_deletion_ignores_users() {
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

/// A CRD of a release, with a name that follows from its kind.
fn crd(group: &str, kind: &str) -> Value {
    let plural =
        if kind.ends_with("Class") { format!("{kind}es") } else { format!("{kind}s") }.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_belongs_to_a_cluster_keeps_its_provider() {
    const CAPI: &str = "cluster.x-k8s.io";
    const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
    const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
    let world = World::new().await;
    let operator = world.operator();
    let parts = ["Machine", "MachineSet", "MachineDeployment", "MachinePool", "ClusterClass"];
    let core =
        Release { more: parts.map(|it| crd(CAPI, it)).to_vec(), ..Release::core("v1.10.0", "v1beta1") };
    let own = [(INFRASTRUCTURE, "AWSMachineTemplate"), (CONTROL_PLANE, "AWSManagedControlPlane")];
    let own = own.map(|(group, kind)| crd(group, kind)).to_vec();
    world.publish(&core).await;
    world.publish(&Release { more: own, ..Release::aws("v2.1.0", "v1beta1") }).await;
    world.create_secret(AWS, "aws-variables", &[("AWS_REGION", "eu-1")]).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    let spec = json!({"version": "v2.1.0", "secretName": "aws-variables", "fetchConfig": selector("aws")});
    world.aws().create(spec).await;
    world.aws().until_ready().await;

    let reference = |group: &str, kind: &str| json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "a"});
    let template = || reference(INFRASTRUCTURE, "AWSMachineTemplate");
    let machine = |kind: &str| {
        let spec = json!({"clusterName": "c", "template": {"spec": {"infrastructureRef": template()}}});
        (kind.to_owned(), spec)
    };
    let users = [
        (
            "Cluster".to_owned(),
            json!({"controlPlaneRef": reference(CONTROL_PLANE, "AWSManagedControlPlane")}),
        ),
        ("Machine".to_owned(), json!({"clusterName": "c", "infrastructureRef": template()})),
        machine("MachineSet"),
        machine("MachineDeployment"),
        machine("MachinePool"),
    ];
    for (kind, spec) in &users {
        create(&world, object(kind, "used", spec)).await;
    }
    // A class counts once a Cluster uses it.
    create(&world, object("ClusterClass", "class", &json!({"infrastructure": {"ref": template()}}))).await;
    create(&world, object("Cluster", "topology", &json!({"topology": {"class": "class"}}))).await;
    // A template of no cluster does not count.
    create(
        &world,
        object("MachineSet", "unused", &json!({"template": {"spec": {"infrastructureRef": template()}}})),
    )
    .await;

    world.aws().delete().await;
    let blocked = world.aws().until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    let message = condition(&blocked, "DeletionBlocked").2;
    for (kind, _) in &users {
        assert!(message.contains(&format!("{kind} default/used")), "{message}");
    }
    assert!(message.contains("Cluster default/topology") && !message.contains("unused"), "{message}");
    for (kind, _) in &users {
        api(&world, CAPI, kind).delete("used", &DeleteParams::default()).await.unwrap();
    }
    world
        .aws()
        .until("used by the class alone", |it| {
            let message = condition(it, "DeletionBlocked").2;
            message.contains("Cluster default/topology") && !message.contains("default/used")
        })
        .await;
    api(&world, CAPI, "Cluster").delete("topology", &DeleteParams::default()).await.unwrap();
    world.aws().until_gone().await;
    operator.stop().await;
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind,
           "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_clusters_keep_providers_that_no_cluster_refers_to() {
    const IPAM: &str = "ipam.cluster.x-k8s.io";
    let world = World::new().await;
    let operator = world.operator();
    world.publish(&Release::core("v1.10.0", "v1beta1")).await;
    let more = vec![crd(IPAM, "InClusterIPPool")];
    world.publish(&Release { name: "ipam", more, ..Release::aws("v1.0.0", "v1beta1") }).await;
    world.create_secret(AWS, "variables", &[("AWS_REGION", "eu-1")]).await;
    world.core().create(json!({"version": "v1.10.0", "fetchConfig": selector("core")})).await;
    let ipam = world.aws().of_kind(ProviderType::Ipam).called("in-cluster");
    ipam.create(json!({"version": "v1.0.0", "secretName": "variables", "fetchConfig": selector("ipam")}))
        .await;
    ipam.until_ready().await;
    let pool = |name: &str, labels: Value| {
        json!({"apiVersion": format!("{IPAM}/v1beta1"), "kind": "InClusterIPPool",
               "metadata": {"name": name, "namespace": "default", "labels": labels}})
    };
    create(&world, pool("used", json!({"cluster.x-k8s.io/cluster-name": "c"}))).await;
    create(&world, pool("unused", json!({}))).await;
    ipam.delete().await;
    let blocked = ipam.until_condition("DeletionBlocked", "True", "ProviderInUse").await;
    let message = condition(&blocked, "DeletionBlocked").2;
    assert_eq!(message, "Used by InClusterIPPool default/used");
    api(&world, IPAM, "InClusterIPPool").delete("used", &DeleteParams::default()).await.unwrap();
    ipam.until_gone().await;
    operator.stop().await;
}
