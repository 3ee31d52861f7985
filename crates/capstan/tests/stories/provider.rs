//! The local provider keeps the InfraCluster contract.

use std::time::Duration;

use capstan_api::conditions;
use capstan_provider_local::api::v1beta2::{LocalCluster, LocalClusterTemplate};
use capstan_testkit::{
    Story, Which,
    wait::{self, LIMIT},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Shows that the provider had its chance: another object, created later, is done.
async fn let_the_provider_pass(story: &Story, name: &str) {
    story.create_local(name, json!({})).await;
    story.create_cluster(name, "LocalCluster", name).await;
    story.until_phase(name, "Provisioned", LIMIT).await;
}

#[tokio::test]
async fn without_an_owner_nothing_happens() {
    let story = Story::begin("no-owner").await;
    let manager = story.manager(Which::All);
    let before = story.create_local("alone", json!({})).await;
    let_the_provider_pass(&story, "witness").await;
    let after = story.locals().get("alone").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());

    story.locals().delete("alone", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.locals(), "alone", LIMIT).await;
    manager.stop().await;
}

#[tokio::test]
async fn what_others_manage_is_never_written() {
    let story = Story::begin("external").await;
    let manager = story.manager(Which::All);
    for (name, place) in [("by-label", "labels"), ("by-annotation", "annotations")] {
        story.create_local(name, json!({"controlPlaneEndpoint": {"host": "10.1.2.3", "port": 6443}})).await;
        let patch = Patch::Merge(json!({"metadata": {place: {"cluster.x-k8s.io/managed-by": "terraform"}}}));
        story.locals().patch(name, &PatchParams::default(), &patch).await.unwrap();
        story.create_cluster(name, "LocalCluster", name).await;
    }
    let_the_provider_pass(&story, "witness").await;
    for name in ["by-label", "by-annotation"] {
        // Core adopts it, the provider leaves it alone.
        let local =
            wait::until_is(&story.locals(), name, "adopted", LIMIT, |it| !it.owner_references().is_empty())
                .await;
        assert_eq!(local.status, None);
        assert!(local.finalizers().is_empty());
        // The outside system speaks for it.
        let status = Patch::Merge(json!({"status": {"initialization": {"provisioned": true}}}));
        story.locals().patch_status(name, &PatchParams::default(), &status).await.unwrap();
        let cluster = story.until_phase(name, "Provisioned", LIMIT).await;
        assert_eq!(cluster.spec.control_plane_endpoint.unwrap().host, "10.1.2.3");
    }
    manager.stop().await;
}

#[tokio::test]
async fn connections_are_forwarded_and_survive_a_new_provider() {
    let story = Story::begin("forward").await;
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = backend.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = backend.accept().await {
            stream.write_all(b"hello").await.unwrap();
        }
    });
    let manager = story.manager(Which::All);
    story.create_local("c", json!({"backends": [address]})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    let ask = || async {
        let mut stream = TcpStream::connect(format!("{}:{}", endpoint.host, endpoint.port)).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    assert_eq!(ask().await.unwrap(), "hello");
    let before = story.locals().get("c").await.unwrap();
    manager.crash().await;

    // Only a new manager brings the same endpoint back, and it has nothing to write.
    let manager = story.manager(Which::All);
    let deadline = tokio::time::Instant::now() + LIMIT;
    while !ask().await.is_ok_and(|answer| answer == "hello") {
        assert!(tokio::time::Instant::now() < deadline, "the endpoint does not come back");
        tokio::task::yield_now().await;
    }
    assert_eq!(story.locals().get("c").await.unwrap().resource_version(), before.resource_version());
    manager.stop().await;
}

#[tokio::test]
async fn a_taken_port_is_named_and_taken_once_it_is_free() {
    let story = Story::begin("taken-port").await;
    let taken = TcpListener::bind("127.77.0.3:16443").await.unwrap();
    let manager = story.manager(Which::All);
    story.create_local("c", json!({"controlPlaneEndpoint": {"host": "127.77.0.3", "port": 16443}})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    wait::until_is(&story.clusters(), "c", "told of the port", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "InfrastructureReady")
            .is_some_and(|it| it.message.contains("127.77.0.3:16443"))
    })
    .await;
    drop(taken);
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    assert_eq!(cluster.spec.control_plane_endpoint.unwrap().host, "127.77.0.3");
    manager.stop().await;
}

#[tokio::test]
async fn the_users_endpoint_is_served() {
    let story = Story::begin("users-endpoint").await;
    let manager = story.manager(Which::All);
    let spec = json!({
        "controlPlaneEndpoint": {"host": "127.77.0.2", "port": 16443},
        "infrastructureRef": capstan_testkit::story::reference("LocalCluster", "c"),
    });
    story.create_cluster_with("c", spec).await;
    story.create_local("c", json!({})).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    TcpStream::connect("127.77.0.2:16443").await.expect("the user's endpoint answers");
    let local = story.locals().get("c").await.unwrap();
    assert_eq!(local.spec.control_plane_endpoint.unwrap().host, "127.77.0.2");
    manager.stop().await;
}

#[tokio::test]
async fn a_wiped_status_is_restored_without_new_infrastructure() {
    let story = Story::begin("wiped").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({"failureDomains": [{"name": "a"}]})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let before = story.until_phase("c", "Provisioned", LIMIT).await;
    let wipe = Patch::Merge(json!({"status": null}));
    story.locals().patch_status("c", &PatchParams::default(), &wipe).await.unwrap();
    let local = wait::until_is(&story.locals(), "c", "ready again", Duration::from_secs(5), |local| {
        local.status.as_ref().is_some_and(|status| {
            conditions::is_true(&status.conditions, "Ready") && !status.failure_domains.is_empty()
        })
    })
    .await;
    assert_eq!(local.spec.control_plane_endpoint, before.spec.control_plane_endpoint);
    manager.stop().await;
}

#[tokio::test]
async fn a_local_cluster_needs_no_spec() {
    let story = Story::begin("no-spec").await;
    let manager = story.manager(Which::All);
    let resource = ApiResource::erase::<LocalCluster>(&());
    let locals: Api<DynamicObject> = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let template = ApiResource::erase::<LocalClusterTemplate>(&());
    let templates: Api<DynamicObject> =
        Api::namespaced_with(story.client.clone(), &story.namespace, &template);
    locals.create(&PostParams::default(), &DynamicObject::new("c", &resource)).await.unwrap();
    templates.create(&PostParams::default(), &DynamicObject::new("c", &template)).await.unwrap();
    story.create_cluster("c", "LocalCluster", "c").await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    manager.stop().await;
}
