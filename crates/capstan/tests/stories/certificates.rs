//! The webhooks' certificates: made, shared, mended and rotated without anybody's help.

use std::{fmt::Debug, sync::Arc, time::Duration};

use capstan_api::{
    cluster::{
        self,
        admission::{Address, VALIDATE_PATH, webhook_configurations},
    },
    crd::Conversion,
};
use capstan_runtime::{
    certificates::{Authority, Stored, WebhookIdentity},
    clock,
    install::{install_crds, install_webhooks},
    manager::{Manager, ManagerError},
    metrics::Metrics,
    options::ManagerOptions,
    readiness::Readiness,
};
use capstan_testkit::{
    Plane, Story,
    canary::{self, CANARY},
    story::reference,
    wait::{self, LIMIT},
};
use http::Request;
use jiff::SignedDuration;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Event, Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "hooks-ca";
const SERVICE: &str = "hooks";
const DEFINITION: &str = "clusters.cluster.x-k8s.io";
const MUTATING: &str = "capi-mutating-webhook-configuration";
const VALIDATING: &str = "capi-validating-webhook-configuration";

/// A replica of the core manager that makes its certificates itself.
struct Replica {
    port: u16,
    readiness: Readiness,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Replica {
    async fn start(story: &Story, host: &str) -> Self {
        let mut config = story.plane.config().await;
        config.default_namespace.clone_from(&story.namespace);
        canary::search_the_log();
        let client = canary::searched(Client::try_from(config).unwrap());
        let options = ManagerOptions { leader_elect: true, ..ManagerOptions::embedded() };
        let stop = CancellationToken::new();
        let mut manager = Manager::new(options, client, Metrics::default(), "story", host, stop.clone());
        capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let identity = WebhookIdentity {
            namespace: story.namespace.clone(),
            service: SERVICE.into(),
            secret: SECRET.into(),
        };
        manager.keep_webhook_certificates_on(listener, identity);
        let readiness = manager.readiness();
        Self { port, readiness, stop, task: tokio::spawn(manager.run()) }
    }

    async fn until_ready(&self) {
        let deadline = Instant::now() + LIMIT;
        while !self.readiness.is_ready() {
            assert!(Instant::now() < deadline, "not ready: {:?}", self.readiness.awaited());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks this replica directly, as a client that trusts these certificates.
    async fn ask(&self, namespace: &str, bundle: &[u8]) -> Result<Value, kube::Error> {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse().unwrap());
        let roots = CertificateDer::pem_slice_iter(bundle).map(|it| it.unwrap().to_vec()).collect();
        config.root_cert = Some(roots);
        config.tls_server_name = Some(format!("{SERVICE}.{namespace}.svc"));
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "DELETE"}});
        let request = Request::post(VALIDATE_PATH).header("content-type", "application/json");
        client.request(request.body(review.to_string().into_bytes()).unwrap()).await
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        canary::assert_never_seen();
    }
}

/// Installs kinds and webhooks that lead to a Service, and that to a port of this machine.
async fn install(story: &Story, port: u16) {
    // The API server looks a Service up itself; an ExternalName leads it here.
    let service =
        json!({"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let services: Api<Service> = Api::namespaced(story.client.clone(), &story.namespace);
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    lead_to(story, port).await;
}

async fn lead_to(story: &Story, port: u16) {
    let port = Some(i32::from(port));
    let mut crd = cluster::crd(Conversion::Service { namespace: &story.namespace, name: SERVICE });
    let webhook = crd.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
    webhook.client_config.as_mut().unwrap().service.as_mut().unwrap().port = port;
    let address = Address::Service { namespace: &story.namespace, name: SERVICE };
    let (mut mutating, mut validating) = webhook_configurations(address);
    for webhook in mutating.webhooks.iter_mut().flatten() {
        webhook.client_config.service.as_mut().unwrap().port = port;
    }
    for webhook in validating.webhooks.iter_mut().flatten() {
        webhook.client_config.service.as_mut().unwrap().port = port;
    }
    install_crds(&story.client, &[crd], "story").await.unwrap();
    install_webhooks(&story.client, &mutating, &validating, "story").await.unwrap();
}

async fn secret_of(story: &Story) -> Stored {
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    Stored::read(&secrets.get(SECRET).await.unwrap().data.unwrap()).unwrap()
}

async fn until_trusted(story: &Story, bundle: &str) {
    let is = |found: Option<&ByteString>| found.is_some_and(|it| it.0 == bundle.as_bytes());
    let crds: Api<CustomResourceDefinition> = Api::all(story.client.clone());
    wait::until_is(&crds, DEFINITION, "trusted", LIMIT, |it| {
        let webhook = it.spec.conversion.as_ref().and_then(|it| it.webhook.as_ref());
        is(webhook.and_then(|it| it.client_config.as_ref()?.ca_bundle.as_ref()))
    })
    .await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(story.client.clone());
    wait::until_is(&mutating, MUTATING, "trusted", LIMIT, |it| {
        it.webhooks.iter().flatten().all(|it| is(it.client_config.ca_bundle.as_ref()))
    })
    .await;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(story.client.clone());
    wait::until_is(&validating, VALIDATING, "trusted", LIMIT, |it| {
        it.webhooks.iter().flatten().all(|it| is(it.client_config.ca_bundle.as_ref()))
    })
    .await;
}

/// Creates a Cluster as a client of the older version: judged, defaulted and converted, all by webhooks.
async fn create(story: &Story, name: &str) -> Result<DynamicObject, kube::Error> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", "Cluster");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusters");
    let api: Api<DynamicObject> = Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let reference = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "NoSuchCluster", "name": name});
    let object = DynamicObject::new(name, &resource).data(json!({"spec": {"infrastructureRef": reference}}));
    api.create(&PostParams::default(), &object).await
}

/// The API server hears of a bundle by a watch: the first call may come too early.
async fn until_created(story: &Story, name: &str) {
    let deadline = Instant::now() + LIMIT;
    while let Err(error) = create(story, name).await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Touches an object, which all its watchers see, and checks that no other client writes it.
async fn stays_as_it_is<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let touch = json!({"metadata": {"annotations": {"touched": "by the story"}}});
    let touched = api.patch(name, &PatchParams::default(), &Patch::Merge(touch)).await.unwrap();
    let version = touched.resource_version();
    // The watch may begin before the touch.
    let number = |version: Option<String>| version.and_then(|it| it.parse::<u64>().ok());
    let newer = |it: &K| number(it.resource_version()) > number(version.clone());
    let quiet = wait::try_until(api, name, Duration::from_secs(3), |it| it.is_none_or(newer)).await;
    assert!(quiet.is_err(), "{name} was written: {quiet:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_an_authority_and_mend_what_others_break() {
    let story = Story::begin_on(Plane::start().await, "certificates").await;
    // Both begin at once, before there is anything to be trusted by.
    let (first, second) = (Replica::start(&story, "first").await, Replica::start(&story, "second").await);
    install(&story, first.port).await;
    first.until_ready().await;
    second.until_ready().await;
    let authority = secret_of(&story).await;
    let bundle = authority.bundle();
    until_trusted(&story, &bundle).await;
    for replica in [&first, &second] {
        let answer = replica.ask(&story.namespace, bundle.as_bytes()).await.unwrap();
        assert_eq!(answer["response"]["allowed"], true);
    }
    let stranger = Authority::make(clock::now()).unwrap();
    assert!(first.ask(&story.namespace, stranger.certificate.as_bytes()).await.is_err(), "nobody else's");
    until_created(&story, "one").await;

    // One of them only waits for its turn to lead, and serves all the same.
    lead_to(&story, second.port).await;
    until_trusted(&story, &bundle).await;
    until_created(&story, "two").await;

    // Another client overwrites or removes the bundles.
    let other = ByteString(stranger.certificate.clone().into_bytes());
    let params = PatchParams::default();
    let crds: Api<CustomResourceDefinition> = Api::all(story.client.clone());
    let patch = json!({
        "metadata": {"annotations": {"cert-manager.io/inject-ca-from": "capi-system/capi-serving-cert"}},
        "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": other}}}},
    });
    crds.patch(DEFINITION, &params, &Patch::Merge(patch)).await.unwrap();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(story.client.clone());
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(patch).unwrap());
    validating.patch(VALIDATING, &params, &patch).await.unwrap();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(story.client.clone());
    mutating.delete(MUTATING, &DeleteParams::default()).await.unwrap();
    lead_to(&story, second.port).await;
    until_trusted(&story, &bundle).await;
    let annotations = crds.get(DEFINITION).await.unwrap().metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key("cert-manager.io/inject-ca-from"), "nobody else is asked any more");

    // The Secret comes back as it was, whether it is deleted or spoilt.
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    let uid = secrets.get(SECRET).await.unwrap().metadata.uid;
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    wait::until_is(&secrets, SECRET, "back", LIMIT, |it| it.metadata.uid != uid).await;
    assert_eq!(secret_of(&story).await, authority);
    // Words that a library would quote.
    let spoilt = format!("-----BEGIN {CANARY}");
    story.change_secret(SECRET, &[("ca.crt", spoilt.as_bytes()), ("ca.key", spoilt.as_bytes())]).await;
    wait::until_is(&secrets, SECRET, "whole", LIMIT, |it| {
        it.data.as_ref().is_some_and(|data| Stored::read(data).as_ref() == Ok(&authority))
    })
    .await;
    until_created(&story, "three").await;

    // At rest nothing is written: everybody is woken, and finds all as it should be.
    tokio::join!(
        stays_as_it_is(&secrets, SECRET),
        stays_as_it_is(&crds, DEFINITION),
        stays_as_it_is(&mutating, MUTATING),
        stays_as_it_is(&validating, VALIDATING),
    );
    first.end().await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_fails_no_call() {
    let story = Arc::new(Story::begin_on(Plane::start().await, "rotation").await);
    // An authority that is about to end in two months.
    let old = Stored::begin(clock::now() - SignedDuration::from_hours(305 * 24)).unwrap();
    let (certificate, key) = (&old.active.certificate, &old.active.key);
    let data = [("ca.crt", certificate.as_bytes()), ("ca.key", key.as_bytes())];
    story.create_secret(SECRET, None, &data).await;
    let replica = Replica::start(&story, "first").await;
    let other = Replica::start(&story, "second").await;
    install(&story, replica.port).await;
    replica.until_ready().await;
    other.until_ready().await;
    until_created(&story, "first").await;

    let calls = tokio::spawn({
        let story = Arc::clone(&story);
        async move {
            let validating: Api<ValidatingWebhookConfiguration> = Api::all(story.client.clone());
            let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
            let mut count = 0;
            loop {
                count += 1;
                create(&story, &format!("c{count}")).await.unwrap();
                // A fresh connection each time, by who trusts what the API server trusts now.
                let configuration = validating.get(VALIDATING).await.unwrap();
                let bundle = configuration.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
                for it in [&replica, &other] {
                    it.ask(&story.namespace, &bundle.0).await.unwrap();
                }
                let data = secrets.get(SECRET).await.unwrap().data.unwrap();
                if Stored::read(&data).unwrap().previous.is_some() {
                    return (count, replica, other);
                }
            }
        }
    });
    let (count, replica, other) = tokio::time::timeout(LIMIT, calls).await.expect("rotated in time").unwrap();
    assert!(count > 10, "only {count} calls");
    let now = secret_of(&story).await;
    until_trusted(&story, &now.bundle()).await;
    // Both show certificates of the new authority soon.
    for it in [&replica, &other] {
        let deadline = Instant::now() + LIMIT;
        while it.ask(&story.namespace, now.active.certificate.as_bytes()).await.is_err() {
            assert!(Instant::now() < deadline, "still the old one");
        }
    }
    create(&story, "last").await.unwrap();
    replica.end().await;
    other.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_keeps_overwriting_a_bundle_is_named_and_answered_slowly() {
    let story = Story::begin_on(Plane::start().await, "contested").await;
    let replica = Replica::start(&story, "only").await;
    install(&story, replica.port).await;
    replica.until_ready().await;
    let bundle = secret_of(&story).await.bundle();
    until_trusted(&story, &bundle).await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(story.client.clone());
    let name = mutating.get(MUTATING).await.unwrap().webhooks.unwrap()[0].name.clone();
    let other = ByteString(Authority::make(clock::now()).unwrap().certificate.into_bytes());
    let theirs = json!({"webhooks": [{"name": name, "clientConfig": {"caBundle": other}}]});
    let params = PatchParams { field_manager: Some("rival".into()), ..PatchParams::default() };
    let overwrite = || async {
        let began = Instant::now();
        mutating.patch(MUTATING, &params, &Patch::Strategic(&theirs)).await.unwrap();
        until_trusted(&story, &bundle).await;
        began.elapsed()
    };
    for _ in 0..3 {
        overwrite().await;
    }
    // Still ours in the end.
    let took = overwrite().await + overwrite().await;
    assert!(took > Duration::from_secs(2), "answered after {took:?}");
    let events: Api<Event> = Api::namespaced(story.client.clone(), "default");
    let deadline = Instant::now() + LIMIT;
    let told = loop {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let is_it = |it: &Event| it.reason.as_deref() == Some("WebhookBundleContested");
        let told: Vec<_> = found.into_iter().filter(is_it).collect();
        if !told.is_empty() {
            break told;
        }
        assert!(Instant::now() < deadline, "nobody was told");
    };
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].involved_object.name.as_deref(), Some(MUTATING));
    let message = told[0].message.as_deref().unwrap_or_default();
    assert!(message.starts_with("rival keeps overwriting"), "{message}");
    replica.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_full_of_rubbish_is_no_obstacle() {
    let story = Story::begin_on(Plane::start().await, "rubbish").await;
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    let rubbish = format!("-----BEGIN {CANARY}");
    let data = [("ca.crt", rubbish.as_bytes()), ("ca.key", rubbish.as_bytes()), ("other", b"kept")];
    story.create_secret(SECRET, None, &data).await;
    let replica = Replica::start(&story, "only").await;
    install(&story, replica.port).await;
    replica.until_ready().await;
    until_trusted(&story, &secret_of(&story).await.bundle()).await;
    until_created(&story, "c").await;
    assert!(secrets.get(SECRET).await.unwrap().data.unwrap().contains_key("other"));
    let events: Api<Event> = Api::namespaced(story.client.clone(), &story.namespace);
    let deadline = Instant::now() + LIMIT;
    loop {
        let found = events.list(&ListParams::default()).await.unwrap();
        let told = found.items.iter().find(|it| it.reason.as_deref() == Some("WebhookAuthorityReplaced"));
        if let Some(event) = told {
            let message = event.message.as_deref().unwrap_or_default();
            assert!(
                message.contains(SECRET) && message.contains("there is no certificate in PEM"),
                "{message}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "nobody was told");
    }
    story.create_cluster_with("ref", json!({"infrastructureRef": reference("K", "n")})).await;
    replica.end().await;
}
