//! `capstan manager operator` as a program, beside the commands that install, upgrade and delete by it. It has the rights
//! of its ServiceAccount and no others; the stories play kubelet.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use capstan_api::{
    operator::{GROUP, VERSION, resource},
    provider::ProviderType::{self, Core, Infrastructure},
};
use capstan_components::operator::{
    ACCOUNT, AGGREGATE_LABEL, AGGREGATED_ROLE, NAMESPACE, WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE,
};
use capstan_testkit::{
    canary::CANARY,
    kubelet::Kubelet,
    wait::{self, LIMIT},
};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    coordination::v1::Lease,
    core::v1::{Secret, Service, ServiceAccount},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    config::Kubeconfig,
};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::Instant,
};

use crate::{
    estate::{Estate, Release},
    operator::{INPUT, publish, releases},
    user::Told,
};

const LEASE: &str = "controller-leader-election-capstan-operator";

/// A cluster and its user. Deployments become available at once.
struct Scene {
    estate: Estate,
    _kubelet: Kubelet,
}

/// The operator as a program of its own.
struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

impl Drop for Program {
    #[expect(clippy::print_stderr, reason = "test output")]
    fn drop(&mut self) {
        // What the operator said is worth most where the story failed.
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("the operator's log:\n{log}");
        }
    }
}

impl Scene {
    /// With the operator's components installed by `init --operator` and more arguments.
    async fn new(arguments: &[&str]) -> Self {
        Self::after(&["version"], arguments).await
    }

    /// The same after another command.
    async fn after(command: &[&str], arguments: &[&str]) -> Self {
        let mut estate = Estate::bare().await;
        let user = std::mem::replace(&mut estate.user, crate::user::User::new());
        estate.user = user.with("ACME_TOKEN", CANARY);
        for release in releases("v1.0.0") {
            publish(&estate, &release);
        }
        Self::on(estate, command, arguments).await
    }

    async fn on(estate: Estate, command: &[&str], arguments: &[&str]) -> Self {
        let kubelet = Kubelet::start(estate.client.clone());
        let scene = Self { estate, _kubelet: kubelet };
        scene.succeeds(command, &[]).await;
        scene.succeeds(&[&["init", "--operator"], arguments].concat(), &[]).await;
        scene.aggregate().await;
        scene
    }

    fn client(&self) -> Client {
        self.estate.client.clone()
    }

    async fn run(&self, arguments: &[&str]) -> Told {
        let command = self.estate.user.command(env!("CARGO_BIN_EXE_capstan"), arguments);
        let told: Told = Command::from(command).kill_on_drop(true).output().await.unwrap().into();
        for text in [&told.out, &told.err] {
            capstan_testkit::canary::assert_not_in(&arguments.join(" "), text);
        }
        told
    }

    async fn succeeds(&self, arguments: &[&str], words: &[&str]) {
        let told = self.run(arguments).await;
        assert_eq!(told.code, Some(0), "{arguments:?}: {told:?}");
        for words in words {
            assert!(told.err.contains(words), "{words:?} is missing in:\n{told:?}");
        }
    }

    /// Starts the operator as its ServiceAccount, with the flags that every story needs on one machine.
    async fn start(&self, name: &str, flags: &[&str]) -> Program {
        self.start_with(name, flags, None).await
    }

    async fn start_with(&self, name: &str, flags: &[&str], pod_namespace: Option<&str>) -> Program {
        let kubeconfig = self.kubeconfig().await;
        let log = self.estate.user.write(&format!("{name}.log"), "");
        let common = ["manager", "operator", "--health-addr", "0", "--diagnostics-address", "0", "--v=4"];
        let place = ["--kubeconfig", kubeconfig.to_str().unwrap()];
        let arguments = [&common[..], &place, flags].concat();
        let mut command = self.estate.user.command(env!("CARGO_BIN_EXE_capstan"), &arguments);
        command.stdout(Stdio::null()).stderr(File::options().append(true).open(&log).unwrap());
        if let Some(namespace) = pod_namespace {
            command.env("POD_NAMESPACE", namespace);
        }
        let child = Command::from(command).kill_on_drop(true).spawn().unwrap();
        Program { child, log }
    }

    /// A kubeconfig with a token of the operator's ServiceAccount.
    async fn kubeconfig(&self) -> PathBuf {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), NAMESPACE);
        let request: TokenRequest =
            serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 7200}})).unwrap();
        let token = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await.unwrap();
        let admin = Kubeconfig::read_from(self.estate.plane.kubeconfig()).unwrap();
        let cluster = json!(admin.clusters[0].cluster);
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": token.status.unwrap().token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": NAMESPACE}}],
            "current-context": "it",
        });
        self.estate.user.write("operator.json", &text.to_string())
    }

    /// Gives the operator the rules of all roles with its label, as Kubernetes' controller for it does.
    async fn aggregate(&self) {
        let roles: Api<ClusterRole> = Api::all(self.client());
        let selector = ListParams::default().labels(&format!("{AGGREGATE_LABEL}=true"));
        let found = roles.list(&selector).await.unwrap();
        let rules: Vec<_> = found.into_iter().flat_map(|it| it.rules.unwrap_or_default()).collect();
        let patch = Patch::Merge(json!({"rules": rules}));
        roles.patch(AGGREGATED_ROLE, &PatchParams::default(), &patch).await.unwrap();
    }

    fn objects(&self, kind: ProviderType, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), namespace, &resource(kind))
    }

    /// Creates a provider object, and waits until an operator holds it.
    async fn until_held(&self, name: &str) {
        let object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": Infrastructure.as_str(),
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"version": "v1.0.0", "fetchConfig": {"url": "https://127.0.0.1:9/o/r/releases"}},
        });
        let api = self.objects(Infrastructure, "default");
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        wait::until_is(&api, name, "held", LIMIT, |it| !it.finalizers().is_empty()).await;
    }

    async fn image(&self, namespace: &str) -> String {
        let deployments: Api<Deployment> = Api::namespaced(self.client(), namespace);
        let name = format!("{}-controller-manager", namespace.trim_end_matches("-system"));
        let pod = deployments.get(&name).await.unwrap().spec.unwrap().template.spec.unwrap();
        pod.containers[0].image.clone().unwrap()
    }

    async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client(), NAMESPACE);
        let is_held = |it: &Lease| it.spec.as_ref().is_some_and(|it| it.holder_identity.is_some());
        let lease = wait::until_is(&leases, LEASE, "held", LIMIT, is_held).await;
        lease.spec.unwrap().holder_identity.unwrap()
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const ONE_MACHINE: [&str; 3] = ["--leader-elect", "--webhook-port", "0"];

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_installed_upgraded_and_deleted_by_the_operator_with_its_own_rights() {
    let scene = Scene::new(&["-i", "acme"]).await;
    let flags = ["--leader-elect", "--webhook-port", &free_port().to_string()];
    let _operator = scene.start_with("operator", &flags, Some(NAMESPACE)).await;
    let wait = ["init", "--operator", "--wait-providers"];
    scene.succeeds(&wait, &["the provider operator runs", "all providers run"]).await;
    assert_eq!(scene.image("acme-system").await, "registry.example.com/acme:v1.0.0");
    let acme = scene.objects(Infrastructure, "acme-system").get("acme").await.unwrap();
    assert_eq!(acme.data["status"]["contract"], "v1beta1");

    for release in releases("v1.1.0") {
        publish(&scene.estate, &release);
    }
    let words = ["InfrastructureProvider acme-system/acme is at v1.1.0"];
    scene.succeeds(&["upgrade", "apply", "-i", "acme:v1.1.0"], &words).await;
    assert_eq!(scene.image("acme-system").await, "registry.example.com/acme:v1.1.0");

    // Another contract: all are paused, upgraded, and unpaused.
    for release in releases("v1.2.0") {
        publish(&scene.estate, &release);
    }
    let words = ["pausing CoreProvider", "unpausing CoreProvider", "upgraded cluster-api"];
    scene.succeeds(&["upgrade", "apply", "--contract", "v1beta2"], &words).await;
    scene.succeeds(&wait, &["all providers run"]).await;
    for namespace in ["capi-system", "acme-system"] {
        assert!(scene.image(namespace).await.ends_with(":v1.2.0"), "{namespace}");
    }
    let deployments: Api<Deployment> = Api::all(scene.client());
    for deployment in deployments.list(&ListParams::default()).await.unwrap() {
        assert_eq!(deployment.spec.as_ref().unwrap().replicas, Some(1), "{}", deployment.name_any());
    }

    beyond_its_rights(&scene).await;

    let secrets: Api<Secret> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(secrets.get_opt(&format!("{WEBHOOK_SERVICE}-ca")).await.unwrap().is_some());
    let words = ["deleted all provider objects", "deleted the provider operator"];
    scene.succeeds(&["delete", "--all"], &words).await;
    let left: Vec<_> =
        deployments.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert!(left.is_empty(), "{left:?}");
    let secrets: Api<Secret> = Api::all(scene.client());
    let inputs = ListParams::default().labels(INPUT);
    assert!(secrets.list(&inputs).await.unwrap().items.is_empty(), "credentials do not stay");
    let own: Api<Secret> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(own.get_opt(&format!("{WEBHOOK_SERVICE}-ca")).await.unwrap().is_none(), "nor do keys");
    let leases: Api<Lease> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(leases.get_opt(LEASE).await.unwrap().is_none());
    let roles: Api<ClusterRole> = Api::all(scene.client());
    let left = roles.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).filter(|it| it.contains("acme")).collect();
    assert_eq!(left, ["acme-additional"]);
}

/// A release that asks for more than the operator holds is refused, with the rule, until an admin grants it.
async fn beyond_its_rights(scene: &Scene) {
    let [.., acme] = releases("v1.2.1");
    publish_with_daemonsets(&scene.estate, &acme);
    let upgrade = ["upgrade", "apply", "-i", "acme:v1.2.1"];
    scene.run(&upgrade).await.fails(&["OperatorForbidden", "daemonsets"]);
    let mut role: Value =
        serde_saphyr::from_str(include_str!("../../../../config/operator/additional-rights.yaml")).unwrap();
    role["metadata"]["name"] = json!("acme-additional");
    scene.estate.create_by_hand(&[role]).await;
    scene.aggregate().await;
    // The operator looks again by itself.
    let acme = scene.objects(Infrastructure, "acme-system");
    let is_there = |it: &DynamicObject| it.data["status"]["installedVersion"] == "v1.2.1";
    wait::until_is(&acme, "acme", "v1.2.1", LIMIT, is_there).await;
    scene.succeeds(&upgrade, &[]).await;
}

fn publish_with_daemonsets(estate: &Estate, release: &Release) {
    let mut components = release.components();
    let role = components.iter_mut().find(|it| it["kind"] == "ClusterRole").unwrap();
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let rule = json!({"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": all});
    role["rules"].as_array_mut().unwrap().push(rule);
    estate.publish_with(release, &components);
}

/// Upstream's releases, two of which have roles that gather the rules of others.
#[tokio::test(flavor = "multi_thread")]
async fn real_releases_need_no_more_than_its_own_rights() {
    let releases = std::env::var_os("CAPSTAN_UPSTREAM_DIR").map(|it| PathBuf::from(it).join("releases"));
    let Some(releases) = releases.filter(|it| it.is_dir()) else {
        println!("not checked: $CAPSTAN_UPSTREAM_DIR has no releases");
        return;
    };
    let mut estate = Estate::bare().await;
    let user = std::mem::replace(&mut estate.user, crate::user::User::new());
    estate.user = user.with("GCP_B64ENCODED_CREDENTIALS", "e30=").with("ACME_TOKEN", CANARY);
    let provider = |name: &str, kind: &str, label: &str, prefix: &str| {
        let url = releases.join(label).join("latest").join(format!("{prefix}-components.yaml"));
        json!({"name": name, "type": kind, "url": url})
    };
    let mut config = estate.configuration();
    config["providers"] = json!([
        provider("cluster-api", "CoreProvider", "cluster-api", "core"),
        provider("kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap"),
        provider("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane"),
        provider("gcp", "InfrastructureProvider", "infrastructure-gcp", "infrastructure"),
    ]);
    estate.user.configure(&config);
    let scene = Scene::on(estate, &["version"], &["-i", "gcp"]).await;
    let _operator = scene.start("operator", &ONE_MACHINE).await;
    let wait = ["init", "--operator", "--wait-providers"];
    scene.succeeds(&wait, &["all providers run"]).await;
    let roles: Api<ClusterRole> = Api::all(scene.client());
    let gathers = roles.get("capi-system-capi-aggregated-manager-role").await.unwrap();
    assert!(gathers.aggregation_rule.is_some());
    scene.succeeds(&["delete", "--all"], &["deleted the provider operator"]).await;
}

/// Leads the operator's webhook to a port of this machine: the API server looks a Service up itself.
async fn lead_to(scene: &Scene, port: u16) {
    let services: Api<Service> = Api::namespaced(scene.client(), NAMESPACE);
    let external = json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null,
                                   "clusterIPs": null, "ports": null, "selector": null}});
    services.patch(WEBHOOK_SERVICE, &PatchParams::default(), &Patch::Merge(external)).await.unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(scene.client());
    let mut found = configurations.get(WEBHOOK_CONFIGURATION).await.unwrap();
    for webhook in found.webhooks.iter_mut().flatten() {
        webhook.client_config.service.as_mut().unwrap().port = Some(i32::from(port));
    }
    configurations.replace(WEBHOOK_CONFIGURATION, &PostParams::default(), &found).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn its_webhook_refuses_what_a_schema_cannot_describe_with_certificates_of_its_own() {
    let scene = Scene::new(&[]).await;
    let port = free_port();
    lead_to(&scene, port).await;
    let flags = ["--leader-elect", "--webhook-port", &port.to_string()];
    let operator = scene.start_with("operator", &flags, Some(NAMESPACE)).await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(scene.client());
    wait::until_is(&configurations, WEBHOOK_CONFIGURATION, "trusted", LIMIT, |it| {
        it.webhooks.iter().flatten().all(|it| it.client_config.ca_bundle.is_some())
    })
    .await;
    let secrets: Api<Secret> = Api::namespaced(scene.client(), NAMESPACE);
    assert!(secrets.get_opt(&format!("{WEBHOOK_SERVICE}-ca")).await.unwrap().is_some());

    let api = scene.objects(Core, "default");
    let object = |image: Value| -> DynamicObject {
        let spec = json!({"deployment": {"containers": [{"name": "manager", "image": image}]}});
        DynamicObject::new("it", &resource(Core)).data(json!({ "spec": spec }))
    };
    let params = PostParams { dry_run: true, ..PostParams::default() };
    // The API server hears of the bundle by a watch.
    let deadline = Instant::now() + LIMIT;
    let refused = loop {
        match api.create(&params, &object(json!({"repo": "x"}))).await {
            Err(refused) => break refused.to_string(),
            Ok(_) => assert!(Instant::now() < deadline, "it is never judged"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let words =
        "admission webhook \"validation.coreprovider.management.cluster.x-k8s.io\" denied the request";
    assert!(refused.contains(words) && refused.contains("unknown field `repo`"), "{refused}");
    api.create(&params, &object(json!({"repository": "r.example.com"}))).await.unwrap();
    // It is never needed.
    operator.kill().await;
    api.create(&params, &object(json!({"repo": "x"}))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replicas_one_leads_and_the_other_takes_over() {
    let scene = Scene::new(&[]).await;
    let election = [
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
    ];
    // Outside a Pod, and without webhooks.
    let flags = [&ONE_MACHINE[..], &election].concat();
    let first = scene.start("first", &flags).await;
    let is_its = |holder: &str, program: &Program| holder.contains(&format!("_{}-", program.id()));
    scene.until_held("one").await;
    let holder = scene.holder().await;
    assert!(is_its(&holder, &first), "{holder}");
    let second = scene.start("second", &flags).await;
    scene.until_held("two").await;
    assert_eq!(scene.holder().await, holder, "the second one waits");
    first.kill().await;
    scene.until_held("three").await;
    let now = scene.holder().await;
    assert!(is_its(&now, &second), "{now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_without_it_is_migrated_unless_a_flag_says_otherwise() {
    let scene = Scene::after(&["init", "-i", "acme"], &[]).await;
    let without = scene.start("without", &[&ONE_MACHINE[..], &["--migrate-inventory=false"]].concat()).await;
    scene.until_held("one").await;
    let core = scene.objects(Core, "capi-system");
    assert!(core.get_opt("cluster-api").await.unwrap().is_none());
    without.kill().await;
    let _with = scene.start("with", &["--webhook-port", "0"]).await;
    let found = wait::until_is(&core, "cluster-api", "migrated", LIMIT, |_| true).await;
    assert_eq!(found.data["spec"], json!({"version": "v1.0.0"}));
    let acme = scene.objects(Infrastructure, "acme-system");
    let is_adopted = |it: &DynamicObject| it.data["status"]["installedVersion"] == "v1.0.0";
    wait::until_is(&acme, "acme", "adopted", LIMIT, is_adopted).await;
}
