//! Commands that are killed at any of their requests that change something: the same command once more ends where it
//! would have ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
};

use capstan_api::names::label::CLUSTERCTL as LABEL;
use capstan_testkit::{
    gate::{Gate, Passed},
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::estate::{Estate, Release};

/// A command, and the state that it begins in.
struct Scene {
    estate: Estate,
    gate: Gate,
    command: Vec<&'static str>,
    /// What leads to the state that the command begins in.
    before: Vec<Vec<&'static str>>,
}

/// Two providers are enough: one that others depend on, and one that depends.
const INIT: [&str; 7] =
    ["init", "--bootstrap", "-", "--control-plane", "-", "--infrastructure", "acme:v1.0.0"];
const INIT_CORE: [&str; 2] = ["--core", "cluster-api:v1.0.0"];

fn init() -> Vec<&'static str> {
    INIT.into_iter().chain(INIT_CORE).collect()
}

impl Scene {
    async fn new(command: Vec<&'static str>, before: Vec<Vec<&'static str>>) -> Self {
        let mut estate = Estate::bare().await;
        for release in Release::all("v1.1.0") {
            estate.publish(&release);
        }
        let gate = Gate::open(estate.client.clone()).await;
        let kubeconfig = estate.user.write("gate.json", &gate.kubeconfig());
        estate.user =
            std::mem::replace(&mut estate.user, crate::user::User::new()).with("KUBECONFIG", kubeconfig);
        Self { estate, gate, command, before }
    }

    /// Makes the state that the command begins in.
    async fn prepare(&self) {
        self.estate.wipe().await;
        for command in &self.before {
            let told = self.run(command).await;
            assert!(told.is_ok(), "{command:?}: {told:?}");
        }
    }

    /// Runs a command to its end.
    async fn run(&self, command: &[&str]) -> Result<(), String> {
        self.gate.count_from_now(None);
        let output = self.spawn(command).wait_with_output().await.unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Runs the command and kills it when its write of that number has been carried out. Whether it came to that.
    async fn is_killed_at(&self, number: usize) -> bool {
        self.gate.count_from_now(Some(number));
        let mut child = self.spawn(&self.command);
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

    fn spawn(&self, command: &[&str]) -> tokio::process::Child {
        let command = self.estate.user.command(env!("CARGO_BIN_EXE_capstan"), command);
        let mut command = tokio::process::Command::from(command);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().unwrap()
    }

    /// Kills the command at each of its writes and lets it run again. The writes of an undisturbed run are left.
    async fn play(self) -> Vec<Passed> {
        self.prepare().await;
        self.run(&self.command).await.unwrap();
        let mut writes = self.gate.passed();
        writes.retain(Passed::is_write);
        let undisturbed = self.estate.labelled().await;
        assert!(writes.len() > 5, "that is no story: {writes:?}");
        let mut kills = 0;
        for number in 1..=writes.len() {
            self.prepare().await;
            if !self.is_killed_at(number).await {
                continue;
            }
            kills += 1;
            let again = self.run(&self.command).await;
            assert!(again.is_ok(), "again after write {number}: {again:?}");
            assert_same(&self.estate.labelled().await, &undisturbed, number);
        }
        // A run may have a write less than the first, but not many.
        assert!(kills + 2 >= writes.len(), "killed only {kills} times at {} writes", writes.len());
        writes
    }
}

fn assert_same(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>, number: usize) {
    let names = |map: &BTreeMap<String, Value>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "killed at write {number}");
    for (name, object) in found {
        assert_eq!(object, &expected[name], "{name}, killed at write {number}");
    }
}

impl Estate {
    /// Takes everything away that commands have installed.
    async fn wipe(&self) {
        let cluster = self.cluster();
        let found = capstan_management::sweep::sweep(&cluster, LABEL).await.unwrap();
        for component in found.iter().filter(|it| it.id.kind != "Namespace") {
            let api = cluster.objects(&component.kind, component.id.namespace.as_deref());
            // What is in a kind goes with it.
            match api.delete(&component.id.name, &DeleteParams::background()).await {
                Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
                    panic!("{error}")
                }
                _ => {}
            }
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for component in found.iter().filter(|it| it.id.kind == "Namespace") {
            let name = &component.id.name;
            namespaces.delete(name, &DeleteParams::default()).await.unwrap();
            // No controller is there to do it.
            let mut namespace = namespaces.get(name).await.unwrap();
            namespace.spec.get_or_insert_default().finalizers = None;
            namespaces
                .replace_subresource("finalize", name, &PostParams::default(), &namespace)
                .await
                .unwrap();
        }
        // The server empties kinds before they go.
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for component in found.iter().filter(|it| it.id.kind == "CustomResourceDefinition") {
            wait::until_gone(&crds, &component.id.name, LIMIT).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn init_can_be_killed_at_any_write() {
    Scene::new(init(), vec![]).await.play().await;
}

/// Publishes releases between which an object goes, a CRD changes hands, a role changes, and a Deployment has to
/// be recreated, since its selector changes.
fn publish_changes(estate: &Estate) {
    let release = |label: &str, version| {
        Release::all(version).into_iter().find(|it| it.label == label).expect("there is such a provider")
    };
    let (core, acme) = (release("cluster-api", "v1.0.0"), release("infrastructure-acme", "v1.1.0"));
    let mut boxes =
        core.components().into_iter().find(|it| it["kind"] == "CustomResourceDefinition").unwrap();
    boxes["metadata"]["name"] = json!("boxes.box.io");
    boxes["spec"]["group"] = json!("box.io");
    boxes["spec"]["names"] =
        json!({"kind": "Box", "listKind": "BoxList", "plural": "boxes", "singular": "box"});
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old", "namespace": "capi-system"}});
    let mut components = core.components();
    components.extend([boxes.clone(), old]);
    estate.publish_with(&core, &components);

    let mut components = acme.components();
    for object in &mut components {
        if object["kind"] == "ClusterRole" {
            object["rules"][0]["verbs"] = json!(["get", "list", "watch"]);
        }
        if object["kind"] == "Deployment" {
            object["spec"]["selector"]["matchLabels"]["new"] = json!("yes");
            object["spec"]["template"]["metadata"]["labels"]["new"] = json!("yes");
        }
    }
    components.push(boxes);
    estate.publish_with(&acme, &components);
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_can_be_killed_at_any_write() {
    let upgrade = vec!["upgrade", "apply", "--core", "cluster-api:v1.1.0", "--infrastructure", "acme:v1.1.0"];
    let init = init().into_iter().chain(["--target-namespace", "shared"]).collect();
    let scene = Scene::new(upgrade, vec![init]).await;
    publish_changes(&scene.estate);
    let plane = scene.estate.plane.clone();
    let writes = scene.play().await;
    // What is the same in both releases is not written, but for the namespace that both providers are in.
    let path = |it: &Passed| it.target.split('?').next().unwrap_or_default().to_owned();
    let written: BTreeSet<_> =
        writes.iter().filter_map(|it| path(it).rsplit('/').nth(1).map(str::to_owned)).collect();
    let changed = [
        "clusterroles",
        "configmaps",
        "customresourcedefinitions",
        "deployments",
        "namespaces",
        "providers",
        "services",
    ];
    assert_eq!(written, changed.map(str::to_owned).into());
    let crds: Api<CustomResourceDefinition> = Api::all(plane.client().await);
    let boxes = crds.get("boxes.box.io").await.unwrap();
    assert_eq!(boxes.metadata.labels.unwrap()["cluster.x-k8s.io/provider"], "infrastructure-acme");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_can_be_killed_at_any_write() {
    Scene::new(vec!["delete", "--all", "--include-crd"], vec![init()]).await.play().await;
}
