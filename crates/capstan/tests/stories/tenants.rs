//! What a LocalCluster can ask for beside its endpoint: a tenant's address, delays, and failures.

use capstan_api::conditions;
use capstan_testkit::{
    Story, Which,
    wait::{self, LIMIT},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::net::TcpStream;

fn ready(local: &capstan_provider_local::api::v1beta2::LocalCluster) -> Option<(String, String)> {
    let status = local.status.as_ref()?;
    let ready = conditions::get(&status.conditions, "Ready")?;
    Some((ready.reason.clone(), ready.message.clone()))
}

#[tokio::test]
async fn a_tenants_load_balancer_listens_on_the_tenants_address() {
    let story = Story::begin("tenant").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({"identityRef": {"name": "blue"}})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let told = wait::until_is(&story.locals(), "c", "told what is missing", LIMIT, |local| {
        ready(local).is_some_and(|(reason, _)| reason == "ProvisioningFailed")
    })
    .await;
    let (_, message) = ready(&told).unwrap();
    assert!(message.contains(&format!("Secret {}/blue does not exist", story.namespace)), "{message}");

    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    let secret = json!({"metadata": {"name": "blue"}, "stringData": {"host": "127.77.2.9"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    assert_eq!(endpoint.host, "127.77.2.9");
    TcpStream::connect(format!("{}:{}", endpoint.host, endpoint.port)).await.expect("it answers");

    // Another address is not theirs.
    let spec = json!({"identityRef": {"name": "blue"}, "controlPlaneEndpoint": {"host": "127.77.2.8", "port": 16443}});
    story.create_local("greedy", spec).await;
    story.create_cluster("greedy", "LocalCluster", "greedy").await;
    wait::until_is(&story.locals(), "greedy", "refused", LIMIT, |local| {
        ready(local).is_some_and(|(_, message)| message.contains("tenant blue may listen on 127.77.2.9 only"))
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn simulated_troubles_are_told_and_end() {
    let story = Story::begin("simulated").await;
    let manager = story.manager(Which::All);
    let simulate = json!({"error": "the quota is used up", "provisioningSeconds": 1, "deletionSeconds": 1});
    story.create_local("c", json!({"simulate": simulate})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let troubled = wait::until_is(&story.locals(), "c", "in trouble", LIMIT, |local| {
        ready(local).is_some_and(|(_, message)| message.contains("the quota is used up"))
    })
    .await;
    assert_eq!(troubled.spec.control_plane_endpoint, None);
    let mend = Patch::Merge(json!({"spec": {"simulate": {"error": null}}}));
    story.locals().patch("c", &PatchParams::default(), &mend).await.unwrap();
    story.until_phase("c", "Provisioned", LIMIT).await;

    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_is(&story.locals(), "c", "on its way", LIMIT, |local| {
        ready(local).is_some_and(|(_, message)| message.contains("slow to go"))
    })
    .await;
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.locals().get_opt("c").await.unwrap().is_none());
    manager.stop().await;
}

#[tokio::test]
async fn a_terminal_failure_is_final_until_deletion() {
    let story = Story::begin("terminal").await;
    let manager = story.manager(Which::All);
    let failure =
        json!({"terminalFailure": {"reason": "AddressesExhausted", "message": "no address is left"}});
    story.create_local("c", json!({"simulate": failure})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let failed = wait::until_is(&story.locals(), "c", "failed", LIMIT, |local| {
        ready(local).is_some_and(|(reason, _)| reason == "AddressesExhausted")
    })
    .await;
    let recorded = failed.status.clone().unwrap().deprecated.unwrap().v1beta1.unwrap();
    assert_eq!(recorded.failure_message.as_deref(), Some("no address is left"));

    let mend = Patch::Merge(json!({"spec": {"simulate": null}}));
    let mended = story.locals().patch("c", &PatchParams::default(), &mend).await.unwrap();
    story.create_local("witness", json!({})).await;
    story.create_cluster("witness", "LocalCluster", "witness").await;
    story.until_phase("witness", "Provisioned", LIMIT).await;
    let still = story.locals().get("c").await.unwrap();
    assert_eq!(still.resource_version(), mended.resource_version(), "only a new Cluster helps");

    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    manager.stop().await;
}
