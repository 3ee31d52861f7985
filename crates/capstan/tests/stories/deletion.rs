//! Clusters go away in order, and nothing is left behind.

use capstan_api::conditions;
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    wait::{self, LIMIT},
};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use tokio::net::TcpStream;

#[tokio::test]
async fn nothing_is_left() {
    let story = Story::begin("delete").await;
    let manager = story.manager(Which::All);
    // An address of this story's own: a port that becomes free on 127.0.0.1 may go to another story.
    story.create_local("c", json!({"controlPlaneEndpoint": {"host": "127.77.0.1", "port": 16443}})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.locals().get_opt("c").await.unwrap().is_none());
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    let answer = TcpStream::connect(format!("{}:{}", endpoint.host, endpoint.port)).await;
    assert!(answer.is_err(), "the load balancer is gone");
    manager.stop().await;
}

#[tokio::test]
async fn the_cluster_waits_for_its_infrastructure_and_says_so() {
    let story = Story::begin("delete-order").await;
    let crd = generic::crd("HeldCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    story.create_generic("HeldCluster", "ic", json!({})).await;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    story.generics("HeldCluster").patch("ic", &PatchParams::default(), &hold).await.unwrap();
    story.create_cluster("c", "HeldCluster", "ic").await;
    story.until_phase("c", "Provisioning", LIMIT).await;

    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    let waiting = wait::until_is(&story.clusters(), "c", "waiting", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "Deleting").is_some_and(|it| {
            it.reason == "WaitingForInfrastructureDeletion" && it.message.contains("example.com/hold")
        })
    })
    .await;
    assert_eq!(waiting.status.unwrap().phase.as_deref(), Some("Deleting"));
    let infrastructure = story.generics("HeldCluster").get("ic").await.unwrap();
    assert!(infrastructure.metadata.deletion_timestamp.is_some());

    let release = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    story.generics("HeldCluster").patch("ic", &PatchParams::default(), &release).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    manager.stop().await;
}

/// A webhook that cannot be reached keeps the server from deleting: the Cluster says so.
#[tokio::test]
async fn a_refused_deletion_is_explained() {
    let story = Story::begin("delete-refused").await;
    let crd = generic::crd("RefusedCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(story.client.clone());
    let webhook = json!({
        "metadata": {"name": story.namespace},
        "webhooks": [{
            "name": "refuse.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/refuse"},
            "rules": [{
                "apiGroups": [generic::GROUP], "apiVersions": ["*"],
                "operations": ["DELETE"], "resources": ["refusedclusters"],
            }],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        }],
    });
    let manager = story.manager(Which::Core);
    story.create_generic("RefusedCluster", "ic", json!({})).await;
    story.create_cluster("c", "RefusedCluster", "ic").await;
    story.until_phase("c", "Provisioning", LIMIT).await;
    webhooks.create(&PostParams::default(), &serde_json::from_value(webhook).unwrap()).await.unwrap();
    // The server takes a moment to know its webhooks.
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let deadline = tokio::time::Instant::now() + LIMIT;
    while story.generics("RefusedCluster").delete("ic", &dry).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "the webhook is never called");
    }

    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_is(&story.clusters(), "c", "told of the webhook", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        let deleting = conditions::get(&status.conditions, "Deleting");
        status.phase.as_deref() == Some("Deleting")
            && deleting.is_some_and(|it| it.message.contains("refuse.example.com"))
    })
    .await;
    webhooks.delete(&story.namespace, &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.generics("RefusedCluster").get_opt("ic").await.unwrap().is_none());
    manager.stop().await;
}

#[tokio::test]
async fn machines_go_before_what_they_stand_on() {
    let story = Story::begin("delete-machines").await;
    let mut crd = generic::crd("MachineDeployment", &[]);
    crd.metadata.name = Some("machinedeployments.cluster.x-k8s.io".to_owned());
    crd.spec.group = "cluster.x-k8s.io".to_owned();
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "MachineDeployment");
    let resource = ApiResource::from_gvk_with_plural(&kind, "machinedeployments");
    let machines: Api<DynamicObject> =
        Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let mut machine = DynamicObject::new("md", &resource);
    machine.metadata.labels = Some([("cluster.x-k8s.io/cluster-name".to_owned(), "c".to_owned())].into());
    machine.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    machine.metadata.owner_references = Some(vec![cluster.owner_ref(&()).unwrap()]);
    machines.create(&PostParams::default(), &machine).await.unwrap();

    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_is(&story.clusters(), "c", "waiting for machines", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        let deleting = conditions::get(&status.conditions, "Deleting");
        deleting.is_some_and(|it| {
            it.reason == "WaitingForWorkersDeletion"
                && it.message == "* MachineDeployments: md (held by example.com/hold)"
        })
    })
    .await;
    wait::until_is(&machines, "md", "being deleted", LIMIT, |it| it.metadata.deletion_timestamp.is_some())
        .await;
    assert!(story.locals().get("c").await.unwrap().metadata.deletion_timestamp.is_none());

    let release = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    machines.patch("md", &PatchParams::default(), &release).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.locals().get_opt("c").await.unwrap().is_none());
    manager.stop().await;
}

#[tokio::test]
async fn a_cluster_whose_kind_was_never_installed_can_go() {
    let story = Story::begin("delete-nokind").await;
    let manager = story.manager(Which::Core);
    story.create_cluster("c", "NeverCluster", "ic").await;
    story.until_phase("c", "Provisioning", LIMIT).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_paused_cluster_stays_until_it_is_resumed() {
    let story = Story::begin("delete-paused").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    let pause = |paused: bool| Patch::Merge(json!({"spec": {"paused": paused}}));
    story.clusters().patch("c", &PatchParams::default(), &pause(true)).await.unwrap();
    wait::until_is(&story.clusters(), "c", "paused", LIMIT, |cluster| {
        conditions::is_true(&cluster.status.clone().unwrap_or_default().conditions, "Paused")
    })
    .await;
    wait::until_is(&story.locals(), "c", "paused", LIMIT, |local| {
        conditions::is_true(&local.status.clone().unwrap_or_default().conditions, "Paused")
    })
    .await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    // Something else that the controller must answer to shows that it had its chance.
    story.create_cluster("witness", "LocalCluster", "none").await;
    story.until_phase("witness", "Provisioning", LIMIT).await;
    assert!(story.locals().get("c").await.unwrap().metadata.deletion_timestamp.is_none());

    story.clusters().patch("c", &PatchParams::default(), &pause(false)).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.locals().get_opt("c").await.unwrap().is_none());
    manager.stop().await;
}

#[tokio::test]
async fn infrastructure_of_another_cluster_is_spared() {
    let story = Story::begin("delete-shared").await;
    let manager = story.manager(Which::All);
    story.create_local("ic", json!({})).await;
    story.create_cluster("first", "LocalCluster", "ic").await;
    story.until_phase("first", "Provisioned", LIMIT).await;
    story.create_cluster("second", "LocalCluster", "ic").await;
    wait::until_is(&story.clusters(), "second", "refused", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains("belongs to Cluster first"))
    })
    .await;
    story.clusters().delete("second", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "second", LIMIT).await;
    let local = story.locals().get("ic").await.unwrap();
    assert!(local.metadata.deletion_timestamp.is_none());
    assert_eq!(local.owner_references()[0].name, "first");
    manager.stop().await;
}
