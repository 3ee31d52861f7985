//! Upstream's kubeadm providers beside our core provider, all of them installed by upstream's clusterctl.
//!
//! Nothing runs in Pods here, so that the test says and does what kubeadm's managers would.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use capstan_api::{
    cluster::v1beta2::Cluster,
    conditions::{self, ConditionStatus},
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, generic,
    story::reference,
    wait::{self, LIMIT},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::management::{KUBEADM, Others, Released, begin, cluster, create_when_served, kubeadm_components};

const GROUP: &str = "controlplane.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "GenericCluster";
/// What kubeadm's manager holds its objects by.
const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// What the API server adds to a CRD that leads to a webhook.
pub(crate) const FILLED_IN: [&str; 1] = ["/conversion/webhook/clientConfig/service/port"];

/// How the control planes are addressed in the version in which they are stored: others would need the providers'
/// conversion webhook.
fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(GROUP, "v1beta2", "KubeadmControlPlane");
    ApiResource::from_gvk_with_plural(&kind, "kubeadmcontrolplanes")
}

fn control_planes(story: &Story) -> Api<DynamicObject> {
    Api::namespaced_with(story.client.clone(), &story.namespace, &resource())
}

/// The CRDs in the files of upstream's providers, where clusterctl reads `$$` as `$`.
fn crds() -> Vec<CustomResourceDefinition> {
    let texts =
        ["bootstrap", "control-plane"].map(|kind| fs::read_to_string(kubeadm_components(kind)).unwrap());
    let documents = texts.iter().flat_map(|text| text.split("\n---\n"));
    let crds = documents.filter(|text| text.contains("\nkind: CustomResourceDefinition\n"));
    crds.map(|text| serde_saphyr::from_str(&text.replace("$$", "$")).unwrap()).collect()
}

/// Names where two values differ.
pub(crate) fn compare(path: &str, one: &Value, other: &Value, different: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}/{key}"), &of(one), &of(other), different);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}/{index}"), one, other, different);
            }
        }
        _ if one == other => {}
        _ => different.push(path.to_owned()),
    }
}

/// The CRDs are those of the files, but for the label that clusterctl finds them by.
async fn check_crds(client: &Client) {
    let shipped = crds();
    let mut kinds: Vec<_> = shipped.iter().map(|crd| crd.spec.names.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["KubeadmConfig", "KubeadmConfigTemplate", "KubeadmControlPlane", "KubeadmControlPlaneTemplate"]
    );
    for shipped in shipped {
        let name = shipped.name_any();
        let installed = Api::<CustomResourceDefinition>::all(client.clone()).get(&name).await.unwrap();
        let mut labels: BTreeMap<_, _> = installed.labels().clone();
        assert_eq!(labels.remove("clusterctl.cluster.x-k8s.io").as_deref(), Some(""), "{name}");
        assert_eq!(&labels, shipped.labels(), "{name}");
        for contract in ["v1beta1", "v1beta2"] {
            let version = labels.get(&format!("cluster.x-k8s.io/{contract}")).map(String::as_str);
            assert_eq!(version, Some(contract), "{name}");
        }
        assert_eq!(installed.annotations(), shipped.annotations(), "{name}");
        let mut different = Vec::new();
        compare("", &json!(shipped.spec), &json!(installed.spec), &mut different);
        assert_eq!(different, FILLED_IN, "{name}");
        let versions: Vec<_> =
            installed.spec.versions.iter().map(|it| (it.name.as_str(), it.served, it.storage)).collect();
        assert_eq!(versions, [("v1beta1", true, false), ("v1beta2", true, true)], "{name}");
    }
}

/// Behind the providers' webhooks are Services without Pods, so that the API server would refuse all objects of theirs.
/// Defaults and checks are not what is looked at here; the CRDs stay as they are.
async fn remove_webhooks(client: &Client) {
    let of_kubeadm = "cluster.x-k8s.io/provider in (bootstrap-kubeadm, control-plane-kubeadm)";
    let (params, list) = (DeleteParams::default(), ListParams::default().labels(of_kubeadm));
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    assert_ne!(mutating.list(&list).await.unwrap().items.len(), 0);
    mutating.delete_collection(&params, &list).await.unwrap();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    assert_ne!(validating.list(&list).await.unwrap().items.len(), 0);
    validating.delete_collection(&params, &list).await.unwrap();
}

async fn check_inventory(client: &Client) {
    let kind = GroupVersionKind::gvk("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider");
    let providers = ApiResource::from_gvk_with_plural(&kind, "providers");
    let providers: Api<DynamicObject> = Api::all_with(client.clone(), &providers);
    let found = providers.list(&ListParams::default()).await.unwrap();
    let mut found: Vec<_> =
        found.iter().map(|it| (it.name_any(), it.data["version"].as_str().unwrap().to_owned())).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("bootstrap-kubeadm".to_owned(), KUBEADM.to_owned()),
            ("cluster-api".to_owned(), crate::management::VERSION.to_owned()),
            ("control-plane-kubeadm".to_owned(), KUBEADM.to_owned()),
        ]
    );
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Says of the control plane what kubeadm's manager would.
async fn say(story: &Story, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    control_planes(story).patch_status("cp", &PatchParams::default(), &patch).await.unwrap();
}

fn says(cluster: &Cluster, type_: &str, status: ConditionStatus, reason: &str, message: &str) -> bool {
    let conditions = cluster.status.clone().unwrap_or_default().conditions;
    conditions::get(&conditions, type_)
        .is_some_and(|it| it.status == status && it.reason == reason && it.message == message)
}

async fn hold(api: &Api<DynamicObject>, name: &str, finalizers: &[&str]) {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Creates infrastructure, control plane and Cluster, and waits until the control plane is the Cluster's own.
async fn create(story: &Story) {
    let endpoint = json!({"controlPlaneEndpoint": {"host": "example.com", "port": 6443}});
    story.create_generic(INFRASTRUCTURE, "c", endpoint).await;
    let control_plane = DynamicObject::new("cp", &resource()).data(json!({"spec": {
        "replicas": 3,
        "version": "v1.35.4",
        "machineTemplate": {"spec": {"infrastructureRef": reference("GenericMachineTemplate", "cp")}},
    }}));
    create_when_served(&control_planes(story), &control_plane).await;
    hold(&control_planes(story), "cp", &[FINALIZER]).await;
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "c"),
        "controlPlaneRef": {"apiGroup": GROUP, "kind": "KubeadmControlPlane", "name": "cp"},
    });
    create_when_served(&story.clusters(), &cluster("c", &spec)).await;

    let adopted = wait::until_is(&control_planes(story), "cp", "adopted", LIMIT, |it| {
        !it.owner_references().is_empty()
    })
    .await;
    let uid = story.clusters().get("c").await.unwrap().uid().unwrap();
    assert_eq!(adopted.owner_references().len(), 1, "{:?}", adopted.owner_references());
    let owner = &adopted.owner_references()[0];
    assert_eq!(
        (owner.api_version.as_str(), owner.kind.as_str(), owner.name.as_str(), &owner.uid),
        ("cluster.x-k8s.io/v1beta2", "Cluster", "c", &uid)
    );
    assert_eq!((owner.controller, owner.block_owner_deletion), (None, None));
    assert_eq!(adopted.labels().get("cluster.x-k8s.io/cluster-name").map(String::as_str), Some("c"));
    // The label says which version speaks which contract; in the older one the server could not answer at all.
    let write = adopted.managed_fields().iter().find(|it| it.manager.as_deref() == Some("capstan-cluster"));
    let version = write.and_then(|it| it.api_version.clone());
    assert_eq!(version.as_deref(), Some("controlplane.cluster.x-k8s.io/v1beta2"));
}

/// What the control plane says of itself is what the Cluster says of it.
async fn follow(story: &Story) {
    let waiting = wait::until_is(&story.clusters(), "c", "waiting for its control plane", LIMIT, |cluster| {
        conditions::get(&cluster.status.clone().unwrap_or_default().conditions, "ControlPlaneInitialized")
            .is_some()
    })
    .await;
    let status = waiting.status.unwrap();
    assert!(!conditions::is_true(&status.conditions, "ControlPlaneInitialized"));
    assert_eq!(status.initialization.unwrap_or_default().control_plane_initialized, None);
    story.set_generic_status(INFRASTRUCTURE, "c", json!({"initialization": {"provisioned": true}})).await;

    say(
        story,
        json!({
            "initialization": {"controlPlaneInitialized": true},
            "replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "upToDateReplicas": 2,
            "versions": [{"version": "v1.35.4", "replicas": 2}],
            "conditions": [
                condition("Available", "False", "NotAvailable", "etcd has no quorum"),
                condition("RollingOut", "True", "RollingOut", "Rolling out 1 not up-to-date replicas"),
                condition("ScalingUp", "True", "ScalingUp", "Scaling up from 2 to 3 replicas"),
            ],
        }),
    )
    .await;
    let cluster = wait::until_is(&story.clusters(), "c", "told of its control plane", LIMIT, |cluster| {
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        let scaling = "* KubeadmControlPlane cp: Scaling up from 2 to 3 replicas";
        let rolling = "* KubeadmControlPlane cp: Rolling out 1 not up-to-date replicas";
        says(cluster, "ControlPlaneInitialized", yes, "Initialized", "")
            && says(cluster, "ControlPlaneAvailable", no, "NotAvailable", "etcd has no quorum")
            && says(cluster, "RollingOut", yes, "RollingOut", rolling)
            && says(cluster, "ScalingUp", yes, "ScalingUp", scaling)
    })
    .await;
    let status = serde_json::to_value(cluster.status.unwrap()).unwrap();
    assert_eq!(status["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(
        status["controlPlane"],
        json!({
            "desiredReplicas": 3, "replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "upToDateReplicas": 2,
            "versions": [{"version": "v1.35.4", "replicas": 2}],
        })
    );
    story.until_phase("c", "Provisioned", LIMIT).await;

    say(
        story,
        json!({
            "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 3,
            "versions": [{"version": "v1.35.4", "replicas": 3}],
            "conditions": [
                condition("Available", "True", "Available", ""),
                condition("RollingOut", "False", "NotRollingOut", ""),
                condition("ScalingUp", "False", "NotScalingUp", ""),
            ],
        }),
    )
    .await;
    wait::until_is(&story.clusters(), "c", "at rest", LIMIT, |cluster| {
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        let counted = cluster.status.clone().unwrap_or_default().control_plane.unwrap_or_default();
        says(cluster, "ControlPlaneAvailable", yes, "Available", "")
            && says(cluster, "RollingOut", no, "NotRollingOut", "")
            && says(cluster, "ScalingUp", no, "NotScalingUp", "")
            && (counted.replicas, counted.ready_replicas) == (Some(3), Some(3))
    })
    .await;
}

/// The control plane goes before what it stands on, and nothing is left.
async fn delete(story: &Story) {
    let infrastructure = story.generics(INFRASTRUCTURE);
    hold(&infrastructure, "c", &["example.com/hold"]).await;
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    let words =
        format!("Waiting for KubeadmControlPlane cp to be deleted; held by its finalizers {FINALIZER}");
    wait::until_is(&story.clusters(), "c", "waiting for its control plane to go", LIMIT, |cluster| {
        says(cluster, "Deleting", ConditionStatus::True, "WaitingForControlPlaneDeletion", &words)
    })
    .await;
    wait::until_is(&control_planes(story), "cp", "going", LIMIT, |it| {
        it.metadata.deletion_timestamp.is_some()
    })
    .await;
    assert!(infrastructure.get("c").await.unwrap().metadata.deletion_timestamp.is_none());

    hold(&control_planes(story), "cp", &[]).await;
    wait::until_is(&infrastructure, "c", "going", LIMIT, |it| it.metadata.deletion_timestamp.is_some()).await;
    assert!(control_planes(story).get_opt("cp").await.unwrap().is_none());
    assert!(story.clusters().get_opt("c").await.unwrap().is_some());
    hold(&infrastructure, "c", &[]).await;
    wait::until_gone(&story.clusters(), "c", LIMIT).await;

    let all = ListParams::default();
    assert!(control_planes(story).list(&all).await.unwrap().items.is_empty());
    assert!(infrastructure.list(&all).await.unwrap().items.is_empty());
    let secrets: Api<Secret> = Api::namespaced(story.client.clone(), &story.namespace);
    assert!(secrets.list(&all).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs upstream's clusterctl and kubeadm providers: make test-compat"]
async fn upstreams_kubeadm_providers_work_with_our_core() {
    let story = begin("kubeadm", Others::Kubeadm).await;
    check_inventory(&story.client).await;
    check_crds(&story.client).await;
    remove_webhooks(&story.client).await;
    install_crds(&story.client, &[generic::crd(INFRASTRUCTURE, &[("v1beta2", "v1beta2")])], "story")
        .await
        .unwrap();
    let manager = Released::start(&story).await;
    create(&story).await;
    follow(&story).await;
    delete(&story).await;
    manager.stop().await;
    check_crds(&story.client).await;
}
