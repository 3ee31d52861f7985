//! What a manager serves: health, readiness, metrics, and to whom.

use std::{path::Path, process::Stdio, time::Duration};

use capstan_api::crd::Conversion;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic, wait::LIMIT};
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, Client, Config, api::PostParams, config::Kubeconfig};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::user::User;

fn manager(story: &Story, flags: &[&str]) -> Child {
    manager_as(story, story.plane.kubeconfig(), flags)
}

fn manager_as(story: &Story, kubeconfig: &Path, flags: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["manager", "core"])
        .args(flags)
        .arg(format!("--namespace={}", story.namespace))
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// A plain GET: the status line and the body in one text. `None` while nothing listens.
async fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: manager\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

async fn until_ready(address: &str) {
    let deadline = tokio::time::Instant::now() + LIMIT;
    while !get(address, "/readyz").await.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
        assert!(tokio::time::Instant::now() < deadline, "never ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn health_and_metrics_are_where_dashboards_look() {
    let story = Story::begin("serving").await;
    let flags = [
        "--webhook-port=0",
        "--health-addr=127.77.1.1:19440",
        "--diagnostics-address=127.77.1.1:18080",
        "--insecure-diagnostics",
    ];
    let mut manager = manager(&story, &flags);
    until_ready("127.77.1.1:19440").await;
    assert!(get("127.77.1.1:19440", "/healthz").await.unwrap().starts_with("HTTP/1.1 200"));
    story.create_cluster("c", "NoSuchCluster", "x").await;
    story.until_phase("c", "Provisioning", LIMIT).await;
    for name in [
        "controller_runtime_reconcile_total{controller=\"cluster\",result=\"success\"}",
        "controller_runtime_max_concurrent_reconciles{controller=\"cluster\"} 16",
        "workqueue_adds_total{name=\"cluster\"",
        "rest_client_requests_total{code=\"200\"",
    ] {
        // A reconcile is counted when it ends, a moment after its last write can be seen.
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let metrics = get("127.77.1.1:18080", "/metrics").await.unwrap();
            if metrics.contains(name) {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "{name} is missing in\n{metrics}");
        }
    }
    manager.kill().await.unwrap();
}

async fn post<T, K>(client: &Client, value: Value) -> K
where
    K: kube::Resource<DynamicType = (), Scope = T>
        + serde::de::DeserializeOwned
        + serde::Serialize
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(value).unwrap();
    Api::<K>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap()
}

#[tokio::test]
async fn a_refused_watch_is_named_and_counted() {
    let plane = Plane::start().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(plane, "refused").await;
    for (kind, plural) in [("Machine", "machines"), ("ClusterClass", "clusterclasses")] {
        let mut crd = generic::crd(kind, &[]);
        crd.metadata.name = Some(format!("{plural}.cluster.x-k8s.io"));
        plural.clone_into(&mut crd.spec.names.plural);
        "cluster.x-k8s.io".clone_into(&mut crd.spec.group);
        install_crds(&story.client, &[crd], "story").await.unwrap();
    }
    let all = ["*"];
    let rules = json!([
        {"apiGroups": ["", "apiextensions.k8s.io", "coordination.k8s.io", "events.k8s.io"], "resources": all, "verbs": all},
        {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters", "clusters/status"], "verbs": all},
    ]);
    let _: ClusterRole = post(&story.client, json!({"metadata": {"name": "narrow"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "narrow"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "narrow"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "narrow"}],
    });
    let _: ClusterRoleBinding = post(&story.client, binding).await;
    let mut kubeconfig = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some("narrow".to_owned());
    let user = User::new();
    let file = user.write("kubeconfig", &serde_json::to_string(&kubeconfig).unwrap());
    let flags = [
        "--webhook-port=0",
        "--health-addr=127.77.1.6:19440",
        "--diagnostics-address=127.77.1.6:18080",
        "--insecure-diagnostics",
    ];
    let mut manager = manager_as(&story, &file, &flags);
    until_ready("127.77.1.6:19440").await;
    let topology = json!({"classRef": {"name": "k"}, "version": "v1.33.0"});
    story.create_cluster_with("c", json!({ "topology": topology })).await;
    let until = async |address: &str, path: &str, expected: [&str; 2]| {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let answer = get(address, path).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            if expected.iter().all(|it| answer.contains(it)) {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "{expected:?} is missing in\n{answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let named = [
        "broken watch: machines.cluster.x-k8s.io, for ",
        "broken watch: clusterclasses.cluster.x-k8s.io, for ",
    ];
    until("127.77.1.6:19440", "/readyz", named).await;
    let counted = [
        "capstan_watch_outages_total{resource=\"machines.cluster.x-k8s.io\"} 1",
        "capstan_watch_outages_total{resource=\"clusterclasses.cluster.x-k8s.io\"} 1",
    ];
    until("127.77.1.6:18080", "/metrics", counted).await;
    manager.kill().await.unwrap();
}

#[tokio::test]
async fn metrics_are_guarded_by_the_api_servers_rules() {
    let story = Story::begin("guarded").await;
    let mut manager = manager(
        &story,
        &["--webhook-port=0", "--health-addr=127.77.1.2:19440", "--diagnostics-address=127.77.1.2:18443"],
    );
    until_ready("127.77.1.2:19440").await;
    let accounts: Api<ServiceAccount> = Api::namespaced(story.client.clone(), &story.namespace);
    let account = serde_json::from_value(json!({"metadata": {"name": "scraper"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}})).unwrap();
    let token = accounts.create_token_request("scraper", &PostParams::default(), &request).await.unwrap();
    let token = token.status.unwrap().token;
    let ask = async |token: Option<&str>| {
        let mut config = Config::new("https://127.77.1.2:18443".parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(|it| it.to_owned().into());
        let client = Client::try_from(config).unwrap();
        client.request_text(http::Request::get("/metrics").body(Vec::new()).unwrap()).await
    };
    let refused = |answer: Result<String, kube::Error>, code: u16| matches!(answer, Err(kube::Error::Api(status)) if status.code == code);
    assert!(refused(ask(None).await, 401), "who are you?");
    assert!(refused(ask(Some(&token)).await, 403), "not allowed yet");

    let name = format!("scraper-{}", story.namespace);
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let _: ClusterRole = post(&story.client, json!({"metadata": {"name": name}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": story.namespace}],
    });
    let _: ClusterRoleBinding = post(&story.client, binding).await;
    let deadline = tokio::time::Instant::now() + LIMIT;
    // The API server takes a moment to know its rules.
    while !ask(Some(&token)).await.is_ok_and(|metrics| metrics.contains("workqueue_depth")) {
        assert!(tokio::time::Instant::now() < deadline, "never allowed");
    }
    manager.kill().await.unwrap();
}

#[tokio::test]
async fn a_missing_certificate_is_named() {
    let story = Story::begin("no-certificate").await;
    let flags = [
        "--webhook-port=19443",
        "--webhook-cert-dir=/nonexistent/certs",
        "--health-addr=0",
        "--diagnostics-address=0",
    ];
    let ended = manager(&story, &flags).wait_with_output().await.unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{words}");
    assert!(words.contains("/nonexistent/certs/tls.crt") && words.contains("--webhook-port 0"), "{words}");
}
