//! `init` beside upstream's, with real releases: what is on a management cluster afterwards, and whether upstream's
//! clusterctl goes on where ours left off.

use std::{collections::BTreeMap, env, fs, path::PathBuf, process::Output, time::Duration};

use capstan_management::ManagementCluster;
use capstan_testkit::Plane;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::management::{configure_releases, create_when_served, folder};

const INIT: &[&str] = &["init", "--infrastructure", "gcp"];
/// The inventory's CRD, whose descriptions are our own.
const INVENTORY: &str = "CustomResourceDefinition /providers.clusterctl.cluster.x-k8s.io";

/// A user who runs both binaries against a control plane.
struct Operator {
    home: PathBuf,
    kubeconfig: PathBuf,
}

impl Operator {
    fn new(plane: &Plane, name: &str) -> Self {
        let home = env::temp_dir().join(format!("capstan-init-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        configure_releases(&home);
        Self { home, kubeconfig: plane.kubeconfig().clone() }
    }

    async fn ours(&self, arguments: &[&str]) -> String {
        self.run(env!("CARGO_BIN_EXE_capstan").into(), arguments).await
    }

    async fn upstreams(&self, arguments: &[&str]) -> String {
        self.run(folder("CAPSTAN_UPSTREAM_DIR").join("clusterctl"), arguments).await
    }

    /// Runs a command that must succeed; gives back all that it said.
    async fn run(&self, binary: PathBuf, arguments: &[&str]) -> String {
        let run = Command::new(binary)
            .args(arguments)
            .arg("--config")
            .arg(self.home.join("clusterctl.yaml"))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", &self.home)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("GOPROXY", "off")
            .env("NO_COLOR", "1")
            .kill_on_drop(true)
            .output();
        let run: Output = tokio::time::timeout(Duration::from_mins(3), run).await.expect("it ends").unwrap();
        let said = [run.stdout, run.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        assert!(run.status.success(), "{arguments:?}: {said}");
        said
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason for a test to fail.
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Everything that clusterctl's labels mark, by kind and name, without what servers add.
async fn labelled(plane: &Plane) -> BTreeMap<String, Value> {
    let cluster = ManagementCluster::new(plane.client().await, "the test's server");
    let kinds: Vec<_> =
        cluster.kinds().await.unwrap().preferred().filter(|it| it.is_managed).cloned().collect();
    let mut found = BTreeMap::new();
    for kind in kinds.iter().filter(|it| !it.resource.kind.starts_with("Endpoint")) {
        for selector in ["clusterctl.cluster.x-k8s.io", "clusterctl.cluster.x-k8s.io/core"] {
            for object in cluster.list(kind, None, selector).await.unwrap() {
                let namespace = object.namespace().unwrap_or_default();
                let id = format!("{} {namespace}/{}", kind.resource.kind, object.name_any());
                found.insert(id, essence(object));
            }
        }
    }
    found
}

fn essence(object: DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value.as_object_mut().unwrap().remove("status");
    let metadata = value["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        metadata.remove(field);
    }
    // The controllers of Kubernetes count the revisions of a Deployment.
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
    }
    value
}

/// The form of the inventory's kind, without words.
fn form(crd: &Value) -> Value {
    let version = &crd["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let columns: Vec<_> = columns.iter().map(|it| (&it["name"], &it["jsonPath"], &it["type"])).collect();
    let properties = version["schema"]["openAPIV3Schema"]["properties"].as_object().unwrap();
    let types: BTreeMap<_, _> = properties.iter().map(|(name, it)| (name, &it["type"])).collect();
    json!({
        "labels": crd["metadata"]["labels"],
        "group": crd["spec"]["group"],
        "names": crd["spec"]["names"],
        "scope": crd["spec"]["scope"],
        "version": [version["name"], version["served"], version["storage"]],
        "columns": columns,
        "types": types,
    })
}

fn assert_same(ours: &BTreeMap<String, Value>, theirs: &BTreeMap<String, Value>) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (id, object) in ours.iter().filter(|it| it.0 != INVENTORY) {
        assert_eq!(object, &theirs[id], "{id}");
    }
    assert_eq!(form(&ours[INVENTORY]), form(&theirs[INVENTORY]));
}

/// Gives cluster roles the names that they have without a prefix.
fn without_prefixes(objects: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let namespaces: Vec<String> =
        objects.keys().filter_map(|id| Some(id.strip_prefix("Namespace /")?.to_owned())).collect();
    let renamed = |name: &str| {
        let prefix =
            namespaces.iter().filter(|it| name.starts_with(&format!("{it}-"))).max_by_key(|it| it.len());
        prefix.map_or(name.to_owned(), |it| name[it.len() + 1..].to_owned())
    };
    let mut out = BTreeMap::new();
    let mut count = 0;
    for (id, mut object) in objects {
        let (kind, name) = id.split_once(" /").unwrap_or((&id, ""));
        let is_wide = matches!(kind, "ClusterRole" | "ClusterRoleBinding");
        if object["roleRef"]["kind"] == "ClusterRole" {
            object["roleRef"]["name"] = json!(renamed(object["roleRef"]["name"].as_str().unwrap()));
        }
        if is_wide {
            assert_ne!(renamed(name), name, "{id} has a prefix");
            object["metadata"]["name"] = json!(renamed(name));
            out.insert(format!("{kind} /{}", renamed(name)), object);
            count += 1;
        } else {
            out.insert(id, object);
        }
    }
    assert!(count >= 8, "{count} roles and bindings");
    out
}

#[tokio::test]
#[ignore = "needs upstream's binary and releases: make test-compat"]
async fn a_management_cluster_is_the_same_whoever_made_it() {
    let theirs = {
        let plane = Plane::start().await;
        Operator::new(&plane, "upstream").upstreams(INIT).await;
        labelled(&plane).await
    };
    {
        let plane = Plane::start().await;
        let operator = Operator::new(&plane, "prefix");
        operator.ours(INIT).await;
        assert_same(&without_prefixes(labelled(&plane).await), &theirs);
        // Where upstream made a management cluster there is nothing left for us to do, and the other way round.
        assert!(operator.upstreams(INIT).await.contains("Skipping installing cert-manager"));
        assert!(operator.ours(INIT).await.contains("nothing to do"));
    }
    let plane = Plane::start().await;
    let operator = Operator::new(&plane, "ours");
    operator.ours(&[INIT, &["--rbac-prefix=false"]].concat()).await;
    assert_same(&labelled(&plane).await, &theirs);
    upstream_goes_on(&plane, &operator).await;
}

/// Upstream's commands on a management cluster of ours.
async fn upstream_goes_on(plane: &Plane, operator: &Operator) {
    let plan = operator.upstreams(&["upgrade", "plan"]).await;
    for words in ["cluster-api", "infrastructure-gcp", "You are already up to date!", "already up to date"] {
        assert!(plan.contains(words), "{words} is missing in:\n{plan}");
    }
    let client = plane.client().await;
    // No process serves webhooks here.
    let all = ListParams::default();
    Api::<MutatingWebhookConfiguration>::all(client.clone())
        .delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    Api::<ValidatingWebhookConfiguration>::all(client.clone())
        .delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    let gvk = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster");
    let clusters: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&gvk));
    let cluster = DynamicObject::new("one", &ApiResource::from_gvk(&gvk)).data(json!({"spec": {
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "GCPCluster", "name": "one"},
    }}));
    create_when_served(&clusters, &cluster).await;
    let tree = operator.upstreams(&["describe", "cluster", "one"]).await;
    assert!(tree.contains("Cluster default/one"), "{tree}");
    clusters.delete("one", &DeleteParams::default()).await.unwrap();
    operator.upstreams(&["delete", "--all"]).await;
    let left = labelled(plane).await;
    assert!(!left.keys().any(|it| it.starts_with("Provider ") || it.starts_with("Deployment ")), "{left:?}");
}
