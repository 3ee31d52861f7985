//! Our release, installed by upstream's clusterctl, and a manager that may do no more than its ServiceAccount.
//!
//! `make test-compat` runs this with the folders that it needs.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::{env, fs, path::PathBuf, time::Duration};

use capstan_api::cluster::v1beta2::Cluster;
use capstan_runtime::{
    certificates::WebhookIdentity, install::install_crds, manager::Manager, metrics::Metrics,
    options::ManagerOptions,
};
use capstan_testkit::{
    Plane, Story, generic,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::Deployment,
        core::v1::{Namespace, Pod, Secret, Service, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, time::Instant};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "capi-system";
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// As compat/fetch-upstream.sh lays it out.
const CERT_MANAGER: &str = "v1.18.2";
const DEFINITION: &str = "clusters.cluster.x-k8s.io";

fn folder(name: &str) -> PathBuf {
    let value = env::var_os(name);
    assert!(value.is_some(), "{name} is not set: run this by `make test-compat`");
    value.unwrap_or_default().into()
}

/// Lets clusterctl install our release, and nothing else.
async fn init(plane: &Plane) {
    let (upstream, release) = (folder("CAPSTAN_UPSTREAM_DIR"), folder("CAPSTAN_RELEASE_DIR"));
    let home = env::temp_dir().join(format!("capstan-clusterctl-{}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    let config = json!({
        "providers": [{
            "name": "cluster-api", "type": "CoreProvider",
            "url": release.join("cluster-api/latest/core-components.yaml"),
        }],
        "cert-manager": {
            "url": upstream.join("cert-manager").join(CERT_MANAGER).join("cert-manager.yaml"),
            "version": CERT_MANAGER,
        },
    });
    let file = home.join("clusterctl.yaml");
    fs::write(&file, config.to_string()).unwrap();
    let core = format!("cluster-api:{VERSION}");
    let run = Command::new(upstream.join("clusterctl"))
        .args(["init", "--core", &core, "--bootstrap", "-", "--control-plane", "-", "--config"])
        .arg(&file)
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .env("HOME", &home)
        .env("XDG_CONFIG_HOME", &home)
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .output();
    let run = tokio::time::timeout(Duration::from_mins(3), run).await.expect("clusterctl ends").unwrap();
    let words = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{words}");
    fs::remove_dir_all(home).unwrap();
}

async fn labelled<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let object = api.get(name).await.unwrap();
    assert_eq!(
        object.labels().get("cluster.x-k8s.io/provider").map(String::as_str),
        Some("cluster-api"),
        "{name}"
    );
    assert!(object.labels().contains_key("clusterctl.cluster.x-k8s.io"), "{name}");
}

async fn check_installed(client: &Client) {
    fn namespaced<K>(client: &Client) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(client.clone(), NAMESPACE)
    }
    labelled(Api::<Namespace>::all(client.clone()), NAMESPACE).await;
    labelled(Api::<CustomResourceDefinition>::all(client.clone()), DEFINITION).await;
    labelled(Api::<ClusterRole>::all(client.clone()), "capi-manager-role").await;
    labelled(Api::<ClusterRole>::all(client.clone()), "capi-aggregated-manager-role").await;
    labelled(Api::<ClusterRoleBinding>::all(client.clone()), "capi-manager-rolebinding").await;
    labelled(namespaced::<Role>(client), "capi-leader-election-role").await;
    labelled(namespaced::<RoleBinding>(client), "capi-leader-election-rolebinding").await;
    labelled(namespaced::<ServiceAccount>(client), "capi-manager").await;
    labelled(namespaced::<Service>(client), "capi-webhook-service").await;
    labelled(namespaced::<Deployment>(client), "capi-controller-manager").await;
    let deployment = namespaced::<Deployment>(client).get("capi-controller-manager").await.unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let args = pod.containers[0].args.clone().unwrap();
    assert!(args.contains(&"--diagnostics-address=:8443".to_owned()), "variables are filled in: {args:?}");
    let providers = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider"),
        "providers",
    );
    let providers: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &providers);
    assert_eq!(providers.get("cluster-api").await.unwrap().data["version"], VERSION);
}

/// The Service leads to Pods, of which there are none here: it is led to this machine instead.
async fn lead_here(client: &Client, port: u16) {
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let name = "capi-webhook-service";
    services.delete(name, &DeleteParams::default()).await.unwrap();
    let service =
        json!({"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let params = PatchParams::default();
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"port": port}}}}}});
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.patch(DEFINITION, &params, &Patch::Merge(patch)).await.unwrap();
    let patch =
        |name: &str| json!({"webhooks": [{"name": name, "clientConfig": {"service": {"port": port}}}]});
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let patched = patch("default.cluster.cluster.x-k8s.io");
    mutating.patch("capi-mutating-webhook-configuration", &params, &Patch::Strategic(patched)).await.unwrap();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let patched = patch("validation.cluster.cluster.x-k8s.io");
    validating
        .patch("capi-validating-webhook-configuration", &params, &Patch::Strategic(patched))
        .await
        .unwrap();
}

fn forbidden<T>(answer: Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's clusterctl: make test-compat"]
async fn clusterctl_installs_a_release_whose_rules_are_enough_and_no_more() {
    let plane = Plane::start().await;
    init(&plane).await;
    let story = Story::begin_on(plane, "release").await;
    check_installed(&story.client).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    lead_here(&story.client, listener.local_addr().unwrap().port()).await;

    // As the Pod would run, and with its rights alone.
    let mut config = story.plane.config().await;
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:capi-manager"));
    NAMESPACE.clone_into(&mut config.default_namespace);
    let account = Client::try_from(config).unwrap();
    let options = ManagerOptions {
        leader_elect: true,
        webhook_namespace: Some(NAMESPACE.to_owned()),
        ..ManagerOptions::embedded()
    };
    let identity: WebhookIdentity =
        options.webhook_identity(capstan_cluster::WEBHOOK_SERVICE, "unused").unwrap();
    let stop = CancellationToken::new();
    let lease = capstan_cluster::LEASE;
    let mut manager =
        Manager::new(options, account.clone(), Metrics::default(), lease, "release", stop.clone());
    manager.keep_webhook_certificates_on(listener, identity.clone());
    capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
    let readiness = manager.readiness();
    let manager = tokio::spawn(manager.run());
    let deadline = Instant::now() + LIMIT;
    while !readiness.is_ready() {
        assert!(Instant::now() < deadline, "not ready: {:?}", readiness.awaited());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), NAMESPACE);
    assert!(secrets.get(&identity.secret).await.unwrap().data.unwrap().contains_key("ca.crt"));

    // A Cluster comes and goes.
    let kind = "GenericCluster";
    install_crds(&story.client, &[generic::crd(kind, &[("v1beta2", "v1beta2")])], "story").await.unwrap();
    story
        .create_generic(kind, "c", json!({"controlPlaneEndpoint": {"host": "example.com", "port": 6443}}))
        .await;
    let cluster = json!({"metadata": {"name": "c"}, "spec": {"infrastructureRef": {
        "apiGroup": generic::GROUP, "kind": kind, "name": "c"}}});
    let cluster: Cluster = serde_json::from_value(with_type(cluster)).unwrap();
    let deadline = Instant::now() + LIMIT;
    // The API server hears of the bundle by a watch.
    while let Err(error) = story.clusters().create(&PostParams::default(), &cluster).await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    story.set_generic_status(kind, "c", json!({"initialization": {"provisioned": true}})).await;
    story.until_phase("c", "Provisioned", LIMIT).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    wait::until_gone(&story.generics(kind), "c", LIMIT).await;

    // What is not needed is not allowed.
    assert!(forbidden(Api::<Pod>::all(account.clone()).list(&ListParams::default()).await));
    let secrets: Api<Secret> = Api::namespaced(account.clone(), NAMESPACE);
    assert!(forbidden(secrets.delete(&identity.secret, &DeleteParams::default()).await));
    let crds: Api<CustomResourceDefinition> = Api::all(account.clone());
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "true"}}}));
    assert!(forbidden(crds.patch("certificates.cert-manager.io", &PatchParams::default(), &touch).await));
    assert!(forbidden(crds.delete(DEFINITION, &DeleteParams::default()).await));
    assert!(forbidden(Api::<Namespace>::all(account).list(&ListParams::default()).await));
    stop.cancel();
    manager.await.unwrap().unwrap();
}

fn with_type(mut cluster: Value) -> Value {
    cluster["apiVersion"] = json!("cluster.x-k8s.io/v1beta2");
    cluster["kind"] = json!("Cluster");
    cluster
}
