//! Tenants beside each other: what one does holds up no other. And what a LocalCluster can ask for beside its endpoint: a
//! tenant's address, delays, and failures.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use capstan_api::{conditions, crd::Conversion};
use capstan_cluster::Options;
use capstan_testkit::{
    Plane, Story, Which,
    canary::CANARY,
    wait::{self, LIMIT},
};
use futures::future::{join_all, select_all};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::net::TcpStream;

use crate::workload::{
    Manner, StandIn, create_kubeconfig, create_provisioned, kubeconfig, until_connected, until_failed,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tarpits_hold_up_only_their_own_namespace() {
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let hostile = Arc::new(Story::begin_on(Arc::clone(&plane), "hostile").await);
    let neighbour = Story::begin_on(plane, "neighbour").await;
    let mut options = Options::default();
    options.connections.concurrency = 2;
    let manager = hostile.core_manager_everywhere(options);
    let tarpits = join_all((0..10).map(|_| StandIn::start(Manner::Silent))).await;
    let create = tarpits.iter().enumerate().map(|(number, tarpit)| {
        let (name, hostile) = (format!("tarpit-{number}"), Arc::clone(&hostile));
        async move {
            create_provisioned(&hostile, &name).await;
            create_kubeconfig(&hostile, &name, &tarpit.kubeconfig()).await;
        }
    });
    join_all(create).await;
    select_all(tarpits.iter().map(|it| Box::pin(it.until_asked_in_all(1)))).await;
    // Each rewrite is another kubeconfig, which is tried without the wait that a failed one has.
    let addresses: Vec<_> = tarpits.iter().map(|tarpit| tarpit.address).collect();
    let rewrites = tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        for count in 0.. {
            pause.tick().await;
            let number = count % addresses.len();
            let cluster = json!({"server": format!("http://{}", addresses[number])});
            let text = kubeconfig(&cluster, &json!({"username": count.to_string()}));
            hostile.change_secret(&format!("tarpit-{number}-kubeconfig"), &[("value", &text)]).await;
        }
    });
    for name in ["one", "two", "three"] {
        let server = StandIn::start(Manner::Answers(200)).await;
        create_provisioned(&neighbour, name).await;
        until_failed(&neighbour, name, "Remote connection not established yet").await;
        let created = Instant::now();
        create_kubeconfig(&neighbour, name, &server.kubeconfig()).await;
        until_connected(&neighbour, name).await;
        let took = created.elapsed();
        println!("{name} is connected after {took:?}");
        assert!(took < Duration::from_secs(2), "{name} was connected after {took:?}");
    }
    rewrites.abort();
    assert!(rewrites.await.unwrap_err().is_cancelled(), "rewritten until the end");
    manager.stop().await;
}

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
    let found = wait::until_is(&story.locals(), "c", "without its Secret", LIMIT, |local| {
        ready(local).is_some_and(|(reason, _)| reason == "ProvisioningFailed")
    })
    .await;
    let (_, message) = ready(&found).unwrap();
    assert!(message.contains(&format!("Secret {}/blue does not exist", story.namespace)), "{message}");

    story.create_secret("blue", None, &[("host", b"127.77.2.9")]).await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    assert_eq!(endpoint.host, "127.77.2.9");
    TcpStream::connect(format!("{}:{}", endpoint.host, endpoint.port)).await.expect("it answers");

    // Another address is not theirs.
    let spec = json!({"identityRef": {"name": "blue"}, "controlPlaneEndpoint": {"host": "127.77.2.8", "port": 16443}});
    story.create_local("greedy", spec).await;
    story.create_cluster("greedy", "LocalCluster", "greedy").await;
    wait::until_is(&story.locals(), "greedy", "refused", LIMIT, |local| {
        ready(local).is_some_and(|(_, message)| message.contains("tenant blue may not listen on 127.77.2.8"))
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn a_tenants_secret_is_explained_and_not_quoted() {
    let story = Story::begin("tenant-canary").await;
    let manager = story.manager(Which::All);
    let foreign = [CANARY.as_bytes(), b"\xff"].concat();
    let cases: [(&str, &str, &[u8], &str); 5] = [
        ("text", "host", CANARY.as_bytes(), "of this machine, but holds something else"),
        ("binary", "host", &foreign, "of this machine, but holds something else"),
        ("empty", "host", b"", "of this machine, but is empty"),
        ("missing", "hots", CANARY.as_bytes(), "of this machine, but is missing"),
        ("elsewhere", "host", b"192.0.2.1", "cannot listen on the address in key host of Secret"),
    ];
    let check = cases.map(|(name, key, value, words)| {
        let story = &story;
        async move {
            story.create_secret(name, None, &[(key, value)]).await;
            story.create_local(name, json!({"identityRef": {"name": name}})).await;
            story.create_cluster(name, "LocalCluster", name).await;
            let found = wait::until_is(&story.locals(), name, words, LIMIT, |local| {
                ready(local).is_some_and(|(_, message)| message.contains(words))
            })
            .await;
            let (_, message) = ready(&found).unwrap();
            assert!(!message.contains("192.0.2.1"), "{message}");
            story.change_secret(name, &[("host", b"127.77.2.10")]).await;
            story.until_phase(name, "Provisioned", LIMIT).await;
        }
    });
    join_all(check).await;
    manager.stop().await;
}

#[tokio::test]
async fn simulated_troubles_are_reported_and_end() {
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
