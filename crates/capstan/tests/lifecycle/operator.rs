//! Commands in a cluster with the provider operator, which the story plays: it only says in the objects' status what the
//! operator would have done.

use std::{
    collections::BTreeMap,
    fmt::Write,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use capstan_api::{
    operator::{GROUP, VERSION, resource},
    provider::ProviderType::{self, Core, Infrastructure},
};
use capstan_testkit::{
    canary::CANARY,
    fakes::FakeServer,
    gate::{Gate, Passed},
    wait::{self, LIMIT},
};
use futures::StreamExt;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{process::Command, task::JoinHandle};

use crate::{
    estate::{Estate, Release, manifest},
    user::Told,
};

const NAMESPACE: &str = "capstan-operator-system";
const DEPLOYMENT: &str = "capstan-operator-controller-manager";
const INIT: [&str; 4] = ["init", "--operator", "-i", "acme"];
/// The label of what `init --operator` makes of a local configuration.
pub(crate) const INPUT: &str = "management.cluster.x-k8s.io/provider";

/// A cluster behind a gate, and its user.
struct Scene {
    estate: Estate,
    gate: Gate,
}

impl Scene {
    async fn new() -> Self {
        let mut estate = Estate::bare().await;
        let gate = Gate::open(estate.client.clone()).await;
        let kubeconfig = estate.user.write("gate.json", &gate.kubeconfig());
        let user = std::mem::replace(&mut estate.user, crate::user::User::new());
        estate.user = user.with("KUBECONFIG", kubeconfig).with("ACME_TOKEN", CANARY);
        for release in releases("v1.0.0") {
            publish(&estate, &release);
        }
        Self { estate, gate }
    }

    fn client(&self) -> Client {
        self.estate.client.clone()
    }

    async fn run(&self, arguments: &[&str]) -> Told {
        self.gate.count_from_now(None);
        let told: Told = self.spawn(arguments).wait_with_output().await.unwrap().into();
        for text in [&told.out, &told.err] {
            capstan_testkit::canary::assert_not_in(&arguments.join(" "), text);
        }
        told
    }

    async fn succeeds(&self, arguments: &[&str], words: &[&str]) -> String {
        let told = self.run(arguments).await;
        assert_eq!(told.code, Some(0), "{arguments:?}: {told:?}");
        for words in words {
            assert!(
                told.err.contains(words) || told.out.contains(words),
                "{words:?} is missing in:\n{told:?}"
            );
        }
        format!("{}{}", told.out, told.err)
    }

    /// The same without a write.
    async fn only_looks(&self, arguments: &[&str]) -> Told {
        let told = self.run(arguments).await;
        assert_eq!(self.writes(), [], "{arguments:?} wrote:\n{}", told.err);
        told
    }

    fn writes(&self) -> Vec<Passed> {
        self.gate.passed().into_iter().filter(Passed::is_write).collect()
    }

    fn spawn(&self, arguments: &[&str]) -> tokio::process::Child {
        let command = self.estate.user.command(env!("CARGO_BIN_EXE_capstan"), arguments);
        let mut command = Command::from(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().unwrap()
    }

    /// Runs a command and kills it when its write of that number was carried out. Whether it came to that.
    async fn is_killed_at(&self, number: usize, arguments: &[&str]) -> bool {
        self.gate.count_from_now(Some(number));
        let mut child = self.spawn(arguments);
        tokio::select! {
            () = self.gate.stopped() => {
                child.kill().await.unwrap();
                true
            }
            status = child.wait() => {
                assert!(status.unwrap().success(), "it failed by itself before write {number}");
                false
            }
        }
    }

    fn objects(&self, kind: ProviderType, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), namespace, &resource(kind))
    }

    /// All provider objects, as `Kind namespace/name`, with their specs.
    async fn specs(&self) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        for kind in ProviderType::ALL {
            let api: Api<DynamicObject> = Api::all_with(self.client(), &resource(kind));
            let Ok(list) = api.list(&ListParams::default()).await else { continue };
            for object in list {
                let id = format!("{} {}/{}", kind, object.namespace().unwrap(), object.name_any());
                found.insert(id, object.data["spec"].clone());
            }
        }
        found
    }

    async fn set_spec(&self, kind: ProviderType, namespace: &str, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.objects(kind, namespace).patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Plays the kubelet for the operator.
    async fn start_operator_pod(&self) {
        let api: Api<Deployment> = Api::namespaced(self.client(), NAMESPACE);
        let condition = json!({"type": "Available", "status": "True", "reason": "R", "message": "m"});
        let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        api.patch_status(DEPLOYMENT, &PatchParams::default(), &status).await.unwrap();
    }
}

/// The four providers: of contract v1beta1 up to 1.1, and v1beta2 from there on. The infrastructure provider needs a
/// variable.
pub(crate) fn releases(version: &'static str) -> [Release; 4] {
    let series = &[("1.0", "v1beta1"), ("1.1", "v1beta1"), ("1.2", "v1beta2")];
    Release::all(version).map(|it| Release { series, ..it })
}

pub(crate) fn publish(estate: &Estate, release: &Release) {
    let mut components = release.components();
    if release.label == "infrastructure-acme" {
        let deployment = components.iter_mut().find(|it| it["kind"] == "Deployment").unwrap();
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
        container["args"] = json!(["--token=${ACME_TOKEN}", "--region=${ACME_REGION:=here}"]);
    }
    estate.publish_with(release, &components);
}

/// Says in the status of provider objects what an operator would have done.
struct PlayedOperator {
    rules: Arc<Mutex<Rules>>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Rules {
    /// Versions that cannot be installed, and why.
    broken: BTreeMap<String, (String, String)>,
    /// What was done, in order.
    log: Vec<String>,
}

impl PlayedOperator {
    fn start(client: &Client) -> Self {
        let rules: Arc<Mutex<Rules>> = Arc::default();
        let tasks =
            ProviderType::ALL.map(|kind| tokio::spawn(play(client.clone(), kind, Arc::clone(&rules))));
        Self { rules, tasks: tasks.into() }
    }

    fn break_version(&self, version: &str, reason: &str, message: &str) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.broken.insert(version.to_owned(), (reason.to_owned(), message.to_owned()));
    }

    fn mend(&self) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).broken.clear();
    }

    /// What was done since the last call.
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.rules.lock().unwrap_or_else(PoisonError::into_inner).log)
    }
}

impl Drop for PlayedOperator {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn play(client: Client, kind: ProviderType, rules: Arc<Mutex<Rules>>) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
    let events = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Ok(object) = event else { continue };
        let Some(status) = act(kind, &object, &rules) else { continue };
        let namespace = object.namespace().unwrap();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource(kind));
        let patch = Patch::Merge(json!({"status": status}));
        // An object may be gone, or may have changed.
        let _ = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await;
    }
}

/// The status that an object gets, if it has another.
fn act(kind: ProviderType, object: &DynamicObject, rules: &Mutex<Rules>) -> Option<Value> {
    let generation = object.metadata.generation;
    let is_seen = object.data["status"]["observedGeneration"].as_i64() == generation;
    if is_seen || object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut rules = rules.lock().unwrap_or_else(PoisonError::into_inner);
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let version = spec["version"].as_str().unwrap_or_default().to_owned();
    let is_paused = spec["paused"] == true;
    let label = kind.label(&object.name_any());
    let before = status["conditions"].as_array().into_iter().flatten();
    let was_paused = before.clone().any(|it| it["type"] == "Paused" && it["status"] == "True");
    if was_paused != is_paused {
        rules.log.push(format!("{} {label}", if is_paused { "pause" } else { "unpause" }));
    }
    let condition = |name: &str, is_true: bool, reason: &str, message: &str| {
        json!({"type": name, "status": if is_true { "True" } else { "False" }, "reason": reason,
               "message": message, "observedGeneration": generation,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let installed_version = status["installedVersion"].as_str();
    let installed = condition("ProviderInstalled", true, "ProviderInstalled", "");
    let mut conditions =
        vec![condition("PreflightCheckPassed", true, "PreflightChecksPassed", "All preflight checks passed")];
    // A provider that runs has no such condition.
    if is_paused {
        conditions.push(condition("Paused", true, "Paused", "The provider's Deployments are scaled to 0"));
    }
    if let Some((reason, message)) = rules.broken.get(&version) {
        if installed_version.is_some() {
            conditions.extend([installed, condition("ProviderUpgraded", false, reason, message)]);
        } else {
            conditions.push(condition("ProviderInstalled", false, reason, message));
        }
        conditions.push(condition("Ready", false, reason, message));
        return Some(json!({"observedGeneration": generation, "conditions": conditions}));
    }
    if installed_version != Some(version.as_str()) {
        rules.log.push(format!("{label} {version}"));
    }
    let was_upgraded = before.clone().any(|it| it["type"] == "ProviderUpgraded" && it["status"] == "True");
    if was_upgraded || installed_version.is_some_and(|it| it != version) {
        conditions.push(condition("ProviderUpgraded", true, "ProviderUpgraded", ""));
    }
    let contract = if version.starts_with("v1.2") { "v1beta2" } else { "v1beta1" };
    let reason = if is_paused { "Paused" } else { "DeploymentAvailable" };
    conditions.extend([installed, condition("Ready", !is_paused, reason, "")]);
    Some(json!({"observedGeneration": generation, "installedVersion": version, "contract": contract,
                "conditions": conditions}))
}

#[tokio::test]
async fn flags_that_make_no_sense_are_refused_by_name() {
    let user = crate::user::User::new();
    for (flags, words) in [
        (&["--watching-namespace", "team"][..], "--watching-namespace cannot be used with --operator"),
        (&["--validate=false"], "--validate=false cannot be used with --operator"),
        (&["--rbac-prefix=false"], "--rbac-prefix=false cannot be used with --operator"),
    ] {
        user.run(&[&["init", "--operator"], flags].concat()).fails(&[words, "leave it out"]);
    }
    user.run(&["init", "--operator-image", "x"]).fails(&["--operator"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_and_objects_are_installed_once() {
    let scene = Scene::new().await;
    shown_before(&scene).await;
    // What nothing in the cluster can read comes in ConfigMaps, and what the components ask for in Secrets.
    scene
        .succeeds(
            &INIT,
            &[
                "installing the provider operator v",
                "installing cert-manager v1.2.3",
                "created InfrastructureProvider acme-system/acme for v1.0.0, from a ConfigMap",
                "created CoreProvider capi-system/cluster-api for v1.0.0",
                "the operator installs the providers",
            ],
        )
        .await;
    let specs = scene.specs().await;
    let selector = |label: &str| json!({"selector": {"matchLabels": {INPUT: label}}});
    let expected = BTreeMap::from([
        (
            "CoreProvider capi-system/cluster-api".to_owned(),
            json!({"version": "v1.0.0", "fetchConfig": selector("cluster-api")}),
        ),
        (
            "BootstrapProvider capi-kubeadm-bootstrap-system/kubeadm".to_owned(),
            json!({"version": "v1.0.0", "fetchConfig": selector("bootstrap-kubeadm")}),
        ),
        (
            "ControlPlaneProvider capi-kubeadm-control-plane-system/kubeadm".to_owned(),
            json!({"version": "v1.0.0", "fetchConfig": selector("control-plane-kubeadm")}),
        ),
        (
            "InfrastructureProvider acme-system/acme".to_owned(),
            json!({"version": "v1.0.0", "fetchConfig": selector("infrastructure-acme"),
                   "secretName": "infrastructure-acme-variables"}),
        ),
    ]);
    assert_eq!(specs, expected);
    let secrets: Api<Secret> = Api::namespaced(scene.client(), "acme-system");
    let secret = secrets.get("infrastructure-acme-variables").await.unwrap().data.unwrap();
    let texts: BTreeMap<_, _> =
        secret.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect();
    assert_eq!(texts, BTreeMap::from([("ACME_TOKEN".to_owned(), CANARY.to_owned())]), "and nothing else");
    let maps: Api<ConfigMap> = Api::namespaced(scene.client(), "acme-system");
    let map = maps.get("infrastructure-acme-v1.0.0").await.unwrap().data.unwrap();
    assert!(map["components"].contains("${ACME_TOKEN}") && map["metadata"].contains("releaseSeries"));
    scene.only_looks(&INIT).await.data();

    refused_behind_its_back(&scene).await;
    waited_for(&scene).await;
    completed(&scene).await;
}

async fn shown_before(scene: &Scene) {
    let shown = scene.only_looks(&[&INIT[..], &["--dry-run", "-o", "json"]].concat()).await.data();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let parts: Vec<_> = shown["providers"].as_array().unwrap().iter().map(|it| &it["provider"]).collect();
    let all = [
        "capstan-operator",
        "cert-manager",
        "cluster-api",
        "bootstrap-kubeadm",
        "control-plane-kubeadm",
        "infrastructure-acme",
    ];
    assert_eq!(parts, all);
    let text = scene.only_looks(&[&INIT[..], &["--dry-run", "--diff"]].concat()).await.data();
    for words in ["+kind: InfrastructureProvider", "+  secretName: infrastructure-acme-variables", "(hidden)"]
    {
        assert!(text.contains(words), "{words} is missing in:\n{text}");
    }
    let words = ["init", "--operator", "-i", "nonsense", "--ipam", "none"];
    scene.only_looks(&words).await.fails(&["2 problems were found", "nonsense"]);
    let images = scene.only_looks(&["init", "list-images", "--operator", "-i", "acme"]).await;
    assert!(images.data().contains("capstan-io/capstan:v"));
}

/// Commands without the operator do nothing behind its back.
async fn refused_behind_its_back(scene: &Scene) {
    let told = scene.only_looks(&["init", "-i", "acme:v1.0.0"]).await;
    told.fails(&[
        "the provider operator manages the providers of this cluster: CoreProvider capi-system/cluster-api",
        "init --operator --infrastructure acme:v1.0.0",
    ]);
    let told = scene.only_looks(&["delete", "-i", "acme"]).await;
    told.fails(&[
        "infrastructure-acme is managed by the provider operator: InfrastructureProvider acme-system/acme",
        "kubectl delete infrastructureprovider acme -n acme-system",
    ]);
    for (flags, words) in [
        (
            &["-i", "acme:v1.1.0"][..],
            &["asks for v1.0.0, not for v1.1.0", "upgrade apply --infrastructure acme-system/acme:v1.1.0"][..],
        ),
        (&["-i", "acme", "-n", "x"], &["would not install a second one in namespace x"]),
    ] {
        let words = [words, &["nothing was changed"]].concat();
        scene.only_looks(&[&["init", "--operator"], flags].concat()).await.fails(&words);
    }
    let told = scene.only_looks(&["upgrade", "apply", "-i", "acme:v1.1.0"]).await;
    told.fails(&[
        "InfrastructureProvider acme-system/acme is not installed yet",
        "the operator has not acted",
    ]);
}

async fn waited_for(scene: &Scene) {
    let wait = ["init", "--operator", "--wait-providers", "--wait-provider-timeout"];
    let told = scene.run(&[&wait[..], &["1"]].concat()).await;
    told.fails(&["the provider operator does not run after 1 s", "Deployment capstan-operator-system/"]);
    scene.start_operator_pod().await;
    let told = scene.run(&[&wait[..], &["1"]].concat()).await;
    told.fails(&["4 providers are not ready", "CoreProvider capi-system/cluster-api: the operator has not"]);
    let operator = PlayedOperator::start(&scene.estate.client);
    scene
        .succeeds(&[&wait[..], &["30"]].concat(), &["the provider operator runs", "all providers run"])
        .await;
    let mut log = operator.log();
    log.sort();
    assert_eq!(
        log,
        [
            "bootstrap-kubeadm v1.0.0",
            "cluster-api v1.0.0",
            "control-plane-kubeadm v1.0.0",
            "infrastructure-acme v1.0.0"
        ]
    );
}

/// A part of the operator that is missing is brought back, and a newer or older one is not used.
async fn completed(scene: &Scene) {
    let crds: Api<CustomResourceDefinition> = Api::all(scene.client());
    crds.delete("addonproviders.management.cluster.x-k8s.io", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&crds, "addonproviders.management.cluster.x-k8s.io", LIMIT).await;
    scene.succeeds(&["init", "--operator"], &["completing the provider operator"]).await;
    let deployments: Api<Deployment> = Api::namespaced(scene.client(), NAMESPACE);
    let set = async |version: &str| {
        let label = Patch::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/version": version}}}));
        deployments.patch(DEPLOYMENT, &PatchParams::default(), &label).await.unwrap();
    };
    set("v99.0.0").await;
    let words = ["the provider operator is v99.0.0", "same minor version"];
    scene.only_looks(&["init", "--operator", "--addon", "acme"]).await.fails(&words);
    let words = ["v99.0.0, which is newer than this program", "nothing was changed"];
    scene.only_looks(&["upgrade", "operator"]).await.fails(&words);
    set("v0.0.1").await;
    scene.only_looks(&["init", "--operator", "--addon", "acme"]).await.fails(&["capstan upgrade operator"]);
}

/// A cluster whose four providers are installed by the played operator.
async fn furnished() -> (Scene, PlayedOperator) {
    let scene = Scene::new().await;
    scene.succeeds(&INIT, &[]).await;
    scene.start_operator_pod().await;
    let operator = PlayedOperator::start(&scene.estate.client);
    let wait = ["init", "--operator", "--wait-providers"];
    scene.succeeds(&wait, &["all providers run"]).await;
    operator.log();
    (scene, operator)
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_image_overrides_of_the_configuration_go_with_the_provider() {
    let mut scene = Scene::new().await;
    let server = FakeServer::start().await;
    let [.., acme] = releases("v1.0.0");
    let (metadata, components) = (acme.metadata().to_string(), manifest(&acme.components()));
    let files = [("metadata.yaml", metadata.as_str()), ("infrastructure-components.yaml", &components)];
    server.github("o/r", |it| {
        it.release("v1.0.0", &files);
    });
    server.go_module("127.0.0.1/o/r", &["v1.0.0"]);
    let url = server.url("/o/r/releases/latest/infrastructure-components.yaml");
    let authority = scene.estate.user.write("ca.pem", server.ca_pem());
    let user = std::mem::replace(&mut scene.estate.user, crate::user::User::new());
    scene.estate.user = user.with("SSL_CERT_FILE", authority).with("GOPROXY", server.url(""));
    let mut config = scene.estate.configuration();
    let providers = config["providers"].as_array_mut().unwrap();
    providers.iter_mut().find(|it| it["name"] == "acme").unwrap()["url"] = json!(url);
    config["images"] =
        json!({"all": {"repository": "mirror.example.com"}, "infrastructure-other": {"tag": "v9"}});
    scene.estate.user.configure(&config);
    let created = format!("created InfrastructureProvider acme-system/acme for v1.0.0, from {url}");
    scene.succeeds(&INIT, &[&created]).await;
    let specs = scene.specs().await;
    let spec = &specs["InfrastructureProvider acme-system/acme"];
    assert_eq!(spec["fetchConfig"], json!({"url": url}));
    let secrets: Api<Secret> = Api::namespaced(scene.client(), "acme-system");
    let secret = secrets.get(spec["secretName"].as_str().unwrap()).await.unwrap().data.unwrap();
    assert_eq!(secret.keys().collect::<Vec<_>>(), ["images"]);
    assert_eq!(secret["images"].0, b"all:\n  repository: mirror.example.com\n");
    let deployments: Api<Deployment> = Api::namespaced(scene.client(), NAMESPACE);
    let pod = deployments.get(DEPLOYMENT).await.unwrap().spec.unwrap().template.spec.unwrap();
    assert!(pod.containers[0].image.as_ref().unwrap().starts_with("mirror.example.com/capstan:v"));
}

/// A variable that is not set here may be in a Secret that its user made.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_users_counts() {
    let mut scene = Scene::new().await;
    let user = std::mem::replace(&mut scene.estate.user, crate::user::User::new());
    scene.estate.user = user.without("ACME_TOKEN");
    let words = ["cannot install: 1 problem was found", "no value is set for 1 variable", "ACME_TOKEN"];
    scene.only_looks(&INIT).await.fails(&words);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme-system"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"ACME_TOKEN": CANARY},
                        "metadata": {"name": "infrastructure-acme-variables", "namespace": "acme-system"}});
    scene.estate.create_by_hand(&[namespace, secret]).await;
    scene.estate.user.configure(&scene.estate.configuration());
    scene.succeeds(&INIT, &["created InfrastructureProvider acme-system/acme"]).await;
    let specs = scene.specs().await;
    assert_eq!(
        specs["InfrastructureProvider acme-system/acme"]["secretName"],
        "infrastructure-acme-variables"
    );
    let secrets: Api<Secret> = Api::namespaced(scene.client(), "acme-system");
    let found = secrets.get("infrastructure-acme-variables").await.unwrap();
    assert!(found.metadata.labels.is_none() && found.data.unwrap()["ACME_TOKEN"].0 == CANARY.as_bytes());
}

/// A user's Secret is neither overwritten nor deleted, though a variable is set here as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_users_stays_theirs() {
    let mut scene = Scene::new().await;
    let user = std::mem::replace(&mut scene.estate.user, crate::user::User::new());
    scene.estate.user = user.with("ACME_TOKEN", "another").with("ACME_REGION", "there");
    scene.estate.user.configure(&scene.estate.configuration());
    for release in releases("v1.0.0") {
        publish(&scene.estate, &release);
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme-system"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"ACME_TOKEN": CANARY},
                        "metadata": {"name": "infrastructure-acme-variables", "namespace": "acme-system"}});
    scene.estate.create_by_hand(&[namespace, secret]).await;
    scene.succeeds(&INIT, &["infrastructure-acme-variables keeps its own values of ACME_TOKEN"]).await;
    let secrets: Api<Secret> = Api::namespaced(scene.client(), "acme-system");
    let found = secrets.get("infrastructure-acme-variables").await.unwrap();
    assert_eq!(found.metadata.labels, None);
    let data = found.data.unwrap();
    assert_eq!(data["ACME_TOKEN"].0, CANARY.as_bytes());
    assert_eq!(data["ACME_REGION"].0, b"there");

    scene.start_operator_pod().await;
    let _operator = PlayedOperator::start(&scene.estate.client);
    scene.succeeds(&["init", "--operator", "--wait-providers"], &["all providers run"]).await;
    scene.succeeds(&["delete", "--all", "--force"], &["deleted the provider operator"]).await;
    let found = secrets.get_opt("infrastructure-acme-variables").await.unwrap();
    assert!(found.is_some(), "it is the user's");
}

/// Upstream's operator carries the same label of clusterctl's. It is neither taken for ours nor touched.
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_operator_is_not_ours() {
    let scene = Scene::new().await;
    let labels = json!({"clusterctl.cluster.x-k8s.io/core": "capi-operator"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-operator-system"}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
                      "metadata": {"name": "capi-operator-manager-role", "labels": labels}});
    let pod = json!({"metadata": {"labels": {"app": "x"}},
                     "spec": {"containers": [{"name": "manager", "image": "r.example.com/upstream:v0.28.0"}]}});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "capi-operator-controller-manager", "namespace": "capi-operator-system",
                     "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": pod},
    });
    scene.estate.create_by_hand(&[namespace, role, deployment]).await;
    scene.only_looks(&["upgrade", "operator"]).await.fails(&["the provider operator is not installed"]);
    let told = scene.only_looks(&INIT).await;
    told.fails(&[
        "upstream's provider operator runs in this cluster: Deployment capi-operator-system/capi-operator-",
        "nothing was changed",
        "kubectl scale deployment capi-operator-controller-manager -n capi-operator-system --replicas=0",
    ]);
    // Stopped, it is no obstacle, and it stays as it is.
    let deployments: Api<Deployment> = Api::namespaced(scene.client(), "capi-operator-system");
    let stop = Patch::Merge(json!({"spec": {"replicas": 0}}));
    let name = "capi-operator-controller-manager";
    let stopped = deployments.patch(name, &PatchParams::default(), &stop).await.unwrap();
    scene.succeeds(&INIT, &["installed the provider operator"]).await;
    scene.succeeds(&["upgrade", "operator"], &[]).await;
    let now = deployments.get(name).await.unwrap();
    assert_eq!(now.metadata.resource_version, stopped.metadata.resource_version);
    let roles: Api<ClusterRole> = Api::all(scene.client());
    assert!(roles.get_opt("capi-operator-manager-role").await.unwrap().is_some());
}

/// What only an edit ends is reported at once: the limit is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_right_is_not_waited_for() {
    let (scene, operator) = furnished().await;
    for release in releases("v1.1.0") {
        publish(&scene.estate, &release);
    }
    for reason in ["InvalidSpec", "IncorrectProviderName"] {
        operator.break_version("v1.1.0", reason, "it cannot be right");
        let begin = Instant::now();
        let told = scene.run(&["upgrade", "apply", "-i", "acme:v1.1.0"]).await;
        told.fails(&[reason, "it cannot be right"]);
        assert!(begin.elapsed() < LIMIT, "{reason}: {:?}", begin.elapsed());
        let back = json!({"version": "v1.0.0"});
        scene.set_spec(Infrastructure, "acme-system", "acme", back).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_written_into_objects_and_the_operator_is_awaited() {
    let (scene, operator) = furnished().await;
    for release in releases("v1.1.0") {
        publish(&scene.estate, &release);
    }
    let plan = scene.only_looks(&["upgrade", "plan"]).await.data();
    for words in [
        "The provider operator is already up to date",
        "MANAGED BY",
        "InfrastructureProvider acme-system/acme",
        "upgrade apply --contract v1beta1",
    ] {
        assert!(plan.contains(words), "{words} is missing in:\n{plan}");
    }
    let plan = scene.only_looks(&["upgrade", "plan", "-o", "json"]).await.data();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["operator"]["shouldUpgrade"], false);
    let providers = plan["plans"][0]["providers"].as_array().unwrap();
    let acme = providers.iter().find(|it| it["name"] == "infrastructure-acme").unwrap();
    assert_eq!((&acme["nextVersion"], &acme["managedBy"]["name"]), (&json!("v1.1.0"), &json!("acme")));

    let apply = ["upgrade", "apply", "--contract", "v1beta1"];
    let shown = scene.only_looks(&[&apply[..], &["--dry-run", "--diff"]].concat()).await.data();
    for words in [
        "-  version: v1.0.0",
        "+  version: v1.1.0",
        "create ConfigMap acme-system/infrastructure-acme-v1.1.0",
    ] {
        assert!(shown.contains(words), "{words} is missing in:\n{shown}");
    }
    scene
        .succeeds(
            &[&apply[..], &["--wait-providers"]].concat(),
            &["upgraded cluster-api v1.0.0 → v1.1.0", "all providers run"],
        )
        .await;
    let all = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-acme"];
    assert_eq!(operator.log(), all.map(|it| format!("{it} v1.1.0")), "one after the other, core first");
    let told = scene.only_looks(&["upgrade", "apply", "-i", "acme:v1.1.0"]).await;
    assert!(told.err.contains("infrastructure-acme is at v1.1.0 already"), "{told:?}");
    let maps: Api<ConfigMap> = Api::namespaced(scene.client(), "acme-system");
    maps.get("infrastructure-acme-v1.1.0").await.expect("the operator needs it");

    trouble(&scene, &operator).await;
}

/// What the operator says is passed on, and can be mended or taken back.
async fn trouble(scene: &Scene, operator: &PlayedOperator) {
    for release in Release::all("v1.1.1").map(|it| Release { series: releases("v1.1.1")[0].series, ..it }) {
        publish(&scene.estate, &release);
    }
    operator.break_version("v1.1.1", "FetchConfigValidationError", "no release");
    let apply = ["upgrade", "apply", "-i", "acme:v1.1.1"];
    let told = scene.run(&apply).await;
    told.fails(&[
        "the operator cannot upgrade InfrastructureProvider acme-system/acme: FetchConfigValidationError: no release",
        "the same command continues from here",
    ]);
    // The way back.
    scene.succeeds(&["upgrade", "apply", "-i", "acme:v1.1.0"], &[]).await;
    operator.break_version("v1.1.1", "InstallFailed", "it is late");
    let told = scene.run(&[&apply[..], &["--wait-provider-timeout", "1"]].concat()).await;
    told.fails(&["the operator is not done with an object after 1 s", "InstallFailed: it is late"]);
    operator.mend();
    // The operator tries again by itself; this one has to be asked.
    scene.set_spec(Infrastructure, "acme-system", "acme", json!({"manager": {"verbosity": 1}})).await;
    scene.succeeds(&apply, &["is at v1.1.1"]).await;
    let told = scene.only_looks(&["upgrade", "apply", "-i", "acme:v1.0.0"]).await;
    told.fails(&["v1.0.0 is older than v1.1.1", "--allow-downgrade"]);
    let told = scene.only_looks(&["upgrade", "apply", "-i", "acme:v1.0.0", "--allow-downgrade"]).await;
    told.fails(&["the operator goes back within a minor version only"]);
    let words = ["upgrade", "apply", "-i", "acme:v1.1.0", "--allow-downgrade"];
    scene.succeeds(&words, &["acme is at v1.1.0"]).await;
    let told = scene.only_looks(&["upgrade", "apply", "-i", "acme:v1.1.1", "--reapply"]).await;
    told.fails(&["--reapply cannot be used where the operator manages providers"]);
    operator.log();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_contract_pauses_everything_and_can_be_killed_at_any_write() {
    let (scene, operator) = furnished().await;
    for release in releases("v1.2.0") {
        publish(&scene.estate, &release);
    }
    let told = scene.only_looks(&["upgrade", "apply", "--core", "cluster-api:v1.2.0"]).await;
    told.fails(&["3 problems were found", "acme would stay on contract v1beta1", "nothing was changed"]);
    let apply = ["upgrade", "apply", "--contract", "v1beta2"];
    let shown = scene.only_looks(&[&apply[..], &["--dry-run"]].concat()).await.data();
    assert!(shown.contains("all providers are paused first"), "{shown}");

    // What its user paused stays paused.
    scene.set_spec(Infrastructure, "acme-system", "acme", json!({"paused": true})).await;
    scene.succeeds(&apply, &["pausing CoreProvider", "unpausing CoreProvider", "upgraded cluster-api"]).await;
    let writes = scene.writes().len();
    let labels = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"];
    let mut log = operator.log();
    assert_eq!(log.remove(0), "pause infrastructure-acme");
    let mut pauses: Vec<_> = log.drain(..3).collect();
    pauses.sort();
    let sorted = |what: &str| {
        let mut all = labels.map(|it| format!("{what} {it}"));
        all.sort();
        all
    };
    assert_eq!(pauses, sorted("pause"));
    let versions: Vec<_> = log.drain(..4).collect();
    assert_eq!(versions[..3], labels.map(|it| format!("{it} v1.2.0")));
    assert_eq!(versions[3], "infrastructure-acme v1.2.0");
    log.sort();
    assert_eq!(log, sorted("unpause"), "but not what its user paused");
    let undisturbed = scene.specs().await;
    assert_eq!(undisturbed["InfrastructureProvider acme-system/acme"]["paused"], true);

    assert!(writes >= 14, "{writes}");
    for number in 1..=writes {
        reset(&scene).await;
        if scene.is_killed_at(number, &apply).await {
            scene.succeeds(&apply, &[]).await;
        }
        assert_eq!(scene.specs().await, undisturbed, "killed at write {number}");
        for object in scene.objects(Core, "capi-system").list(&ListParams::default()).await.unwrap() {
            assert_eq!(object.annotations().get("capstan.dev/paused-for-upgrade"), None);
        }
    }
}

/// Back to the state before the contract upgrade.
async fn reset(scene: &Scene) {
    let maps: Api<ConfigMap> = Api::all(scene.client());
    let selector = format!("{INPUT},provider.cluster.x-k8s.io/version=v1.2.0");
    for map in maps.list(&ListParams::default().labels(&selector)).await.unwrap() {
        let maps: Api<ConfigMap> = Api::namespaced(scene.client(), &map.namespace().unwrap());
        maps.delete(&map.name_any(), &DeleteParams::default()).await.unwrap();
    }
    for kind in ProviderType::ALL {
        let api: Api<DynamicObject> = Api::all_with(scene.client(), &resource(kind));
        for object in api.list(&ListParams::default()).await.unwrap() {
            let (namespace, name) = (object.namespace().unwrap(), object.name_any());
            scene.set_spec(kind, &namespace, &name, json!({"version": "v1.0.0"})).await;
            let api = scene.objects(kind, &namespace);
            let is_back = |it: &DynamicObject| {
                let status = &it.data["status"];
                status["installedVersion"] == "v1.0.0"
                    && status["observedGeneration"].as_i64() == it.metadata.generation
            };
            wait::until_is(&api, &name, "back", LIMIT, is_back).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_without_objects_go_their_own_way() {
    let scene = Scene::new().await;
    // Installed by the command alone, before there was an operator.
    scene.succeeds(&["init", "-i", "acme"], &[]).await;
    let words = ["init", "--operator", "--core", "cluster-api", "--bootstrap", "-", "--control-plane", "-"];
    scene.succeeds(&words, &["created CoreProvider capi-system/cluster-api for v1.0.0", "takes over"]).await;
    scene.start_operator_pod().await;
    let operator = PlayedOperator::start(&scene.estate.client);
    scene.succeeds(&["init", "--operator", "--wait-providers"], &["all providers run"]).await;
    for version in ["v1.1.0", "v1.2.0"] {
        for release in releases(version) {
            publish(&scene.estate, &release);
        }
    }
    let told = scene.only_looks(&["upgrade", "apply", "--contract", "v1beta1"]).await;
    told.fails(&[
        "the provider operator manages cluster-api, but not bootstrap-kubeadm",
        "init --operator --bootstrap kubeadm",
    ]);
    let words = ["upgrade", "apply", "--core", "cluster-api:v1.2.0"];
    scene.only_looks(&words).await.fails(&["cannot be paused by the operator"]);
    scene.succeeds(&["upgrade", "apply", "-i", "acme:v1.1.0"], &["infrastructure-acme is at v1.1.0"]).await;
    scene
        .succeeds(&["upgrade", "apply", "--core", "cluster-api:v1.1.0"], &["cluster-api is at v1.1.0"])
        .await;
    assert_eq!(operator.log(), ["cluster-api v1.0.0", "cluster-api v1.1.0"]);
    // What is there is taken over as it is.
    scene.only_looks(&["init", "--operator", "-i", "acme:v1.2.0"]).await.fails(&["takes it over as it is"]);
    scene.succeeds(&["init", "--operator", "-i", "acme"], &["acme-system/acme for v1.1.0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_is_upgraded_and_pruned() {
    let scene = Scene::new().await;
    scene.only_looks(&["upgrade", "operator"]).await.fails(&["is not installed", "init --operator"]);
    scene.succeeds(&["init", "--operator"], &[]).await;
    let deployments: Api<Deployment> = Api::namespaced(scene.client(), NAMESPACE);
    let old = Patch::Merge(json!({
        "metadata": {"labels": {"app.kubernetes.io/version": "v0.0.1"}},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "r.example.com/old:v0.0.1"}]}}},
    }));
    deployments.patch(DEPLOYMENT, &PatchParams::default(), &old).await.unwrap();
    let labels = json!({"clusterctl.cluster.x-k8s.io/core": "capi-operator",
                        "app.kubernetes.io/name": "capstan-operator"});
    let map = |name: &str, namespace: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": name, "namespace": namespace, "labels": labels}})
    };
    let mut secret = map("certificate", NAMESPACE);
    secret["kind"] = json!("Secret");
    // A user's copy elsewhere is the user's.
    scene.estate.create_by_hand(&[map("old", NAMESPACE), map("copy", "default"), secret]).await;
    let plan = scene.only_looks(&["upgrade", "plan"]).await;
    plan.fails(&["no providers are installed"]);
    let shown = scene.only_looks(&["upgrade", "operator", "--dry-run"]).await.data();
    assert!(shown.contains("r.example.com/old:v0.0.1 -> ghcr.io/capstan-io/capstan:v"), "{shown}");
    let mut config = scene.estate.configuration();
    config["images"] = json!({"capstan-operator": {"repository": "mirror.example.com/x"}});
    scene.estate.user.configure(&config);
    let words = [
        "upgrading the provider operator from v0.0.1 to v",
        "deleting ConfigMap capstan-operator-system/old",
    ];
    scene.succeeds(&["upgrade", "operator"], &words).await;
    let image = async || {
        let found = deployments.get(DEPLOYMENT).await.unwrap();
        found.spec.unwrap().template.spec.unwrap().containers[0].image.clone().unwrap()
    };
    assert!(image().await.starts_with("mirror.example.com/x/capstan:v"), "{}", image().await);
    let maps = |namespace: &str| -> Api<ConfigMap> { Api::namespaced(scene.client(), namespace) };
    assert!(maps(NAMESPACE).get_opt("old").await.unwrap().is_none());
    assert!(maps("default").get_opt("copy").await.unwrap().is_some());
    let secrets: Api<Secret> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(secrets.get_opt("certificate").await.unwrap().is_some(), "the operator made it");
    let again =
        ["upgrade", "operator", "--operator-image", "r.example.com/own:v1", "--wait", "--wait-timeout", "1"];
    scene.run(&again).await.fails(&["the provider operator does not run after 1 s"]);
    assert_eq!(image().await, "r.example.com/own:v1");
    scene.start_operator_pod().await;
    scene.succeeds(&again, &["already; applying it again", "the provider operator runs"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_deleted_and_the_operator_last() {
    let (scene, _operator) = furnished().await;
    let shown = scene.only_looks(&["delete", "--all", "--dry-run"]).await.data();
    for words in ["provider objects: 4 deleted", "capstan-operator: 10 deleted", "--include-crd deletes it"] {
        assert!(shown.contains(words), "{words} is missing in:\n{shown}");
    }
    // The operator holds what is used.
    let acme = scene.objects(Infrastructure, "acme-system");
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["provider.cluster.x-k8s.io"]}}));
    acme.patch("acme", &PatchParams::default(), &hold).await.unwrap();
    let blocked = json!({"type": "DeletionBlocked", "status": "True", "reason": "ProviderInUse",
                         "message": "Cluster team/prod", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Merge(json!({"status": {"conditions": [blocked]}}));
    acme.patch_status("acme", &PatchParams::default(), &status).await.unwrap();
    let told = scene.run(&["delete", "--all"]).await;
    told.fails(&["InfrastructureProvider acme-system/acme: ProviderInUse: Cluster team/prod", "--force"]);
    assert_eq!(scene.specs().await.len(), 2, "core is still there");
    let client = scene.client();
    let release = tokio::spawn(async move {
        let acme: Api<DynamicObject> = Api::namespaced_with(client, "acme-system", &resource(Infrastructure));
        let is_forced = |it: &DynamicObject| {
            it.annotations().get("management.cluster.x-k8s.io/force-delete").is_some_and(|it| it == "true")
        };
        wait::until_is(&acme, "acme", "forced", LIMIT, is_forced).await;
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        acme.patch("acme", &PatchParams::default(), &release).await.unwrap();
    });
    let words = [
        "deleted all provider objects",
        "deleting the provider operator: 10 objects",
        "stays: --include-crd",
    ];
    let told = scene.succeeds(&["delete", "--all", "--force"], &words).await;
    release.await.unwrap();
    assert!(told.find("deleting CoreProvider") < told.find("deleting the provider operator"), "{told}");
    assert!(scene.specs().await.is_empty());
    let secrets: Api<Secret> = Api::all(scene.client());
    let inputs = ListParams::default().labels(INPUT);
    assert!(secrets.list(&inputs).await.unwrap().items.is_empty(), "credentials do not stay");
    let deployments: Api<Deployment> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(deployments.get_opt(DEPLOYMENT).await.unwrap().is_none());
    scene
        .succeeds(&["delete", "--all", "--include-crd"], &["deleting the provider operator: 7 objects"])
        .await;
    let crds: Api<CustomResourceDefinition> = Api::all(scene.client());
    let core = format!("coreproviders.{GROUP}");
    wait::until_gone(&crds, &core, LIMIT).await;
    scene.only_looks(&["delete", "--all"]).await.data();
    // And again from the beginning, in the namespaces that are left.
    scene.succeeds(&INIT, &["created CoreProvider"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn init_can_be_killed_at_any_write_and_large_releases_come_in_parts() {
    let scene = Scene::new().await;
    let [.., acme] = releases("v1.0.0");
    // Random text cannot be compressed to much less than half of its size.
    let mut components = acme.components();
    let mut noise = String::new();
    let mut state = 1_u64;
    while noise.len() < 5_000_000 {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        write!(noise, "{:08x}", state >> 32).unwrap();
    }
    components.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": "noise", "namespace": acme.namespace}, "data": {"noise": noise}}));
    scene.estate.publish_with(&acme, &components);
    scene.succeeds(&INIT, &["ConfigMaps with the local release"]).await;
    let writes = scene.writes().len();
    let undisturbed = scene.specs().await;
    let maps: Api<ConfigMap> = Api::namespaced(scene.client(), "acme-system");
    let parts = maps.list(&ListParams::default().labels(INPUT)).await.unwrap().items.len();
    assert!(parts > 1, "{parts}");
    assert!(writes > 20, "{writes}");
    for number in (1..=writes).step_by(3) {
        scene.succeeds(&["delete", "--all", "--include-crd"], &[]).await;
        let crds: Api<CustomResourceDefinition> = Api::all(scene.client());
        wait::until_gone(&crds, &format!("coreproviders.{GROUP}"), LIMIT).await;
        if scene.is_killed_at(number, &INIT).await {
            scene.succeeds(&INIT, &[]).await;
        }
        assert_eq!(scene.specs().await, undisturbed, "killed at write {number}");
        assert_eq!(maps.list(&ListParams::default().labels(INPUT)).await.unwrap().items.len(), parts);
        let kinds = format!("{GROUP}/{VERSION}");
        let served = scene.client().list_api_group_resources(&kinds).await.unwrap();
        assert_eq!(served.resources.iter().filter(|it| !it.name.contains('/')).count(), 7);
    }
}
