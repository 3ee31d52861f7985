//! `init`: providers into a management cluster.

use std::{collections::BTreeMap, process::Stdio};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::cert_manager::{self, CertManagerState, Manifest};
use capstan_management::inventory::Inventory;
use capstan_manifest::images::Overrides;
use capstan_testkit::{
    gate::{Gate, Passed},
    terminal::Terminal,
    wait::LIMIT,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod, Service, ServiceAccount},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::Command,
};

use crate::{
    estate::{CERT_MANAGER_VERSION, Estate, Release, forget},
    user::Told,
};

const ACME: &[&str] = &["init", "-i", "acme"];

/// An estate whose user can only reach the server through a gate.
struct Guarded {
    estate: Estate,
    gate: Gate,
}

impl Guarded {
    async fn new() -> Self {
        let mut estate = Estate::new().await;
        let gate = Gate::open(estate.client.clone()).await;
        let kubeconfig = estate.user.write("gate.yaml", &gate.kubeconfig());
        estate.user =
            std::mem::replace(&mut estate.user, crate::user::User::new()).with("KUBECONFIG", kubeconfig);
        Self { estate, gate }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::from(self.estate.user.command(env!("CARGO_BIN_EXE_capstan"), arguments));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the binary.
    async fn run(&self, arguments: &[&str]) -> Told {
        self.gate.count_from_now(None);
        self.command(arguments).output().await.unwrap().into()
    }

    /// Runs the binary and makes sure that it wrote nothing.
    async fn run_in_vain(&self, arguments: &[&str]) -> Told {
        let told = self.run(arguments).await;
        let writes: Vec<_> = self.gate.passed().into_iter().filter(Passed::is_write).collect();
        assert_eq!(writes, [], "{arguments:?} wrote\n{}", told.err);
        told
    }

    /// The entries of the inventory, as `label version`.
    async fn inventory(&self) -> Vec<String> {
        let inventory = Inventory::read(&self.estate.cluster()).await.unwrap();
        inventory.providers.iter().map(|it| format!("{} {}", it.label(), it.version)).collect()
    }
}

fn version(release: &Release, change: impl Fn(&mut Vec<Value>)) -> (Release, Vec<Value>) {
    let mut components = release.components();
    change(&mut components);
    (release.clone(), components)
}

fn acme(version: &'static str) -> Release {
    let [.., acme] = Release::all(version);
    acme
}

#[tokio::test]
async fn the_first_time_everything_is_installed_and_the_second_time_nothing_is_written() {
    let guarded = Guarded::new().await;

    let shown = guarded.run_in_vain(&["init", "-i", "acme", "--dry-run", "-o", "json"]).await.data();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let parts: Vec<_> = shown["providers"].as_array().unwrap().iter().map(|it| &it["provider"]).collect();
    let all =
        ["cert-manager", "cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-acme"];
    assert_eq!(parts, all);
    let text = guarded.run_in_vain(&["init", "-i", "acme", "--dry-run", "--diff"]).await.data();
    assert!(text.contains("infrastructure-acme: 10 created") && text.contains("+kind: Deployment"), "{text}");

    let told = guarded.run(ACME).await;
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{}", told.err);
    for words in [
        "installing cert-manager v1.2.3",
        "cert-manager works",
        "installed infrastructure-acme v1.0.0",
        "applying 4 CRDs",
        "generate cluster NAME",
    ] {
        assert!(told.err.contains(words), "{words} is missing in:\n{}", told.err);
    }
    let inventory = [
        "cluster-api v1.0.0",
        "bootstrap-kubeadm v1.0.0",
        "control-plane-kubeadm v1.0.0",
        "infrastructure-acme v1.0.0",
    ];
    assert_eq!(guarded.inventory().await, inventory);
    let labelled = guarded.estate.labelled().await;
    // Ten objects and an entry of each provider, and cert-manager. The CRD of the inventory has another label.
    assert_eq!(labelled.len(), 4 * 11 + 4, "{:?}", labelled.keys());
    let cert_manager = &labelled["ServiceAccount cert-manager/cert-manager"]["metadata"];
    let annotation = "cert-manager.clusterctl.cluster.x-k8s.io/version";
    assert_eq!(cert_manager["annotations"][annotation], CERT_MANAGER_VERSION);

    let again = guarded.run_in_vain(ACME).await;
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{}", again.err);
    assert!(again.err.contains("nothing to do") && !again.err.contains("generate cluster"), "{}", again.err);
    let pinned = ["init", "--core", "-", "-i", "acme:v1.0.0", "-n", "acme-system"];
    assert!(guarded.run_in_vain(&pinned).await.err.contains("nothing to do"));

    // What is installed stays alone, and in its version.
    guarded.estate.publish(&acme("v1.1.0"));
    let hint = "upgrade apply --infrastructure acme-system/acme:v1.1.0";
    let other = ["infrastructure-acme is installed in namespace acme-system as v1.0.0, not as v1.1.0", hint];
    guarded.run_in_vain(ACME).await.fails(&other);
    let elsewhere = ["init", "-i", "acme:v1.0.0", "-n", "elsewhere"];
    guarded.run_in_vain(&elsewhere).await.fails(&["a second instance in namespace elsewhere"]);

    waiting(&guarded).await;
    half_installed(&guarded).await;
    types(&guarded).await;
    cert_manager_upgrade(&guarded).await;
}

/// Providers run when their Pods do.
async fn waiting(guarded: &Guarded) {
    let words = ["init", "-i", "acme:v1.0.0", "--wait-providers", "--wait-provider-timeout", "1"];
    let late = [
        "a provider is not available after 1 s",
        "Deployment acme-system/acme-controller-manager",
        "Pod acme-controller-manager-",
    ];
    guarded.run_in_vain(&words).await.fails(&late);
    let pods: Api<Pod> = Api::namespaced(guarded.estate.client.clone(), "acme-system");
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
    let told = guarded.run_in_vain(&["init", "-i", "acme:v1.0.0", "--wait-providers"]).await;
    assert!(told.code == Some(0) && told.err.contains("all providers run"), "{}", told.err);
}

/// Every type of provider, into a namespace of the user's choice, looking at one namespace alone.
async fn types(guarded: &Guarded) {
    let types = [
        ("IPAMProvider", "ipam"),
        ("RuntimeExtensionProvider", "runtime-extension"),
        ("AddonProvider", "addon"),
    ];
    let mut config: Value = {
        let text = std::fs::read_to_string(guarded.estate.user.home.join(".cluster-api/clusterctl.yaml"));
        serde_json::from_str(&text.unwrap()).unwrap()
    };
    for (kind, prefix) in types {
        let label = format!("{prefix}-more");
        let mut components = acme("v1.0.0").components();
        components
            .retain(|it| !matches!(it["kind"].as_str(), Some("CustomResourceDefinition" | "Namespace")));
        for object in &mut components {
            let name = format!("{prefix}-{}", object["metadata"]["name"].as_str().unwrap());
            object["metadata"]["name"] = json!(name);
        }
        let manifest = components.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
        let file = format!("{prefix}-components.yaml");
        guarded.estate.user.release(&label, "v1.0.0", &[(&file, &manifest)]);
        let url = guarded.estate.user.path(&format!("repository/{label}/latest/{file}"));
        config["providers"].as_array_mut().unwrap().push(json!({"name": "more", "type": kind, "url": url}));
    }
    guarded.estate.user.configure(&config);
    let words = ["init", "--ipam", "more", "--runtime-extension", "more:v1.0.0", "--addon", "more"];
    guarded.run_in_vain(&words).await.fails(&["3 problems were found", "--target-namespace"]);
    let words = [&words[..], &["-n", "mine", "--watching-namespace", "team"]].concat();
    let told = guarded.run(&words).await;
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(!told.err.contains("generate cluster"), "not the first time:\n{}", told.err);
    let inventory = guarded.inventory().await;
    assert_eq!(inventory[4..], ["ipam-more v1.0.0", "runtime-extension-more v1.0.0", "addon-more v1.0.0"]);
    let labelled = guarded.estate.labelled().await;
    assert_eq!(labelled["Provider mine/ipam-more"]["watchedNamespace"], "team");
    let manager = &labelled["Deployment mine/ipam-acme-controller-manager"];
    let arguments = &manager["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.as_array().unwrap().contains(&json!("--namespace=team")), "{arguments}");
    assert!(labelled.contains_key("ClusterRole /mine-ipam-acme-manager-role"), "{:?}", labelled.keys());
}

/// cert-manager is upgraded in place: what clusterctl wrote and what is no longer wanted goes, its kinds stay.
async fn cert_manager_upgrade(guarded: &Guarded) {
    let file = format!("repository/cert-manager/{CERT_MANAGER_VERSION}/cert-manager.yaml");
    let text = std::fs::read_to_string(guarded.estate.user.home.join(file)).unwrap();
    let mut objects: Vec<Value> =
        capstan_manifest::yaml::read(&text).unwrap().into_iter().map(|it| it.value).collect();
    let same = Manifest::new(CERT_MANAGER_VERSION, objects.clone(), &Overrides::default()).unwrap();
    let cluster = guarded.estate.cluster();
    let up_to_date = |version: &str| CertManagerState::UpToDate { version: version.to_owned() };
    assert_eq!(cert_manager::plan(&cluster, &same).await.unwrap(), up_to_date(CERT_MANAGER_VERSION));

    let clusterctl = PatchParams { field_manager: Some("clusterctl".to_owned()), ..PatchParams::default() };
    let stale = json!({"metadata": {"annotations": {"stale": "yes"}}});
    let crds: Api<CustomResourceDefinition> = Api::all(guarded.estate.client.clone());
    let name = "issuers.cert-manager.io";
    crds.patch(name, &clusterctl, &Patch::Merge(stale)).await.unwrap();
    let account = objects.pop().unwrap();
    assert_eq!(account["kind"], "ServiceAccount");
    let newer = Manifest::new("v1.3.0", objects, &Overrides::default()).unwrap();
    let upgrade =
        CertManagerState::Upgrade { from: CERT_MANAGER_VERSION.to_owned(), to: "v1.3.0".to_owned() };
    assert_eq!(cert_manager::plan(&cluster, &newer).await.unwrap(), upgrade);
    cert_manager::upgrade(&cluster, &newer, LIMIT, &|_| {}).await.unwrap();
    assert_eq!(cert_manager::plan(&cluster, &newer).await.unwrap(), up_to_date("v1.3.0"));
    assert!(!crds.get(name).await.unwrap().annotations().contains_key("stale"));
    let accounts: Api<ServiceAccount> = Api::namespaced(guarded.estate.client.clone(), "cert-manager");
    assert!(accounts.get_opt("cert-manager").await.unwrap().is_none(), "it is no longer wanted");
}

#[tokio::test]
async fn while_something_is_wrong_nothing_is_written() {
    let guarded = Guarded::new().await;
    let estate = &guarded.estate;

    guarded.run_in_vain(&["init", "--core", "-"]).await.fails(&["no core provider is installed"]);
    guarded.run_in_vain(&["init", "-i", "acme:v1:v2"]).await.fails(&["acme:v1:v2"]);
    let twice = ["init", "-i", "acme:v1.0.0", "-i", "acme:v1.1.0"];
    guarded.run_in_vain(&twice).await.fails(&["asked for twice: as v1.0.0 and as v1.1.0"]);
    guarded.run_in_vain(&["init", "-n", "Not A Name"]).await.fails(&["--target-namespace"]);

    // All problems are reported at once.
    let (broken, components) = version(&acme("v1.2.0"), |components| {
        components[1]["metadata"]["name"] = json!("acmeclusteren.infrastructure.cluster.x-k8s.io");
        components[5]["spec"]["ports"] = json!([{"port": 443, "protocol": "smoke"}]);
        components.push(json!({"apiVersion": "nowhere.io/v1", "kind": "Nothing", "metadata": {"name": "n"}}));
    });
    estate.publish_with(&broken, &components);
    let all = [
        "4 problems were found; nothing was changed",
        "must be called acmeclusters.infrastructure.cluster.x-k8s.io",
        "the server knows no kind Nothing in nowhere.io/v1",
        "would not accept Service acme-system/acme-webhook-service",
    ];
    guarded.run_in_vain(ACME).await.fails(&all);
    guarded.run_in_vain(&["init", "-i", "acme", "--validate=false"]).await.fails(&["no kind Nothing"]);
    guarded.run_in_vain(&["init", "-i", "acme", "--dry-run"]).await.fails(&all);

    // A variable without a value.
    let (unset, components) = version(&acme("v1.2.1"), |components| {
        components[6]["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--token=${ACME_TOKEN}"]);
    });
    estate.publish_with(&unset, &components);
    let unset = ["infrastructure-acme", "no value is set for 1 variable", "ACME_TOKEN", "export ACME_TOKEN"];
    guarded.run_in_vain(ACME).await.fails(&unset);

    // Contracts that do not go together.
    let [core, ..] = Release::all("v1.1.0");
    estate.publish(&Release { series: &[("1.0", "v1beta2"), ("1.1", "v1beta1")], ..core });
    let words = ["init", "--core", "cluster-api:v1.1.0", "-i", "acme:v1.0.0"];
    let contracts =
        ["infrastructure-acme v1.0.0 speaks contract v1beta2", "cluster-api v1.1.0 speaks v1beta1 only"];
    guarded.run_in_vain(&words).await.fails(&contracts);

    foreign_crd(&guarded).await;
    assert_eq!(guarded.inventory().await, ["cluster-api v1.0.0", "infrastructure-acme v1.0.0"]);
    bad_servers(&guarded).await;
}

/// A CRD of another owner is not touched, unless that is asked for.
async fn foreign_crd(guarded: &Guarded) {
    let crds: Api<CustomResourceDefinition> = Api::all(guarded.estate.client.clone());
    let mut crd = acme("v1.0.0").components().remove(1);
    crd["metadata"]["labels"] = json!({"owner": "somebody"});
    let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
    let crd: CustomResourceDefinition = serde_json::from_value(crd).unwrap();
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let words = ["init", "--core", "cluster-api:v1.0.0", "-b", "-", "-c", "-", "-i", "acme:v1.0.0"];
    let theirs = format!("CRD {name} is on the server already, and belongs to no provider");
    guarded.run_in_vain(&words).await.fails(&[&theirs, "--validate=false"]);
    let label = |owner: &str| {
        json!({"metadata": {"labels": {"clusterctl.cluster.x-k8s.io": "",
                                                             "cluster.x-k8s.io/provider": owner}}})
    };
    let other = Patch::Merge(label("infrastructure-other"));
    crds.patch(&name, &PatchParams::default(), &other).await.unwrap();
    guarded.run_in_vain(&words).await.fails(&["belongs to infrastructure-other"]);
    let told = guarded.run(&[&words[..], &["--validate=false"]].concat()).await;
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("warning: ignored: infrastructure-acme: CRD"), "{}", told.err);
    let taken = crds.get(&name).await.unwrap();
    assert_eq!(taken.labels()["cluster.x-k8s.io/provider"], "infrastructure-acme");
}

/// Servers that cannot be used.
async fn bad_servers(guarded: &Guarded) {
    let user = &guarded.estate.user;
    let kubeconfig = |server: &str, user: Value| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": server, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "x", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        })
        .to_string()
    };
    // Nothing listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = user.write("gone.yaml", &kubeconfig(&format!("http://{gone}"), json!({})));
    let unreachable = ["cannot list installed providers", "kubectl get --raw /readyz"];
    guarded.run_in_vain(&["init", "--kubeconfig", file.to_str().unwrap()]).await.fails(&unreachable);

    let old = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = old.local_addr().unwrap();
    let server = tokio::spawn(answer_version(old, "v1.21.14"));
    let file = user.write("old.yaml", &kubeconfig(&format!("http://{address}"), json!({})));
    let too_old = ["runs Kubernetes v1.21.14", "v1.22 or later", "nothing was changed"];
    guarded.run_in_vain(&["init", "--kubeconfig", file.to_str().unwrap()]).await.fails(&too_old);
    server.abort();

    let mut admin: Value = {
        let text = std::fs::read_to_string(guarded.estate.plane.kubeconfig()).unwrap();
        capstan_manifest::yaml::read_one(&text).unwrap()
    };
    admin["users"][0]["user"]["as"] = json!("nobody");
    let file = user.write("nobody.yaml", &admin.to_string());
    let before = guarded.estate.labelled().await;
    let forbidden = ["nobody", "cannot list", "cluster-admin"];
    guarded.run(&["init", "--kubeconfig", file.to_str().unwrap()]).await.fails(&forbidden);
    assert_eq!(guarded.estate.labelled().await, before);

    user_without_kubeconfig(guarded).await;
}

async fn user_without_kubeconfig(guarded: &Guarded) {
    let mut command = guarded.command(&["init"]);
    command.env_remove("KUBECONFIG");
    let told: Told = command.output().await.unwrap().into();
    told.fails(&["no management cluster is named", "--kubeconfig"]);
}

/// Says to everybody which version it is.
async fn answer_version(listener: TcpListener, version: &str) {
    let (major, minor) = version.trim_start_matches('v').split_once('.').unwrap();
    let minor = minor.split_once('.').unwrap().0;
    let body = json!({"major": major, "minor": minor, "gitVersion": version, "buildDate": "", "compiler": "",
                      "gitCommit": "", "gitTreeState": "", "goVersion": "", "platform": ""})
    .to_string();
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                         "reason": "NotFound", "message": "not found"})
    .to_string();
    // Nothing is installed there.
    let kinds = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []});
    let kinds = kinds.to_string();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let (status, body) = match String::from_utf8_lossy(&request[..length]).split(' ').nth(1) {
            Some("/version") => ("200 OK", &body),
            Some("/api" | "/apis") => ("200 OK", &kinds),
            _ => ("404 Not Found", &missing),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// A provider that is there in part is completed, and what strangers put beside it stays.
async fn half_installed(guarded: &Guarded) {
    let before = without_addresses(guarded.estate.labelled().await);
    let client = &guarded.estate.client;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "acme-system");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "mine"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let cluster = guarded.estate.cluster();
    let inventory = Inventory::read(&cluster).await.unwrap();
    forget(client, inventory.instances(ProviderType::Infrastructure, "acme").next().unwrap()).await;
    let services: Api<Service> = Api::namespaced(client.clone(), "acme-system");
    services.delete("acme-webhook-service", &DeleteParams::default()).await.unwrap();
    // The same for cert-manager.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "cert-manager");
    accounts.delete("cert-manager", &DeleteParams::default()).await.unwrap();
    let told = guarded.run(&["init", "-i", "acme:v1.0.0"]).await;
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("completing cert-manager v1.2.3"), "{}", told.err);
    assert_eq!(without_addresses(guarded.estate.labelled().await), before);
    maps.get("mine").await.unwrap();
}

/// Objects without what a server hands out at random.
fn without_addresses(mut objects: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    objects.retain(|id, _| !id.starts_with("Endpoint"));
    for object in objects.values_mut() {
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
        }
    }
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_one_line_tells_how_far_it_is_and_vanishes() {
    let estate = Estate::new().await;
    let command = estate.user.command(env!("CARGO_BIN_EXE_capstan"), ACME);
    // Too narrow for most of what the line says.
    let mut terminal = Terminal::start(command, 40, 30);
    let (status, terminal) = tokio::task::spawn_blocking(move || (terminal.ended(), terminal)).await.unwrap();
    let last = terminal.lines();
    assert!(status.success(), "{status}:\n{}", last.join("\n"));
    let is_bar = |line: &&String| line.contains(['█', '░']);
    let bars: Vec<Vec<&String>> =
        terminal.seen().iter().map(|it| it.iter().filter(is_bar).collect()).collect();
    assert!(bars.iter().all(|it| it.len() < 2), "{bars:?}");
    let bars: Vec<&String> = bars.into_iter().flatten().collect();
    assert!(bars.first().is_some_and(|it| it.contains('░')), "{bars:?}");
    assert!(bars.last().is_some_and(|it| !it.contains('░')), "{bars:?}");
    assert!(bars.iter().all(|it| it.contains('/')), "{bars:?}");
    assert!(!last.iter().any(|it| is_bar(&it)), "{}", last.join("\n"));
    assert!(last.iter().any(|it| it.contains("infrastructure-acme")), "{}", last.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_drawn_over_plain_lines_tell_how_far_it_is() {
    let estate = Estate::new().await;
    let mut command = estate.user.command(env!("CARGO_BIN_EXE_capstan"), ACME);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command, 120, 50);
    let (status, terminal) = tokio::task::spawn_blocking(move || (terminal.ended(), terminal)).await.unwrap();
    let lines = terminal.lines();
    assert!(status.success(), "{status}:\n{}", lines.join("\n"));
    assert!(!terminal.seen().concat().iter().any(|it| it.contains(['█', '░'])), "{}", lines.join("\n"));
    assert!(lines.iter().any(|it| it.starts_with('•')), "{}", lines.join("\n"));
}
