//! Workload clusters are connected to, watched, and given up, and their Clusters say so.

use std::time::{Duration, Instant};

use capstan_cluster::{ConnectionOptions, Options};
use capstan_runtime::tls::OwnCertificate;
use capstan_testkit::{
    Story, Which,
    canary::CANARY,
    wait::{self, LIMIT},
};
use futures::future::join_all;
use k8s_openapi::ByteString;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::workload::{
    Manner, StandIn, create_kubeconfig, create_provisioned, kubeconfig, own_kubeconfig, probe_condition,
    until_connected, until_failed,
};

const NOT_YET: &str = "Remote connection not established yet";

/// As managers do it, but faster.
fn quick() -> Options {
    let connections = ConnectionOptions {
        grace_period: Duration::from_secs(1),
        probe_period: Duration::from_millis(100),
        probe_limit: Duration::from_secs(3),
        ..ConnectionOptions::default()
    };
    Options { connections, ..Options::default() }
}

#[tokio::test]
async fn a_cluster_is_connected_as_soon_as_its_kubeconfig_is_there() {
    let story = Story::begin("connect").await;
    let manager = story.manager(Which::Core);
    create_provisioned(&story, "c").await;
    let cluster = until_failed(&story, "c", NOT_YET).await;
    assert_eq!(probe_condition(&cluster).unwrap().2, NOT_YET);
    assert_eq!(cluster.status.unwrap().initialization.unwrap().infrastructure_provisioned, Some(true));

    create_kubeconfig(&story, "c", &own_kubeconfig(&story)).await;
    let cluster = until_connected(&story, "c").await;
    assert_eq!(probe_condition(&cluster).unwrap().2, "");

    // Garbage in its place is reported at once, whatever the grace period: waiting would not help.
    story.change_secret("c-kubeconfig", &[("value", b"{}")]).await;
    until_failed(&story, "c", "Z: Secret c-kubeconfig: key value cannot be used: current-context is not set")
        .await;

    story.secrets().delete("c-kubeconfig", &DeleteParams::default()).await.unwrap();
    wait::until_is(&story.clusters(), "c", "without a kubeconfig", LIMIT, |cluster| {
        probe_condition(cluster).is_some_and(|(_, _, message)| message == NOT_YET)
    })
    .await;
    manager.stop().await;
}

#[tokio::test]
async fn nothing_is_tried_before_the_cluster_is_provisioned() {
    let story = Story::begin("connect-later").await;
    let manager = story.manager(Which::All);
    let server = StandIn::start(Manner::Answers(200)).await;
    create_kubeconfig(&story, "c", &server.kubeconfig()).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    until_failed(&story, "c", NOT_YET).await;
    assert_eq!(server.asked(), 0);
    story.create_local("c", json!({})).await;
    until_connected(&story, "c").await;
    assert_eq!(server.asked(), 1);
    manager.stop().await;
}

#[tokio::test]
async fn at_rest_nothing_is_written_and_a_restart_changes_nothing() {
    let story = Story::begin("connect-rest").await;
    let manager = story.core_manager(quick());
    let server = StandIn::start(Manner::Answers(200)).await;
    create_provisioned(&story, "c").await;
    create_kubeconfig(&story, "c", &server.kubeconfig()).await;
    let connected = until_connected(&story, "c").await;
    // Longer than the grace period.
    server.until_asked(12).await;
    manager.stop().await;
    let manager = story.core_manager(quick());
    server.until_asked(12).await;
    let now = story.clusters().get("c").await.unwrap();
    assert_eq!(now.resource_version(), connected.resource_version(), "{:#}", json!(now.status));
    manager.stop().await;
}

#[tokio::test]
async fn a_new_kubeconfig_is_used_at_once() {
    let story = Story::begin("connect-rotated").await;
    // Probes are ten seconds apart: only the Secret's change can be what made the difference.
    let manager = story.manager(Which::Core);
    let (old, new) = (StandIn::start(Manner::Answers(200)).await, StandIn::start(Manner::Answers(200)).await);
    create_provisioned(&story, "c").await;
    create_kubeconfig(&story, "c", &old.kubeconfig()).await;
    let connected = until_connected(&story, "c").await;
    story.change_secret("c-kubeconfig", &[("value", &new.kubeconfig())]).await;
    new.until_asked(1).await;
    assert_eq!(old.asked(), 1);
    let now = story.clusters().get("c").await.unwrap();
    assert_eq!(now.resource_version(), connected.resource_version(), "the new one is as good as the old");
    manager.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_explained() {
    let story = Story::begin("connect-garbage").await;
    let manager = story.manager(Which::Core);
    let server = json!({"server": "https://127.0.0.1:1"});
    let file = json!({"server": "https://127.0.0.1:1", "certificate-authority": "/etc/passwd"});
    let pem = json!(ByteString(format!("-----BEGIN {CANARY}").into_bytes()));
    let cases: Vec<(&str, &str, Vec<u8>, &str)> = vec![
        ("words", "value", b"just: [words".to_vec(), "key value cannot be used: is not a kubeconfig"),
        ("binary", "value", vec![0, 159, 146, 150], "it is not UTF-8 text"),
        ("empty", "value", Vec::new(), "current-context is not set"),
        ("other-key", "kubeconfig", b"x".to_vec(), "Secret other-key-kubeconfig: key value is missing"),
        ("huge", "value", vec![b'#'; 600 << 10], "key value is larger than 512 KiB"),
        (
            "exec",
            "value",
            kubeconfig(&server, &json!({"exec": {"apiVersion": "v1", "command": "/bin/false"}})),
            "user.exec is refused",
        ),
        ("file", "value", kubeconfig(&file, &json!({})), "cluster.certificate-authority is refused"),
        (
            "line-break",
            "value",
            kubeconfig(&server, &json!({"token": format!("{CANARY}\r\nX-Remote-User: admin")})),
            "user.token holds a line break or another control character",
        ),
        (
            "name",
            "value",
            kubeconfig(
                &json!({"server": "https://127.0.0.1:1", "tls-server-name": CANARY.repeat(9)}),
                &json!({}),
            ),
            "cluster.tls-server-name is neither a DNS name nor an IP address",
        ),
        (
            "authority",
            "value",
            kubeconfig(
                &json!({"server": "https://127.0.0.1:1", "certificate-authority-data": pem}),
                &json!({}),
            ),
            "cluster.certificate-authority-data is not a certificate in PEM",
        ),
        (
            "key",
            "value",
            kubeconfig(&server, &json!({"client-certificate-data": pem, "client-key-data": pem})),
            "user.client-certificate-data is not a certificate in PEM",
        ),
    ];
    let check = cases.iter().map(|(name, key, text, words)| {
        let story = &story;
        async move {
            create_provisioned(story, name).await;
            story.create_secret(&format!("{name}-kubeconfig"), Some(name), &[(key, text)]).await;
            let cluster = until_failed(story, name, words).await;
            let message = probe_condition(&cluster).unwrap().2;
            assert!(message.starts_with(&format!("{NOT_YET}: Secret {name}-kubeconfig: ")), "{message}");
            // What is put right is used at once.
            story.change_secret(&format!("{name}-kubeconfig"), &[("value", &own_kubeconfig(story))]).await;
            until_connected(story, name).await;
        }
    });
    join_all(check).await;
    manager.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_behave_is_explained_and_holds_up_nobody() {
    let story = Story::begin("connect-bad").await;
    // As few workers as can be: those that hang must not take them all for ever.
    let mut options = quick();
    options.connections.concurrency = 2;
    let manager = story.core_manager(options);
    let good = StandIn::start(Manner::Answers(200)).await;
    create_provisioned(&story, "good").await;
    create_kubeconfig(&story, "good", &good.kubeconfig()).await;
    until_connected(&story, "good").await;

    let api_server = story.plane.config().await.cluster_url.to_string();
    let other = OwnCertificate::make(&["localhost"]).unwrap();
    let other = json!(ByteString(other.ca_pem.into_bytes()));
    let wrong = kubeconfig(&json!({"server": api_server, "certificate-authority-data": other}), &json!({}));
    let mut servers = Vec::new();
    let mut cases = vec![(
        "wrong-authority",
        wrong,
        "certificate that is not signed by the kubeconfig's certificate-authority-data",
    )];
    for (name, manner, words) in [
        ("silent", Manner::Silent, "did not answer within 3s"),
        ("silent-too", Manner::Silent, "did not answer within 3s"),
        ("slow", Manner::Slow, "did not answer within 3s"),
        ("endless", Manner::Endless, "answers GET / with more than 1 MiB"),
        (
            "unauthorized",
            Manner::Answers(401),
            "answered 401 Unauthorized: the kubeconfig's credentials are not accepted",
        ),
        ("broken", Manner::Answers(500), "answered 500 Internal Server Error"),
    ] {
        let server = StandIn::start(manner).await;
        cases.push((name, server.kubeconfig(), words));
        servers.push(server);
    }
    let plain = format!("https://{}", good.address);
    cases.push((
        "not-tls",
        kubeconfig(&json!({"server": plain, "insecure-skip-tls-verify": true}), &json!({})),
        "did not answer within 3s",
    ));
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    cases.push((
        "refused",
        kubeconfig(&json!({"server": format!("http://{nobody}")}), &json!({})),
        "refused the connection",
    ));
    for (name, text, _) in &cases {
        create_provisioned(&story, name).await;
        create_kubeconfig(&story, name, text).await;
    }
    let check = cases.iter().map(|(name, _, words)| async {
        let cluster = until_failed(&story, name, words).await;
        let message = probe_condition(&cluster).unwrap().2;
        assert!(message.contains(": the API server at http"), "{message}");
    });
    join_all(check).await;
    good.until_asked(3).await;
    let cluster = story.clusters().get("good").await.unwrap();
    assert_eq!(probe_condition(&cluster).unwrap().0, "True");
    for server in &servers {
        server.behave(Manner::Answers(200));
    }
    until_connected(&story, "broken").await;
    until_connected(&story, "unauthorized").await;
    manager.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_that_changes_all_the_time_is_tried_a_few_times_only() {
    let story = Story::begin("connect-pace").await;
    let manager = story.core_manager(quick());
    let server = StandIn::start(Manner::Answers(500)).await;
    create_provisioned(&story, "c").await;
    create_kubeconfig(&story, "c", &server.kubeconfig()).await;
    server.until_asked_in_all(1).await;
    let began = Instant::now();
    for number in 0..40 {
        let cluster = json!({"server": format!("http://{}", server.address)});
        let text = kubeconfig(&cluster, &json!({"username": number.to_string()}));
        story.change_secret("c-kubeconfig", &[("value", &text)]).await;
        // The pace of a tenant, so that changes do not become one on their way.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Four at once, and the next one half a minute later. The last of the four may have been repeated by then, the more
    // often the slower the machine is.
    let (asked, most) = (server.asked(), 6 + began.elapsed().as_secs() / 5);
    assert!(
        asked >= 4 && u64::try_from(asked).unwrap() <= most,
        "asked {asked} times, at most {most} expected"
    );
    manager.stop().await;
}

#[tokio::test]
async fn a_cluster_that_changes_during_its_first_attempt_waits_like_any_other() {
    let story = Story::begin("connect-busy").await;
    let limit = Duration::from_secs(2);
    let mut options = quick();
    options.connections.probe_limit = limit;
    let manager = story.core_manager(options);
    let server = StandIn::start(Manner::Silent).await;
    create_provisioned(&story, "c").await;
    // The test may be late to see the first attempt, but it cannot be early.
    let first = Instant::now();
    create_kubeconfig(&story, "c", &server.kubeconfig()).await;
    server.until_asked(1).await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"changed": "meanwhile"}}}));
    story.clusters().patch("c", &PatchParams::default(), &label).await.unwrap();
    server.until_asked(1).await;
    // The first wait is between 0.8 s and 1 s; the attempt itself ends with its limit.
    let between = first.elapsed();
    assert!(between >= limit + Duration::from_millis(700), "asked again after {between:?}");
    manager.stop().await;
}

#[tokio::test]
async fn a_server_goes_away_and_comes_back() {
    let story = Story::begin("connect-away").await;
    let manager = story.core_manager(quick());
    let server = StandIn::start(Manner::Answers(200)).await;
    create_provisioned(&story, "c").await;
    create_kubeconfig(&story, "c", &server.kubeconfig()).await;
    until_connected(&story, "c").await;
    for manner in [Manner::Answers(500), Manner::Silent, Manner::Answers(401)] {
        server.behave(manner);
        let cluster =
            until_failed(&story, "c", "Remote connection probe failed, probe last succeeded at ").await;
        let message = probe_condition(&cluster).unwrap().2;
        assert!(message.contains(&format!("Z: the API server at http://{} ", server.address)), "{message}");
        server.behave(Manner::Answers(200));
        until_connected(&story, "c").await;
    }
    manager.stop().await;
}

#[tokio::test]
async fn a_server_is_left_alone_once_its_cluster_is_gone() {
    let story = Story::begin("connect-gone").await;
    let manager = story.core_manager(quick());
    let (gone, stays) =
        (StandIn::start(Manner::Answers(200)).await, StandIn::start(Manner::Answers(200)).await);
    for (name, server) in [("gone", &gone), ("stays", &stays)] {
        create_provisioned(&story, name).await;
        create_kubeconfig(&story, name, &server.kubeconfig()).await;
        until_connected(&story, name).await;
    }
    gone.until_asked(2).await;
    story.clusters().delete("gone", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "gone", LIMIT).await;
    // The manager has heard of it by now, and a probe under way is over.
    stays.until_asked(3).await;
    let asked = gone.asked();
    stays.until_asked(5).await;
    assert_eq!(gone.asked(), asked);
    manager.stop().await;
}
