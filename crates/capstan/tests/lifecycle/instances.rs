//! Two instances of one provider, as old tools left them; and what `init` says about what is installed otherwise.

use std::collections::BTreeMap;

use capstan_management::inventory::{self, Installed};
use capstan_testkit::wait::LIMIT;
use k8s_openapi::{
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration, apps::v1::Deployment, core::v1::Service,
        rbac::v1::ClusterRoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt, api::PatchParams};
use serde_json::{Value, json};

use crate::estate::{Estate, Release, cert_manager};

const ACME: &str = "infrastructure-acme";
const MANAGER: &str = "acme-controller-manager";
const SHARED: &str = "capi-webhook-system";
const MARK: &str = "example.com/release";
const CRD: &str = "acmeclusters.infrastructure.cluster.x-k8s.io";

fn acme(version: &'static str) -> Release {
    Release::all(version).into_iter().find(|it| it.label == ACME).unwrap()
}

/// A release with shared objects that name its version, and webhooks that its own Service answers.
fn components(release: &Release) -> Vec<Value> {
    let mut objects = release.components();
    let service = json!({"name": "acme-webhook-service", "namespace": release.namespace});
    let crd = objects.iter_mut().find(|it| it["kind"] == "CustomResourceDefinition").unwrap();
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    });
    objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHARED}}));
    objects.push(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "acme-shared", "namespace": SHARED},
        "spec": {"ports": [{"port": 443}], "selector": {"app": "acme"}},
    }));
    for object in &mut objects {
        let is_shared =
            object["kind"] == "CustomResourceDefinition" || object["metadata"]["namespace"] == SHARED;
        if is_shared {
            object["metadata"]["annotations"] = json!({MARK: release.version});
        }
    }
    objects
}

struct Instances {
    estate: Estate,
}

impl Instances {
    /// acme v1.0.0 in acme-system, and v1.2.0 in second-system beside it.
    async fn new() -> Self {
        let estate = Estate::bare().await;
        for version in ["v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0"] {
            let release = acme(version);
            let series = &[("1.0", "v1beta2"), ("1.1", "v1beta2"), ("1.2", "v1beta2"), ("1.3", "v1beta2")];
            let release = Release { series, ..release };
            estate.publish_with(&release, &components(&release));
        }
        estate.furnish().await;
        let [core, ..] = Release::all("v1.0.0");
        estate.put_in(&[core]).await;
        let instances = Self { estate };
        instances.install("v1.0.0", "acme-system").await;
        instances.install("v1.2.0", "second-system").await;
        instances
    }

    async fn install(&self, version: &'static str, namespace: &str) {
        let argument = format!("acme:{version}");
        let command =
            ["generate", "provider", "--infrastructure", &argument, "--target-namespace", namespace];
        self.estate.apply(&self.estate.run(&command).objects()).await;
        let entry = Installed { namespace: namespace.to_owned(), ..acme(version).entry() };
        inventory::record(&self.estate.cluster(), &entry).await.unwrap();
    }

    async fn manager(&self, namespace: &str) -> Option<Deployment> {
        Api::namespaced(self.estate.client.clone(), namespace).get_opt(MANAGER).await.unwrap()
    }

    /// The versions that the CRD and the shared Service come from.
    async fn shared(&self) -> [Option<String>; 2] {
        let crds: Api<CustomResourceDefinition> = Api::all(self.estate.client.clone());
        let services: Api<Service> = Api::namespaced(self.estate.client.clone(), SHARED);
        let mark = |annotations: &BTreeMap<String, String>| annotations.get(MARK).cloned();
        [
            crds.get_opt(CRD).await.unwrap().and_then(|it| mark(it.annotations())),
            services.get_opt("acme-shared").await.unwrap().and_then(|it| mark(it.annotations())),
        ]
    }

    async fn assert_shared(&self, version: &str) {
        assert_eq!(self.shared().await, [Some(version.to_owned()), Some(version.to_owned())]);
    }

    /// The namespaces of the Services that answer the webhooks: of the CRD, and of the webhook configuration.
    async fn answers(&self) -> [String; 2] {
        let crds: Api<CustomResourceDefinition> = Api::all(self.estate.client.clone());
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(self.estate.client.clone());
        let conversion = crds.get(CRD).await.unwrap().spec.conversion.unwrap().webhook.unwrap();
        let configuration = configurations.get("acme-validating-webhook-configuration").await.unwrap();
        let webhook = configuration.webhooks.unwrap().remove(0).client_config;
        [conversion.client_config.unwrap().service.unwrap().namespace, webhook.service.unwrap().namespace]
    }

    /// Each instance has rights of its own.
    async fn assert_rights(&self) {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.estate.client.clone());
        for namespace in ["acme-system", "second-system"] {
            let binding = bindings.get(&format!("{namespace}-acme-manager-rolebinding")).await.unwrap();
            assert_eq!(binding.role_ref.name, format!("{namespace}-acme-manager-role"));
            assert_eq!(binding.subjects.unwrap()[0].namespace.as_deref(), Some(namespace));
        }
        assert!(bindings.get_opt("acme-manager-rolebinding").await.unwrap().is_none());
    }

    async fn versions(&self) -> Vec<(String, String)> {
        let inventory = inventory::Inventory::read(&self.estate.cluster()).await.unwrap();
        let acme = inventory.providers.into_iter().filter(|it| it.label() == ACME);
        acme.map(|it| (it.namespace, it.version)).collect()
    }
}

fn image(deployment: &Deployment) -> &str {
    let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    pod.containers[0].image.as_deref().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_objects_are_those_of_the_newest_instance() {
    let instances = Instances::new().await;
    let estate = &instances.estate;
    instances.assert_shared("v1.2.0").await;

    // A third one is refused, whatever the flags.
    let third = ["init", "-i", "acme:v1.0.0", "--target-namespace", "third-system", "--validate=false"];
    estate.run(&third).fails(&["is installed in namespace acme-system", "leave --target-namespace out"]);

    // What upgrade plan prints is not refused.
    let plan = estate.run(&["upgrade", "plan"]).data();
    assert!(plan.contains("upgrade apply --contract v1beta2"), "{plan}");
    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2", "--dry-run"]);
    assert_eq!(told.code, Some(0), "{told:?}");

    // The older instance gets a version that is still older than the other's: shared objects are left out.
    let before = instances.manager("second-system").await.unwrap();
    let told = estate.run(&["upgrade", "apply", "-i", "acme-system/acme:v1.1.0", "--dry-run", "--diff"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.out.contains("Deployment") && !told.out.contains("CustomResourceDefinition"),
        "{}",
        told.out
    );
    let told = estate.run(&["upgrade", "apply", "--infrastructure", "acme-system/acme:v1.1.0"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    instances.assert_shared("v1.2.0").await;
    let upgraded = instances.manager("acme-system").await.unwrap();
    assert_eq!(image(&upgraded), "registry.example.com/acme:v1.1.0");
    assert_eq!(instances.manager("second-system").await.unwrap(), before, "the other instance is left alone");
    instances.assert_rights().await;
    let expected = [("acme-system", "v1.1.0"), ("second-system", "v1.2.0")];
    assert_eq!(instances.versions().await, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));

    // A newer one brings its shared objects.
    let told = estate.run(&["upgrade", "apply", "--infrastructure", "acme-system/acme:v1.3.0"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    instances.assert_shared("v1.3.0").await;
    instances.assert_rights().await;
    assert_eq!(instances.answers().await, ["acme-system", "acme-system"]);

    webhooks_are_handed_over(&instances).await;
    one_instance_is_deleted(&instances).await;
}

/// An instance that answers webhooks which the other one needs is not deleted before the other answers them.
async fn webhooks_are_handed_over(instances: &Instances) {
    let estate = &instances.estate;
    let delete = ["delete", "-i", "acme", "-n", "acme-system"];
    let hand_over = ["upgrade", "apply", "--reapply", "--infrastructure", "second-system/acme:v1.3.0"];
    let before = estate.labelled().await;
    estate.run(&delete).fails(&[
        "the instance of infrastructure-acme in namespace acme-system answers webhooks",
        "ValidatingWebhookConfiguration acme-validating-webhook-configuration",
        &format!("CustomResourceDefinition {CRD}"),
        &hand_over.join(" "),
        "--force",
    ]);
    assert_eq!(estate.labelled().await, before, "nothing was deleted");

    // Where both get the same version, one of them writes what they share.
    let told = estate.run(&["upgrade", "apply", "--contract", "v1beta2", "--reapply"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    instances.assert_rights().await;
    assert_eq!(instances.answers().await, ["acme-system", "acme-system"]);

    let told = estate.run(&hand_over);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(instances.answers().await, ["second-system", "second-system"]);
    instances.assert_shared("v1.3.0").await;
}

async fn one_instance_is_deleted(instances: &Instances) {
    let estate = &instances.estate;
    estate.run(&["delete", "-i", "acme"]).fails(&["acme-system, second-system", "--namespace acme-system"]);
    estate.run(&["delete", "-i", "acme", "-n", "nowhere"]).fails(&[
        "infrastructure-acme is not installed in namespace nowhere",
        "infrastructure-acme v1.3.0 in namespace acme-system",
    ]);
    estate.run(&["delete", "--all", "-n", "acme-system"]).fails(&["--all", "--namespace"]);
    let command = ["delete", "-i", "acme", "-n", "acme-system", "--include-crd", "--include-namespace"];
    let told = estate.run(&command);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("the instance in namespace second-system needs"), "{}", told.err);
    instances.assert_shared("v1.3.0").await;
    assert!(instances.manager("acme-system").await.is_none());
    assert!(instances.manager("second-system").await.is_some());
    assert_eq!(instances.versions().await, [("second-system".to_owned(), "v1.3.0".to_owned())]);
    let labels = estate.labelled().await;
    let role = |namespace: &str| format!("ClusterRole /{namespace}-acme-manager-role");
    assert!(!labels.contains_key(&role("acme-system")) && labels.contains_key(&role("second-system")));

    let told = estate.run(&["delete", "-i", "acme", "--include-crd"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(instances.shared().await, [None, None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_watched_namespace_is_reported_with_the_way_to_change_it() {
    let estate = Estate::bare().await;
    estate.furnish().await;
    let [core, .., acme] = Release::all("v1.0.0");
    estate.put_in(&[core, acme]).await;
    let before = estate.labelled().await;
    estate.run(&["init", "-i", "acme:v1.0.0", "--watching-namespace", "tenants"]).fails(&[
        "infrastructure-acme v1.0.0 in namespace acme-system watches all namespaces, not namespace tenants",
        "delete --infrastructure acme --namespace acme-system",
        "init --infrastructure acme:v1.0.0 --target-namespace acme-system --watching-namespace tenants",
    ]);
    // Without a name, all that are installed are meant.
    estate.run(&["init", "--watching-namespace", "tenants"]).fails(&[
        "cluster-api v1.0.0 in namespace capi-system watches all namespaces, not namespace tenants",
        "infrastructure-acme v1.0.0 in namespace acme-system watches all namespaces",
        "init --core cluster-api:v1.0.0 --bootstrap - --control-plane - --target-namespace capi-system",
    ]);
    assert_eq!(estate.labelled().await, before);
    // The hint's commands do it.
    for command in [
        &["delete", "--infrastructure", "acme", "--namespace", "acme-system", "--force"][..],
        &[
            "init",
            "--infrastructure",
            "acme:v1.0.0",
            "--target-namespace",
            "acme-system",
            "--watching-namespace",
            "tenants",
        ],
    ] {
        let told = estate.run(command);
        assert_eq!(told.code, Some(0), "{told:?}");
    }
    let inventory = inventory::Inventory::read(&estate.cluster()).await.unwrap();
    let acme = inventory.providers.into_iter().find(|it| it.label() == ACME).unwrap();
    assert_eq!(acme.watched_namespace.as_deref(), Some("tenants"));
    let told = estate.run(&["init", "-i", "acme:v1.0.0"]);
    assert!(told.err.contains("already and watches namespace tenants"), "{}", told.err);

    // The same for core, without which an init is a first one.
    let watching = ["--target-namespace", "capi-system", "--watching-namespace", "tenants"];
    let init = ["init", "--core", "cluster-api:v1.0.0", "--bootstrap", "-", "--control-plane", "-"];
    for command in [
        &["delete", "--core", "cluster-api", "--namespace", "capi-system", "--force"][..],
        &[&init[..], &watching[..]].concat(),
    ] {
        let told = estate.run(command);
        assert_eq!(told.code, Some(0), "{told:?}");
    }
    let inventory = inventory::Inventory::read(&estate.cluster()).await.unwrap();
    let watched: Vec<_> =
        inventory.providers.iter().map(|it| (it.label(), it.watched_namespace.as_deref())).collect();
    assert_eq!(watched, [(String::from("cluster-api"), Some("tenants")), (ACME.to_owned(), Some("tenants"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cert_manager_of_others_is_asked_for_only_where_it_is_needed() {
    let estate = Estate::bare().await;
    let mut config = estate.configuration();
    config["cert-manager"]["externallyProvisioned"] = json!(true);
    estate.user.configure(&config);
    let told = estate.run(&["init", "-i", "acme:v1.0.0"]);
    told.fails(&["cert-manager is not installed", "infrastructure-acme", "externallyProvisioned"]);
    assert!(estate.labelled().await.is_empty(), "nothing is written");

    // Releases without Certificates and Issuers do not need it.
    for release in Release::all("v1.0.0") {
        let mut components = release.components();
        components.retain(|it| it["apiVersion"] != "cert-manager.io/v1");
        estate.publish_with(&release, &components);
    }
    let told = estate.run(&["init", "-i", "acme:v1.0.0"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(!told.err.contains("cert-manager"), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_cert_manager_is_reported_without_a_terminal() {
    let estate = Estate::bare().await;
    let mut config = estate.configuration();
    config["cert-manager"]["externallyProvisioned"] = json!(true);
    config["cert-manager"]["timeout"] = json!("3s");
    estate.user.configure(&config);
    // Its kinds are there, but its webhook does not answer.
    estate.apply(&cert_manager()).await;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "cert-manager-webhook"},
        "webhooks": [{
            "name": "webhook.cert-manager.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"service": {"name": "cert-manager-webhook", "namespace": "cert-manager"}},
            "rules": [{"apiGroups": ["cert-manager.io"], "apiVersions": ["*"], "operations": ["*"],
                       "resources": ["*"]}],
        }],
    });
    estate.apply(&[webhook]).await;
    let issuer = json!({"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
                        "metadata": {"name": "i", "namespace": "default"}, "spec": {"selfSigned": {}}});
    let cluster = estate.cluster();
    let kind = cluster.kinds().await.unwrap().of(&issuer).unwrap().clone();
    let issuers = cluster.objects(&kind, Some("default"));
    let refused = async {
        let params = PatchParams { dry_run: true, ..PatchParams::apply("t") };
        while issuers.patch_metadata("i", &params, &kube::api::Patch::Apply(&issuer)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, refused).await.expect("the webhook is asked");
    let told = estate.run(&["init", "-i", "acme:v1.0.0"]);
    assert!(told.err.contains("• waiting for cert-manager: "), "{}", told.err);
    told.fails(&["cert-manager does not work after 3 s"]);
}
