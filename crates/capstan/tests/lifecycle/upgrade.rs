//! Providers to newer versions: what is shown, what is refused, what is done, and what is left when it goes wrong.

use std::{collections::BTreeMap, time::Duration};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::cert_manager::Manifest;
use capstan_management::{
    apply,
    inventory::{self, Installed},
};
use capstan_manifest::images::Overrides;
use capstan_testkit::wait::LIMIT;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    delete::copies,
    estate::{Estate, Release, cert_manager, forget},
};

const CORE: &str = "cluster-api";
const ACME: &str = "infrastructure-acme";
/// The annotations that a run leaves only if it was killed.
const TRACES: [&str; 2] = ["capstan.dev/replicas-before-upgrade", "capstan.dev/upgrading-to"];

/// A CRD of cert-manager's.
const ISSUERS: &str = "issuers.cert-manager.io";

/// Who installed a provider.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Capstan,
    Clusterctl,
}

fn release(label: &str, version: &'static str) -> Release {
    Release::all(version).into_iter().find(|it| it.label == label).unwrap()
}

fn installed(label: &str, version: &str) -> Installed {
    let (kind, name) = ProviderType::from_label(label).unwrap();
    let namespace = release(label, "v1.0.0").namespace.to_owned();
    Installed {
        namespace,
        name: name.to_owned(),
        kind,
        version: version.to_owned(),
        watched_namespace: None,
        upgrading_to: None,
    }
}

/// Changes one object of a kind among others.
fn change(objects: &mut [Value], kind: &str, change: impl FnOnce(&mut Value)) {
    change(objects.iter_mut().find(|it| it["kind"] == kind).unwrap());
}

impl Estate {
    /// Installs a release that is published.
    async fn install_one(&self, label: &str, version: &str, by: By) {
        let (kind, name) = ProviderType::from_label(label).unwrap();
        let (flag, argument) = (format!("--{}", kind.prefix()), format!("{name}:{version}"));
        let prefix = format!("--rbac-prefix={}", by == By::Capstan);
        let objects = self.run(&["generate", "provider", &flag, &argument, &prefix]).objects();
        match by {
            By::Capstan => apply::apply(&self.cluster(), &objects, &|_| {}).await.unwrap(),
            By::Clusterctl => self.create_as_clusterctl(&objects).await,
        }
        inventory::record(&self.cluster(), &installed(label, version)).await.unwrap();
    }

    async fn create_as_clusterctl(&self, objects: &[Value]) {
        let cluster = self.cluster();
        let params = PostParams { field_manager: Some("clusterctl".to_owned()), ..PostParams::default() };
        for object in objects {
            let kind = cluster.kinds().await.unwrap().of(object).unwrap().clone();
            let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
            let api = cluster.objects(&kind, object.metadata.namespace.as_deref());
            api.create(&params, &object).await.unwrap();
        }
    }

    /// Everything in version v1.0.0, installed by us.
    async fn with_everything() -> Self {
        let estate = Self::new().await;
        estate.ground().await;
        for release in Release::all("v1.0.0") {
            estate.install_one(release.label, "v1.0.0", By::Capstan).await;
        }
        estate
    }

    /// What providers need.
    async fn ground(&self) {
        apply::apply(&self.cluster(), &cert_manager(), &|_| {}).await.unwrap();
        apply::apply(&self.cluster(), &[capstan_api::inventory::crd()], &|_| {}).await.unwrap();
    }

    fn publish_all(&self, version: &'static str) {
        for release in &Release::all(version) {
            self.publish(release);
        }
    }

    async fn versions(&self) -> BTreeMap<String, String> {
        let inventory = inventory::Inventory::read(&self.cluster()).await.unwrap();
        inventory.providers.into_iter().map(|it| (it.label(), it.version)).collect()
    }

    async fn deployment(&self, label: &str) -> Deployment {
        let release = release(label, "v1.0.0");
        let name = format!("{}-controller-manager", release.namespace.trim_end_matches("-system"));
        Api::namespaced(self.client.clone(), release.namespace).get(&name).await.unwrap()
    }

    async fn replicas(&self, label: &str) -> Option<i32> {
        self.deployment(label).await.spec.unwrap().replicas
    }

    async fn scale(&self, label: &str, replicas: i32) {
        let metadata = self.deployment(label).await.metadata;
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &metadata.namespace.unwrap());
        let params = PatchParams { field_manager: Some("hands".to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch(&metadata.name.unwrap(), &params, &patch).await.unwrap();
    }

    /// Providers have the next version, and nothing tells of the way there.
    async fn assert_upgraded(&self, labels: &[&str]) {
        let versions = self.versions().await;
        for label in labels {
            assert_eq!(versions[*label], "v1.1.0", "{label}");
        }
        assert_no_traces(&self.labelled().await);
    }

    /// Makes sure that a run has stopped no controller and left no trace.
    async fn assert_untouched(&self, before: &BTreeMap<String, Value>) {
        assert_same(&self.labelled().await, before);
    }
}

fn assert_same(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    let names = |it: &BTreeMap<String, Value>| it.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for (name, object) in found {
        assert_eq!(object, &expected[name], "{name}");
    }
}

fn assert_no_traces(objects: &BTreeMap<String, Value>) {
    for (name, object) in objects {
        for trace in TRACES {
            assert!(object["metadata"]["annotations"].get(trace).is_none(), "{name} has {trace}");
        }
    }
}

const UP_TO_DATE: &str = "
Latest release available for the v1beta2 Cluster API contract version:

NAME                    NAMESPACE                           TYPE                     CURRENT VERSION   NEXT VERSION
bootstrap-kubeadm       capi-kubeadm-bootstrap-system       BootstrapProvider        v1.0.0            Already up to date
control-plane-kubeadm   capi-kubeadm-control-plane-system   ControlPlaneProvider     v1.0.0            Already up to date
cluster-api             capi-system                         CoreProvider             v1.0.0            Already up to date
infrastructure-acme     acme-system                         InfrastructureProvider   v1.0.0            Already up to date

You are already up to date!

";

const NEWER: &str = "
Latest release available for the v1beta2 Cluster API contract version:

NAME                    NAMESPACE                           TYPE                     CURRENT VERSION   NEXT VERSION
bootstrap-kubeadm       capi-kubeadm-bootstrap-system       BootstrapProvider        v1.0.0            v1.1.0
control-plane-kubeadm   capi-kubeadm-control-plane-system   ControlPlaneProvider     v1.0.0            Unknown
cluster-api             capi-system                         CoreProvider             v1.0.0            v1.1.0
infrastructure-acme     acme-system                         InfrastructureProvider   v1.0.0            v1.1.0

You can now apply the upgrade by executing the following command:

capstan upgrade apply --contract v1beta2

";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_shows_what_there_is_and_what_is_wrong_with_the_rest() {
    let estate = Estate::new().await;
    estate.run(&["upgrade", "plan"]).fails(&["no providers are installed", "capstan init"]);

    estate.ground().await;
    for release in Release::all("v1.0.0") {
        estate.install_one(release.label, "v1.0.0", By::Capstan).await;
    }
    assert_eq!(estate.run(&["upgrade", "plan"]).only_data(), UP_TO_DATE);

    // A tag without a release, one that is no version, a pre-release without its series, and a repository that is
    // not there.
    estate.publish_all("v1.1.0");
    estate.user.write(&format!("repository/{ACME}/v1.2.0/infrastructure-components.yaml"), "");
    estate.user.write("repository/bootstrap-kubeadm/newest/metadata.yaml", "");
    estate.user.write(&format!("repository/{CORE}/v2.0.0-rc.0/metadata.yaml"), "");
    let repository = estate.user.home.join("repository");
    std::fs::rename(repository.join("control-plane-kubeadm"), repository.join("moved")).unwrap();
    let entry = json!({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider",
                       "metadata": {"name": "quantum-acme", "namespace": "default"},
                       "providerName": "acme", "type": "QuantumProvider", "version": "v1.0.0"});
    estate.apply(&[entry]).await;
    let told = estate.run(&["upgrade", "plan"]);
    assert_eq!(told.out, NEWER, "{}", told.err);
    for words in [
        "warning: infrastructure-acme: v1.2.0 is skipped: ",
        "warning: bootstrap-kubeadm: newest is skipped: ",
        "warning: control-plane-kubeadm: cannot determine available versions: ",
        "warning: Provider default/quantum-acme is ignored: its type is unknown",
    ] {
        assert!(told.err.contains(words), "{words:?} is missing in {}", told.err);
    }
    for label in [ACME, "bootstrap-kubeadm", "control-plane-kubeadm"] {
        let name = format!("{label}: ");
        let is_named_once = |line: &str| line.matches(&name).count() <= 1;
        assert!(told.err.lines().all(is_named_once), "{label} is named once a line: {}", told.err);
    }
    assert!(!told.err.contains("v2.0.0-rc.0"), "pre-releases are not even looked at: {}", told.err);

    let plan: Value = serde_json::from_str(&estate.run(&["upgrade", "plan", "-o", "json"]).data()).unwrap();
    let row = |name: &str| {
        let rows = plan["plans"][0]["providers"].as_array().unwrap();
        rows.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(
        row(CORE),
        json!({"name": CORE, "namespace": "capi-system", "type": "CoreProvider", "currentVersion": "v1.0.0",
               "nextVersion": "v1.1.0", "isKnown": true})
    );
    assert_eq!(row("control-plane-kubeadm")["isKnown"], false);
    assert_eq!(plan["plans"][0]["contract"], "v1beta2");
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 3);

    // A contract that is not spoken is shown, but cannot be upgraded to; one is left behind.
    std::fs::rename(repository.join("moved"), repository.join("control-plane-kubeadm")).unwrap();
    for release in Release::all("v2.0.0") {
        estate.publish(&Release { series: NEXT_SERIES, ..release });
    }
    let told = estate.run(&["upgrade", "plan"]);
    let closing =
        "The current version of capstan could not upgrade to v1beta9 contract (only v1beta2 supported).\n";
    assert!(told.out.contains(closing), "{told:?}");
    estate.run(&["upgrade", "apply", "--contract", "v1beta9"]).fails(&["\"v1beta9\" cannot be upgraded to"]);
}

/// What the next release of the infrastructure provider does differently.
fn next_acme() -> Vec<Value> {
    let mut objects =
        Release { kind: (ACME_GROUP, "AcmeCluster", &["v1beta2"]), ..release(ACME, "v1.1.0") }.components();
    change(&mut objects, "Deployment", |it| {
        // Neither selectors nor the roles of bindings can be changed.
        it["spec"]["selector"]["matchLabels"]["generation"] = json!("two");
        it["spec"]["template"]["metadata"]["labels"]["generation"] = json!("two");
    });
    change(&mut objects, "ClusterRole", |it| it["metadata"]["name"] = json!("acme-new-role"));
    change(&mut objects, "ClusterRoleBinding", |it| it["roleRef"]["name"] = json!("acme-new-role"));
    objects
}

const ACME_GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// What its first release has that the next one has not.
fn first_acme(versions: &'static [&'static str]) -> Vec<Value> {
    let mut objects =
        Release { kind: (ACME_GROUP, "AcmeCluster", versions), ..release(ACME, "v1.0.0") }.components();
    change(&mut objects, "Service", |it| {
        it["spec"]["sessionAffinity"] = json!("ClientIP");
        it["metadata"]["annotations"] = json!({"acme.io/old": "yes"});
    });
    objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": "acme-old", "namespace": "acme-system"}, "data": {"a": "b"}}));
    objects
}

fn acme_clusters(estate: &Estate, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(ACME_GROUP, version, "AcmeCluster");
    Api::namespaced_with(estate.client.clone(), "default", &ApiResource::from_gvk(&kind))
}

/// An object without what changes whenever it is written.
fn content(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    value["metadata"].as_object_mut().unwrap().remove("managedFields");
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_as_the_new_release_says_and_what_users_made_is_left_alone() {
    let estate = Estate::new().await;
    estate.ground().await;
    for label in [CORE, "bootstrap-kubeadm", "control-plane-kubeadm"] {
        estate.install_one(label, "v1.0.0", By::Capstan).await;
    }
    // An object that is stored in a version which is about to go: it was made when there was no other.
    let acme = release(ACME, "v1.0.0");
    estate.publish_with(&acme, &first_acme(&["v1beta1"]));
    estate.install_one(ACME, "v1.0.0", By::Clusterctl).await;
    let object = json!({"apiVersion": format!("{ACME_GROUP}/v1beta1"), "kind": "AcmeCluster",
                        "metadata": {"name": "mine", "labels": {"a": "b"}}, "spec": {"size": 3}});
    let clusters = acme_clusters(&estate, "v1beta1");
    clusters.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(estate.client.clone());
    let crd = format!("acmeclusters.{ACME_GROUP}");
    let grown = first_acme(&["v1beta1", "v1beta2"]).into_iter().nth(1).unwrap();
    let patch = Patch::Merge(json!({"spec": {"versions": grown["spec"]["versions"]}}));
    crds.patch(&crd, &PatchParams::default(), &patch).await.unwrap();
    let mine = estate.served(&acme_clusters(&estate, "v1beta2"), "mine").await;
    let stored = crds.get(&crd).await.unwrap().status.unwrap().stored_versions.unwrap();
    assert_eq!(stored, ["v1beta1", "v1beta2"]);

    // A user changed objects by hand.
    estate.scale(CORE, 3).await;
    estate.scale("bootstrap-kubeadm", 2).await;

    estate.publish_all("v1.1.0");
    estate.publish_with(&release(ACME, "v1.1.0"), &next_acme());
    let open = {
        let mut objects = release("bootstrap-kubeadm", "v1.1.0").components();
        change(&mut objects, "Deployment", |it| {
            it["spec"].as_object_mut().unwrap().remove("replicas");
        });
        objects
    };
    estate.publish_with(&release("bootstrap-kubeadm", "v1.1.0"), &open);

    // Nothing is changed by a look at it.
    let before = estate.labelled().await;
    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2", "--dry-run", "--diff"]).data();
    for words in [
        "acme-old",
        "sessionAffinity",
        "Deployment acme-system/acme-controller-manager is deleted and recreated",
        "are written as v1beta2 first, since v1beta1 will be gone",
        "registry.example.com/capi:v1.1.0",
    ] {
        assert!(told.contains(words), "{words:?} is missing in {told}");
    }
    estate.assert_untouched(&before).await;

    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    for words in [
        "1 objects of acmeclusters.infrastructure.cluster.x-k8s.io are stored as v1beta2",
        "cluster-api is at v1.1.0",
        "infrastructure-acme v1.0.0 → v1.1.0",
    ] {
        assert!(told.err.contains(words), "{words:?} is missing in {}", told.err);
    }
    assert!(estate.versions().await.values().all(|it| it == "v1.1.0"));
    let after = estate.labelled().await;
    assert_no_traces(&after);

    // The release says how many there are; where it does not, they stay.
    assert_eq!(estate.replicas(CORE).await, Some(1));
    assert_eq!(estate.replicas("bootstrap-kubeadm").await, Some(2));
    let deployment = estate.deployment(ACME).await.spec.unwrap();
    assert_eq!(deployment.selector.match_labels.unwrap()["generation"], "two");

    // What was dropped is gone, also where clusterctl had written it; roles keep the form of their names.
    let maps: Api<ConfigMap> = Api::namespaced(estate.client.clone(), "acme-system");
    assert!(maps.get_opt("acme-old").await.unwrap().is_none());
    let services: Api<Service> = Api::namespaced(estate.client.clone(), "acme-system");
    let service = services.get("acme-webhook-service").await.unwrap();
    assert_eq!(service.spec.unwrap().session_affinity.as_deref(), Some("None"));
    assert!(!service.metadata.annotations.unwrap_or_default().contains_key("acme.io/old"));
    let roles: Api<ClusterRole> = Api::all(estate.client.clone());
    assert!(roles.get_opt("acme-manager-role").await.unwrap().is_none());
    assert!(roles.get_opt("acme-new-role").await.unwrap().is_some());
    assert!(roles.get_opt("capi-system-capi-manager-role").await.unwrap().is_some());
    let bindings: Api<ClusterRoleBinding> = Api::all(estate.client.clone());
    assert_eq!(bindings.get("acme-manager-rolebinding").await.unwrap().role_ref.name, "acme-new-role");

    // The user's object was rewritten and is the same.
    let found = acme_clusters(&estate, "v1beta2").get("mine").await.unwrap();
    assert_eq!(content(&found), content(&mine));
    assert_ne!(found.metadata.resource_version, mine.metadata.resource_version);
    let status = crds.get(&crd).await.unwrap().status.unwrap();
    assert_eq!(status.stored_versions.unwrap(), ["v1beta2"]);

    // Once more there is nothing to do, and nothing is done.
    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2"]);
    assert!(told.code == Some(0) && told.err.contains("there is nothing to upgrade"), "{told:?}");
    let told = estate.run(&["upgrade", "apply", "--core", "cluster-api:v1.1.0"]);
    assert!(told.code == Some(0) && told.err.contains("cluster-api is at v1.1.0 already"), "{told:?}");
    assert_same(&estate.labelled().await, &after);

    // Back again, if one insists.
    estate
        .run(&["upgrade", "apply", "--core", "cluster-api:v1.0.0"])
        .fails(&["cluster-api v1.0.0 is older than v1.1.0", "--allow-downgrade"]);
    let told = estate.run(&["upgrade", "apply", "--core", "cluster-api:v1.0.0", "--allow-downgrade"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(estate.versions().await[CORE], "v1.0.0");
}

/// cert-manager as it was before, with a version of a kind that it no longer has.
fn old_cert_manager(stored: &str) -> Vec<Value> {
    let mut objects = cert_manager();
    let issuers = objects.iter_mut().find(|it| it["metadata"]["name"] == ISSUERS).unwrap();
    let versions = issuers["spec"]["versions"].as_array_mut().unwrap();
    versions.push(versions[0].clone());
    versions[1]["name"] = "v1alpha2".into();
    for version in versions {
        version["storage"] = (version["name"] == stored).into();
    }
    objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": "old", "namespace": "cert-manager"}}));
    Manifest::new("v1.2.2", objects, &Overrides::default()).unwrap().objects
}

#[tokio::test(flavor = "multi_thread")]
async fn cert_manager_goes_along_and_nothing_of_it_is_lost() {
    let estate = Estate::with_everything().await;
    apply::apply(&estate.cluster(), &old_cert_manager("v1alpha2"), &|_| {}).await.unwrap();
    let issuers = |version: &str| -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("cert-manager.io", version, "Issuer");
        Api::namespaced_with(estate.client.clone(), "default", &ApiResource::from_gvk(&gvk))
    };
    let mine = json!({"apiVersion": "cert-manager.io/v1alpha2", "kind": "Issuer",
                      "metadata": {"name": "mine"}, "spec": {"ca": {"secretName": "mine"}}});
    let mine: DynamicObject = serde_json::from_value(mine).unwrap();
    issuers("v1alpha2").create(&PostParams::default(), &mine).await.unwrap();
    apply::apply(&estate.cluster(), &old_cert_manager("v1"), &|_| {}).await.unwrap();
    let mine = issuers("v1").get("mine").await.unwrap();

    let before = estate.labelled().await;
    let command = ["upgrade", "apply", "--core", "cluster-api:v1.0.0"];
    let told = estate.run(&[&command[..], &["--dry-run", "--diff"]].concat()).data();
    for words in [
        "objects of issuers.cert-manager.io are written as v1 first, since v1alpha2 will be gone",
        "name: old",
    ] {
        assert!(told.contains(words), "{words:?} is missing in {told}");
    }
    estate.assert_untouched(&before).await;

    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    // One is of each of the four providers.
    for words in ["5 objects of issuers.cert-manager.io are stored as v1", "cert-manager is at v1.2.3"] {
        assert!(told.err.contains(words), "{words:?} is missing in {}", told.err);
    }
    assert_eq!(content(&issuers("v1").get("mine").await.unwrap()), content(&mine));
    let crds: Api<CustomResourceDefinition> = Api::all(estate.client.clone());
    let crd = crds.get(ISSUERS).await.unwrap();
    assert_eq!(crd.status.unwrap().stored_versions.unwrap(), ["v1"]);
    assert_eq!(crd.spec.versions.len(), 1);
    let maps: Api<ConfigMap> = Api::namespaced(estate.client.clone(), "cert-manager");
    assert!(maps.get_opt("old").await.unwrap().is_none());
}

impl Estate {
    /// An object as soon as its version is served.
    async fn served(&self, api: &Api<DynamicObject>, name: &str) -> DynamicObject {
        let deadline = Instant::now() + LIMIT;
        loop {
            match api.get(name).await {
                Ok(object) => return object,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Has the server refuse to write an object in earnest, though it would accept it.
    async fn forbid(&self, plurals: &[&str], names: &[&str]) {
        let policy = json!({
            "metadata": {"name": "forbidden"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"], "resources": plurals, "resourceNames": names}]},
                "validations": [{"expression": "request.dryRun", "message": "not in earnest"}],
            },
        });
        let binding = json!({"metadata": {"name": "forbidden"},
                             "spec": {"policyName": "forbidden", "validationActions": ["Deny"]}});
        let params = PostParams::default();
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        policies.create(&params, &serde_json::from_value(policy).unwrap()).await.unwrap();
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        bindings.create(&params, &serde_json::from_value(binding).unwrap()).await.unwrap();
        self.until_forbidden(true).await;
    }

    async fn allow(&self) {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        bindings.delete("forbidden", &DeleteParams::default()).await.unwrap();
        self.until_forbidden(false).await;
    }

    /// Waits until the server acts by the policy: it hears of it by a watch.
    async fn until_forbidden(&self, expected: bool) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), "acme-system");
        let deadline = Instant::now() + LIMIT;
        for number in 0.. {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"try": number.to_string()}}}));
            let is_refused =
                services.patch("acme-webhook-service", &PatchParams::default(), &patch).await.is_err();
            if is_refused == expected {
                break;
            }
            assert!(Instant::now() < deadline, "the policy does not matter");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"try": null}}}));
        let undone = services.patch("acme-webhook-service", &PatchParams::default(), &patch).await;
        assert_eq!(undone.is_err(), expected);
    }
}

/// A contract that is not supported yet, one that is not supported any more, and versions that are far apart.
const NEXT_SERIES: &[(&str, &str)] = &[("1.0", "v1beta2"), ("1.1", "v1beta2"), ("2.0", "v1beta9")];
const OLD_SERIES: &[(&str, &str)] = &[("1.0", "v1alpha4"), ("1.1", "v1beta2")];
const FAR_SERIES: &[(&str, &str)] = &[("1.10", "v1beta2"), ("1.14", "v1beta2")];

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anything_is_stopped() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    let mut broken = release(ACME, "v1.2.0").components();
    change(&mut broken, "Deployment", |it| it["spec"]["template"]["spec"]["containers"] = json!([]));
    estate.publish_with(&release(ACME, "v1.2.0"), &broken);
    let mut unset = release(ACME, "v1.1.0").components();
    change(&mut unset, "Deployment", |it| {
        it["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--token=${ACME_TOKEN}"]);
    });
    estate.publish_with(&release(ACME, "v1.1.0"), &unset);
    let lost = Release { kind: (ACME_GROUP, "AcmeCluster", &["v1beta3"]), ..release(ACME, "v1.2.1") };
    estate.publish(&lost);
    let before = estate.labelled().await;

    for (arguments, words) in [
        (&["--contract", "v1beta2", "--core", "cluster-api:v1.1.0"][..], &["--contract cannot be used"][..]),
        (&[], &["neither a contract nor a provider is named"]),
        (&["--core", "cluster-api"], &["cluster-api has no version"]),
        (&["--infrastructure", "other:v1.1.0"], &["infrastructure-other is not installed"]),
        (&["-i", "elsewhere/acme:v1.1.0"], &["infrastructure-acme is not installed in namespace elsewhere"]),
        (&["-i", "acme:v1.2.0,acme:v1.2.0"], &["infrastructure-acme is named more than once"]),
        (&["--core", "cluster-api:v0.9.0"], &["v0.9.0 is older than v1.0.0", "--allow-downgrade"]),
        (&["--core", "cluster-api:v1.9.0"], &["v1.9.0", "nothing was changed"]),
        // Core and both kubeadm providers could be upgraded, but none is if one cannot.
        (&["--core", "cluster-api:v1.1.0", "-i", "acme:v1.1.0"], &["ACME_TOKEN", "nothing was changed"]),
        (
            &["--contract", "v1beta2"],
            &["are stored as v1beta2, which infrastructure-acme v1.2.1 does not have any more"],
        ),
        (
            &["--core", "cluster-api:v1.1.0", "-i", "acme:v1.2.0"],
            &[
                "the server would refuse an object of infrastructure-acme v1.2.0",
                "Deployment acme-system/acme-controller-manager: ",
                "containers",
                "nothing was changed",
            ],
        ),
    ] {
        let mut command = vec!["upgrade", "apply"];
        command.extend(arguments);
        estate.run(&command).fails(words);
    }
    estate.assert_untouched(&before).await;

    // Who is not upgraded must be understood by those who are.
    estate.publish(&Release { series: OLD_SERIES, ..release(ACME, "v1.0.0") });
    estate.run(&["upgrade", "apply", "--core", "cluster-api:v1.1.0"]).fails(&[
        "infrastructure-acme v1.0.0 speaks contract v1alpha4",
        "include it in the upgrade",
        "--infrastructure acme-system/acme:VERSION",
    ]);

    // No more than three versions are left out.
    estate.publish(&Release { series: FAR_SERIES, ..release(CORE, "v1.14.0") });
    inventory::record(&estate.cluster(), &installed(CORE, "v1.10.0")).await.unwrap();
    estate
        .run(&["upgrade", "apply", "--core", "cluster-api:v1.14.0"])
        .fails(&["cannot go from v1.10.0 to v1.14.0 in one step", "a release of v1.13 first"]);
    let told = estate.run(&["upgrade", "plan"]);
    assert!(told.err.contains("cluster-api: v1.14.0 cannot be reached in one step"), "{}", told.err);
    assert!(!told.out.contains("upgrade apply"), "no command that is refused: {}", told.out);
    inventory::record(&estate.cluster(), &installed(CORE, "v1.0.0")).await.unwrap();

    // One of two instances is named by its namespace.
    let twin = Installed { namespace: "default".to_owned(), ..installed(ACME, "v1.0.0") };
    inventory::record(&estate.cluster(), &twin).await.unwrap();
    estate.run(&["upgrade", "apply", "--infrastructure", "acme:v1.1.0"]).fails(&[
        "infrastructure-acme is installed more than once",
        "acme-system and default",
        "acme-system/NAME",
    ]);
    forget(&estate.client, &twin).await;
    estate.assert_untouched(&before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_halfway_starts_the_controllers_again_and_can_be_gone_on_from() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    let command = [
        "upgrade",
        "apply",
        "--core",
        "cluster-api:v1.1.0",
        "--infrastructure",
        "acme:v1.1.0",
        "-b",
        "kubeadm:v1.1.0",
        "-c",
        "kubeadm:v1.1.0",
    ];
    estate.scale(ACME, 2).await;
    estate
        .forbid(&["services"], &["acme-webhook-service", "capi-kubeadm-control-plane-webhook-service"])
        .await;
    let told = estate.run(&command);
    let error = told.fails(&[
        "apply Service acme-system/acme-webhook-service",
        "apply Service capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-webhook-service",
        "not in earnest",
        "upgraded: cluster-api, bootstrap-kubeadm",
        "the upgrade of control-plane-kubeadm stopped; its controllers were started again",
        "the upgrade of infrastructure-acme stopped; its controllers were started again",
        "the same command continues from here",
    ]);
    assert!(error.contains("infrastructure-acme: its controllers were started again"), "{error}");
    let versions = estate.versions().await;
    let expected = [
        (CORE, "v1.1.0"),
        ("bootstrap-kubeadm", "v1.1.0"),
        ("control-plane-kubeadm", "v1.0.0"),
        (ACME, "v1.0.0"),
    ];
    for (label, version) in expected {
        assert_eq!(versions[label], version, "{label}");
        let replicas = if label == ACME { 2 } else { 1 };
        assert_eq!(estate.replicas(label).await, Some(replicas), "{label}");
    }

    // It is not forgotten.
    let told = estate.run(&["upgrade", "plan"]);
    for words in [
        "an upgrade of infrastructure-acme from v1.0.0 to v1.1.0 began and did not finish",
        "to finish it: capstan upgrade apply --control-plane kubeadm:v1.1.0 --infrastructure acme:v1.1.0",
    ] {
        assert!(told.err.contains(words), "{words:?} is missing in {}", told.err);
    }

    estate.allow().await;
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("cluster-api is at v1.1.0 already"), "{}", told.err);
    assert!(estate.versions().await.values().all(|it| it == "v1.1.0"));
    assert_eq!(estate.replicas(ACME).await, Some(1));
    assert_no_traces(&estate.labelled().await);
    assert!(!estate.run(&["upgrade", "plan"]).err.contains("not finished"));
    let providers: Vec<_> = estate.cluster_entries().await;
    assert!(providers.iter().all(|it| it.metadata.annotations.is_none()), "{providers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_core_fails_nobody_else_is_replaced_and_all_controllers_run_again() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    estate.scale(ACME, 2).await;
    estate.forbid(&["services"], &["capi-webhook-service", "acme-webhook-service"]).await;
    estate
        .run(&["upgrade", "apply", "-i", "acme:v1.1.0"])
        .fails(&["the upgrade of infrastructure-acme stopped"]);

    let command =
        ["upgrade", "apply", "--core", "cluster-api:v1.1.0", "-i", "acme:v1.1.0", "-b", "kubeadm:v1.1.0"];
    estate.run(&command).fails(&[
        "apply Service capi-system/capi-webhook-service",
        "the upgrade of cluster-api stopped; its controllers were started again",
        "the upgrade did not come to bootstrap-kubeadm; its controllers are as they were",
        "the upgrade did not come to infrastructure-acme; its controllers are as they were",
        "the same command continues from here",
    ]);
    assert!(estate.versions().await.values().all(|it| it == "v1.0.0"));
    for (label, replicas) in [(CORE, 1), ("bootstrap-kubeadm", 1), (ACME, 2)] {
        assert_eq!(estate.replicas(label).await, Some(replicas), "{label}");
    }
    // Who was half-done before still is, and who was not begun is not.
    let told = estate.run(&["upgrade", "plan"]);
    let way_on = "capstan upgrade apply --core cluster-api:v1.1.0 --infrastructure acme:v1.1.0\n";
    assert!(told.err.contains(way_on), "{}", told.err);

    estate.allow().await;
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    estate.assert_upgraded(&[CORE, "bootstrap-kubeadm", ACME]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_crd_cannot_be_replaced_it_is_told_whose_are_new_and_all_controllers_run_again() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    for label in [CORE, "bootstrap-kubeadm"] {
        let release = release(label, "v1.1.0");
        let mut objects = release.components();
        change(&mut objects, "CustomResourceDefinition", |it| {
            it["metadata"]["labels"]["news"] = json!("yes");
        });
        estate.publish_with(&release, &objects);
    }
    // The service is only looked at to see whether the policy works.
    let plurals = ["customresourcedefinitions", "services"];
    estate.forbid(&plurals, &["clusters.cluster.x-k8s.io", "acme-webhook-service"]).await;
    let command =
        ["upgrade", "apply", "--core", "cluster-api:v1.1.0", "-b", "kubeadm:v1.1.0", "-i", "acme:v1.1.0"];
    estate.run(&command).fails(&[
        "apply CustomResourceDefinition clusters.cluster.x-k8s.io",
        "the upgrade of cluster-api stopped; its controllers were started again",
        "of bootstrap-kubeadm only the CRDs were replaced; its controllers are as they were",
        "the upgrade did not come to infrastructure-acme; its controllers are as they were",
        "the same command continues from here",
    ]);
    assert!(estate.versions().await.values().all(|it| it == "v1.0.0"));
    for label in [CORE, "bootstrap-kubeadm", ACME] {
        assert_eq!(estate.replicas(label).await, Some(1), "{label}");
    }
    let told = estate.run(&["upgrade", "plan"]);
    let way_on = "capstan upgrade apply --core cluster-api:v1.1.0 --bootstrap kubeadm:v1.1.0\n";
    assert!(told.err.contains(way_on), "{}", told.err);

    estate.allow().await;
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    estate.assert_upgraded(&[CORE, "bootstrap-kubeadm", ACME]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_core_cannot_finish_holds_nobody_up() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    let labels = json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": CORE});
    let old: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "old", "labels": labels}})).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(estate.client.clone(), "capi-system");
    maps.create(&PostParams::default(), &old).await.unwrap();
    // The service is only looked at to see whether the policy works.
    estate.forbid(&["configmaps", "services"], &["old", "acme-webhook-service"]).await;
    let command = ["upgrade", "apply", "--core", "cluster-api:v1.1.0", "-b", "kubeadm:v1.1.0"];
    estate.run(&command).fails(&[
        "delete ConfigMap capi-system/old",
        "upgraded: bootstrap-kubeadm",
        "the upgrade of cluster-api stopped; its controllers were started again",
    ]);
    let versions = estate.versions().await;
    assert_eq!((versions[CORE].as_str(), versions["bootstrap-kubeadm"].as_str()), ("v1.0.0", "v1.1.0"));
    assert_eq!(estate.replicas(CORE).await, Some(1));
    let told = estate.run(&["upgrade", "plan"]);
    assert!(
        told.err.contains("to finish it: capstan upgrade apply --core cluster-api:v1.1.0\n"),
        "{}",
        told.err
    );

    estate.allow().await;
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(estate.versions().await[CORE], "v1.1.0");
    assert!(maps.get_opt("old").await.unwrap().is_none());
    assert_no_traces(&estate.labelled().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_a_killed_run_stopped_are_started_also_where_nothing_can_begin() {
    let estate = Estate::with_everything().await;
    estate.publish_all("v1.1.0");
    // What a run leaves that is killed when everything is stopped.
    let deployment = json!({"metadata": {"annotations": {"capstan.dev/replicas-before-upgrade": "3"}}, "spec": {"replicas": 0}});
    estate.mark(CORE, "v1.1.0").await;
    let found = estate.deployment(CORE).await;
    let deployments: Api<Deployment> = Api::namespaced(estate.client.clone(), "capi-system");
    let name = found.metadata.name.unwrap();
    deployments.patch(&name, &PatchParams::default(), &Patch::Merge(&deployment)).await.unwrap();

    // Providers cannot be marked.
    estate.forbid(&["providers", "services"], &["infrastructure-acme", "acme-webhook-service"]).await;
    let command = ["upgrade", "apply", "--core", "cluster-api:v1.1.0", "-i", "acme:v1.1.0"];
    let told = estate.run(&command);
    let error = told.fails(&[
        "nothing was replaced",
        "the upgrade did not come to cluster-api; its controllers are as they were",
        "the upgrade did not come to infrastructure-acme; its controllers are as they were, but it could not be unmarked",
    ]);
    assert!(error.contains("cluster-api: its controllers were started again"), "{error}");
    assert!(!error.contains("infrastructure-acme: its controllers were started again"), "{error}");
    assert_eq!(estate.replicas(CORE).await, Some(3));

    estate.allow().await;
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_no_traces(&estate.labelled().await);
}

impl Estate {
    /// Marks a provider as one that is being upgraded.
    async fn mark(&self, label: &str, version: &str) {
        let mut entry = inventory::entry(&installed(label, "v1.0.0"));
        entry["metadata"]["annotations"] = json!({"capstan.dev/upgrading-to": version});
        apply::apply(&self.cluster(), &[entry], &|_| {}).await.unwrap();
    }

    async fn cluster_entries(&self) -> Vec<DynamicObject> {
        let kind = GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        api.list(&ListParams::default()).await.unwrap().items
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_copied_is_neither_stopped_nor_pruned() {
    let estate = Estate::bare().await;
    estate.ground().await;
    let acme = release(ACME, "v1.0.0");
    estate.publish_with(&acme, &first_acme(&["v1beta1", "v1beta2"]));
    for label in [CORE, ACME] {
        estate.install_one(label, "v1.0.0", By::Capstan).await;
    }
    let labels = json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": ACME});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "acme-reader", "namespace": "kube-system", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    });
    apply::apply(&estate.cluster(), &[binding], &|_| {}).await.unwrap();
    estate.create_by_hand(&copies(ACME)).await;
    let is_of_user = |id: &str| id.ends_with(" team/copy");
    let of_user = |all: &BTreeMap<String, Value>| -> BTreeMap<_, _> {
        all.iter().filter(|it| is_of_user(it.0)).map(|(id, it)| (id.clone(), it.clone())).collect()
    };
    let deployments: Api<Deployment> = Api::namespaced(estate.client.clone(), "team");
    let (before, deployment) = (estate.labelled().await, deployments.get("copy").await.unwrap());
    let ours = ["RoleBinding kube-system/acme-reader", "ConfigMap acme-system/acme-old"];
    assert!(ours.iter().all(|it| before.contains_key(*it)), "{before:?}");

    estate.publish_all("v1.1.0");
    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for copy in ["ConfigMap", "Deployment"] {
        let words = format!("{copy} team/copy stays: labelled as infrastructure-acme");
        assert!(told.err.contains(&words), "{words:?} is missing in {}", told.err);
    }
    let after = estate.labelled().await;
    assert_eq!(of_user(&after), of_user(&before));
    assert_eq!(of_user(&after).len(), 2);
    let untouched = deployments.get("copy").await.unwrap().metadata.generation;
    assert_eq!(untouched, deployment.metadata.generation, "it was not even stopped for a while");
    assert!(ours.iter().all(|it| !after.contains_key(*it)), "{:?}", after.keys());
}
