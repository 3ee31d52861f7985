//! The rows of the InfraCluster contract that bind core and have no story elsewhere.

use capstan_api::{cluster::v1beta2::Cluster, conditions};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    wait::{self, LIMIT},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
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

async fn until_infrastructure_says(story: &Story, name: &str, reason: &str) -> Cluster {
    wait::until_is(&story.clusters(), name, reason, LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady").is_some_and(|it| it.reason == reason)
    })
    .await
}

/// Row "terminal failures": a failure counts only for the Cluster that owns the object.
#[tokio::test]
async fn a_failed_object_of_another_cluster_fails_only_its_owner() {
    let story = Story::begin("failed-elsewhere").await;
    let crd = generic::crd("FailedCluster", &[("v1beta1", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story.create_generic("FailedCluster", "ic", json!({})).await;
    story.create_cluster("owner", "FailedCluster", "ic").await;
    let objects = story.generics("FailedCluster");
    wait::until_is(&objects, "ic", "adopted", LIMIT, |it| !it.owner_references().is_empty()).await;
    let failure = json!({"ready": true, "failureReason": "NoQuota", "failureMessage": "no quota"});
    story.set_generic_status("FailedCluster", "ic", failure).await;
    story.until_phase("owner", "Failed", LIMIT).await;

    story.create_cluster("other", "FailedCluster", "ic").await;
    let cluster = until_infrastructure_says(&story, "other", "OwnedByAnotherCluster").await;
    let status = cluster.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Provisioning"));
    let older = status.deprecated.unwrap().v1beta1.unwrap();
    assert_eq!((older.failure_reason, older.failure_message), (None, None));
    for type_ in ["InfrastructureReady", "Ready"] {
        let condition = conditions::legacy::get(&older.conditions, type_).unwrap();
        assert_eq!(condition.status.as_str(), "False", "{type_}");
        assert_eq!(condition.reason, "OwnedByAnotherCluster", "{type_}");
    }

    // With an object of its own it goes on.
    story
        .create_generic("FailedCluster", "own", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}))
        .await;
    story.set_generic_status("FailedCluster", "own", json!({"ready": true})).await;
    let own = Patch::Merge(json!({"spec": {"infrastructureRef": {"name": "own"}}}));
    story.clusters().patch("other", &PatchParams::default(), &own).await.unwrap();
    story.until_phase("other", "Provisioned", LIMIT).await;
    manager.stop().await;
}

/// Row "version": the last *available* version. A version that is not served is passed over.
#[tokio::test]
async fn a_version_that_is_not_served_is_passed_over() {
    let story = Story::begin("unserved").await;
    let ahead = generic::crd("AheadCluster", &[("v1beta2", "v1beta2_v1beta9")]);
    let wrong = generic::crd("MislabelledCluster", &[("v1beta2", "v1beta9")]);
    install_crds(&story.client, &[ahead, wrong], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    for kind in ["AheadCluster", "MislabelledCluster"] {
        story.create_generic(kind, "ic", json!({"controlPlaneEndpoint": {"host": "h", "port": 1}})).await;
        story.set_generic_status(kind, "ic", json!({"initialization": {"provisioned": true}})).await;
    }
    story.create_cluster("ahead", "AheadCluster", "ic").await;
    story.until_phase("ahead", "Provisioned", LIMIT).await;

    // Where no version is left, a corrected label is all it takes.
    story.create_cluster("mislabelled", "MislabelledCluster", "ic").await;
    until_infrastructure_says(&story, "mislabelled", "InternalError").await;
    let crds: Api<CustomResourceDefinition> = Api::all(story.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}}}));
    let name = "mislabelledclusters.infrastructure.cluster.x-k8s.io";
    crds.patch(name, &PatchParams::default(), &label).await.unwrap();
    story.until_phase("mislabelled", "Provisioned", LIMIT).await;
    manager.stop().await;
}

/// Row "scope": a cluster-scoped kind is named as such, and holds no deletion.
#[tokio::test]
async fn a_cluster_scoped_kind_is_reported() {
    let story = Story::begin("cluster-scoped").await;
    let mut crd = generic::crd("WideCluster", &[("v1beta2", "v1beta2")]);
    crd.spec.scope = "Cluster".to_owned();
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let resource = generic::resource("WideCluster");
    let objects: Api<DynamicObject> = Api::all_with(story.client.clone(), &resource);
    objects.create(&PostParams::default(), &DynamicObject::new("ic", &resource)).await.unwrap();
    story.create_cluster("c", "WideCluster", "ic").await;
    let cluster = until_infrastructure_says(&story, "c", "ContractViolated").await;
    let status = cluster.status.unwrap();
    assert_eq!(
        conditions::get(&status.conditions, "InfrastructureReady").unwrap().message,
        "WideCluster is cluster-scoped: the contract requires spec.scope Namespaced in CustomResourceDefinition \
         wideclusters.infrastructure.cluster.x-k8s.io"
    );
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    objects.get("ic").await.unwrap();
    manager.stop().await;
}
