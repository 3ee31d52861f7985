//! Real releases of core and kubeadm upgraded step by step, with user's objects in place, beside upstream's own upgrade.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use capstan_management::{Kind, ManagementCluster};
use capstan_testkit::Plane;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::management::{configure_releases, folder};

const FIRST: &str = "v1.9.0";
const LAST: &str = "v1.14.2";
const LABEL: &str = "clusterctl.cluster.x-k8s.io";

/// A management cluster with upstream's releases, and both programs to work on it.
struct Estate {
    plane: Arc<Plane>,
    client: Client,
    home: PathBuf,
}

impl Estate {
    async fn new(name: &str) -> Self {
        let plane = Plane::start_bare().await;
        let client = plane.client().await;
        let home = env::temp_dir().join(format!("capstan-upgrade-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        configure_releases(&home);
        Self { plane, client, home }
    }

    fn capstan(&self, arguments: &[&str]) -> String {
        self.run(Path::new(env!("CARGO_BIN_EXE_capstan")), arguments)
    }

    fn clusterctl(&self, arguments: &[&str]) -> String {
        self.run(&folder("CAPSTAN_UPSTREAM_DIR").join("clusterctl"), arguments)
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .arg("--config")
            .arg(self.home.join("clusterctl.yaml"))
            .env_clear()
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", &self.home)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("GOPROXY", "off")
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} {arguments:?}: {out}{err}", program.display());
        out
    }

    /// What programs do to all three providers.
    fn arguments<'a>(command: &[&'a str], core: &'a str, kubeadm: &'a str) -> Vec<&'a str> {
        [command, &["--core", core, "--bootstrap", kubeadm, "--control-plane", kubeadm]].concat()
    }

    /// The management cluster as it is now: kinds come and go.
    fn cluster(&self) -> ManagementCluster {
        ManagementCluster::new(self.client.clone(), "the test's server")
    }

    /// Objects of the user's. Webhooks are not served here, so they are created while none are configured: upgrades bring
    /// the configurations back.
    async fn make_users_objects(&self) {
        let labelled = ListParams::default().labels(LABEL);
        let params = DeleteParams::default();
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        mutating.delete_collection(&params, &labelled).await.unwrap();
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        validating.delete_collection(&params, &labelled).await.unwrap();
        let cluster = self.cluster();
        for object in users_objects() {
            let kind = cluster.kinds().await.unwrap().of(&object).unwrap().clone();
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let api = cluster.objects(&kind, Some("default"));
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }

    /// All objects of the user's, to the last field. They are stored as v1beta1, since that is what they were made as
    /// and no controller writes them here; read as v1beta1 they need no conversion.
    async fn users_objects(&self) -> BTreeMap<String, Value> {
        let cluster = self.cluster();
        let mut found = BTreeMap::new();
        for kind in cluster.kinds().await.unwrap().all().filter(|it| is_users(it)) {
            for object in cluster.list(kind, None, "").await.unwrap() {
                let name = format!("{} {}", kind.resource.kind, object.name_any());
                found.insert(name, serde_json::to_value(object).unwrap());
            }
        }
        found
    }

    /// What was installed, without what servers add.
    async fn installed(&self) -> BTreeMap<String, Value> {
        let cluster = self.cluster();
        let mut found = BTreeMap::new();
        let kinds = cluster.kinds().await.unwrap();
        for kind in kinds.preferred().filter(|it| it.is_managed && !is_of_providers(it)) {
            for object in cluster.list(kind, None, LABEL).await.unwrap() {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                let mut value = serde_json::to_value(object).unwrap();
                value.as_object_mut().unwrap().remove("status");
                let metadata = value["metadata"].as_object_mut().unwrap();
                for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                    metadata.remove(field);
                }
                found.insert(format!("{} {namespace}/{name}", kind.resource.kind), value);
            }
        }
        found
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason for a test to fail.
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn is_of_providers(kind: &Kind) -> bool {
    let group = &kind.resource.group;
    group.ends_with("cluster.x-k8s.io") && group != "clusterctl.cluster.x-k8s.io"
}

fn is_users(kind: &Kind) -> bool {
    is_of_providers(kind) && kind.is_managed && kind.resource.version == "v1beta1"
}

fn users_objects() -> Vec<Value> {
    let reference = |group: &str, kind: &str, name: &str| {
        let api_version = format!("{group}.cluster.x-k8s.io/v1beta1");
        json!({"apiVersion": api_version, "kind": kind, "name": name, "namespace": "default"})
    };
    let object = |group: &str, kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}cluster.x-k8s.io/v1beta1"),
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": {"cluster.x-k8s.io/cluster-name": "mine", "own": "label"},
                "annotations": {"own": "annotation"},
                "finalizers": ["own/finalizer"],
            },
            "spec": spec,
        })
    };
    let template = json!({"spec": {
        "clusterName": "mine",
        "version": "v1.31.0",
        "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfigTemplate", "workers")},
        "infrastructureRef": reference("infrastructure", "AcmeMachineTemplate", "workers"),
    }});
    let selector = json!({"matchLabels": {"own": "label"}});
    vec![
        object(
            "",
            "Cluster",
            "mine",
            json!({
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "controlPlaneRef": reference("controlplane", "KubeadmControlPlane", "control-plane"),
                "infrastructureRef": reference("infrastructure", "AcmeCluster", "mine"),
            }),
        ),
        object("", "Machine", "first", template["spec"].clone()),
        object(
            "",
            "MachineDeployment",
            "workers",
            json!({
                "clusterName": "mine", "replicas": 2, "selector": selector, "template": template,
            }),
        ),
        object(
            "",
            "MachineHealthCheck",
            "workers",
            json!({
                "clusterName": "mine", "selector": selector,
                "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5m0s"}],
            }),
        ),
        object("bootstrap.", "KubeadmConfig", "first", json!({"format": "cloud-config"})),
        object(
            "controlplane.",
            "KubeadmControlPlane",
            "control-plane",
            json!({
                "replicas": 3, "version": "v1.31.0", "kubeadmConfigSpec": {},
                "machineTemplate": {"infrastructureRef": reference("infrastructure", "AcmeMachineTemplate", "cp")},
            }),
        ),
    ]
}

/// Where ours is meant to differ from upstream's, and why.
fn intended(name: &str, upstream: &mut Value, ours: &mut Value) {
    // Upstream merges a new CRD into the old one, so that what the new release dropped stays.
    if name.starts_with("CustomResourceDefinition ") || name.starts_with("Namespace ") {
        for field in ["annotations", "labels"] {
            let pointer = format!("/metadata/{field}");
            let kept = ours.pointer(&pointer).cloned().unwrap_or_default();
            if let Some(theirs) = upstream.pointer_mut(&pointer).and_then(Value::as_object_mut) {
                theirs.retain(|name, _| kept.get(name).is_some());
            }
        }
    }
    // A Service that is kept keeps its address; one that is recreated gets another.
    if name.starts_with("Service ") {
        for object in [upstream, ours] {
            let spec = object["spec"].as_object_mut().unwrap();
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
    }
}

fn assert_like_upstreams(mut ours: BTreeMap<String, Value>, mut upstreams: BTreeMap<String, Value>) {
    let names = |it: &BTreeMap<String, Value>| it.keys().cloned().collect::<Vec<_>>();
    // Upstream leaves cluster-wide roles of older releases behind: it deletes only those with a prefix.
    let is_left = |name: &str| name.starts_with("ClusterRole");
    upstreams.retain(|name, _| ours.contains_key(name) || !is_left(name));
    assert_eq!(names(&ours), names(&upstreams));
    for (name, ours) in &mut ours {
        let upstream = upstreams.get_mut(name).unwrap();
        intended(name, upstream, ours);
        assert_eq!(ours, upstream, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's binary and releases: make test-compat"]
async fn real_releases_are_upgraded_step_by_step_and_no_users_object_changes() {
    // Upstream's program installs, ours upgrades.
    let estate = Estate::new("ours").await;
    let first = ("cluster-api:v1.9.0", "kubeadm:v1.9.0");
    estate.clusterctl(&Estate::arguments(&["init"], first.0, first.1));
    estate.make_users_objects().await;
    let before = estate.users_objects().await;
    assert_eq!(before.len(), users_objects().len());
    // clusterctl does not upgrade within v1beta1 any more; we do.
    let steps = [
        ("cluster-api:v1.10.0", "kubeadm:v1.10.0"),
        ("cluster-api:v1.13.6", "kubeadm:v1.13.6"),
        ("cluster-api:v1.14.2", "kubeadm:v1.14.2"),
    ];
    let plan = estate.capstan(&["upgrade", "plan"]);
    for words in
        [FIRST, "v1.10.0", LAST, "upgrade apply --contract v1beta1", "upgrade apply --contract v1beta2"]
    {
        assert!(plan.contains(words), "{words} is missing in {plan}");
    }
    for (core, kubeadm) in steps {
        if core.ends_with(LAST) {
            assert_same_plans(&estate);
        }
        estate.capstan(&Estate::arguments(&["upgrade", "apply"], core, kubeadm));
        assert_eq!(estate.users_objects().await, before, "after {core}");
    }
    assert_same_plans(&estate);
    let ours = estate.installed().await;
    drop(estate);

    // Upstream's own upgrade of the same, which our program plans as well.
    let estate = Estate::new("upstreams").await;
    estate.clusterctl(&Estate::arguments(&["init"], first.0, first.1));
    estate.make_users_objects().await;
    for (core, kubeadm) in &steps[1..] {
        estate.clusterctl(&Estate::arguments(&["upgrade", "apply"], core, kubeadm));
        assert_same_plans(&estate);
    }
    assert_like_upstreams(ours, estate.installed().await);
}

/// Both programs plan the same.
fn assert_same_plans(estate: &Estate) {
    let ours = estate.capstan(&["upgrade", "plan"]);
    let upstreams = estate.clusterctl(&["upgrade", "plan"]);
    assert_eq!(ours.replace("capstan", "clusterctl"), upstreams);
}
