//! A management cluster that upstream's clusterctl made, and the manager of our release on it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use capstan_api::cluster::v1beta2::Cluster;
use capstan_runtime::{
    certificates::WebhookIdentity,
    manager::{Manager, ManagerError},
    metrics::Metrics,
    options::ManagerOptions,
};
use capstan_testkit::{Plane, Story, wait::LIMIT};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Service,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Where our release is installed.
pub(crate) const NAMESPACE: &str = "capi-system";
/// The version of our release.
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The CRD of our release.
pub(crate) const DEFINITION: &str = "clusters.cluster.x-k8s.io";
/// Upstream's kubeadm providers, as compat/fetch-upstream.sh lays them out.
pub(crate) const KUBEADM: &str = "v1.14.2";
/// As compat/fetch-upstream.sh lays it out.
const CERT_MANAGER: &str = "v1.18.2";

/// What clusterctl is to install besides our release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// Nothing.
    None,
    /// Upstream's kubeadm providers, for bootstrap and control plane.
    Kubeadm,
    /// Our local infrastructure provider.
    Local,
}

/// A folder that the Makefile names.
pub(crate) fn folder(name: &str) -> PathBuf {
    let value = env::var_os(name);
    assert!(value.is_some(), "{name} is not set: run this by `make test-compat`");
    value.unwrap_or_default().into()
}

/// Writes a configuration with upstream's releases of core, the kubeadm providers and gcp.
pub(crate) fn configure_releases(home: &Path) {
    let upstream = folder("CAPSTAN_UPSTREAM_DIR");
    let provider = |name: &str, kind: &str, label: &str, prefix: &str| {
        let file = format!("{prefix}-components.yaml");
        let url = upstream.join("releases").join(label).join("latest").join(file);
        json!({"name": name, "type": kind, "url": url})
    };
    let config = json!({
        "providers": [
            provider("cluster-api", "CoreProvider", "cluster-api", "core"),
            provider("kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap"),
            provider("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane"),
            provider("gcp", "InfrastructureProvider", "infrastructure-gcp", "infrastructure"),
        ],
        "cert-manager": {
            "url": upstream.join("cert-manager").join(CERT_MANAGER).join("cert-manager.yaml"),
            "version": CERT_MANAGER,
        },
        "GCP_B64ENCODED_CREDENTIALS": "e30=",
    });
    fs::write(home.join("clusterctl.yaml"), config.to_string()).unwrap();
}

/// The components of one of upstream's providers; `kind` is as in `bootstrap` or `control-plane`.
pub(crate) fn kubeadm_components(kind: &str) -> PathBuf {
    let provider = folder("CAPSTAN_UPSTREAM_DIR").join(format!("{kind}-kubeadm"));
    provider.join(KUBEADM).join(format!("{kind}-components.yaml"))
}

/// Upstream's clusterctl with a folder of its own, whose configuration names the providers.
pub(crate) struct Clusterctl {
    binary: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
}

impl Clusterctl {
    /// One for a control plane.
    pub(crate) fn new(plane: &Plane, name: &str) -> Self {
        let (upstream, release) = (folder("CAPSTAN_UPSTREAM_DIR"), folder("CAPSTAN_RELEASE_DIR"));
        let home = env::temp_dir().join(format!("capstan-clusterctl-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let provider = |name: &str, kind: &str, url: PathBuf| json!({"name": name, "type": kind, "url": url});
        let local = release.join("infrastructure-local/latest/infrastructure-components.yaml");
        let config = json!({
            "providers": [
                provider("cluster-api", "CoreProvider", release.join("cluster-api/latest/core-components.yaml")),
                provider("kubeadm", "BootstrapProvider", kubeadm_components("bootstrap")),
                provider("kubeadm", "ControlPlaneProvider", kubeadm_components("control-plane")),
                provider("local", "InfrastructureProvider", local),
            ],
            "cert-manager": {
                "url": upstream.join("cert-manager").join(CERT_MANAGER).join("cert-manager.yaml"),
                "version": CERT_MANAGER,
            },
        });
        fs::write(home.join("clusterctl.yaml"), config.to_string()).unwrap();
        Self { binary: upstream.join("clusterctl"), home, kubeconfig: plane.kubeconfig().clone() }
    }

    /// Runs a command that must succeed; gives back what it printed and what it logged.
    pub(crate) async fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (String, String) {
        let run = Command::new(&self.binary)
            .args(arguments)
            .arg("--config")
            .arg(self.home.join("clusterctl.yaml"))
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", &self.home)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .envs(variables.iter().copied())
            .output();
        let run = tokio::time::timeout(Duration::from_mins(3), run).await.expect("clusterctl ends").unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{arguments:?}: {out}{err}");
        (out.into_owned(), err.into_owned())
    }
}

impl Drop for Clusterctl {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason for a test to fail.
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Lets clusterctl install our release, and what else is asked for.
pub(crate) async fn init(plane: &Plane, others: Others) {
    let core = format!("cluster-api:{VERSION}");
    let (kubeadm, local) = (format!("kubeadm:{KUBEADM}"), format!("local:{VERSION}"));
    let kubeadm = if others == Others::Kubeadm { &kubeadm } else { "-" };
    let mut arguments = vec!["init", "--core", &core, "--bootstrap", kubeadm, "--control-plane", kubeadm];
    if others == Others::Local {
        arguments.extend(["--infrastructure", &local]);
    }
    Clusterctl::new(plane, &format!("{others:?}")).run(&arguments, &[]).await;
}

/// A story on a control plane where clusterctl has installed our release, and what else is asked for.
pub(crate) async fn begin(name: &str, others: Others) -> Story {
    let plane: Arc<Plane> = Plane::start().await;
    init(&plane, others).await;
    Story::begin_on(plane, name).await
}

/// A Service leads to Pods, of which there are none here: it is led to this machine instead.
pub(crate) async fn lead_service_here(client: &Client, namespace: &str, name: &str) {
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    services.delete(name, &DeleteParams::default()).await.unwrap();
    let service =
        json!({"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
}

/// Has a kind converted on a port of this machine, by way of the Service.
pub(crate) async fn lead_conversion_here(client: &Client, crd: &str, port: u16) {
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"port": port}}}}}});
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.patch(crd, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn lead_here(client: &Client, port: u16) {
    lead_service_here(client, NAMESPACE, "capi-webhook-service").await;
    lead_conversion_here(client, DEFINITION, port).await;
    let params = PatchParams::default();
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

/// The manager as the release's Pod would run it, and with the rights of its ServiceAccount alone.
pub(crate) struct Released {
    /// A client with those rights.
    pub(crate) account: Client,
    /// Where the webhooks' certificates are.
    pub(crate) identity: WebhookIdentity,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Released {
    /// Runs it, and waits until it is ready.
    pub(crate) async fn start(story: &Story) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        lead_here(&story.client, listener.local_addr().unwrap().port()).await;
        let mut config = story.plane.config().await;
        config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:capi-manager"));
        NAMESPACE.clone_into(&mut config.default_namespace);
        let account = Client::try_from(config).unwrap();
        let options = ManagerOptions {
            leader_elect: true,
            webhook_namespace: Some(NAMESPACE.to_owned()),
            ..ManagerOptions::embedded()
        };
        let identity = options.webhook_identity(capstan_cluster::WEBHOOK_SERVICE, "unused").unwrap();
        let stop = CancellationToken::new();
        let lease = capstan_cluster::LEASE;
        let mut manager =
            Manager::new(options, account.clone(), Metrics::default(), lease, "release", stop.clone());
        manager.keep_webhook_certificates_on(listener, identity.clone());
        capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
        let readiness = manager.readiness();
        let task = tokio::spawn(manager.run());
        let deadline = Instant::now() + LIMIT;
        while !readiness.is_ready() {
            assert!(Instant::now() < deadline, "not ready: {:?}", readiness.awaited());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { account, identity, stop, task }
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// Creates an object as soon as the API server lets it: of webhooks and their bundles it hears by a watch.
pub(crate) async fn create_when_served<K>(api: &Api<K>, object: &K)
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = api.create(&PostParams::default(), object).await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Upstream's core manager for one namespace, and the port of its webhooks. It does not start without a certificate,
/// whether or not they are called.
pub(crate) fn start_upstreams_core(plane: &Plane, namespace: &str) -> (Child, u16) {
    let certificates = plane.kubeconfig().with_file_name("webhook-certificates");
    fs::create_dir_all(&certificates).unwrap();
    let (certificate, key) = plane.authority();
    fs::write(certificates.join("tls.crt"), certificate).unwrap();
    fs::write(certificates.join("tls.key"), key).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let core = Command::new(folder("CAPSTAN_UPSTREAM_DIR").join("capi-core"))
        .args(["--insecure-diagnostics", "--diagnostics-address=127.0.0.1:0", "--health-addr=127.0.0.1:0"])
        .arg(format!("--webhook-port={port}"))
        .arg("--webhook-cert-dir")
        .arg(&certificates)
        .arg(format!("--namespace={namespace}"))
        .env("KUBECONFIG", plane.kubeconfig())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    (core, port)
}

/// A Cluster with a given spec.
pub(crate) fn cluster(name: &str, spec: &Value) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}
