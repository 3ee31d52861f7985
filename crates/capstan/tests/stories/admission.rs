//! Clusters on their way in, through a real API server that asks our webhooks, and hostile callers that ask directly.

use std::sync::Arc;

use capstan_api::{
    cluster::admission::{Address, MUTATE_PATH, VALIDATE_PATH, webhook_configurations},
    crd::Conversion,
};
use capstan_runtime::{
    ObjectKey,
    controller::{Next, Reconciler},
    install::install_webhooks,
    manager::Manager,
    metrics::Metrics,
    options::ManagerOptions,
    queue::Queue,
    tls::OwnCertificate,
};
use capstan_testkit::{Plane, Story, story::reference, wait};
use http::Request;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    client::Body,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

struct Served {
    story: Story,
    base: String,
    ca_pem: String,
    stop: CancellationToken,
    manager: JoinHandle<Result<(), capstan_runtime::manager::ManagerError>>,
}

impl Served {
    /// A control plane whose Clusters are converted by our manager, but not judged yet.
    async fn begin(name: &str) -> Self {
        Self::begin_with(name, |_, _| {}).await
    }

    /// The same with more in the manager.
    async fn begin_with(name: &str, add: impl FnOnce(&mut Manager, &Story)) -> Self {
        let plane = Plane::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let certificate = OwnCertificate::make(&["127.0.0.1"]).unwrap();
        let ca_pem = certificate.ca_pem.clone();
        let url = format!("{base}/convert");
        plane.install(Conversion::Url { url: &url, ca_bundle_pem: ca_pem.as_bytes() }).await;
        let story = Story::begin_on(plane, name).await;
        let stop = CancellationToken::new();
        let options = ManagerOptions::embedded();
        let client = story.client.clone();
        let mut manager = Manager::new(options, client, Metrics::default(), "story", "story", stop.clone());
        manager.serve_webhooks_on(listener, certificate);
        capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
        add(&mut manager, &story);
        let manager = tokio::spawn(manager.run());
        Self { story, base, ca_pem, stop, manager }
    }

    /// Lets the API server ask about Clusters; waits until it does.
    async fn judge(&self) {
        let address = Address::Url { base: &self.base, ca_bundle_pem: self.ca_pem.as_bytes() };
        let (mutating, validating) = webhook_configurations(address);
        install_webhooks(&self.story.client, &mutating, &validating, "story").await.unwrap();
        // The API server hears of its own webhooks by watches, one for each kind.
        let deadline = tokio::time::Instant::now() + wait::LIMIT;
        let network = json!({"clusterNetwork": {"pods": {"cidrBlocks": ["abc"]}}});
        while self.probe(network.clone()).await.is_ok() {
            assert!(tokio::time::Instant::now() < deadline, "never asked whether a Cluster is valid");
        }
        // The one that judges would not have this version; the one that fills in mends it before.
        let topology = json!({"topology": {"classRef": {"name": "cc"}, "version": "1.30.0"}});
        while let Err(refused) = self.probe(topology.clone()).await {
            assert!(tokio::time::Instant::now() < deadline, "never asked to fill in: {refused}");
        }
    }

    /// Asks the API server what it would say to a Cluster; nothing is stored.
    async fn probe(&self, spec: Value) -> Result<Vec<String>, String> {
        self.try_create_with("probe", spec, "?dryRun=All").await
    }

    fn dynamic(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("cluster.x-k8s.io", version, "Cluster");
        let resource = ApiResource::from_gvk_with_plural(&kind, "clusters");
        Api::namespaced_with(self.story.client.clone(), &self.story.namespace, &resource)
    }

    /// Creates a Cluster; gives the warnings, or the server's message.
    async fn try_create(&self, name: &str, spec: Value) -> Result<Vec<String>, String> {
        self.try_create_with(name, spec, "").await
    }

    async fn try_create_with(&self, name: &str, spec: Value, query: &str) -> Result<Vec<String>, String> {
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}, "spec": spec});
        let path =
            format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{}/clusters{query}", self.story.namespace);
        send(&self.story.client, &path, cluster.to_string().into_bytes())
            .await
            .map_err(|(_, message)| message)
    }

    async fn try_patch(&self, name: &str, patch: Value) -> Result<DynamicObject, String> {
        let patched =
            self.dynamic("v1beta2").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_err(|error| error.to_string())
    }

    async fn end(self) {
        self.stop.cancel();
        self.manager.await.unwrap().unwrap();
    }
}

/// Stands for the code of an answer that could not be read.
const CUT_OFF: u16 = 0;

/// Posts JSON; gives the warnings, or the code and message of a failure.
async fn send(client: &Client, path: &str, body: Vec<u8>) -> Result<Vec<String>, (u16, String)> {
    let request =
        Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap();
    let response = client.send(request).await.map_err(|error| (CUT_OFF, error.to_string()))?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect_bytes().await.map_err(|error| (CUT_OFF, error.to_string()))?;
    if !parts.status.is_success() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let message =
            serde_json::from_str::<Value>(&text).ok().and_then(|it| Some(it["message"].as_str()?.to_owned()));
        return Err((parts.status.as_u16(), message.unwrap_or(text)));
    }
    Ok(parts.headers.get_all("warning").iter().map(|it| it.to_str().unwrap().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_judged_on_their_way_in() {
    let served = Served::begin("admission").await;
    let infrastructure = || reference("NoSuchCluster", "ic");
    // Stored before there were rules.
    let broken =
        json!({"infrastructureRef": infrastructure(), "clusterNetwork": {"pods": {"cidrBlocks": ["abc"]}}});
    served.try_create("old", broken.clone()).await.unwrap();
    served.judge().await;

    let long = "x".repeat(64);
    let refused = served.try_create(&long, json!({"infrastructureRef": infrastructure()})).await.unwrap_err();
    let words = "metadata.name: Too long: may not be more than 63 bytes, but is 64";
    assert!(refused.contains(words) && !refused.contains(&long), "{refused}");
    let groupless = json!({"infrastructureRef": {"kind": "NoSuchCluster", "name": "ic"}});
    let refused = served.try_create("groupless", groupless).await.unwrap_err();
    let words = "spec.infrastructureRef.apiGroup: Required value: name the API group of the kind, such as \
                 infrastructure.cluster.x-k8s.io (in v1beta1: apiVersion must have a group";
    assert!(refused.contains(words), "{refused}");
    let refused = served.try_create("cidr", broken).await.unwrap_err();
    for words in [
        "validation.cluster.cluster.x-k8s.io",
        r#"Cluster.cluster.x-k8s.io "cidr" is invalid: spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: "abc""#,
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    let networks = json!({"clusterNetwork": {"pods": {"cidrBlocks": ["abc"]}, "services": {"cidrBlocks": ["10.0.0.0/8", "x"]}}});
    let refused = served.try_create("many", networks).await.unwrap_err();
    assert!(
        refused.contains("pods.cidrBlocks[0]") && refused.contains("services.cidrBlocks[1]"),
        "{refused}"
    );

    // A Cluster may wait for its references; its creator gets a warning.
    let warnings =
        served.try_create("bare", json!({"clusterNetwork": {"apiServerPort": 6443}})).await.unwrap();
    assert!(warnings.iter().any(|it| it.contains("stays Pending until one is set")), "{warnings:?}");
    served.story.until_phase("bare", "Pending", wait::LIMIT).await;

    // References may change, but not go.
    assert_eq!(served.try_create("c", json!({"infrastructureRef": infrastructure()})).await, Ok(Vec::new()));
    served.try_patch("c", json!({"spec": {"infrastructureRef": {"name": "other"}}})).await.unwrap();
    let removal = json!({"spec": {"infrastructureRef": null, "controlPlaneRef": reference("P", "p")}});
    let refused = served.try_patch("c", removal).await.unwrap_err();
    assert!(refused.contains("spec.infrastructureRef: Forbidden: cannot be removed"), "{refused}");
    let topology = json!({"classRef": {"name": "cc"}, "version": "1.30.0"});
    let refused = served.try_patch("c", json!({"spec": { "topology": topology }})).await.unwrap_err();
    assert!(refused.contains("spec.topology.classRef: Forbidden"), "{refused}");

    // Topologies pass through, with a version as Kubernetes writes it.
    served.try_create("t", json!({ "topology": topology })).await.unwrap();
    let stored = served.dynamic("v1beta2").get("t").await.unwrap();
    assert_eq!(stored.data["spec"]["topology"]["version"], "v1.30.0");
    let refused =
        served.try_patch("t", json!({"spec": {"topology": {"version": "v1.29.0"}}})).await.unwrap_err();
    assert!(refused.contains("cannot be decreased from v1.30.0 to v1.29.0"), "{refused}");
    served.try_patch("t", json!({"spec": {"topology": {"version": "1.31.2"}}})).await.unwrap();
    // Whether minors may be skipped is for the ClusterClass to say.
    served.try_patch("t", json!({"spec": {"topology": {"version": "v1.34.0"}}})).await.unwrap();

    // Clients of the older version are judged by the same rules.
    let old_client = served.dynamic("v1beta1");
    let object = |name: &str, block: &str| {
        let spec = json!({"infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "NoSuchCluster", "name": "n"},
            "clusterNetwork": {"pods": {"cidrBlocks": [block]}}});
        let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", "Cluster");
        DynamicObject::new(name, &ApiResource::from_gvk(&kind)).data(json!({ "spec": spec }))
    };
    let refused = old_client.create(&PostParams::default(), &object("v1", "abc")).await.unwrap_err();
    assert!(refused.to_string().contains("pods.cidrBlocks[0]"), "{refused}");
    old_client.create(&PostParams::default(), &object("v1", "10.0.0.0/8")).await.unwrap();
    served.story.until_phase("v1", "Provisioning", wait::LIMIT).await;
    let read = old_client.get("v1").await.unwrap();
    assert_eq!(read.data["status"]["infrastructureReady"], false);
    assert!(read.annotations().contains_key("cluster.x-k8s.io/conversion-data"));
    // Written back as it was read.
    old_client.replace("v1", &PostParams::default(), &read).await.unwrap();
    let new = served.dynamic("v1beta2").get("v1").await.unwrap();
    assert_eq!(new.data["spec"]["paused"], Value::Null);
    assert!(!new.annotations().contains_key("cluster.x-k8s.io/conversion-data"));
    let reference = &new.data["spec"]["infrastructureRef"];
    assert_eq!(
        reference,
        &json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NoSuchCluster", "name": "n"})
    );

    // What was stored before the rules can be worked with: finalizers, status, pausing, deletion.
    wait::until_is(&served.story.clusters(), "old", "held", wait::LIMIT, |it| !it.finalizers().is_empty())
        .await;
    served.try_patch("old", json!({"spec": {"paused": true}})).await.unwrap();
    served.try_patch("old", json!({"spec": {"paused": false}})).await.unwrap();
    let worse = json!({"spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["def"]}}}});
    assert!(served.try_patch("old", worse).await.unwrap_err().contains("\"def\""));
    served.story.clusters().delete("old", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&served.story.clusters(), "old", wait::LIMIT).await;
    served.end().await;
}

/// What v1beta1 can say and v1beta2 cannot: no spec at all, references without group or into other namespaces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_v1beta1_can_be_written_once_it_is_let_in() {
    let served = Served::begin("admission-v1beta1").await;
    served.judge().await;
    let old_client = served.dynamic("v1beta1");
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", "Cluster");
    let object = |name: &str, data: Value| DynamicObject::new(name, &ApiResource::from_gvk(&kind)).data(data);

    old_client.create(&PostParams::default(), &object("bare", json!({}))).await.unwrap();
    served.story.until_phase("bare", "Pending", wait::LIMIT).await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    served.try_patch("bare", labels.clone()).await.unwrap();
    old_client.patch("bare", &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    served.story.clusters().delete("bare", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&served.story.clusters(), "bare", wait::LIMIT).await;

    let group = "infrastructure.cluster.x-k8s.io/v1beta1";
    for (name, reference, words) in [
        (
            "groupless",
            json!({"apiVersion": "v1", "kind": "NoSuchCluster", "name": "n"}),
            "spec.infrastructureRef.apiGroup: Required value: name the API group of the kind",
        ),
        (
            "nameless",
            json!({"apiVersion": group, "kind": "NoSuchCluster"}),
            "spec.infrastructureRef.name: Required value: name the object",
        ),
        (
            "elsewhere",
            json!({"apiVersion": group, "kind": "NoSuchCluster", "name": "n", "namespace": "elsewhere"}),
            "spec.infrastructureRef.namespace: Invalid value: \"elsewhere\": must be the Cluster's own namespace",
        ),
    ] {
        let cluster = object(name, json!({"spec": {"infrastructureRef": reference}}));
        let refused = old_client.create(&PostParams::default(), &cluster).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{name}: {refused}");
    }
    let own = json!({"apiVersion": group, "kind": "NoSuchCluster", "name": "n", "namespace": served.story.namespace});
    let cluster = object("own", json!({"spec": {"infrastructureRef": own}}));
    old_client.create(&PostParams::default(), &cluster).await.unwrap();
    served.story.until_phase("own", "Provisioning", wait::LIMIT).await;
    served.end().await;
}

/// A reconcile that is at work when the manager gets the stop signal, and only then writes its Cluster.
struct HeldReconciler {
    clusters: Api<DynamicObject>,
    begun: CancellationToken,
    end: CancellationToken,
}

impl Reconciler for HeldReconciler {
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        self.begun.cancel();
        self.end.cancelled().await;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"late": "yes"}}}));
        self.clusters.patch(&key.name, &PatchParams::default(), &patch).await?;
        Ok(Next::Settled)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_stops_judges_what_it_still_writes() {
    let (begun, end) = (CancellationToken::new(), CancellationToken::new());
    let served = Served::begin_with("late", |manager, story| {
        let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster");
        let resource = ApiResource::from_gvk_with_plural(&kind, "clusters");
        let clusters = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
        let queue = Arc::new(Queue::default());
        queue.add(ObjectKey::new(&story.namespace, "c"));
        let held = HeldReconciler { clusters, begun: begun.clone(), end: end.clone() };
        manager.controller("late", &queue, Arc::new(held), 1);
    })
    .await;
    served.judge().await;
    served.try_create("c", json!({"infrastructureRef": reference("NoSuchCluster", "ic")})).await.unwrap();
    begun.cancelled().await;
    served.stop.cancel();
    let mut config = Config::new(served.base.parse().unwrap());
    config.accept_invalid_certs = true;
    for _ in 0..20 {
        // A connection of its own each time.
        let client = Client::try_from(config.clone()).unwrap();
        let (code, _) = send(&client, VALIDATE_PATH, Vec::new()).await.unwrap_err();
        assert_eq!(code, 400, "still served");
    }
    end.cancel();
    let clusters = served.dynamic("v1beta2");
    served.manager.await.unwrap().unwrap();
    assert_eq!(clusters.get("c").await.unwrap().labels()["late"], "yes");
    let address = served.base.trim_start_matches("https://");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "not served any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_callers_are_answered_and_turned_away() {
    let served = Served::begin("hostile").await;
    let mut config = Config::new(served.base.parse().unwrap());
    config.accept_invalid_certs = true;
    let client = Client::try_from(config.clone()).unwrap();
    let deep = |depth: usize| format!("{}{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes();
    let review = |request: Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
            .to_string()
            .into_bytes()
    };
    for path in [MUTATE_PATH, VALIDATE_PATH] {
        for (body, code) in [
            (Vec::new(), 400),
            (vec![0; 1024], 400),
            (vec![b'['; 5 << 20], 400),
            (deep(500_000), 400),
            (vec![b'"'; 41 << 20], 413),
            (b"{\"apiVersion\": \"admission.k8s.io/v1beta1\", \"kind\": \"AdmissionReview\"}".to_vec(), 400),
        ] {
            let start: String = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            // A body that is too large may be cut off while it is still being sent, and nothing else can be sent on
            // that connection.
            let client = Client::try_from(config.clone()).unwrap();
            let Err((found, _)) = send(&client, path, body).await else { panic!("{start} was let through") };
            assert!(found == code || (code == 413 && found == CUT_OFF), "{start}: {found}");
        }
        for request in [
            json!({"uid": "u", "operation": "CREATE"}),
            json!({"uid": "u", "operation": "UPDATE", "object": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}}),
            json!({"uid": 7, "operation": {}, "object": []}),
        ] {
            let post = Request::post(path).header("content-type", "application/json");
            let answer = client.request::<Value>(post.body(review(request)).unwrap()).await.unwrap();
            assert_eq!(answer["response"]["allowed"], false);
        }
        let huge = json!({"uid": "u", "operation": "CREATE", "object": {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "n".repeat(1 << 20)},
            "spec": {"topology": "t".repeat(1 << 20), "clusterNetwork": {"pods": {"cidrBlocks": vec!["x"; 1 << 18]}}},
        }});
        let request =
            Request::post(path).header("content-type", "application/json").body(review(huge)).unwrap();
        let answer = client.request_text(request).await.unwrap();
        assert!(answer.len() < 100_000, "{} bytes", answer.len());
    }
    // It still works.
    served.judge().await;
    served.end().await;
}
