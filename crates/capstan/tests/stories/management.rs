//! Commands that look at a management cluster: whose namespace, which provider and version, which ClusterClass.

use std::{fs, sync::Arc};

use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic, shared_plane};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
    config::Kubeconfig,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    refusals::refused,
    user::{CLASS, User, VERSION, of_kind},
};

const TEMPLATE: &str = "\
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: '${CLUSTER_NAME}', labels: {from: RELEASE}}
spec:
  topology:
    classRef: {name: quick}
    version: v1.34.0
";

const GENERATE: [&str; 3] = ["generate", "cluster", "c"];

/// A user of a control plane of its own, with the inventory's kind on it.
struct Desk {
    story: Story,
    user: User,
}

impl Desk {
    /// Sits down in a namespace that the kubeconfig's context names.
    async fn at(plane: &Arc<Plane>, name: &str) -> Self {
        let story = Story::begin_on(Arc::clone(plane), name).await;
        let user = User::of_acme();
        for version in [VERSION, "v1.1.0"] {
            let template = TEMPLATE.replace("RELEASE", version);
            let files = [("cluster-template.yaml", template.as_str()), ("clusterclass-quick.yaml", CLASS)];
            user.release("infrastructure-acme", version, &files);
        }
        let mut kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        for context in &mut kubeconfig.contexts {
            context.context.as_mut().unwrap().namespace = Some(story.namespace.clone());
        }
        let file = user.write("kubeconfig", &serde_json::to_string(&kubeconfig).unwrap());
        Self { story, user: user.with("KUBECONFIG", file) }
    }

    /// Records a provider, as an installation does.
    async fn install(&self, kind: &str, name: &str, version: &str) {
        let mut provider = DynamicObject::new(&format!("{}-{name}", kind.to_lowercase()), &inventory());
        provider.data = json!({"providerName": name, "type": kind, "version": version});
        self.providers().create(&PostParams::default(), &provider).await.unwrap();
    }

    async fn uninstall(&self, kind: &str, name: &str) {
        let name = format!("{}-{name}", kind.to_lowercase());
        self.providers().delete(&name, &DeleteParams::default()).await.unwrap();
    }

    fn providers(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.story.client.clone(), &self.story.namespace, &inventory())
    }

    async fn create_config_map(&self, name: &str, data: Value) {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap();
        let api: Api<ConfigMap> = Api::namespaced(self.story.client.clone(), &self.story.namespace);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// Runs a command with more arguments.
    fn objects(&self, words: &[&str], more: &[&str]) -> Vec<Value> {
        self.user.run(&[words, more].concat()).objects()
    }

    fn refused(&self, words: &[&str], more: &[&str], expected: &[&str]) {
        refused(&self.user, &[words, more].concat(), expected);
    }
}

fn inventory() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider"))
}

/// The inventory's kind: its fields stand beside `metadata`.
fn inventory_crd() -> CustomResourceDefinition {
    let text = |_: &str| json!({"type": "string"});
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "providers.clusterctl.cluster.x-k8s.io"},
        "spec": {
            "group": "clusterctl.cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "Provider", "listKind": "ProviderList", "plural": "providers", "singular": "provider"},
            "versions": [{
                "name": "v1alpha3", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "providerName": text(""), "type": text(""), "version": text(""),
                }}},
            }],
        },
    }))
    .unwrap()
}

/// ClusterClass has a plural of its own.
fn class_crd() -> CustomResourceDefinition {
    let mut crd = generic::core_crd("ClusterClass");
    crd.metadata.name = Some("clusterclasses.cluster.x-k8s.io".to_owned());
    "clusterclasses".clone_into(&mut crd.spec.names.plural);
    crd
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

fn release_of(objects: &[Value]) -> &Value {
    &of_kind(objects, "Cluster")["metadata"]["labels"]["from"]
}

/// On a control plane of its own, because an inventory is for the whole cluster.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_is_the_default() {
    let plane = Plane::start().await;
    let desk = Desk::at(&plane, "defaults").await;

    // A cluster that nothing was ever installed on.
    let named = "name the provider that has the template";
    desk.refused(&GENERATE, &[], &["no infrastructure provider is installed", named]);
    let more = ["-i", "acme"];
    desk.refused(
        &GENERATE,
        &more,
        &["acme is not installed, so no version is known", "-infrastructure acme:v"],
    );
    let objects = desk.objects(&GENERATE, &["-i", "acme:v1.0.0"]);
    assert_eq!(release_of(&objects), VERSION);
    let objects = desk.objects(&GENERATE, &["-i", "acme:latest"]);
    assert_eq!(release_of(&objects), "v1.1.0");

    install_crds(&desk.story.client, &[inventory_crd()], "story").await.unwrap();
    desk.install("CoreProvider", "cluster-api", "v1.14.2").await;
    desk.refused(&GENERATE, &[], &["no infrastructure provider is installed"]);
    desk.install("InfrastructureProvider", "acme", VERSION).await;
    for more in [&[][..], &["-i", "acme"]] {
        let objects = desk.objects(&GENERATE, more);
        assert_eq!(release_of(&objects), VERSION, "what is installed, not what is newest");
        let namespace = &of_kind(&objects, "Cluster")["metadata"]["namespace"];
        assert_eq!(namespace, &desk.story.namespace, "that of the kubeconfig's context");
    }
    let objects = desk.objects(&GENERATE, &["-n", "elsewhere"]);
    assert_eq!(of_kind(&objects, "Cluster")["metadata"]["namespace"], "elsewhere");

    desk.install("InfrastructureProvider", "other", "v3.0.0").await;
    desk.refused(&GENERATE, &[], &["several infrastructure providers are installed: acme, other", named]);
    assert_eq!(release_of(&desk.objects(&GENERATE, &["-i", "acme"])), VERSION);
}

/// Core and cert-manager are left out where they are.
#[tokio::test(flavor = "multi_thread")]
async fn images_are_those_that_are_not_installed() {
    let plane = Plane::start().await;
    let desk = Desk::at(&plane, "images").await;
    desk.user.stock_everything();
    let kubeconfig = desk.user.path("kubeconfig");
    let words = ["init", "list-images", "-i", "acme:v1.0.0", "--kubeconfig", &kubeconfig];
    let images = || desk.user.images(&words);
    let kubeadm = ["bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm"];
    let with_kubeadm = |more: &[&'static str]| {
        let mut all = [&kubeadm[..], more].concat();
        all.sort_unstable();
        all
    };
    let everything = with_kubeadm(&["cert-manager", "infrastructure-acme"]);
    assert_eq!(images(), everything, "nothing was ever installed");
    install_crds(&desk.story.client, &[inventory_crd()], "story").await.unwrap();
    desk.install("InfrastructureProvider", "acme", VERSION).await;
    assert_eq!(images(), everything, "core is what counts");
    desk.install("CoreProvider", "cluster-api", "v1.14.2").await;
    assert_eq!(images(), ["cert-manager", "infrastructure-acme"]);
    // The command needs no cluster, though the environment names one.
    assert_eq!(desk.user.images(&words[..4]), everything);
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": "cert-manager"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(desk.story.client.clone());
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(images(), ["infrastructure-acme"]);
    desk.uninstall("CoreProvider", "cluster-api").await;
    assert_eq!(images(), with_kubeadm(&["infrastructure-acme"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn classes_that_are_missing_come_with_the_template() {
    let plane = Plane::start().await;
    let desk = Desk::at(&plane, "classes").await;
    let client = &desk.story.client;
    let words = [&GENERATE[..], &["-i", "acme:v1.0.0"]].concat();
    let whole = ["ClusterClass", "AcmeClusterTemplate", "Cluster"];

    let objects = desk.objects(&words, &[]);
    assert_eq!(kinds(&objects), whole, "the server does not know the kinds yet");
    assert!(objects.iter().all(|it| it["metadata"]["namespace"] == desk.story.namespace.as_str()));

    install_crds(client, &[class_crd(), generic::crd("AcmeClusterTemplate", &[])], "story").await.unwrap();
    assert_eq!(kinds(&desk.objects(&words, &[])), whole, "the kinds are there, the objects are not");

    desk.story.create_generic("AcmeClusterTemplate", "quick-cluster", json!({})).await;
    let expected = [
        "ClusterClass quick is not in namespace",
        "but AcmeClusterTemplate quick-cluster of",
        "clusterclass-quick.yaml is",
        "hint: delete that object",
    ];
    desk.refused(&words, &[], &expected);
    assert_eq!(
        kinds(&desk.objects(&words, &["-n", "elsewhere"])),
        whole,
        "another namespace is another matter"
    );

    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "ClusterClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusterclasses");
    let classes: Api<DynamicObject> = Api::namespaced_with(client.clone(), &desk.story.namespace, &resource);
    let class = DynamicObject::new("quick", &resource).data(json!({"spec": {}}));
    classes.create(&PostParams::default(), &class).await.unwrap();
    assert_eq!(kinds(&desk.objects(&words, &[])), ["Cluster"], "a class that is there is left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_can_be_in_a_config_map() {
    let plane = shared_plane().await;
    let desk = Desk::at(&plane, "config-map").await;
    let other = Desk::at(&plane, "templates").await;
    let template = |from: &str| {
        let text =
            format!("kind: Cluster\nmetadata: {{name: '${{CLUSTER_NAME}}', labels: {{from: {from}}}}}\n");
        json!(text)
    };
    desk.create_config_map("mine", json!({"template": template("mine"), "large": template("large")})).await;
    other.create_config_map("theirs", json!({"other": template("theirs")})).await;
    let words = [&GENERATE[..], &["--from-config-map", "mine"]].concat();
    let objects = desk.objects(&words, &[]);
    assert_eq!(release_of(&objects), "mine");
    assert_eq!(objects[0]["metadata"]["namespace"], desk.story.namespace.as_str());
    assert_eq!(release_of(&desk.objects(&words, &["--from-config-map-key", "large"])), "large");

    let there = ["--from-config-map-namespace", &other.story.namespace];
    let words = [&GENERATE[..], &["--from-config-map", "theirs"], &there].concat();
    let objects = desk.objects(&words, &["--from-config-map-key", "other"]);
    assert_eq!(release_of(&objects), "theirs");
    assert_eq!(objects[0]["metadata"]["namespace"], desk.story.namespace.as_str());

    let name = format!("{}/theirs", other.story.namespace);
    desk.refused(
        &words,
        &[],
        &[&format!("ConfigMap {name} has no key template"), "--from-config-map-key: other"],
    );
    let words = [&GENERATE[..], &["--from-config-map", "theirs"]].concat();
    desk.refused(
        &words,
        &[],
        &[&format!("there is no ConfigMap {}/theirs in https://", desk.story.namespace)],
    );
    desk.create_config_map("broken", json!({"template": "kind: A\nb: ${UNSET}\n"})).await;
    let words = [&GENERATE[..], &["--from-config-map", "broken"]].concat();
    let place = format!("ConfigMap {}/broken, key template", desk.story.namespace);
    desk.refused(&words, &[], &[&place, "UNSET (line 2, column 4)"]);
    // A user who may not read it.
    let mut kubeconfig = Kubeconfig::read_from(desk.user.home.join("kubeconfig")).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some("nobody".to_owned());
    desk.user.write("nobody", &serde_json::to_string(&kubeconfig).unwrap());
    let expected = ["cannot read ConfigMap", ": configmaps \"broken\" is forbidden: User \"nobody\""];
    desk.refused(&words, &["--kubeconfig", "nobody"], &expected);
    let desk = Desk { user: User::new(), ..desk };
    desk.refused(&words, &["-n", "ns"], &["no kubeconfig names one", "--kubeconfig"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_and_namespaces_come_from_the_kubeconfig() {
    let plane = shared_plane().await;
    let desk = Desk::at(&plane, "contexts").await;
    let mut kubeconfig = Kubeconfig::read_from(desk.user.home.join("kubeconfig")).unwrap();
    let mut second = kubeconfig.contexts[0].clone();
    second.name = "second".to_owned();
    second.context.as_mut().unwrap().namespace = Some("of-second".to_owned());
    kubeconfig.contexts.push(second);
    fs::write(desk.user.home.join("kubeconfig"), serde_json::to_string(&kubeconfig).unwrap()).unwrap();
    desk.user.write("t.yaml", "kind: Cluster\nmetadata: {name: '${CLUSTER_NAME}'}\n");
    let words = [&GENERATE[..], &["--from", "t.yaml"]].concat();
    let namespace = |more: &[&str]| desk.objects(&words, more)[0]["metadata"]["namespace"].clone();
    assert_eq!(namespace(&[]), desk.story.namespace.as_str());
    assert_eq!(namespace(&["--kubeconfig-context", "second"]), "of-second");
    desk.refused(&words, &["--kubeconfig-context", "third"], &["cannot use the management cluster", "third"]);
    desk.refused(&words, &["--kubeconfig", "gone"], &["cannot use the management cluster", "gone"]);
    // The namespaces of the cluster complete those of the flag.
    let mut command = desk.user.command(env!("CARGO_BIN_EXE_capstan"), &["--", "capstan"]);
    command.args(["generate", "cluster", "c", "-n", "context"]).env("CAPSTAN_COMPLETE", "bash");
    command.env("_CLAP_COMPLETE_INDEX", "5").env("_CLAP_IFS", "\n");
    let offered = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(offered, desk.story.namespace);
}

/// Nothing listens on the port, so that nothing can be asked.
#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let user = User::of_acme();
    let template = TEMPLATE.replace("RELEASE", VERSION);
    let files = [("cluster-template.yaml", template.as_str()), ("clusterclass-quick.yaml", CLASS)];
    user.release("infrastructure-acme", VERSION, &files);
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
        "users": [{"name": "u", "user": {}}],
    });
    let file = user.write("kubeconfig", &kubeconfig.to_string());
    let user = user.with("KUBECONFIG", file);
    let place = "in https://127.0.0.1:1/";
    for (more, doing) in [
        (&[][..], "cannot list installed providers"),
        (&["-i", "acme"], "cannot list installed providers"),
        (&["-i", "acme:v1.0.0"], "cannot look for ClusterClass mine/quick"),
        (&["--from-config-map", "t"], "cannot read ConfigMap mine/t"),
    ] {
        refused(&user, &[&GENERATE[..], more].concat(), &[doing, place, "Connection refused"]);
    }
    let path = user.path("kubeconfig");
    user.run(&["init", "list-images", "--kubeconfig", &path])
        .fails(&["cannot list installed providers", place]);
    // What needs no answer works: the kubeconfig alone names the namespace.
    user.write("t.yaml", "kind: Cluster\nmetadata: {name: '${CLUSTER_NAME}'}\n");
    let objects = user.run(&[&GENERATE[..], &["--from", "t.yaml"]].concat()).objects();
    assert_eq!(objects[0]["metadata"], json!({"name": "c", "namespace": "mine"}));
}
