//! Our local infrastructure provider, installed by upstream's clusterctl beside our core provider, and its manager as
//! the release's Deployment starts it: the same arguments, and a token of the release's ServiceAccount.

use std::{env, fs, path::PathBuf, process::Stdio, time::Duration};

use capstan_provider_local::{LEASE, WEBHOOK_SERVICE, api as local};
use capstan_testkit::{
    Story,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        authentication::v1::{TokenRequest, TokenReview},
        authorization::v1::SubjectAccessReview,
        coordination::v1::Lease,
        core::v1::{Event, Namespace, Secret, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::Instant,
};

use crate::{
    kubeadm::{FILLED_IN, compare},
    management::{
        Clusterctl, Others, Released, VERSION, begin, create_when_served, folder, lead_conversion_here,
        lead_service_here,
    },
    release::forbidden,
};

const NAMESPACE: &str = "capstan-local-system";
const ACCOUNT: &str = "capstan-local-manager";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const PROVIDER: &str = "infrastructure-local";
/// The tenant's address.
const TENANT: &str = "127.77.9.1";

fn dynamic(story: &Story, api_version: &str, kind: &str) -> (Api<DynamicObject>, ApiResource) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    (Api::namespaced_with(story.client.clone(), &story.namespace, &resource), resource)
}

/// What clusterctl recorded, and what became of the files.
async fn check_installed(client: &Client) {
    let kind = GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider");
    let providers = ApiResource::from_gvk_with_plural(&kind, "providers");
    let providers: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &providers);
    let provider = providers.get(PROVIDER).await.unwrap();
    assert_eq!(
        (&provider.data["version"], &provider.data["providerName"], &provider.data["type"]),
        (&json!(VERSION), &json!("local"), &json!("InfrastructureProvider"))
    );
    for shipped in local::crds(local::WEBHOOK_SERVICE) {
        let name = shipped.name_any();
        let installed = Api::<CustomResourceDefinition>::all(client.clone()).get(&name).await.unwrap();
        let mut labels = installed.labels().clone();
        assert_eq!(labels.remove("clusterctl.cluster.x-k8s.io").as_deref(), Some(""), "{name}");
        assert_eq!(&labels, shipped.labels(), "{name}");
        let mut different = Vec::new();
        compare("", &json!(shipped.spec), &json!(installed.spec), &mut different);
        different.retain(|path| !path.starts_with("/names/"));
        assert_eq!(
            different, FILLED_IN,
            "{name}: patterns have dollars, which clusterctl may take for its own"
        );
    }
    // Kubernetes adds what a provider grants to core to what core has.
    let roles: Api<ClusterRole> = Api::all(client.clone());
    wait::until_is(&roles, "capi-aggregated-manager-role", "aggregated", LIMIT, |role| {
        role.rules.iter().flatten().any(|rule| {
            let resources = rule.resources.clone().unwrap_or_default();
            resources == ["localclusters"] && rule.verbs.contains(&"create".to_owned())
        })
    })
    .await;
}

/// The provider's manager as a process.
struct Manager {
    process: Child,
    folder: PathBuf,
    /// A client with its rights.
    account: Client,
}

impl Manager {
    /// Runs it, and waits until it is ready and the API server trusts its webhook.
    async fn start(story: &Story) -> Self {
        let client = &story.client;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let deployment = deployments.get("capstan-local-controller-manager").await.unwrap();
        let pod = deployment.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.service_account_name.as_deref(), Some(ACCOUNT));
        let mut arguments = pod.containers[0].args.clone().unwrap();
        // Here are no Pods with an address of their own each.
        let address = arguments.iter_mut().find(|it| *it == "--diagnostics-address=:8443");
        "--diagnostics-address=127.0.0.1:0".clone_into(address.expect("variables are filled in"));
        let (port, health) = (free_port().await, free_port().await);
        arguments.extend([format!("--webhook-port={port}"), format!("--health-addr=127.0.0.1:{health}")]);
        // What a watch is refused is logged among the details.
        arguments.push("--v=4".to_owned());
        lead_service_here(client, NAMESPACE, WEBHOOK_SERVICE).await;
        let crd_names = local::crds(local::WEBHOOK_SERVICE).into_iter().map(|crd| crd.name_any());
        let crd_names: Vec<_> = crd_names.collect();
        for crd_name in &crd_names {
            lead_conversion_here(client, crd_name, port).await;
        }

        let folder = env::temp_dir().join(format!("capstan-local-manager-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let kubeconfig = kubeconfig(story).await;
        let file = folder.join("kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&file)
            .env("POD_NAMESPACE", NAMESPACE)
            .stderr(Stdio::from(fs::File::create(folder.join("log")).unwrap()))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd_name in &crd_names {
            wait::until_is(&crds, crd_name, "trusted", LIMIT, |crd| {
                let conversion = json!(crd.spec.conversion);
                conversion.pointer("/webhook/clientConfig/caBundle").is_some_and(Value::is_string)
            })
            .await;
        }
        let deadline = Instant::now() + LIMIT;
        while !is_ready(health).await {
            assert!(Instant::now() < deadline, "{}", fs::read_to_string(folder.join("log")).unwrap());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Self { process, folder, account: Client::try_from(config).unwrap() }
    }

    /// Ends it in order; gives back its log.
    async fn stop(mut self) -> String {
        let id = self.process.id().expect("it runs still").to_string();
        assert!(Command::new("kill").arg(id).status().await.unwrap().success());
        let ended = tokio::time::timeout(LIMIT, self.process.wait()).await.expect("it ends").unwrap();
        let log = fs::read_to_string(self.folder.join("log")).unwrap();
        assert!(ended.success(), "{log}");
        fs::remove_dir_all(&self.folder).unwrap();
        log
    }
}

async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// What a kubelet would see.
async fn is_ready(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    ask.await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// A kubeconfig with a token of the release's ServiceAccount.
async fn kubeconfig(story: &Story) -> Value {
    let accounts: Api<ServiceAccount> = Api::namespaced(story.client.clone(), NAMESPACE);
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await.unwrap();
    let admin = Kubeconfig::read_from(story.plane.kubeconfig()).unwrap();
    let cluster = admin.clusters[0].name.clone();
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "account", "clusters": admin.clusters,
        "contexts": [{"name": "account", "context": {"cluster": cluster, "user": ACCOUNT, "namespace": NAMESPACE}}],
        "users": [{"name": ACCOUNT, "user": {"token": answer.status.unwrap().token}}],
    })
}

/// Creates what clusterctl makes of a template; gives back the kinds.
async fn create_from_template(story: &Story, arguments: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let clusterctl = Clusterctl::new(&story.plane, "generate");
    let provider = format!("local:{VERSION}");
    let mut all = vec!["generate", "cluster"];
    all.extend(arguments);
    all.extend(["--infrastructure", &provider, "--target-namespace", &story.namespace]);
    let (text, _) = clusterctl.run(&all, variables).await;
    let mut kinds = Vec::new();
    for document in text.split("\n---\n") {
        let object: DynamicObject = serde_saphyr::from_str(document).unwrap();
        let types = object.types.clone().unwrap();
        assert_eq!(object.namespace().as_ref(), Some(&story.namespace), "{}", types.kind);
        create_when_served(&dynamic(story, &types.api_version, &types.kind).0, &object).await;
        kinds.push(types.kind);
    }
    kinds
}

/// A Cluster is Provisioned, and its endpoint answers.
async fn check_provisioned(story: &Story, name: &str, host: &str) {
    let cluster = story.until_phase(name, "Provisioned", LIMIT).await;
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    assert_eq!(endpoint.host, host);
    TcpStream::connect((host, u16::try_from(endpoint.port).unwrap())).await.expect("the endpoint answers");
    let events: Api<Event> = Api::namespaced(story.client.clone(), &story.namespace);
    wait::until_any(&events, "an event of the provider", LIMIT, |event| {
        let about = &event.involved_object;
        about.kind.as_deref() == Some("LocalCluster")
            && about.name.as_deref() == Some(name)
            && event.reason.as_deref() == Some("Provisioned")
    })
    .await;
}

/// A Cluster would be moved together with its infrastructure and the tenant's Secret.
async fn check_move(story: &Story) {
    let clusterctl = Clusterctl::new(&story.plane, "move");
    let arguments = ["move", "--dry-run", "--namespace", &story.namespace, "-v", "9"];
    let (out, log) = clusterctl.run(&arguments, &[]).await;
    let words = out + &log;
    for object in ["Cluster=\"tenant\"", "LocalCluster=\"tenant\"", "Secret=\"tenant-identity\""] {
        assert!(words.contains(&format!("Creating {object} Namespace=\"{}\"", story.namespace)), "{words}");
    }
}

/// Nothing is left of the provider once clusterctl has taken it away.
async fn check_removal(story: &Story) {
    let arguments = ["delete", "--infrastructure", "local", "--include-crd", "--include-namespace"];
    Clusterctl::new(&story.plane, "delete").run(&arguments, &[]).await;
    let client = || story.client.clone();
    let crds: Api<CustomResourceDefinition> = Api::all(client());
    for crd in local::crds(local::WEBHOOK_SERVICE) {
        wait::until_gone(&crds, &crd.name_any(), LIMIT).await;
    }
    wait::until_gone(&Api::<Namespace>::all(client()), NAMESPACE, LIMIT).await;
    let of_ours = ListParams::default().labels(&format!("cluster.x-k8s.io/provider={PROVIDER}"));
    assert!(Api::<ClusterRole>::all(client()).list(&of_ours).await.unwrap().items.is_empty());
    assert!(Api::<ClusterRoleBinding>::all(client()).list(&of_ours).await.unwrap().items.is_empty());
}

/// Both kinds can be had in the older version, by way of the manager's webhook.
async fn check_conversion(story: &Story) {
    let (older, newer) = (format!("{GROUP}/v1beta1"), format!("{GROUP}/v1beta2"));
    let cluster = dynamic(story, &older, "LocalCluster").0.get("demo").await.unwrap();
    assert_eq!(cluster.data["status"]["ready"], true, "{}", cluster.data);
    let (templates, resource) = dynamic(story, &older, "LocalClusterTemplate");
    let spec = json!({"spec": {"template": {"spec": {"controlPlaneEndpoint": {"host": "", "port": 0}}}}});
    create_when_served(&templates, &DynamicObject::new("t", &resource).data(spec)).await;
    let template = dynamic(story, &newer, "LocalClusterTemplate").0.get("t").await.unwrap();
    assert_eq!(template.data["spec"], json!({"template": {"spec": {}}}));
    templates.delete("t", &DeleteParams::default()).await.unwrap();
}

/// What the manager needs besides, and what it does not need.
async fn check_rights(story: &Story, account: &Client) {
    let (post, list, delete) = (PostParams::default(), ListParams::default(), DeleteParams::default());
    // Readers of the metrics are authorized.
    let review: TokenReview = serde_json::from_value(json!({"spec": {"token": "x"}})).unwrap();
    Api::<TokenReview>::all(account.clone()).create(&post, &review).await.unwrap();
    let attributes = json!({"path": "/metrics", "verb": "get"});
    let review = json!({"spec": {"user": "x", "nonResourceAttributes": attributes}});
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    Api::<SubjectAccessReview>::all(account.clone()).create(&post, &review).await.unwrap();

    let secrets: Api<Secret> = Api::namespaced(account.clone(), &story.namespace);
    assert!(secrets.get("tenant-identity").await.is_ok());
    assert!(forbidden(secrets.list(&list).await));
    assert!(forbidden(secrets.delete("tenant-identity", &delete).await));
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "true"}}}));
    assert!(forbidden(secrets.patch("tenant-identity", &PatchParams::default(), &touch).await));
    let own: Api<Secret> = Api::namespaced(account.clone(), NAMESPACE);
    assert!(forbidden(own.list(&list).await));
    let named = list.clone().fields("metadata.name=capstan-local-webhook-service-ca");
    assert_eq!(own.list(&named).await.unwrap().items.len(), 1);

    let crds: Api<CustomResourceDefinition> = Api::all(account.clone());
    assert!(forbidden(crds.list(&list).await));
    assert!(forbidden(crds.patch("clusters.cluster.x-k8s.io", &PatchParams::default(), &touch).await));
    let clusters: Api<capstan_api::cluster::v1beta2::Cluster> =
        Api::namespaced(account.clone(), &story.namespace);
    assert!(forbidden(clusters.patch("demo", &PatchParams::default(), &touch).await));
    let locals: Api<local::v1beta2::LocalCluster> = Api::namespaced(account.clone(), &story.namespace);
    assert!(forbidden(locals.delete("demo", &delete).await));
    let leases: Api<Lease> = Api::namespaced(account.clone(), NAMESPACE);
    let holder = leases.get(LEASE).await.unwrap().spec.unwrap().holder_identity;
    assert!(holder.is_some_and(|holder| !holder.is_empty()));
    assert!(forbidden(leases.list(&list).await));
}

#[tokio::test]
#[ignore = "needs the files of a release: make test-compat"]
async fn the_files_keep_the_contract() {
    let files = folder("CAPSTAN_RELEASE_DIR").join(PROVIDER).join(VERSION);
    let run = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["conformance", "static", "-o", "json", "--components"])
        .arg(files)
        .output()
        .await
        .unwrap();
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(run.status.success(), "{report:#}");
    let counts = &report["counts"];
    assert_eq!((&counts["failed"], &counts["warnings"]), (&json!(0), &json!(0)), "{report:#}");
    assert!(counts["passed"].as_u64().is_some_and(|passed| passed > 20), "{counts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's clusterctl: make test-compat"]
async fn clusterctl_installs_the_local_provider_and_makes_clusters_of_it() {
    let story = begin("local", Others::Local).await;
    check_installed(&story.client).await;
    let core = Released::start(&story).await;
    let manager = Manager::start(&story).await;

    let kinds = create_from_template(&story, &["demo"], &[]).await;
    assert_eq!(kinds, ["Cluster", "LocalCluster"]);
    let variables = [
        ("CONTROL_PLANE_ENDPOINT_HOST", TENANT),
        ("CONTROL_PLANE_BACKENDS", "[127.0.0.1:6443, 127.0.0.1:7443]"),
    ];
    let mut kinds = create_from_template(&story, &["tenant", "--flavor", "tenant"], &variables).await;
    kinds.sort_unstable();
    assert_eq!(kinds, ["Cluster", "LocalCluster", "Secret"]);
    check_provisioned(&story, "demo", "127.0.0.1").await;
    check_provisioned(&story, "tenant", TENANT).await;
    let tenant = story.locals().get("tenant").await.unwrap();
    assert_eq!(tenant.spec.backends, ["127.0.0.1:6443", "127.0.0.1:7443"]);
    check_conversion(&story).await;
    check_rights(&story, &manager.account).await;
    check_move(&story).await;

    for name in ["demo", "tenant"] {
        story.clusters().delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["demo", "tenant"] {
        wait::until_gone(&story.clusters(), name, LIMIT).await;
        wait::until_gone(&story.locals(), name, LIMIT).await;
    }
    let log = manager.stop().await;
    assert!(log.contains("leading") && !log.to_lowercase().contains("forbidden"), "{log}");
    check_removal(&story).await;
    core.stop().await;
}
