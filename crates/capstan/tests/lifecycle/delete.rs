//! `delete`: what goes with a provider, what outlives it, and when it is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    check::Ready,
    delete::{self, DeleteError, DeleteGoal, DeleteOptions, DeletePlan, DeletePolicy, Selection},
};
use capstan_management::{
    ManagementCluster, apply,
    inventory::{self, Installed, Inventory},
};
use capstan_manifest::{
    components::{self, Options},
    images::Overrides,
};
use capstan_testkit::wait::{self, LIMIT};
use k8s_openapi::{
    api::core::v1::{Namespace, Service},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams},
    config::Kubeconfig,
    core::{GroupVersionKind, ObjectMeta},
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{
    estate::{Estate, Release, cert_manager, forget},
    user::User,
};

const ACME: &str = "infrastructure-acme";
const WEBHOOKS: &str = "ValidatingWebhookConfiguration";

impl Release {
    /// Its objects as they are installed.
    pub(crate) fn rendered(&self, components: Vec<Value>) -> Vec<Value> {
        let options = Options {
            label: self.label,
            target_namespace: None,
            watching_namespace: None,
            rbac_prefix: true,
            images: &Overrides::default(),
        };
        components::render(components, &options).unwrap().into_objects()
    }

    pub(crate) fn entry(&self) -> Installed {
        let (kind, name) = ProviderType::from_label(self.label).unwrap();
        Installed {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            kind,
            version: self.version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }
}

impl Estate {
    /// Installs releases as they are published, and records them.
    pub(crate) async fn put_in(&self, releases: &[Release]) {
        for release in releases {
            self.apply(&release.rendered(release.components())).await;
            inventory::record(&self.cluster(), &release.entry()).await.unwrap();
        }
    }

    /// Applies objects.
    pub(crate) async fn apply(&self, objects: &[Value]) {
        apply::apply(&self.cluster(), objects, &|_| {}).await.unwrap();
    }

    /// What other providers and users need: the inventory and cert-manager's kinds.
    pub(crate) async fn furnish(&self) {
        self.apply(&[capstan_api::inventory::crd()]).await;
        self.apply(&cert_manager()).await;
    }

    /// What is there of a provider, as `Kind namespace/name`.
    async fn remains(&self, label: &str) -> BTreeSet<String> {
        of(&self.labelled().await, label)
    }

    fn acme_clusters(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("infrastructure.cluster.x-k8s.io", "v1beta2", "AcmeCluster");
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::from_gvk(&kind))
    }

    async fn create_acme_cluster(&self, namespace: &str, name: &str) {
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AcmeCluster",
            "metadata": {"namespace": namespace, "name": name},
        });
        self.apply(&[object]).await;
    }

    /// The same user, whom the server takes for another user.
    fn kubeconfig_of(&self, name: &str) -> String {
        let mut kubeconfig = Kubeconfig::read_from(self.plane.kubeconfig()).unwrap();
        kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some(name.to_owned());
        let text = serde_json::to_string(&kubeconfig).unwrap();
        self.user.write(&format!("{name}.json"), &text).to_str().unwrap().to_owned()
    }
}

fn of(labelled: &BTreeMap<String, Value>, label: &str) -> BTreeSet<String> {
    let is_own = |it: &Value| it["metadata"]["labels"]["cluster.x-k8s.io/provider"] == label;
    labelled.iter().filter(|(_, it)| is_own(it)).map(|(id, _)| id.clone()).collect()
}

fn names(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

/// What outlives acme.
const SHARED: [&str; 2] =
    ["CustomResourceDefinition /acmeclusters.infrastructure.cluster.x-k8s.io", "Namespace /acme-system"];

#[test]
fn what_to_delete_must_be_said_and_where() {
    let user = User::new();
    user.run(&["delete"]).fails(&["nothing says which providers to delete", "--all"]);
    user.run(&["delete", "--all", "-i", "acme"]).fails(&["some are named as well", "leave out"]);
    user.run(&["delete", "-i", "acme:"]).fails(&["NAME:VERSION"]);
    user.run(&["delete", "--all"]).fails(&["no management cluster is named", "--kubeconfig"]);
    let alone = user.run(&["delete", "--all", "--diff"]);
    assert_eq!(alone.code, Some(1), "{alone:?}");
    assert!(alone.err.contains("--dry-run"), "{}", alone.err);
    let nobody = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    let kubeconfig = user.write("nobody.json", &nobody.to_string());
    user.run(&["delete", "--all", "--kubeconfig", kubeconfig.to_str().unwrap()])
        .fails(&["https://127.0.0.1:1", "can be reached"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_goes_and_what_others_need_stays() {
    let estate = Estate::new().await;
    nothing_is_installed(&estate).await;
    estate.furnish().await;
    estate.put_in(&Release::all("v1.0.0")).await;
    let before = estate.labelled().await;
    // Both kinds of names for roles are found, and leftovers in other namespaces.
    assert!(of(&before, ACME).contains("ClusterRole /acme-system-acme-manager-role"), "{before:?}");
    let strays = strays();
    estate.apply(&strays).await;
    let before = estate.labelled().await;

    mistakes_change_nothing(&estate).await;
    strangers_are_refused(&estate).await;
    estate.create_acme_cluster("default", "precious").await;
    dry_runs_change_nothing(&estate).await;
    users_are_protected(&estate).await;
    assert_eq!(estate.labelled().await, before, "nothing was changed so far");

    let told = estate.run(&["delete", "-i", "acme", "--force"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for words in
        ["infrastructure-acme v1.0.0 in namespace acme-system", "--include-crd", "--include-namespace"]
    {
        assert!(told.err.contains(words), "{words} is missing in {}", told.err);
    }
    let after = estate.labelled().await;
    assert_eq!(of(&after, ACME), names(&SHARED));
    let others = |all: &BTreeMap<String, Value>| {
        let own = of(&before, ACME);
        all.iter().filter(|(id, _)| !own.contains(*id)).map(|it| it.1.clone()).collect::<Vec<_>>()
    };
    assert_eq!(others(&after), others(&before), "other providers are as they were");
    assert!(estate.acme_clusters("default").get_opt("precious").await.unwrap().is_some());

    // Once more: what is kept is no work.
    let told = estate.run(&["delete", "-i", "acme"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("nothing to delete"), "{}", told.err);
    assert_eq!(estate.labelled().await, after);

    kinds_go_when_nobody_needs_them(&estate).await;
    halves_are_cleaned_up(&estate).await;
    what_took_a_name_meanwhile_is_left_alone(&estate).await;
    everything_goes_in_one_go(&estate).await;
}

/// Roles as upstream names them, and objects outside of the provider's namespace.
fn strays() -> Vec<Value> {
    let labels = json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": ACME});
    vec![
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": "acme-manager-role", "labels": labels}, "rules": []}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
               "metadata": {"name": "acme-reader", "namespace": "kube-system", "labels": labels}, "rules": []}),
    ]
}

async fn nothing_is_installed(estate: &Estate) {
    let told = estate.run(&["delete", "--all"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("nothing to delete"), "{}", told.err);
    estate.run(&["delete", "-i", "acme"]).fails(&["infrastructure-acme is not installed", "no provider"]);
    assert!(estate.labelled().await.is_empty(), "not even the inventory's kind was made");
}

async fn mistakes_change_nothing(estate: &Estate) {
    let before = estate.labelled().await;
    estate.run(&["delete", "-i", "acme,nobody"]).fails(&[
        "infrastructure-nobody is not installed",
        "cluster-api v1.0.0",
        "infrastructure-acme v1.0.0",
    ]);
    estate.run(&["delete", "-i", "acme:v2.0.0"]).fails(&["in version v1.0.0, not v2.0.0"]);
    let second = Installed { namespace: "second-system".to_owned(), ..Release::all("v1.0.0")[3].entry() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "second-system"}});
    estate.apply(&[namespace]).await;
    inventory::record(&estate.cluster(), &second).await.unwrap();
    estate.run(&["delete", "-i", "acme"]).fails(&[
        "several times",
        "acme-system, second-system",
        "--namespace acme-system",
        "--all",
    ]);
    forget(&estate.client, &second).await;
    assert_eq!(estate.labelled().await, before);
}

async fn strangers_are_refused(estate: &Estate) {
    let nobody = estate.kubeconfig_of("nobody");
    estate.run(&["delete", "-i", "acme", "--kubeconfig", &nobody]).fails(&["nobody", "cluster-admin"]);
    // Without permission to write, the first object fails.
    estate
        .apply(&[
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                   "metadata": {"name": "looker"},
                   "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                   "metadata": {"name": "looker"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"},
                   "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}]}),
        ])
        .await;
    let looker = estate.kubeconfig_of("looker");
    let start = Instant::now();
    estate.run(&["delete", "-i", "acme", "--kubeconfig", &looker]).fails(&[
        "cannot delete ValidatingWebhookConfiguration acme-validating-webhook-configuration",
        "deleted 0 objects before that",
    ]);
    assert!(start.elapsed() < Duration::from_secs(50), "a refusal is not worth another try");
}

async fn dry_runs_change_nothing(estate: &Estate) {
    let before = estate.labelled().await;
    let text = estate.run(&["delete", "-i", "acme", "--dry-run"]).data();
    for words in [
        "infrastructure-acme: 11 deleted",
        "- acme-validating-webhook-configuration: validation.acmeclusters.infrastructure.cluster.x-k8s.io",
        "- Deployment acme-system/acme-controller-manager manager: registry.example.com/acme:v1.0.0",
        "would be refused: there is still 1 object",
        "AcmeCluster default/precious",
        "--include-crd",
    ] {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
    assert!(!text.contains("-kind: Deployment"), "{text}");
    let text = estate.run(&["delete", "-i", "acme", "--dry-run", "--diff"]).data();
    assert!(
        text.contains("delete Deployment acme-system/acme-controller-manager\n-apiVersion: apps/v1\n"),
        "{text}"
    );
    let json = estate.run(&["delete", "-i", "acme", "--dry-run", "-o", "json"]).only_data();
    let json: Value = serde_json::from_str(&json).unwrap();
    let objects = json["providers"][0]["objects"].as_array().unwrap();
    assert!(objects.iter().all(|it| it["action"] == "deleted" && it.get("difference").is_none()), "{json:#}");
    assert_eq!(estate.labelled().await, before);
}

async fn users_are_protected(estate: &Estate) {
    let named = ["there is still 1 object", "AcmeCluster default/precious"];
    let refused = estate.run(&["delete", "-i", "acme"]).fails(&named);
    assert!(refused.contains("--force"), "{refused}");
    // Kinds would take their objects along, which no force is for.
    let refused = estate.run(&["delete", "-i", "acme", "--include-crd", "--force"]).fails(&named);
    assert!(!refused.contains("--force"), "{refused}");
    // The namespace would, too.
    for number in 0..12 {
        estate.create_acme_cluster("capi-system", &format!("c{number:02}")).await;
    }
    let words = ["there are still 12 objects", "AcmeCluster capi-system/c00, capi-system/c01", "and 2 more"];
    estate.run(&["delete", "--core", "cluster-api", "--include-namespace"]).fails(&words);
    let clusters = estate.acme_clusters("capi-system");
    clusters.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await.unwrap();
}

async fn kinds_go_when_nobody_needs_them(estate: &Estate) {
    estate.run(&["delete", "-i", "acme", "--include-crd"]).fails(&["AcmeCluster default/precious"]);
    estate.acme_clusters("default").delete("precious", &DeleteParams::default()).await.unwrap();
    what_is_made_meanwhile_is_not_taken_along(estate).await;
    let told = estate.run(&["delete", "-i", "acme", "--include-crd"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let crds: Api<CustomResourceDefinition> = Api::all(estate.client.clone());
    let gone = crds.get_opt("acmeclusters.infrastructure.cluster.x-k8s.io").await.unwrap();
    assert!(gone.is_none(), "it was waited for");
    assert_eq!(estate.remains(ACME).await, names(&["Namespace /acme-system"]));
}

async fn what_is_made_meanwhile_is_not_taken_along(estate: &Estate) {
    let cluster = estate.cluster();
    let options = DeleteOptions { include_crd: true, include_namespace: false };
    let ready = ready_to_delete_acme(&cluster, options).await;
    estate.create_acme_cluster("default", "late").await;
    let error = ready.run(&|_| {}).await.unwrap_err();
    let usages = match &error {
        DeleteError::MadeMeanwhile { usages } => usages,
        other => panic!("{other}"),
    };
    assert_eq!(usages.iter().map(ToString::to_string).collect::<Vec<_>>(), ["AcmeCluster default/late"]);
    estate.acme_clusters("default").delete("late", &DeleteParams::default()).await.unwrap();
}

/// An entry without objects, and objects without an entry.
async fn halves_are_cleaned_up(estate: &Estate) {
    let [.., acme] = Release::all("v1.0.0");
    inventory::record(&estate.cluster(), &acme.entry()).await.unwrap();
    assert_eq!(estate.run(&["delete", "-i", "acme:v1.0.0"]).code, Some(0));
    assert_eq!(estate.remains(ACME).await, names(&["Namespace /acme-system"]));

    estate.apply(&acme.rendered(acme.components())).await;
    estate.run(&["delete", "-i", "acme:v1.0.0"]).fails(&["infrastructure-acme is not installed"]);
    let told = estate.run(&["delete", "-i", "acme"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("what is left of infrastructure-acme"), "{}", told.err);
    assert_eq!(estate.remains(ACME).await, names(&SHARED));
}

async fn what_took_a_name_meanwhile_is_left_alone(estate: &Estate) {
    const SERVICE: &str = "acme-webhook-service";
    let [.., acme] = Release::all("v1.0.0");
    let services: Api<Service> = Api::namespaced(estate.client.clone(), acme.namespace);
    estate.put_in(&[acme]).await;
    let cluster = estate.cluster();
    let ready = ready_to_delete_acme(&cluster, DeleteOptions::default()).await;
    let mut theirs = services.get(SERVICE).await.unwrap();
    services.delete(SERVICE, &DeleteParams::default()).await.unwrap();
    theirs.metadata = ObjectMeta { name: Some(SERVICE.to_owned()), ..ObjectMeta::default() };
    let theirs = services.create(&PostParams::default(), &theirs).await.unwrap();
    ready.run(&|_| {}).await.unwrap();
    assert_eq!(services.get(SERVICE).await.unwrap().metadata.uid, theirs.metadata.uid);
    assert_eq!(estate.remains(ACME).await, names(&SHARED));
}

async fn ready_to_delete_acme(cluster: &ManagementCluster, options: DeleteOptions) -> Ready<DeletePlan> {
    let (kind, name) = (ProviderType::Infrastructure, "acme".to_owned());
    let selection = Selection::Named(vec![DeleteGoal { kind, name, version: None, namespace: None }]);
    let inventory = Inventory::read(cluster).await.unwrap();
    let plan = delete::plan(cluster, &inventory, &selection, options).await.unwrap();
    plan.check(cluster, DeletePolicy { force: true }).unwrap()
}

async fn everything_goes_in_one_go(estate: &Estate) {
    let told = estate.run(&["delete", "--all", "--include-crd", "--include-namespace"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let namespaces: Api<Namespace> = Api::all(estate.client.clone());
    for release in Release::all("v1.0.0") {
        wait::until_gone(&namespaces, release.namespace, LIMIT).await;
    }
    let left: Vec<String> = estate.labelled().await.into_keys().collect();
    assert_eq!(left, <[String; 0]>::default());
    for name in ["cert-manager", "default", "kube-system"] {
        assert!(namespaces.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    let told = estate.run(&["delete", "--all", "--include-crd", "--include-namespace"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("nothing to delete"), "{}", told.err);
}

/// Objects of a user's, with the labels of what they were copied from.
pub(crate) fn copies(label: &str) -> Vec<Value> {
    let metadata = |name: &str| {
        let labels = json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": label});
        json!({"name": name, "namespace": "team", "labels": labels})
    };
    let pods = json!({"metadata": {"labels": {"app": "copy"}},
                      "spec": {"containers": [{"name": "manager", "image": "registry.example.com/copy:v1"}]}});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("copy"), "data": {"a": "b"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("copy"),
               "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "copy"}}, "template": pods}}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_copied_stays() {
    let estate = Estate::bare().await;
    estate.furnish().await;
    let [core, .., acme] = Release::all("v1.0.0");
    estate.put_in(&[core, acme]).await;
    estate.apply(&strays()).await;
    estate.create_by_hand(&copies(ACME)).await;
    let mut cluster = copies(ACME)[1].clone();
    cluster["apiVersion"] = json!("infrastructure.cluster.x-k8s.io/v1beta2");
    cluster["kind"] = json!("AcmeCluster");
    estate.create_by_hand(&[cluster]).await;

    // The user's object of a kind that goes is protected like any other.
    for more in [&[][..], &["--include-crd", "--force"]] {
        estate.run(&[&["delete", "-i", "acme"], more].concat()).fails(&["AcmeCluster team/copy"]);
    }
    let told = estate.run(&["delete", "-i", "acme", "--force"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for words in ["ConfigMap team/copy", "Deployment team/copy", "stay: labelled as infrastructure-acme, but"]
    {
        assert!(told.err.contains(words), "{words:?} is missing in {}", told.err);
    }
    let copies = ["AcmeCluster team/copy", "ConfigMap team/copy", "Deployment team/copy"];
    assert_eq!(estate.remains(ACME).await, names(&[SHARED.as_slice(), &copies].concat()));

    // What is left is not the provider's.
    let told = estate.run(&["delete", "--all", "--force"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(estate.remains(ACME).await, names(&[SHARED.as_slice(), &copies].concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_instances_share_outlives_them() {
    let estate = Estate::bare().await;
    estate.furnish().await;
    let [core, _, _, acme] = Release::all("v1.0.0");
    estate.put_in(std::slice::from_ref(&core)).await;
    // An old release keeps who answers the API server in a namespace of all instances.
    let mut old = acme.components();
    old.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-webhook-system"}}));
    for object in &mut old {
        if object["kind"] == "Service" {
            object["metadata"]["namespace"] = json!("capi-webhook-system");
        }
        if object["kind"] == WEBHOOKS {
            object["webhooks"][0]["clientConfig"]["service"]["namespace"] = json!("capi-webhook-system");
        }
    }
    estate.apply(&acme.rendered(old)).await;
    inventory::record(&estate.cluster(), &acme.entry()).await.unwrap();

    let told = estate.run(&["delete", "-i", "acme"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let shared = names(&[
        SHARED[0],
        SHARED[1],
        "Namespace /capi-webhook-system",
        "Service capi-webhook-system/acme-webhook-service",
        "ValidatingWebhookConfiguration /acme-validating-webhook-configuration",
    ]);
    assert_eq!(estate.remains(ACME).await, shared);

    // The namespace stays for as long as another provider may need it.
    assert_eq!(estate.run(&["delete", "-i", "acme", "--include-crd", "--include-namespace"]).code, Some(0));
    let remains = estate.remains(ACME).await;
    let terminating = names(&[SHARED[1], "Namespace /capi-webhook-system"]);
    assert_eq!(remains, terminating, "without controllers a namespace ends, but does not go");
    let namespaces: Api<Namespace> = Api::all(estate.client.clone());
    let is_ending =
        async |name: &str| namespaces.get(name).await.unwrap().metadata.deletion_timestamp.is_some();
    assert!(is_ending("acme-system").await && !is_ending("capi-webhook-system").await);

    // A namespace that another provider is in as well stays with it.
    let lodger = Installed { namespace: core.namespace.to_owned(), ..acme.entry() };
    inventory::record(&estate.cluster(), &lodger).await.unwrap();
    let told = estate.run(&["delete", "--core", "cluster-api", "--include-namespace"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.err.contains("Namespace capi-system stays: infrastructure-acme is in it as well"),
        "{}",
        told.err
    );
    assert!(!is_ending("capi-system").await);
    nobody_converts(&estate).await;
}

/// Objects are stored in a version that has to be converted, and no process serves the conversion.
async fn nobody_converts(estate: &Estate) {
    let [_, kubeadm, ..] = Release::all("v1.0.0");
    let object = |version: &str, name: &str| {
        json!({"apiVersion": format!("bootstrap.cluster.x-k8s.io/{version}"), "kind": "KubeadmConfig",
               "metadata": {"namespace": "default", "name": name}})
    };
    let older =
        Release { kind: (kubeadm.kind.0, kubeadm.kind.1, &["v1beta2", "v1beta1"]), ..kubeadm.clone() };
    estate.put_in(&[older]).await;
    estate.apply(&[object("v1beta1", "old")]).await;
    let mut components = kubeadm.rendered(kubeadm.components());
    let crd = components.iter_mut().find(|it| it["kind"] == "CustomResourceDefinition").unwrap();
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "nowhere", "name": "nobody"}},
    }});
    estate.apply(&components).await;
    // What is stored in an old version is read in that one.
    estate.run(&["delete", "--bootstrap", "kubeadm"]).fails(&["KubeadmConfig default/old", "--force"]);

    estate.apply(&[object("v1beta2", "new")]).await;
    let deadline = Instant::now() + LIMIT;
    loop {
        let refused = estate.run(&["delete", "--bootstrap", "kubeadm"]).fails(&["there are still"]);
        if refused.contains("KubeadmConfig that cannot be read") {
            break;
        }
        assert!(Instant::now() < deadline, "the server hears of a CRD a moment later: {refused}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let kinds = ["delete", "--bootstrap", "kubeadm", "--include-crd", "--force"];
    estate.run(&kinds).fails(&["KubeadmConfig that cannot be read"]);
    let told = estate.run(&["delete", "--bootstrap", "kubeadm", "--force"]);
    assert_eq!(told.code, Some(0), "{told:?}");
}
