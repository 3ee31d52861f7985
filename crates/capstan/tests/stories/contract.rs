//! The rows of the InfraCluster contract that bind core and have no story elsewhere.

use capstan_api::conditions;
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    wait::{self, LIMIT},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;

/// Row "scope": a reference never leaves its namespace.
#[tokio::test]
async fn an_object_of_another_namespace_is_not_taken() {
    let story = Story::begin("scope").await;
    let elsewhere = Story::begin("scope-elsewhere").await;
    let crd = generic::crd("ScopeCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let other = elsewhere.create_generic("ScopeCluster", "ic", json!({})).await;
    story.create_cluster("c", "ScopeCluster", "ic").await;
    wait::until_is(&story.clusters(), "c", "told", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.reason == "ObjectDoesNotExist")
    })
    .await;
    let after = elsewhere.generics("ScopeCluster").get("ic").await.unwrap();
    assert_eq!(after.resource_version(), other.resource_version());
    manager.stop().await;
}

/// Rows "API group" and "resource definition": any group, and a CRD found by the plural that follows from the kind.
#[tokio::test]
async fn a_provider_may_have_a_group_and_a_plural_of_its_own() {
    let story = Story::begin("own-group").await;
    let mut crd = generic::crd("FooClusterPolicy", &[("v1beta2", "v1")]);
    crd.metadata.name = Some("fooclusterpolicies.infrastructure.foo.com".to_owned());
    crd.spec.group = "infrastructure.foo.com".to_owned();
    crd.spec.names.plural = "fooclusterpolicies".to_owned();
    crd.spec.versions[0].name = "v1".to_owned();
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let kind = GroupVersionKind::gvk("infrastructure.foo.com", "v1", "FooClusterPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "fooclusterpolicies");
    let objects: Api<DynamicObject> = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let spec = json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}});
    let object = DynamicObject::new("ic", &resource).data(spec);
    objects.create(&PostParams::default(), &object).await.unwrap();
    let reference = json!({"apiGroup": "infrastructure.foo.com", "kind": "FooClusterPolicy", "name": "ic"});
    story.create_cluster_with("c", json!({"infrastructureRef": reference})).await;
    wait::until_is(&objects, "ic", "adopted", LIMIT, |it| !it.owner_references().is_empty()).await;
    let status = Patch::Merge(json!({"status": {"initialization": {"provisioned": true}}}));
    objects.patch_status("ic", &PatchParams::default(), &status).await.unwrap();
    story.until_phase("c", "Provisioned", LIMIT).await;
    manager.stop().await;
}

/// Row "failure domains": nothing is surfaced before the infrastructure says that it is complete.
#[tokio::test]
async fn endpoint_and_failure_domains_wait_for_the_initialization() {
    let story = Story::begin("not-yet").await;
    let crd = generic::crd("NotYetCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let spec = json!({"controlPlaneEndpoint": {"host": "h", "port": 1}});
    story.create_generic("NotYetCluster", "ic", spec).await;
    story.set_generic_status("NotYetCluster", "ic", json!({"failureDomains": [{"name": "a"}]})).await;
    story.create_cluster("c", "NotYetCluster", "ic").await;
    let cluster = wait::until_is(&story.clusters(), "c", "waiting", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady").is_some_and(|it| it.reason == "NotReady")
    })
    .await;
    assert_eq!(cluster.spec.control_plane_endpoint, None);
    assert!(cluster.status.unwrap().failure_domains.is_empty());
    story.set_generic_status("NotYetCluster", "ic", json!({"initialization": {"provisioned": true}})).await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    assert_eq!(cluster.spec.control_plane_endpoint.unwrap().host, "h");
    assert_eq!(cluster.status.unwrap().failure_domains[0].name, "a");
    manager.stop().await;
}
