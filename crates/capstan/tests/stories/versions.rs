//! The older API versions, through the conversion webhook.

use capstan_api::crd::Conversion;
use capstan_runtime::{
    install::install_crds, manager::Manager, metrics::Metrics, options::ManagerOptions, tls::OwnCertificate,
};
use capstan_testkit::{Plane, Story, generic, wait::LIMIT};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1beta1", kind), plural)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_older_versions_is_served() {
    let plane = Plane::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/convert", listener.local_addr().unwrap().port());
    let certificate = OwnCertificate::make(&["127.0.0.1"]).unwrap();
    plane.install(Conversion::Url { url: &url, ca_bundle_pem: certificate.ca_pem.as_bytes() }).await;
    let story = Story::begin_on(plane, "versions").await;
    let stop = CancellationToken::new();
    let options = ManagerOptions::embedded();
    let mut manager =
        Manager::new(options, story.client.clone(), Metrics::default(), "story", "story", stop.clone());
    manager.serve_webhooks_on(listener, certificate);
    capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
    capstan_provider_local::register(&mut manager, capstan_provider_local::Options::default()).unwrap();
    let manager = tokio::spawn(manager.run());

    let clusters = resource("cluster.x-k8s.io", "Cluster", "clusters");
    let locals = resource("infrastructure.cluster.x-k8s.io", "LocalCluster", "localclusters");
    let old_clusters: Api<DynamicObject> =
        Api::namespaced_with(story.client.clone(), &story.namespace, &clusters);
    let old_locals: Api<DynamicObject> =
        Api::namespaced_with(story.client.clone(), &story.namespace, &locals);
    let local = DynamicObject::new("c", &locals).data(json!({
        "spec": {"controlPlaneEndpoint": {"host": "", "port": 0}, "failureDomains": [{"name": "a", "controlPlane": true}]},
    }));
    old_locals.create(&PostParams::default(), &local).await.unwrap();
    let cluster = DynamicObject::new("c", &clusters).data(json!({"spec": {"infrastructureRef": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "LocalCluster", "name": "c",
    }}}));
    old_clusters.create(&PostParams::default(), &cluster).await.unwrap();

    let new = story.until_phase("c", "Provisioned", LIMIT).await;
    let reference = new.spec.infrastructure_ref.unwrap();
    assert_eq!(
        (reference.api_group.as_str(), reference.name.as_str()),
        ("infrastructure.cluster.x-k8s.io", "c")
    );
    assert_eq!(new.spec.paused, None, "an absent field is not turned into an explicit false");

    let old = old_clusters.get("c").await.unwrap();
    assert_eq!(old.data["status"]["infrastructureReady"], true);
    assert_eq!(old.data["status"]["controlPlaneReady"], false, "always said in the older version");
    assert_eq!(old.data["status"]["failureDomains"], json!({"a": {"controlPlane": true}}));
    assert_eq!(
        old.data["spec"]["infrastructureRef"]["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta2",
        "the version that the provider's contract labels lead to, as upstream does"
    );
    assert!(old.annotations().contains_key("cluster.x-k8s.io/conversion-data"));
    assert!(!new.metadata.annotations.unwrap_or_default().contains_key("cluster.x-k8s.io/conversion-data"));

    let old = old_locals.get("c").await.unwrap();
    assert_eq!(old.data["status"]["ready"], true);
    assert_eq!(old.data["status"]["failureDomains"], json!({"a": {"controlPlane": true}}));

    // What the older client writes, the newer one sees.
    let patch = Patch::Merge(json!({"spec": {"paused": true}}));
    old_clusters.patch("c", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(story.clusters().get("c").await.unwrap().spec.paused, Some(true));

    // Garbage where an earlier conversion kept what the older version cannot say does no harm.
    let garbage = json!({"metadata": {"annotations": {"cluster.x-k8s.io/conversion-data": "{]"}}});
    old_clusters.patch("c", &PatchParams::default(), &Patch::Merge(garbage)).await.unwrap();
    let new = story.clusters().get("c").await.unwrap();
    assert_eq!(new.spec.infrastructure_ref.unwrap().name, "c");
    assert!(!new.metadata.annotations.unwrap_or_default().contains_key("cluster.x-k8s.io/conversion-data"));

    // A failure of the older contract is where older clients look for it.
    let crd = generic::crd("FailingCluster", &[("v1beta1", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    story.create_generic("FailingCluster", "ic", json!({})).await;
    let failure = json!({"failureReason": "X", "failureMessage": "boom"});
    story.set_generic_status("FailingCluster", "ic", failure).await;
    story.create_cluster("failing", "FailingCluster", "ic").await;
    story.until_phase("failing", "Failed", LIMIT).await;
    assert_eq!(old_clusters.get("failing").await.unwrap().data["status"]["failureReason"], "X");
    stop.cancel();
    manager.await.unwrap().unwrap();
}
