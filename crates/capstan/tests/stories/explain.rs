//! `explain cluster`: ways to be stuck, each set up for real, each explained rightly.

use std::time::Duration;

use capstan_api::{cluster::v1beta2::Cluster, conditions, crd::Conversion};
use capstan_cluster::{ConnectionOptions, Options};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Plane, Story, Which, generic,
    story::reference,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, apps::v1::Deployment, core::v1::Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    get::Caller,
    workload::{Manner, StandIn, create_kubeconfig, until_connected, until_failed},
};

const PROVIDER: &str = "cluster.x-k8s.io/provider";
const CONTRACT: [(&str, &str); 1] = [("v1beta2", "v1beta2")];

/// What `explain` says of Cluster `c`.
struct Explained(Value);

impl Explained {
    fn of(caller: &Caller) -> Self {
        let text = caller.run(&["explain", "cluster", "c", "-o", "json"]).only_data();
        Self(serde_json::from_str(&text).unwrap())
    }

    /// Makes sure of the answer: the problem, the object as `Kind name`, and words of its commands or its controller.
    fn answers(self, problem: &str, object: &str, words: &[&str]) -> Self {
        let first = &self.0["findings"][0];
        assert_eq!(first["problem"], problem, "{:#}", self.0);
        let text = |field: &str| first["object"][field].as_str().unwrap();
        assert_eq!(format!("{} {}", text("kind"), text("name")), object, "{:#}", self.0);
        for words in words {
            assert!(first.to_string().contains(words), "{words:?} is missing in {first:#}");
        }
        self
    }

    /// Makes sure of what is listed behind the answer.
    fn then(self, problems: &[&str]) -> Self {
        let others = self.0["findings"].as_array().unwrap().iter().skip(1);
        let others: Vec<_> = others.map(|it| it["problem"].as_str().unwrap()).collect();
        assert_eq!(others, problems, "{:#}", self.0);
        self
    }
}

/// A kind's CRD as an installation of a provider leaves it.
fn of_provider(kind: &str, provider: &str) -> CustomResourceDefinition {
    let mut crd = generic::crd(kind, &CONTRACT);
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(PROVIDER.to_owned(), provider.to_owned());
    crd
}

async fn install(story: &Story, crd: CustomResourceDefinition) {
    install_crds(&story.client, &[crd], "story").await.unwrap();
}

/// Makes Cluster `c` on an object of a kind, and waits until core has seen both.
async fn stand_on(caller: &Caller, kind: &str, spec: Value) -> Cluster {
    caller.story.create_generic(kind, "ic", spec).await;
    caller.story.create_cluster("c", kind, "ic").await;
    until_seen(caller).await
}

/// Waits until core has reported on Cluster `c` as it is now.
async fn until_seen(caller: &Caller) -> Cluster {
    let now = caller.story.clusters().get("c").await.unwrap().metadata.generation;
    wait::until_is(&caller.story.clusters(), "c", "seen", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        conditions::get(&status.conditions, "Available").is_some() && status.observed_generation >= now
    })
    .await
}

/// A provider's Deployment, with so many replicas; a single one is up if it should be, as a kubelet would report it.
async fn deploy(caller: &Caller, provider: &str, replicas: i32, is_up: bool) {
    let labels = json!({ PROVIDER: provider });
    caller
        .create(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "manager", "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "manager", "image": "registry.example.com/manager"}]},
                },
            },
        }))
        .await;
    if is_up {
        let (client, namespace) = (caller.story.client.clone(), &caller.story.namespace);
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let pod = wait::until_any(&pods, "made", LIMIT, |_| true).await.name_any();
        let ready =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let status = Patch::Merge(json!({"status": {"phase": "Running", "conditions": ready}}));
        pods.patch_status(&pod, &PatchParams::default(), &status).await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client, namespace);
        wait::until_is(&deployments, "manager", "available", LIMIT, |it| {
            it.status.as_ref().and_then(|status| status.available_replicas) == Some(1)
        })
        .await;
    }
}

/// A Lease that one of the manager's replicas renewed then.
async fn lead(caller: &Caller, renewed: &str) {
    caller
        .create(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
            "spec": {"holderIdentity": "manager-7d9f-x2x_1234", "leaseDurationSeconds": 15, "renewTime": renewed},
        }))
        .await;
}

async fn patch_cluster(caller: &Caller, patch: Value) {
    let clusters = caller.story.clusters();
    clusters.patch("c", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn patch_generic(caller: &Caller, kind: &str, patch: Value) {
    let objects = caller.story.generics(kind);
    objects.patch("ic", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_by_its_spec_or_by_an_annotation() {
    let caller = Caller::begin("paused").await;
    install(&caller.story, generic::crd("PausedCluster", &CONTRACT)).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "PausedCluster", json!({})).await;
    let until_paused = async || {
        wait::until_is(&caller.story.clusters(), "c", "paused", LIMIT, |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            conditions::is_true(&status.conditions, "Paused")
        })
        .await;
    };
    patch_cluster(&caller, json!({"spec": {"paused": true}})).await;
    until_paused().await;
    Explained::of(&caller).answers(
        "paused",
        "Cluster c",
        &[
            "kubectl patch clusters.cluster.x-k8s.io c -n paused-",
            r#"-p '{\"spec\":{\"paused\":false}}'"#,
            r#""type":"Paused""#,
        ],
    );
    let annotate = |value: Value| json!({"spec": {"paused": false}, "metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
    patch_cluster(&caller, annotate(json!(""))).await;
    until_paused().await;
    let command = "kubectl annotate clusters.cluster.x-k8s.io c -n paused-";
    Explained::of(&caller).answers(
        "paused-by-annotation",
        "Cluster c",
        &[command, " cluster.x-k8s.io/paused-"],
    );
    patch_cluster(&caller, annotate(Value::Null)).await;
    until_seen(&caller).await;
    patch_generic(
        &caller,
        "PausedCluster",
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}),
    )
    .await;
    let command = "kubectl annotate pausedclusters.infrastructure.cluster.x-k8s.io ic -n paused-";
    Explained::of(&caller).answers("paused-by-annotation", "PausedCluster ic", &[command]);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_leads_nowhere() {
    let caller = Caller::begin("nowhere").await;
    let manager = caller.story.manager(Which::Core);
    // No kind of that name.
    caller.story.create_cluster("c", "NowhereCluster", "ic").await;
    until_seen(&caller).await;
    Explained::of(&caller).answers(
        "kind-not-installed",
        "NowhereCluster ic",
        &[
            "CustomResourceDefinition nowhereclusters.infrastructure.cluster.x-k8s.io does not exist",
            "capstan init --infrastructure PROVIDER",
        ],
    );
    // A kind of that name whose provider says nothing of a contract.
    install(&caller.story, generic::crd("NowhereCluster", &[])).await;
    Explained::of(&caller).answers("no-contract", "CustomResourceDefinition nowhereclusters.infrastructure.cluster.x-k8s.io", &[
        "kubectl label crd nowhereclusters.infrastructure.cluster.x-k8s.io cluster.x-k8s.io/v1beta2=v1beta2",
    ]);
    // One that promises a version which it does not serve.
    for contract in ["v1beta1", "v1beta2"] {
        let mut crd = generic::crd("NowhereCluster", &[(contract, "v1beta9")]);
        let labels = crd.metadata.labels.get_or_insert_default();
        for other in ["v1beta1", "v1beta2"] {
            labels.entry(format!("cluster.x-k8s.io/{other}")).or_default();
        }
        install(&caller.story, crd).await;
        Explained::of(&caller).answers(
            "version-not-served",
            "CustomResourceDefinition nowhereclusters.infrastructure.cluster.x-k8s.io",
            &[
                &format!("it has cluster.x-k8s.io/{contract}=v1beta9, and serves v1beta2"),
                &format!("kubectl label crd nowhereclusters.infrastructure.cluster.x-k8s.io cluster.x-k8s.io/{contract}=v1beta2"),
            ],
        );
    }
    // All is well but for the object.
    install(&caller.story, generic::crd("NowhereCluster", &CONTRACT)).await;
    Explained::of(&caller).answers(
        "object-missing",
        "NowhereCluster ic",
        &[
            "refers by spec.infrastructureRef to NowhereCluster ic, which does not exist",
            "kubectl get nowhereclusters.infrastructure.cluster.x-k8s.io -n nowhere-",
        ],
    );
    let text = caller.run(&["explain", "cluster", "c"]).only_data();
    for words in ["is not available", "  object      NowhereCluster nowhere-", "  go on       kubectl create"]
    {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_in_namespaces() {
    let caller = Caller::begin("wide").await;
    let mut crd = generic::crd("WideCluster", &CONTRACT);
    "Cluster".clone_into(&mut crd.spec.scope);
    install(&caller.story, crd).await;
    caller.story.create_cluster("c", "WideCluster", "ic").await;
    let manager = caller.story.manager(Which::Core);
    until_seen(&caller).await;
    Explained::of(&caller).answers(
        "cluster-scoped",
        "CustomResourceDefinition wideclusters.infrastructure.cluster.x-k8s.io",
        &["the contract asks for a namespaced one"],
    );
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_that_is_not_done_and_a_controller_that_runs() {
    let caller = Caller::begin("not-ready").await;
    install(&caller.story, of_provider("TardyCluster", "infrastructure-tardy")).await;
    deploy(&caller, "infrastructure-tardy", 1, true).await;
    lead(&caller, &jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "TardyCluster", json!({})).await;
    caller
        .story
        .set_generic_status("TardyCluster", "ic", json!({"conditions": [{
            "type": "Ready", "status": "False", "reason": "NoCredentials", "message": "Secret cloud does not exist",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}))
        .await;
    let explained = Explained::of(&caller).answers(
        "infrastructure-not-ready",
        "TardyCluster ic",
        &[
            "Ready is False (NoCredentials): Secret cloud does not exist",
            r#""since":"2026-01-01T00:00:00Z""#,
            r#""state":"running""#,
            "manager-7d9f-x2x_1234",
            "deployment/manager --tail 100",
            "kubectl describe tardyclusters.infrastructure.cluster.x-k8s.io ic -n not-ready-",
        ],
    );
    assert_eq!(explained.0["state"], "not-available", "{:#}", explained.0);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_do_not_run() {
    for (name, kind, replicas, is_up, problem, words) in [
        (
            "zero",
            "ZeroCluster",
            0,
            false,
            "controller-scaled-to-zero",
            "kubectl scale deployment manager -n zero-",
        ),
        ("down", "DownCluster", 2, false, "controller-not-available", "has none of its 2 replicas available"),
        (
            "leaderless",
            "LeaderlessCluster",
            1,
            true,
            "controller-without-leader",
            "kubectl rollout restart deployment manager",
        ),
    ] {
        let caller = Caller::begin(name).await;
        let provider = format!("infrastructure-{name}");
        install(&caller.story, of_provider(kind, &provider)).await;
        deploy(&caller, &provider, replicas, is_up).await;
        lead(&caller, "2026-01-01T00:00:00.000000Z").await;
        let manager = caller.story.manager(Which::Core);
        stand_on(&caller, kind, json!({})).await;
        let words = [words, &format!("Deployment {}/manager of provider {provider}", caller.story.namespace)];
        Explained::of(&caller)
            .answers(problem, "Deployment manager", &words)
            .then(&["infrastructure-not-ready", "control-plane-ref-missing"]);
        manager.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_taken_away() {
    let caller = Caller::begin("orphaned").await;
    install(&caller.story, of_provider("OrphanedCluster", "infrastructure-orphaned")).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "OrphanedCluster", json!({})).await;
    Explained::of(&caller).answers(
        "provider-not-installed",
        "Provider infrastructure-orphaned",
        &[
            "neither in the inventory nor has it a Deployment anywhere",
            "capstan init --infrastructure orphaned",
        ],
    );
    manager.stop().await;
}

/// As in `capstan quickstart`: the controllers are processes beside the cluster, without Deployment or inventory entry.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_runs_outside_the_cluster() {
    let caller = Caller::begin("outside").await;
    let manager = caller.story.manager(Which::All);
    caller.story.create_local("c", json!({"simulate": {"error": "the port is in use"}})).await;
    caller.story.create_cluster("c", "LocalCluster", "c").await;
    wait::until_is(&caller.story.locals(), "c", "reported on", LIMIT, |local| {
        let status = local.status.clone().unwrap_or_default();
        conditions::is_false(&status.conditions, "Ready")
    })
    .await;
    until_seen(&caller).await;
    Explained::of(&caller)
        .answers(
            "infrastructure-not-ready",
            "LocalCluster c",
            &["the port is in use", r#""state":"elsewhere""#, "it runs outside this cluster, or was removed"],
        )
        .then(&["provider-not-installed", "control-plane-ref-missing"]);
    manager.stop().await;
}

/// A Service without anybody behind it.
async fn create_service(caller: &Caller) {
    let spec = json!({"selector": {"app": "nobody"}, "ports": [{"port": 443}]});
    caller
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"}, "spec": spec}))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_do_not_answer() {
    let caller = Caller::begin("hooked").await;
    let namespace = caller.story.namespace.clone();
    install(&caller.story, generic::crd("HookedCluster", &CONTRACT)).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "HookedCluster", json!({})).await;
    Explained::of(&caller).answers("infrastructure-not-ready", "HookedCluster ic", &[]);
    let webhook = |selector: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": "validate.example.com",
                "clientConfig": {"service": {"namespace": namespace, "name": "hooks", "path": "/"}},
                "objectSelector": {"matchLabels": selector},
                "rules": [{
                    "apiGroups": [generic::GROUP], "apiVersions": ["*"],
                    "operations": ["UPDATE"], "resources": ["hookedclusters"],
                }],
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            }],
        })
    };
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(caller.story.client.clone());
    let put = async |selector: Value| {
        let params = PatchParams::apply("story").force();
        webhooks.patch(&namespace, &params, &Patch::Apply(webhook(selector))).await.unwrap();
    };
    put(json!({"never": "there"})).await;
    Explained::of(&caller).answers("infrastructure-not-ready", "HookedCluster ic", &[]);
    put(json!({})).await;
    let object = format!("ValidatingWebhookConfiguration {namespace}");
    Explained::of(&caller)
        .answers("webhook-unreachable", &object, &["webhook validate.example.com", "/hooks does not exist"])
        .then(&["infrastructure-not-ready", "control-plane-ref-missing"]);
    create_service(&caller).await;
    Explained::of(&caller).answers(
        "webhook-unreachable",
        &object,
        &["/hooks has no endpoint that is ready", "kubectl get endpointslices -n hooked-"],
    );
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hooks", "labels": {"kubernetes.io/service-name": "hooks"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
    });
    caller.create(slice).await;
    Explained::of(&caller).answers("infrastructure-not-ready", "HookedCluster ic", &[]);
    webhooks.delete(&namespace, &DeleteParams::default()).await.unwrap();
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_converted() {
    let caller = Caller::begin("converted").await;
    let namespace = caller.story.namespace.clone();
    let mut crd = generic::crd("ConvertedCluster", &CONTRACT);
    install(&caller.story, crd.clone()).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "ConvertedCluster", json!({})).await;
    manager.stop().await;
    create_service(&caller).await;
    crd.spec.conversion = serde_json::from_value(json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": namespace, "name": "hooks", "path": "/convert"}},
        },
    }))
    .unwrap();
    install(&caller.story, crd.clone()).await;
    let object = "CustomResourceDefinition convertedclusters.infrastructure.cluster.x-k8s.io";
    let words = ["/hooks, which has no endpoint that is ready"];
    Explained::of(&caller).answers("conversion-webhook-unreachable", object, &words);
    // The version that is spoken is not the one that is stored: now it cannot even be read.
    let mut newer = crd.spec.versions[0].clone();
    "v1beta3".clone_into(&mut newer.name);
    newer.storage = false;
    crd.spec.versions.push(newer);
    crd.metadata.labels.as_mut().unwrap().insert("cluster.x-k8s.io/v1beta2".to_owned(), "v1beta3".to_owned());
    install(&caller.story, crd).await;
    let explained = Explained::of(&caller).answers("conversion-webhook-unreachable", object, &words);
    let unreadable = explained.0["unreadable"].to_string();
    assert!(
        unreadable.contains("ConvertedCluster") && unreadable.contains("conversion webhook"),
        "{unreadable}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_that_has_failed_for_good() {
    let caller = Caller::begin("given-up").await;
    install(&caller.story, generic::crd("GivenUpCluster", &[("v1beta1", "v1beta2")])).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "GivenUpCluster", json!({})).await;
    let status = json!({"failureReason": "CreateError", "failureMessage": "quota exceeded"});
    caller.story.set_generic_status("GivenUpCluster", "ic", status).await;
    caller.story.until_phase("c", "Failed", LIMIT).await;
    Explained::of(&caller).answers(
        "terminal-failure",
        "GivenUpCluster ic",
        &[
            "has given up: CreateError: quota exceeded",
            "kubectl delete givenupclusters.infrastructure.cluster.x-k8s.io ic -n given-up-",
        ],
    );
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_that_is_managed_externally() {
    let caller = Caller::begin("external").await;
    install(&caller.story, generic::crd("ExternalCluster", &CONTRACT)).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "ExternalCluster", json!({})).await;
    patch_generic(
        &caller,
        "ExternalCluster",
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "terraform"}}}),
    )
    .await;
    Explained::of(&caller).answers(
        "externally-managed",
        "ExternalCluster ic",
        &[
            "has not set status.initialization.provisioned to true",
            r#"{\"status\":{\"initialization\":{\"provisioned\":true}}}' --subresource status"#,
        ],
    );
    // Its manager says so, but names no endpoint.
    caller
        .story
        .set_generic_status("ExternalCluster", "ic", json!({"initialization": {"provisioned": true}}))
        .await;
    wait::until_is(&caller.story.clusters(), "c", "provisioned", LIMIT, is_provisioned).await;
    Explained::of(&caller).answers(
        "endpoint-missing",
        "ExternalCluster ic",
        &[
            "is provisioned without it",
            r#"{\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"HOST\",\"port\":6443}}}"#,
        ],
    );
    manager.stop().await;
}

fn is_provisioned(cluster: &Cluster) -> bool {
    let status = cluster.status.clone().unwrap_or_default();
    status.initialization.is_some_and(|it| it.infrastructure_provisioned == Some(true))
}

#[tokio::test(flavor = "multi_thread")]
async fn control_planes_that_are_not_there_yet() {
    let caller = Caller::begin("headless").await;
    install(&caller.story, of_provider("HeadlessPlane", "control-plane-headless")).await;
    deploy(&caller, "control-plane-headless", 1, true).await;
    let manager = caller.story.manager(Which::All);
    caller.story.create_local("c", json!({})).await;
    caller.story.create_cluster("c", "LocalCluster", "c").await;
    caller.story.until_phase("c", "Provisioned", LIMIT).await;
    until_failed(&caller.story, "c", "not established yet").await;
    Explained::of(&caller)
        .answers("control-plane-ref-missing", "Cluster c", &[r#"{\"spec\":{\"controlPlaneRef\":"#])
        .then(&["kubeconfig-missing"]);
    patch_cluster(&caller, json!({"spec": {"controlPlaneRef": reference("HeadlessPlane", "cp")}})).await;
    until_seen(&caller).await;
    Explained::of(&caller).answers(
        "object-missing",
        "HeadlessPlane cp",
        &["refers by spec.controlPlaneRef to HeadlessPlane cp"],
    );
    caller.story.create_generic("HeadlessPlane", "cp", json!({"replicas": 1})).await;
    Explained::of(&caller).answers(
        "control-plane-not-initialized",
        "HeadlessPlane cp",
        &[
            "does not accept requests yet",
            "kubectl logs -n headless-",
            r#""provider":"control-plane-headless""#,
        ],
    );
    manager.stop().await;
}

/// A control plane that was initialized, and a manager that notices soon.
#[tokio::test(flavor = "multi_thread")]
async fn workload_clusters_that_cannot_be_reached() {
    let caller = Caller::begin("unreached").await;
    install(&caller.story, generic::crd("UnreachedPlane", &CONTRACT)).await;
    let connections = ConnectionOptions {
        grace_period: Duration::from_secs(1),
        probe_period: Duration::from_millis(100),
        probe_limit: Duration::from_secs(3),
        ..ConnectionOptions::default()
    };
    let manager = caller.story.core_manager(Options { connections, ..Options::default() });
    let server = StandIn::start(Manner::Answers(200)).await;
    let endpoint = json!({"host": server.address.ip().to_string(), "port": server.address.port()});
    caller
        .story
        .create_generic("UnreachedPlane", "cp", json!({"replicas": 1, "controlPlaneEndpoint": endpoint}))
        .await;
    let available = json!({"type": "Available", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"initialization": {"controlPlaneInitialized": true}, "conditions": [available]});
    caller.story.set_generic_status("UnreachedPlane", "cp", status).await;
    caller
        .story
        .create_cluster_with("c", json!({"controlPlaneRef": reference("UnreachedPlane", "cp")}))
        .await;
    wait::until_is(&caller.story.clusters(), "c", "initialized", LIMIT, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        status.initialization.is_some_and(|it| it.control_plane_initialized == Some(true))
    })
    .await;
    until_failed(&caller.story, "c", "not established yet").await;
    Explained::of(&caller).answers("kubeconfig-missing", "Secret c-kubeconfig", &["cannot be reached"]);

    create_kubeconfig(&caller.story, "c", &server.kubeconfig()).await;
    until_connected(&caller.story, "c").await;
    wait::until_is(&caller.story.clusters(), "c", "available", LIMIT, |cluster| {
        conditions::is_true(&cluster.status.clone().unwrap_or_default().conditions, "Available")
    })
    .await;
    let text = caller.run(&["explain", "cluster", "c"]).only_data();
    assert_eq!(text, format!("Cluster {}/c is available. Nothing is in its way.\n", caller.story.namespace));
    let explained = Explained::of(&caller);
    assert_eq!((&explained.0["state"], &explained.0["findings"]), (&json!("available"), &json!([])));

    server.behave(Manner::Answers(503));
    until_failed(&caller.story, "c", "probe failed").await;
    Explained::of(&caller).answers(
        "connection-lost",
        "Cluster c",
        &[
            "RemoteConnectionProbe is False (ProbeFailed)",
            "kubectl --kubeconfig <(capstan get kubeconfig c -n unreached-",
        ],
    );
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_that_hang_on_finalizers() {
    let caller = Caller::begin("hanging").await;
    install(&caller.story, of_provider("HangingCluster", "infrastructure-hanging")).await;
    deploy(&caller, "infrastructure-hanging", 1, true).await;
    let manager = caller.story.manager(Which::Core);
    stand_on(&caller, "HangingCluster", json!({})).await;
    let hold = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    let own = "hangingcluster.infrastructure.cluster.x-k8s.io";
    patch_generic(&caller, "HangingCluster", hold(&[own, "example.com/hold"])).await;
    patch_cluster(&caller, hold(&["cluster.cluster.x-k8s.io", "backup.example.com/hold"])).await;
    caller.story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    wait::until_is(&caller.story.generics("HangingCluster"), "ic", "deleting", LIMIT, |it| {
        it.metadata.deletion_timestamp.is_some()
    })
    .await;
    let explained = Explained::of(&caller).answers(
        "deletion-held-by-finalizer",
        "HangingCluster ic",
        &[own, "which provider infrastructure-hanging removes", "kubectl logs -n hanging-"],
    );
    assert_eq!(explained.0["state"], "deleting");
    patch_generic(&caller, "HangingCluster", hold(&["example.com/hold"])).await;
    Explained::of(&caller).answers(
        "deletion-held-by-finalizer",
        "HangingCluster ic",
        &["the owner of example.com removes it", r#"-p '{\"metadata\":{\"finalizers\":[]}}'"#],
    );
    patch_generic(&caller, "HangingCluster", hold(&[])).await;
    wait::until_is(&caller.story.clusters(), "c", "released by core", LIMIT, |it| {
        it.metadata.finalizers.as_deref() == Some(&["backup.example.com/hold".to_owned()])
    })
    .await;
    Explained::of(&caller).answers("deletion-held-by-finalizer", "Cluster c", &["backup.example.com/hold"]);
    patch_cluster(&caller, hold(&[])).await;
    wait::until_gone(&caller.story.clusters(), "c", LIMIT).await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_cannot_be_explained() {
    let caller = Caller::begin("unexplained").await;
    let namespace = caller.story.namespace.clone();
    // Names that no other story uses: other namespaces are looked at as well.
    let words = ["explain", "cluster", "nowhere-at-all"];
    caller
        .run(&words)
        .fails(&[&format!("there is no Cluster {namespace}/nowhere-at-all in https://"), "has no Clusters"]);
    caller.story.create_cluster("lonesome", "LocalCluster", "none").await;
    caller.run(&words).fails(&[&format!("hint: namespace {namespace} has these: lonesome")]);
    let other = Caller::begin("unexplained").await;
    other
        .run(&["explain", "cluster", "lonesome"])
        .fails(&[&format!("hint: one of that name is in another namespace: -n {namespace}")]);
    caller
        .run_as_nobody(&["explain", "cluster", "lonesome"])
        .fails(&["cannot read Cluster", "User \"nobody\""]);
    crate::user::User::new().run(&words).fails(&["no management cluster is named"]);
    // No controller has reported on it yet: that can be explained.
    caller.story.create_cluster("c", "LocalCluster", "none").await;
    let words =
        ["neither in the inventory nor has it a Deployment anywhere", "capstan init --core cluster-api"];
    Explained::of(&caller)
        .answers("provider-not-installed", "Provider cluster-api", &words)
        .then(&["object-missing", "control-plane-ref-missing"]);
}

/// A caller on a server of its own, with Machines and what makes them: their kinds would be seen by all stories.
async fn begin_with_machines(plane: &std::sync::Arc<Plane>, name: &str) -> Caller {
    let caller = Caller::begin_on(plane, name).await;
    let mut crds: Vec<_> = ["Machine", "MachineSet", "MachineDeployment"].map(generic::core_crd).into();
    let mut class = generic::core_crd("ClusterClass");
    class.metadata.name = Some("clusterclasses.cluster.x-k8s.io".to_owned());
    "clusterclasses".clone_into(&mut class.spec.names.plural);
    crds.push(class);
    crds.extend(["SomeConfig", "SomeMachine", "SomePlane"].map(|it| generic::crd(it, &CONTRACT)));
    install_crds(&caller.story.client, &crds, "story").await.unwrap();
    caller
}

/// An object of core's that belongs to Cluster `c` by its label.
#[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
fn of_core(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
        "spec": spec, "status": status,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better so")]
fn machine(bootstrap: Value, more: Value, status: Value) -> Value {
    let mut spec = json!({"bootstrap": bootstrap, "infrastructureRef": reference("SomeMachine", "m")});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    of_core("Machine", "m", spec, status)
}

/// On a server of its own, in a namespace each.
#[tokio::test(flavor = "multi_thread")]
async fn machines_that_wait_or_have_failed() {
    let plane = Plane::start().await;
    plane.install(Conversion::Nobody).await;
    let provisioned = json!({"initialization": {"provisioned": true}});
    let by_config = json!({"configRef": reference("SomeConfig", "m")});
    let by_secret = json!({"dataSecretName": "data"});
    let id = json!({"providerID": "some://1"});
    let failed = json!({"phase": "Failed", "deprecated": {"v1beta1": {"failureReason": "CreateError"}}});
    for (name, machine, config, infrastructure, has_secret, problem, object, words) in [
        (
            "config",
            machine(by_config.clone(), json!({}), json!({"phase": "Pending"})),
            Some(json!({})),
            Some(json!({})),
            false,
            "bootstrap-not-ready",
            "SomeConfig m",
            "waits for its bootstrap data",
        ),
        (
            "lost-config",
            machine(by_config, json!({}), json!({"phase": "Pending"})),
            None,
            Some(json!({})),
            false,
            "object-missing",
            "SomeConfig m",
            "refers by spec.bootstrap.configRef",
        ),
        (
            "secret",
            machine(by_secret.clone(), json!({}), json!({"phase": "Pending"})),
            None,
            Some(json!({})),
            false,
            "bootstrap-data-missing",
            "Secret data",
            "kubectl create secret generic data",
        ),
        (
            "infra",
            machine(by_secret.clone(), json!({}), json!({"phase": "Provisioning"})),
            None,
            Some(json!({})),
            true,
            "infrastructure-not-ready",
            "SomeMachine m",
            "status.initialization.provisioned is not true",
        ),
        (
            "node",
            machine(by_secret.clone(), id, json!({"phase": "Provisioned"})),
            None,
            Some(provisioned),
            true,
            "machine-without-node",
            "Machine m",
            "runs as some://1, but no Node",
        ),
        (
            "failed",
            machine(by_secret, json!({}), failed),
            None,
            Some(json!({})),
            true,
            "machine-failed",
            "Machine m",
            "kubectl delete machines.cluster.x-k8s.io m",
        ),
    ] {
        let caller = begin_with_machines(&plane, name).await;
        let manager = caller.story.manager(Which::All);
        caller.story.create_local("c", json!({})).await;
        caller.story.create_cluster("c", "LocalCluster", "c").await;
        caller.story.until_phase("c", "Provisioned", LIMIT).await;
        for (kind, status) in [("SomeConfig", config), ("SomeMachine", infrastructure)] {
            if let Some(status) = status {
                caller.story.create_generic(kind, "m", json!({})).await;
                caller.story.set_generic_status(kind, "m", status).await;
            }
        }
        if has_secret {
            caller.story.create_secret("data", None, &[("value", b"x")]).await;
        }
        let mut machine = machine;
        machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = json!("");
        caller.create(machine).await;
        Explained::of(&caller).answers(problem, object, &[words]);
        manager.stop().await;
    }
    workers_that_are_newer_than_their_control_plane(&plane).await;
    topologies_without_a_class(&plane).await;
    deletions_that_wait_for_machines(&plane).await;
    core_that_does_not_run(&plane).await;
}

async fn workers_that_are_newer_than_their_control_plane(plane: &std::sync::Arc<Plane>) {
    let caller = begin_with_machines(plane, "skewed").await;
    let manager = caller.story.manager(Which::All);
    caller.story.create_generic("SomePlane", "cp", json!({"replicas": 1, "version": "v1.33.4"})).await;
    caller
        .story
        .set_generic_status("SomePlane", "cp", json!({"initialization": {"controlPlaneInitialized": true}}))
        .await;
    caller.story.create_local("c", json!({})).await;
    let spec = json!({"infrastructureRef": reference("LocalCluster", "c"), "controlPlaneRef": reference("SomePlane", "cp")});
    caller.story.create_cluster_with("c", spec).await;
    caller.story.until_phase("c", "Provisioned", LIMIT).await;
    create_kubeconfig(&caller.story, "c", &crate::workload::own_kubeconfig(&caller.story)).await;
    until_connected(&caller.story, "c").await;
    let template = |version: &str| json!({"replicas": 1, "template": {"spec": {"version": version}}});
    caller.create(of_core("MachineDeployment", "new", template("v1.34.0"), json!({"replicas": 0}))).await;
    caller
        .create(of_core(
            "MachineDeployment",
            "old",
            template("v1.33.9"),
            json!({"replicas": 1, "readyReplicas": 1}),
        ))
        .await;
    Explained::of(&caller)
        .answers(
            "version-skew",
            "MachineDeployment new",
            &["v1.34.0", "has version v1.33.4", r#"\"version\":\"v1.33.4\""#],
        )
        .then(&["workers-not-available"]);
    manager.stop().await;
}

async fn topologies_without_a_class(plane: &std::sync::Arc<Plane>) {
    let caller = begin_with_machines(plane, "classless").await;
    let manager = caller.story.manager(Which::Core);
    let topology = json!({"topology": {"classRef": {"name": "quick"}, "version": "v1.34.0"}});
    caller.story.create_cluster_with("c", topology).await;
    until_seen(&caller).await;
    Explained::of(&caller).answers(
        "cluster-class-missing",
        "ClusterClass quick",
        &["kubectl get clusterclasses", "/quick, which does not exist"],
    );
    caller.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "quick"}, "spec": {},
    })).await;
    Explained::of(&caller).answers("topology-not-reconciled", "Cluster c", &[]);
    manager.stop().await;
}

async fn deletions_that_wait_for_machines(plane: &std::sync::Arc<Plane>) {
    let caller = begin_with_machines(plane, "crowded").await;
    let manager = caller.story.manager(Which::All);
    caller.story.create_local("c", json!({})).await;
    caller.story.create_cluster("c", "LocalCluster", "c").await;
    caller.story.until_phase("c", "Provisioned", LIMIT).await;
    // Nothing owns it, so nothing deletes it.
    let mut loose = machine(json!({"dataSecretName": "data"}), json!({}), json!({"phase": "Running"}));
    loose["metadata"]["finalizers"] = json!(["machine.cluster.x-k8s.io"]);
    caller.create(loose).await;
    caller.story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    caller.story.until_phase("c", "Deleting", LIMIT).await;
    Explained::of(&caller).answers(
        "deletion-waits-for-descendants",
        "Cluster c",
        &[
            "is deleted after these: Machine m. No controller deletes Machine m, because nothing owns it",
            "kubectl delete machines.cluster.x-k8s.io m -n crowded-",
        ],
    );
    // It is deleted; now its infrastructure holds it.
    let machines: Api<kube::api::DynamicObject> = Api::namespaced_with(
        caller.story.client.clone(),
        &caller.story.namespace,
        &generic::core_resource("Machine"),
    );
    machines.delete("m", &DeleteParams::default()).await.unwrap();
    caller.story.create_generic("SomeMachine", "m", json!({})).await;
    let some = caller.story.generics("SomeMachine");
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["some.infrastructure.cluster.x-k8s.io"]}}));
    some.patch("m", &PatchParams::default(), &hold).await.unwrap();
    some.delete("m", &DeleteParams::default()).await.unwrap();
    Explained::of(&caller)
        .answers("deletion-held-by-finalizer", "SomeMachine m", &["some.infrastructure.cluster.x-k8s.io"])
        .then(&["deletion-waits-for-descendants"]);
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup";
    let annotate = Patch::Merge(json!({"metadata": {"annotations": {hook: ""}}}));
    machines.patch("m", &PatchParams::default(), &annotate).await.unwrap();
    Explained::of(&caller).answers(
        "deletion-held-by-hook",
        "Machine m",
        &[hook, "kubectl annotate machines.cluster.x-k8s.io m"],
    );
    manager.stop().await;
}

/// The last one on its server, because all others there would say so as well.
async fn core_that_does_not_run(plane: &std::sync::Arc<Plane>) {
    let caller = begin_with_machines(plane, "coreless").await;
    let inventory: CustomResourceDefinition = serde_json::from_value(capstan_api::inventory::crd()).unwrap();
    install(&caller.story, inventory).await;
    let entry = json!({
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider",
        "metadata": {"name": "cluster-api"},
        "providerName": "cluster-api", "type": "CoreProvider", "version": "v1.14.2",
    });
    caller.create(entry).await;
    caller.story.create_cluster("c", "LocalCluster", "c").await;
    Explained::of(&caller).answers(
        "controller-missing",
        "Provider cluster-api",
        &["is in the inventory, but namespace coreless-", "capstan init --core cluster-api:v1.14.2"],
    );
    deploy(&caller, "cluster-api", 0, false).await;
    Explained::of(&caller)
        .answers(
            "controller-scaled-to-zero",
            "Deployment manager",
            &["No controller is reconciling Cluster objects", r#""version":"v1.14.2""#, "--replicas 1"],
        )
        .then(&["object-missing", "control-plane-ref-missing"]);
}
