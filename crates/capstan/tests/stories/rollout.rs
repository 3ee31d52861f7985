//! `alpha rollout`: machines are replaced, held back and let go, one resource at a time.

use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, generic};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::get::Caller;

const GROUPS: [(&str, &str); 2] =
    [("MachineDeployment", "cluster.x-k8s.io"), ("KubeadmControlPlane", "controlplane.cluster.x-k8s.io")];

fn crd(kind: &str, group: &str, version: &str) -> CustomResourceDefinition {
    let mut crd = generic::core_crd(kind);
    crd.metadata.name = Some(format!("{}.{group}", crd.spec.names.plural));
    group.clone_into(&mut crd.spec.group);
    version.clone_into(&mut crd.spec.versions[0].name);
    crd
}

/// A caller on a server that has both kinds in one version, and an object of each called `a`.
struct Rollouts {
    caller: Caller,
    version: &'static str,
}

impl Rollouts {
    async fn begin(version: &'static str) -> Self {
        let plane = Plane::start().await;
        let caller = Caller::begin_on(&plane, "rollout").await;
        let crds = GROUPS.map(|(kind, group)| crd(kind, group, version));
        install_crds(&caller.story.client, &crds, "story").await.unwrap();
        let this = Self { caller, version };
        for (kind, _) in GROUPS {
            this.create(kind, "a", json!({})).await;
        }
        this
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let (_, group) = GROUPS.into_iter().find(|it| it.0 == kind).unwrap();
        let version = format!("{group}/{}", self.version);
        self.caller
            .create(json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}))
            .await;
    }

    async fn get(&self, kind: &str, name: &str) -> Value {
        let (_, group) = GROUPS.into_iter().find(|it| it.0 == kind).unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, self.version, kind));
        let story = &self.caller.story;
        let api: Api<DynamicObject> = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
        serde_json::to_value(api.get(name).await.unwrap()).unwrap()
    }

    fn roll(&self, words: &[&str]) -> crate::user::Told {
        self.caller.run(&[&["alpha", "rollout"], words].concat())
    }
}

async fn rollouts_of(version: &'static str, after: &str) {
    let it = Rollouts::begin(version).await;
    let both = ["machinedeployment/a", "kubeadmcontrolplane/a"];
    it.roll(&["pause", both[0], both[1]]).data();
    assert_eq!(it.get("MachineDeployment", "a").await["spec"]["paused"], true);
    let annotations = it.get("KubeadmControlPlane", "a").await["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({"cluster.x-k8s.io/paused": "true"}));
    for resource in both {
        it.roll(&["pause", resource]).fails(&[&format!("cannot pause {resource}: it is paused already")]);
        it.roll(&["restart", resource]).fails(&[
            &format!("cannot restart {resource}: it is paused"),
            &format!("capstan alpha rollout resume {resource} -n {}", it.caller.story.namespace),
        ]);
        assert_eq!(it.roll(&["resume", resource]).data(), "");
        it.roll(&["resume", resource]).fails(&[&format!("cannot resume {resource}: it is not paused")]);
        it.roll(&["restart", resource]).data();
    }
    for (kind, _) in GROUPS {
        let object = it.get(kind, "a").await;
        let found = object.pointer(after).and_then(Value::as_str).expect("a time");
        let seconds =
            jiff::Timestamp::now().as_second() - found.parse::<jiff::Timestamp>().unwrap().as_second();
        assert!((0..60).contains(&seconds), "{found}");
    }
    assert_eq!(it.get("MachineDeployment", "a").await["spec"]["paused"], false);
    assert!(it.get("KubeadmControlPlane", "a").await["metadata"].get("annotations").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollouts_are_paused_resumed_and_restarted() {
    rollouts_of("v1beta2", "/spec/rollout/after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollouts_of_older_kinds_have_their_field_elsewhere() {
    rollouts_of("v1beta1", "/spec/rolloutAfter").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_does_not_keep_the_others_from_being_done() {
    let it = Rollouts::begin("v1beta2").await;
    let namespace = it.caller.story.namespace.clone();
    it.create("MachineDeployment", "Upper.Case".to_lowercase().as_str(), json!({})).await;
    it.create("MachineDeployment", "later", json!({"rollout": {"after": "2999-01-01T00:00:00Z"}})).await;
    let told = it.roll(&[
        "restart",
        "machinedeployment/none",
        "MachineDeployment/a",
        "machinedeployment/later",
        "machinedeployment/upper.case",
    ]);
    assert_eq!((told.code, told.out.as_str()), (Some(1), ""));
    for words in [
        format!("error: cannot restart machinedeployment/none: there is no MachineDeployment {namespace}/none"),
        format!("hint: namespace {namespace} has these: a, later, upper.case"),
        "✓ machinedeployment/a restarted".to_owned(),
        "✓ machinedeployment/upper.case restarted".to_owned(),
        "error: cannot restart machinedeployment/later: a rollout is planned already: spec.rollout.after is 2999-01-01"
            .to_owned(),
        "hint: remove spec.rollout.after first".to_owned(),
    ] {
        assert!(told.err.contains(&words), "{words:?} is missing in:\n{}", told.err);
    }
    for name in ["a", "upper.case"] {
        assert!(it.get("MachineDeployment", name).await["spec"]["rollout"]["after"].is_string(), "{name}");
    }
    // Names keep their case: that one does not exist.
    it.roll(&["pause", "machinedeployment/Upper.Case"])
        .fails(&["there is no MachineDeployment", "/Upper.Case"]);
    // What cannot be understood is refused before anything is done.
    it.roll(&["pause", "machinedeployment/a", "machineset/b"])
        .fails(&["\"machineset/b\" is not KIND/NAME", "nothing was changed"]);
    assert!(it.get("MachineDeployment", "a").await["spec"].get("paused").is_none());
    it.roll(&["pause"]).fails(&["KIND/NAME"]);
    it.roll(&["pause", "machinedeployment/a", "--config", "/nonexistent.yaml"]).fails(&["/nonexistent.yaml"]);
    let words = ["alpha", "rollout", "pause", "machinedeployment/a"];
    it.caller.run_as_nobody(&words).fails(&["cannot read machinedeployment/a", "User \"nobody\""]);
    crate::user::User::new().run(&words).fails(&["no management cluster is named"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_installed_is_named() {
    let caller = Caller::begin("rollout-none").await;
    let words = ["alpha", "rollout", "pause", "kubeadmcontrolplane/a"];
    caller.run(&words).fails(&["knows no kind KubeadmControlPlane of controlplane.cluster.x-k8s.io"]);
}
