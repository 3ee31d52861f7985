//! `get kubeconfig` and `get clusters`: what a management cluster knows of its workload clusters.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::Arc,
    thread,
};

use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, Which, generic, shared_plane, story::reference, wait::LIMIT};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    config::Kubeconfig,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    user::{Told, User},
    workload::create_kubeconfig,
};

/// A user whose kubeconfig names the namespace of a story.
pub(crate) struct Caller {
    pub(crate) story: Story,
    pub(crate) user: User,
}

impl Caller {
    pub(crate) async fn begin(name: &str) -> Self {
        Self::begin_on(&shared_plane().await, name).await
    }

    pub(crate) async fn begin_on(plane: &Arc<Plane>, name: &str) -> Self {
        let story = Story::begin_on(Arc::clone(plane), name).await;
        let user = User::new();
        let file = user.write("kubeconfig", &kubeconfig(&story, None));
        Self { story, user: user.with("KUBECONFIG", file) }
    }

    pub(crate) fn run(&self, words: &[&str]) -> Told {
        self.user.run(words)
    }

    /// The same as a user without permissions.
    pub(crate) fn run_as_nobody(&self, words: &[&str]) -> Told {
        self.user.write("nobody", &kubeconfig(&self.story, Some("nobody")));
        self.run(&[words, &["--kubeconfig", "nobody"]].concat())
    }

    /// Creates any object in the story's namespace, with a status if it brings one.
    pub(crate) async fn create(&self, object: Value) -> Value {
        let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", object["apiVersion"].as_str().unwrap()),
        };
        let gvk = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.story.client.clone(), &self.story.namespace, &resource);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let status = object.get("status").cloned();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let mut created = api.create(&PostParams::default(), &object).await.unwrap();
        if let Some(status) = status {
            let patch = Patch::Merge(json!({ "status": status }));
            created = api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        }
        serde_json::to_value(created).unwrap()
    }
}

/// The kubeconfig of the story's own server and namespace.
fn kubeconfig(story: &Story, impersonate: Option<&str>) -> String {
    let mut kubeconfig = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    for context in &mut kubeconfig.contexts {
        context.context.as_mut().unwrap().namespace = Some(story.namespace.clone());
    }
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = impersonate.map(str::to_owned);
    serde_json::to_string(&kubeconfig).unwrap()
}

const GET: [&str; 3] = ["get", "kubeconfig", "c"];

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_is_printed_as_it_is() {
    let caller = Caller::begin("get-kubeconfig").await;
    create_kubeconfig(&caller.story, "c", b"text without end").await;
    assert_eq!(caller.run(&GET).only_data(), "text without end\n");
    let namespace = caller.story.namespace.clone();
    assert_eq!(caller.run(&[&GET[..], &["-n", &namespace]].concat()).only_data(), "text without end\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_not_there_is_explained() {
    // A name that no other story uses: other namespaces are looked at as well.
    const LONELY: [&str; 3] = ["get", "kubeconfig", "lonely"];
    let caller = Caller::begin("get-none").await;
    let namespace = caller.story.namespace.clone();
    caller.run(&LONELY).fails(&[
        &format!("there is no Cluster {namespace}/lonely in https://"),
        &format!("hint: namespace {namespace} has no Clusters"),
    ]);
    let manager = caller.story.manager(Which::Core);
    caller.story.create_cluster("lonely", "LocalCluster", "none").await;
    caller.story.until_phase("lonely", "Provisioning", LIMIT).await;
    caller.run(&LONELY).fails(&[
        &format!("Cluster {namespace}/lonely has no kubeconfig yet: there is no Secret {namespace}/lonely-kubeconfig"),
        "its phase is Provisioning, and its infrastructure is not provisioned",
        &format!("hint: what it waits for: capstan explain cluster lonely -n {namespace}"),
    ]);
    manager.stop().await;
    caller.run(&["get", "kubeconfig", "d"]).fails(&[
        &format!("there is no Cluster {namespace}/d in https://"),
        &format!("hint: namespace {namespace} has these: lonely"),
    ]);
    let other = Caller::begin("get-other").await;
    other.run(&LONELY).fails(&[&format!("hint: one of that name is in another namespace: -n {namespace}")]);
    caller.story.create_secret("lonely-kubeconfig", Some("lonely"), &[("kubeconfig", b"x")]).await;
    caller.run(&LONELY).fails(&[
        &format!("Secret {namespace}/lonely-kubeconfig has no key value: it has canary, kubeconfig"),
        &format!("kubectl get secret lonely-kubeconfig -n {namespace} -o yaml"),
    ]);
    caller.run_as_nobody(&LONELY).fails(&[
        &format!("cannot read Secret {namespace}/lonely-kubeconfig in https://"),
        "User \"nobody\"",
        "hint: a kubeconfig is a credential",
    ]);
    caller.run(&["get", "kubeconfig"]).fails(&["<NAME>"]);
    User::new().run(&LONELY).fails(&["no management cluster is named", "--kubeconfig"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_listed_by_namespace_and_label() {
    let caller = Caller::begin("get-clusters").await;
    let other = Caller::begin("get-clusters").await;
    let namespace = caller.story.namespace.clone();
    let nothing = caller.run(&["get", "clusters"]);
    assert!(nothing.err.contains(&format!("no Clusters found in namespace {namespace}")), "{nothing:?}");
    assert_eq!(nothing.data(), "");
    assert_eq!(caller.run(&["get", "clusters", "-o", "json"]).data(), "[]\n");

    install_crds(&caller.story.client, &[generic::crd("ListedPlane", &[("v1beta2", "v1beta2")])], "story")
        .await
        .unwrap();
    let status = json!({
        "phase": "Provisioned",
        "conditions": [{
            "type": "Available", "status": "False", "reason": "NotAvailable", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
        "controlPlane": {"desiredReplicas": 3, "readyReplicas": 2},
        "workers": {"desiredReplicas": 4, "readyReplicas": 4},
    });
    let cluster = |name: &str, labels: Value, spec: Value| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "labels": labels}, "spec": spec,
        })
    };
    let topology = json!({"topology": {"classRef": {"name": "quick"}, "version": "v1.34.1"}});
    let mut talkative = cluster("a", json!({"team": "blue"}), topology);
    talkative["status"] = status;
    caller.create(talkative).await;
    // One that says nothing of itself: its control plane does.
    let spec = json!({"controlPlaneRef": reference("ListedPlane", "plane")});
    caller.create(cluster("b", json!({}), spec)).await;
    caller.story.create_generic("ListedPlane", "plane", json!({"replicas": 1, "version": "v1.33.0"})).await;
    other.story.create_cluster("a", "LocalCluster", "none").await;

    let table = caller.run(&["get", "clusters"]).only_data();
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert_eq!(rows[0][..7], [&namespace, "a", "Provisioned", "False", "2/3", "4/4", "v1.34.1"], "{table}");
    assert_eq!(rows[1][..7], [&namespace, "b", "-", "-", "0/1", "-", "v1.33.0"], "{table}");

    let names = |words: &[&str]| {
        let list: Value = serde_json::from_str(&caller.run(words).data()).unwrap();
        let named =
            |it: &Value| format!("{}/{}", it["namespace"].as_str().unwrap(), it["name"].as_str().unwrap());
        list.as_array().unwrap().iter().map(named).collect::<Vec<_>>()
    };
    let blue = ["get", "clusters", "-A", "-l", "team=blue", "-o", "json"];
    assert_eq!(names(&blue), [format!("{namespace}/a")]);
    assert_eq!(names(&[&blue[..5], &["-o", "yaml", "-o", "json"]].concat()), [format!("{namespace}/a")]);
    let all = names(&["get", "clusters", "--all-namespaces", "-o", "json"]);
    for expected in [format!("{namespace}/a"), format!("{}/a", other.story.namespace)] {
        assert!(all.contains(&expected), "{all:?}");
    }
    assert_eq!(names(&["get", "clusters", "-n", &other.story.namespace, "-o", "json"]).len(), 1);
    let yaml = caller.run(&["get", "clusters", "-o", "yaml"]).data();
    assert!(yaml.contains("controlPlane:\n    desired: 3\n    ready: 2\n"), "{yaml}");
    caller.run(&["get", "clusters", "-l", "a=b=c"]).fails(&["cannot list objects of kind Cluster"]);
    caller.run_as_nobody(&["get", "clusters"]).fails(&["User \"nobody\"", "cluster-admin"]);
}

/// Commands about one Cluster.
const ABOUT_ONE: [[&str; 2]; 3] = [["describe", "cluster"], ["explain", "cluster"], ["get", "kubeconfig"]];

#[tokio::test(flavor = "multi_thread")]
async fn names_that_no_cluster_can_have() {
    let caller = Caller::begin("get-names").await;
    let long = "x".repeat(300);
    for command in ABOUT_ONE {
        caller.run(&[&command[..], &[""]].concat()).fails(&[
            "the name of the Cluster is empty",
            "hint: ",
            "capstan get clusters",
        ]);
        let told =
            caller.run(&[&command[..], &[&long]].concat()).fails(&["has 300 characters", "at most 63"]);
        assert!(!told.contains(&long), "{told:?}");
    }
}

/// A server that has the same answer to every request; gives its address.
fn web_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let page = "<!DOCTYPE html>\n<html><body>Sign in to the network</body></html>";
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            if lines.any(|it| it.is_empty()) {
                let length = page.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}");
                write!(stream, "{head}\r\nConnection: close\r\n\r\n{page}").unwrap();
            }
        }
    });
    url
}

#[test]
fn a_server_that_answers_with_a_web_page() {
    for status in ["200 OK", "302 Found", "403 Forbidden", "404 Not Found", "502 Bad Gateway"] {
        let url = web_server(status);
        let user = User::new();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "users": [{"name": "c", "user": {}}],
        });
        let file = user.write("kubeconfig", &kubeconfig.to_string());
        let user = user.with("KUBECONFIG", file);
        for command in [&ABOUT_ONE[0][..], &ABOUT_ONE[1], &ABOUT_ONE[2], &["get", "clusters"]] {
            let words = if command[1] == "clusters" { command.to_vec() } else { [command, &["c"]].concat() };
            let told = user.run(&words).fails(&[
                &url,
                "the server answered with a web page, not with the Kubernetes API",
                "hint: a login page",
                "--kubeconfig",
            ]);
            assert!(!told.contains("Sign in"), "{status}: {told:?}");
        }
    }
}

/// Machines of a management cluster whose core is older: nothing but v1beta1 is served.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_only_v1beta1_will_do() {
    let plane = Plane::start().await;
    let caller = Caller::begin_on(&plane, "get-old").await;
    caller.run(&["get", "clusters"]).fails(&["knows no kind Cluster", "Cluster API is not installed there"]);
    caller.run(&GET).fails(&["knows no kind Cluster", "hint: name the management cluster"]);
    caller
        .run(&["explain", "cluster", "c"])
        .fails(&["knows no kind Cluster", "hint: name the management cluster"]);
    let old = |kind: &str| {
        let mut crd = generic::core_crd(kind);
        "v1beta1".clone_into(&mut crd.spec.versions[0].name);
        crd
    };
    install_crds(&caller.story.client, &[old("Cluster"), old("MachineDeployment")], "story").await.unwrap();
    let object = |kind: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind,
            "metadata": {"name": "c", "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
            "spec": spec, "status": status,
        })
    };
    let status = json!({
        "phase": "Provisioned", "infrastructureReady": true,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    caller.create(object("Cluster", json!({}), status)).await;
    caller.create(object("MachineDeployment", json!({"replicas": 2}), json!({"readyReplicas": 1}))).await;
    let table = caller.run(&["get", "clusters"]).only_data();
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[1..7], ["c", "Provisioned", "True", "-", "1/2", "-"], "{table}");
    caller.run(&GET).fails(&["has no kubeconfig yet", "its control plane is not initialized"]);
    create_kubeconfig(&caller.story, "c", b"text").await;
    assert_eq!(caller.run(&GET).only_data(), "text\n");
}
