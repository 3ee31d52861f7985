//! Clusters and releases behind proxies.

use std::{net::SocketAddr, process::Stdio};

use capstan_testkit::{
    Story, Which,
    fakes::{FakeProxy, FakeServer, ProxyKind},
    wait::LIMIT,
};
use kube::config::Kubeconfig;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    user::{METADATA, User},
    workload::{
        create_kubeconfig, create_provisioned, kubeconfig, probe_condition, until_connected, until_failed,
    },
};

/// A name that only a proxy can resolve.
const SERVER: &str = "cluster.test:6443";

/// Where the story's API server really is.
fn address_of(story: &Story) -> SocketAddr {
    let kubeconfig = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    let server = kubeconfig.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
    server.strip_prefix("https://").unwrap().parse().unwrap()
}

/// The story's API server under a name that only a proxy can resolve.
fn hidden(story: &Story, proxy_url: Option<&str>) -> String {
    let mut kubeconfig = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    for cluster in &mut kubeconfig.clusters {
        let cluster = cluster.cluster.as_mut().unwrap();
        cluster.server = Some(format!("https://{SERVER}"));
        cluster.tls_server_name = Some("localhost".to_owned());
        cluster.proxy_url = proxy_url.map(str::to_owned);
    }
    for context in &mut kubeconfig.contexts {
        context.context.as_mut().unwrap().namespace = Some(story.namespace.clone());
    }
    serde_json::to_string(&kubeconfig).unwrap()
}

fn user_of(kubeconfig: &str) -> User {
    let user = User::new();
    let file = user.write("kubeconfig", kubeconfig);
    user.with("KUBECONFIG", file)
}

const ASK: [&str; 2] = ["get", "clusters"];

#[tokio::test(flavor = "multi_thread")]
async fn a_management_cluster_is_reached_through_a_proxy() {
    let story = Story::begin("proxies").await;
    let routes = [(SERVER, address_of(&story))];
    for kind in [ProxyKind::Http, ProxyKind::Https, ProxyKind::Socks5] {
        for variable in [None, Some("HTTPS_PROXY"), Some("https_proxy")] {
            for guarded in [false, true] {
                let proxy = if guarded {
                    FakeProxy::start_guarded(kind, &routes, "me", "hunter2").await
                } else {
                    FakeProxy::start(kind, &routes).await
                };
                let url = proxy.url();
                let user = match variable {
                    None => user_of(&hidden(&story, Some(&url))).with("HTTPS_PROXY", "http://127.0.0.1:1"),
                    Some(variable) => user_of(&hidden(&story, None)).with(variable, &url),
                };
                let authority = user.write("proxy-ca.pem", proxy.ca_pem());
                let user = user.with("SSL_CERT_FILE", authority).with("HTTP_PROXY", "http://127.0.0.1:1");
                let told = user.run(&ASK);
                assert_eq!(told.code, Some(0), "{kind:?} by {variable:?}: {told:?}");
                assert!(proxy.seen().iter().all(|it| it == SERVER) && !proxy.seen().is_empty(), "{proxy:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_does_not_serve_is_named_without_its_password() {
    let story = Story::begin("proxies-broken").await;
    let routes = [(SERVER, address_of(&story))];
    let guarded = FakeProxy::start_guarded(ProxyKind::Http, &routes, "me", "other").await;
    let guarded_socks = FakeProxy::start_guarded(ProxyKind::Socks5, &routes, "me", "other").await;
    let elsewhere = FakeProxy::start(ProxyKind::Http, &[]).await;
    let untrusted = FakeProxy::start(ProxyKind::Https, &routes).await;
    let silent = FakeProxy::start(ProxyKind::Silent, &[]).await;
    let password = "me:hunter2@";
    for (url, reason) in [
        (format!("http://{password}127.0.0.1:1"), "cannot reach the proxy: Connection refused"),
        (format!("socks5://{password}127.0.0.1:1"), "cannot reach the proxy: Connection refused"),
        (guarded.url_as(password), "proxy authorization required"),
        (guarded_socks.url_as(password), "credentials not accepted"),
        (elsewhere.url_as(password), "the proxy does not make the connection: unsuccessful"),
        (untrusted.url_as(password), "invalid peer certificate"),
        (silent.url_as(password), "it does not answer within 5s"),
    ] {
        let shown = url.replace(password, "");
        let in_file = user_of(&hidden(&story, Some(&url)));
        let told = in_file.run(&ASK).fails(&[&shown, "proxy-url of cluster ", " in the kubeconfig", reason]);
        assert!(!told.contains("hunter2"), "{told}");
    }
    let url = format!("http://{password}127.0.0.1:1");
    let by_variable = user_of(&hidden(&story, None)).with("https_proxy", &url);
    let told = by_variable.run(&ASK).fails(&[SERVER, "http://127.0.0.1:1", "$https_proxy"]);
    assert!(!told.contains("hunter2"), "{told}");
    for url in ["ftp://me:hunter2@p", "http://me:hunter2@"] {
        let by_variable = user_of(&hidden(&story, None)).with("HTTPS_PROXY", url);
        let told =
            by_variable.run(&ASK).fails(&["cannot use the proxy that is set by $HTTPS_PROXY", "hint:"]);
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_and_loopback_are_reached_directly() {
    let story = Story::begin("proxies-none").await;
    let proxy = FakeProxy::start(ProxyKind::Http, &[(SERVER, address_of(&story))]).await;
    let direct = std::fs::read_to_string(story.plane.kubeconfig()).unwrap();
    let told = user_of(&direct).with("HTTPS_PROXY", proxy.url()).run(&ASK);
    assert_eq!(told.code, Some(0), "{told:?}");
    for list in ["cluster.test", ".test", "*", "10.0.0.0/8, cluster.test:6443"] {
        let user = user_of(&hidden(&story, None)).with("HTTPS_PROXY", proxy.url()).with("NO_PROXY", list);
        let told = user.run(&ASK);
        assert!(told.code == Some(1) && !told.err.contains("proxy"), "{told:?}");
    }
    assert_eq!(proxy.seen(), [""; 0]);
}

/// The namespace of a context is in the kubeconfig: no server, proxy or credential is needed to read it.
#[test]
fn a_command_that_needs_no_server_does_not_look_for_one() {
    let user = User::of_acme();
    let template = user.write("template.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "proxy-url": "no proxy"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/login",
        }}}],
    });
    let file = user.write("kubeconfig", &kubeconfig.to_string());
    let user = user.with("KUBECONFIG", file).with("HTTPS_PROXY", "::no proxy::");
    let from = template.to_str().unwrap();
    let objects = user.run(&["generate", "cluster", "c", "--from", from]).objects();
    assert_eq!(objects[0]["metadata"]["namespace"], "mine");
    let objects = user.run(&["generate", "cluster", "c", "--from", from, "-n", "other"]).objects();
    assert_eq!(objects[0]["metadata"]["namespace"], "other");
    user.run(&ASK).fails(&["proxy-url of cluster c in the kubeconfig"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_works_through_a_proxy() {
    let story = Story::begin("proxies-manager").await;
    let proxy = FakeProxy::start(ProxyKind::Http, &[(SERVER, address_of(&story))]).await;
    let user = user_of(&hidden(&story, None)).with("HTTPS_PROXY", proxy.url());
    let mut command = tokio::process::Command::from(user.command(
        env!("CARGO_BIN_EXE_capstan"),
        &[
            "manager",
            "local",
            "--namespace",
            &story.namespace,
            "--health-addr=0",
            "--diagnostics-address=0",
            "--leader-elect",
        ],
    ));
    let mut manager = command.kill_on_drop(true).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(manager.stderr.take().unwrap()).lines();
    let leads = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("leading") {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(LIMIT, leads).await.unwrap(), "the Lease was written");
    assert!(proxy.seen().iter().all(|it| it == SERVER) && !proxy.seen().is_empty(), "{proxy:?}");
}

#[tokio::test]
async fn a_workload_cluster_is_reached_through_the_proxy_of_its_kubeconfig() {
    let story = Story::begin("proxies-workload").await;
    let manager = story.manager(Which::Core);
    let routes = [(SERVER, address_of(&story))];
    for (name, kind) in [("http", ProxyKind::Http), ("socks", ProxyKind::Socks5)] {
        let proxy = FakeProxy::start_guarded(kind, &routes, "me", "hunter2").await;
        create_provisioned(&story, name).await;
        create_kubeconfig(&story, name, hidden(&story, Some(&proxy.url())).as_bytes()).await;
        until_connected(&story, name).await;
        assert!(proxy.seen().iter().all(|it| it == SERVER) && !proxy.seen().is_empty(), "{proxy:?}");
    }
    let server = format!("https://{SERVER}");
    for (name, proxy, words) in [
        (
            "unreachable",
            "http://me:hunter2@127.0.0.1:1",
            "cannot be reached through proxy http://127.0.0.1:1 (cluster.proxy-url): cannot reach the proxy: Connection refused",
        ),
        (
            "bad",
            "ftp://me:hunter2@p",
            "cluster.proxy-url is not usable: its scheme must be http, https or socks5",
        ),
    ] {
        create_provisioned(&story, name).await;
        let text = kubeconfig(&json!({"server": server, "proxy-url": proxy}), &json!({}));
        create_kubeconfig(&story, name, &text).await;
        let message = probe_condition(&until_failed(&story, name, words).await).unwrap().2;
        assert!(!message.contains("hunter2"), "{message}");
    }
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_fetched_through_a_proxy() {
    const HOST: &str = "files.example.com:443";
    let server = FakeServer::start().await;
    let folder = "/acme/v1.0.0";
    server.file(&format!("{folder}/metadata.yaml"), METADATA);
    server.file(
        &format!("{folder}/cluster-template.yaml"),
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
    );
    let address = server.host().parse().unwrap();
    for (kind, variable) in [
        (ProxyKind::Http, "HTTPS_PROXY"),
        (ProxyKind::Http, "https_proxy"),
        (ProxyKind::Socks5, "HTTPS_PROXY"),
    ] {
        let proxy = FakeProxy::start_guarded(kind, &[(HOST, address)], "me", "hunter2").await;
        let user = User::new();
        let authority = user.write("ca.pem", server.ca_pem());
        // Downloads read the variables as curl does: socks5h leaves names to the proxy.
        let url = proxy.url().replace("socks5:", "socks5h:");
        let from = format!("https://files.example.com{folder}/cluster-template.yaml");
        let arguments = ["generate", "yaml", "--from", &from];
        let user = user.with("SSL_CERT_FILE", authority).with(variable, url);
        let told = user.run(&arguments);
        assert_eq!(told.code, Some(0), "{kind:?} by {variable}: {told:?}");
        assert_eq!(proxy.seen(), [HOST], "{kind:?} by {variable}");
        let told =
            user.with("NO_PROXY", "example.com").with("CAPSTAN_CACHE_DIR", "/nonexistent").run(&arguments);
        assert_eq!((told.code, proxy.seen().len()), (Some(1), 1), "{told:?}");
    }
}
