//! Machines and what makes them: counted, heard, and waited for.

use capstan_api::{
    cluster::v1beta2::Cluster,
    conditions::{self, ConditionStatus},
    crd::Conversion,
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Plane, Story, Which, generic,
    wait::{self, LIMIT},
};
use kube::{
    Api, Resource,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

const GROUP: &str = "cluster.x-k8s.io";

/// Installs a kind of the core group that takes anything, in one version.
async fn install(story: &Story, kind: &str, version: &str) -> Api<DynamicObject> {
    let mut crd = generic::crd(kind, &[]);
    let plural = crd.spec.names.plural.clone();
    crd.metadata.name = Some(format!("{plural}.{GROUP}"));
    GROUP.clone_into(&mut crd.spec.group);
    version.clone_into(&mut crd.spec.versions[0].name);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let kind = GroupVersionKind::gvk(GROUP, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
    Api::namespaced_with(story.client.clone(), &story.namespace, &resource)
}

/// Creates an object that belongs to Cluster `c`.
async fn create(api: &Api<DynamicObject>, cluster: &Cluster, name: &str, more: Value, status: Value) {
    let kind = if api.resource_url().ends_with("/machines") { "Machine" } else { "MachineDeployment" };
    let version = api.resource_url().split('/').nth(3).unwrap().to_owned();
    let mut object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [cluster.owner_ref(&()).unwrap()],
        },
    });
    json_patch(&mut object, &more);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    set_status(api, name, status).await;
}

fn json_patch(target: &mut Value, patch: &Value) {
    if let (Some(target), Some(patch)) = (target.as_object_mut(), patch.as_object()) {
        for (key, value) in patch {
            json_patch(target.entry(key.clone()).or_insert(json!({})), value);
        }
    } else {
        target.clone_from(patch);
    }
}

async fn set_status(api: &Api<DynamicObject>, name: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a condition of Cluster `c` has that status, reason and message.
async fn until_says(
    story: &Story,
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> Cluster {
    let what = format!("saying {type_} {status} {reason} {message:?}");
    wait::until_is(&story.clusters(), "c", &what, LIMIT, |cluster| {
        let conditions = cluster.status.clone().unwrap_or_default().conditions;
        conditions::get(&conditions, type_)
            .is_some_and(|it| it.status == status && it.reason == reason && it.message == message)
    })
    .await
}

#[tokio::test]
async fn machines_are_counted_and_heard_whenever_their_kinds_come() {
    let plane = Plane::start().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(plane, "machines").await;
    let manager = story.manager(Which::All);
    story.create_local("c", json!({})).await;
    story.create_cluster("c", "LocalCluster", "c").await;
    let cluster = story.until_phase("c", "Provisioned", LIMIT).await;
    let status = cluster.status.clone().unwrap();
    assert!(
        conditions::get(&status.conditions, "WorkersAvailable").is_some_and(|it| it.reason == "NoWorkers")
    );
    assert_eq!(status.workers, None);

    // The kinds come while the manager runs; Machines are served in the older version only.
    let deployments = install(&story, "MachineDeployment", "v1beta2").await;
    let machines = install(&story, "Machine", "v1beta1").await;
    create(&deployments, &cluster, "md", json!({"spec": {"replicas": 3}}), json!({
        "replicas": 2, "readyReplicas": 1,
        "conditions": [{"type": "Available", "status": "False", "reason": "Few", "message": "two of three"}],
    }))
    .await;
    let cluster = until_says(
        &story,
        "WorkersAvailable",
        ConditionStatus::False,
        "NotAvailable",
        "* MachineDeployment md: two of three",
    )
    .await;
    let workers = cluster.status.unwrap().workers.unwrap();
    assert_eq!(
        (workers.desired_replicas, workers.replicas, workers.ready_replicas),
        (Some(3), Some(2), Some(1))
    );
    assert_eq!(workers.available_replicas, None, "what nobody reports stays unsaid");

    // A worker's own conditions, and the control plane's first Node.
    create(
        &machines,
        &cluster_now(&story).await,
        "w",
        json!({}),
        json!({"v1beta2": {
            "conditions": [{"type": "Ready", "status": "False", "reason": "Starting", "message": "booting"}],
        }}),
    )
    .await;
    until_says(&story, "WorkerMachinesReady", ConditionStatus::False, "NotReady", "* Machine w: booting")
        .await;
    let control_plane = json!({"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}});
    create(&machines, &cluster_now(&story).await, "cp", control_plane, json!({})).await;
    until_says(
        &story,
        "ControlPlaneAvailable",
        ConditionStatus::Unknown,
        "AvailableUnknown",
        "* Machine cp: Condition Available not yet reported",
    )
    .await;
    set_status(&machines, "cp", json!({"nodeRef": {"name": "node-1"}})).await;
    let cluster =
        until_says(&story, "ControlPlaneInitialized", ConditionStatus::True, "Initialized", "").await;
    let initialization = cluster.status.unwrap().initialization.unwrap();
    assert_eq!(initialization.control_plane_initialized, Some(true));

    // Once true, for ever; and the counters follow.
    machines.delete("cp", &DeleteParams::default()).await.unwrap();
    let cluster =
        wait::until_is(&story.clusters(), "c", "without control plane Machines", LIMIT, |cluster| {
            let counted = cluster.status.clone().unwrap_or_default().control_plane.unwrap_or_default();
            counted.replicas.is_none()
        })
        .await;
    assert!(conditions::is_true(&cluster.status.unwrap().conditions, "ControlPlaneInitialized"));

    // What belongs to the Cluster goes first, in whichever version it is served.
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    machines.patch("w", &PatchParams::default(), &hold).await.unwrap();
    story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    until_says(
        &story,
        "Deleting",
        ConditionStatus::True,
        "WaitingForWorkersDeletion",
        "* Worker Machines: w (held by example.com/hold)",
    )
    .await;
    assert!(story.locals().get("c").await.unwrap().metadata.deletion_timestamp.is_none());
    let release = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    machines.patch("w", &PatchParams::default(), &release).await.unwrap();
    wait::until_gone(&story.clusters(), "c", LIMIT).await;
    assert!(story.locals().get_opt("c").await.unwrap().is_none());
    manager.stop().await;
}

async fn cluster_now(story: &Story) -> Cluster {
    story.clusters().get("c").await.unwrap()
}
