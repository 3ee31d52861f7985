//! Every request that the Cluster controller sends in these scenes, under every fault that can meet it.
//!
//! The manager runs without leader election: requests for its Lease never cease, and no scene would come to rest. Nor are
//! requests to workload clusters struck: `connection.rs` has servers that behave badly.

use std::time::{Duration, Instant};

use capstan_api::{
    cluster::v1beta2::{Cluster, ClusterStatus},
    conditions,
    crd::Conversion,
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Plane, generic,
    matrix::{Matrix, Scene, Stage},
    story::reference,
};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::{Value, json};

use crate::kubeconfig::{OTHER, change_authority, create_authority};

/// Speaks the contract v1beta2.
const INFRA: &str = "MatrixCluster";
/// Speaks the contract v1beta1.
const OLD_INFRA: &str = "MatrixOldCluster";
const CONTROL_PLANE: &str = "MatrixControlPlane";
const MACHINES: &str = "MachineDeployment";

/// Played side by side: most of a run is waiting.
const PARALLEL: usize = 16;
/// A fault costs a repeated pass or two, never a stream of writes.
const MOST_EXTRA_WRITES: usize = 4;
/// Far above what any run takes, and far below what a timer would cost.
const SLOWEST_RECOVERY: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_every_scene_survives_every_fault() {
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let crds = [
        generic::crd(INFRA, &[("v1beta2", "v1beta2")]),
        generic::crd(OLD_INFRA, &[("v1beta1", "v1beta2")]),
        generic::crd(CONTROL_PLANE, &[("v1beta2", "v1beta2")]),
        generic::core_crd(MACHINES),
    ];
    install_crds(&plane.client().await, &crds, "story").await.unwrap();
    let mut kinds = [INFRA, OLD_INFRA, CONTROL_PLANE].map(generic::resource).to_vec();
    kinds.push(generic::core_resource(MACHINES));
    kinds.push(ApiResource::erase::<Secret>(&()));
    let matrix = Matrix::new(plane, kinds, PARALLEL, MOST_EXTRA_WRITES).await;

    let only = std::env::var("CAPSTAN_MATRIX_SCENE").ok();
    let scenes = SCENES.iter().filter(|scene| only.as_deref().is_none_or(|only| scene.name == only));
    let scenes: Vec<_> = scenes.collect();
    assert!(!scenes.is_empty(), "CAPSTAN_MATRIX_SCENE names none of {:?}", SCENES.map(|scene| scene.name));
    let (mut ran, mut survived, mut missed, mut rare, mut failures) = (0, 0, Vec::new(), 0, Vec::new());
    for scene in scenes {
        let started = Instant::now();
        let tally = matrix.run(*scene).await;
        println!(
            "{}: {} requests, {} faults, {} survived, {} did not strike, {:.1?}; slowest recovery {:.2?} ({}); \
             at most {} more writes ({})",
            scene.name,
            tally.requests,
            tally.ran,
            tally.survived,
            tally.missed.len(),
            started.elapsed(),
            tally.slowest.0,
            tally.slowest.1,
            tally.most_writes.0,
            tally.most_writes.1,
        );
        if tally.slowest.0 > SLOWEST_RECOVERY {
            failures
                .push(format!("{}: {} took {:?} to recover", scene.name, tally.slowest.1, tally.slowest.0));
        }
        ran += tally.ran;
        survived += tally.survived;
        missed.extend(tally.missed);
        rare += tally.rare;
        failures.extend(tally.failures);
    }
    println!(
        "in all: {ran} faults, {survived} survived, {} did not strike, {rare} at requests that come only sometimes",
        missed.len()
    );
    for fault in &missed {
        println!("did not strike: {fault}");
    }
    assert!(failures.is_empty(), "{} runs failed:\n{}", failures.len(), failures.join("\n"));
    assert!(missed.len() * 20 <= ran, "too many faults did not strike: {missed:#?}");
}

const SCENES: [Scene; 10] = [
    Scene {
        name: "infrastructure-first",
        play: |stage| infrastructure_first(stage, INFRA).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene {
        name: "infrastructure-first-v1beta1",
        play: |stage| infrastructure_first(stage, OLD_INFRA).boxed(),
        probe: |stage| mirrored(stage, OLD_INFRA).boxed(),
    },
    Scene {
        name: "cluster-first",
        play: |stage| cluster_first(stage).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene {
        name: "endpoint-of-control-plane",
        play: |stage| endpoint_of_the_control_plane(stage).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene {
        name: "endpoint-of-user",
        play: |stage| endpoint_of_the_user(stage).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene {
        name: "pause",
        play: |stage| pause(stage).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene {
        name: "kubeconfig",
        play: |stage| kubeconfig(stage).boxed(),
        probe: |stage| mirrored(stage, INFRA).boxed(),
    },
    Scene { name: "workers", play: |stage| workers(stage).boxed(), probe: |stage| newcomer(stage).boxed() },
    Scene { name: "deletion", play: |stage| deletion(stage).boxed(), probe: |stage| newcomer(stage).boxed() },
    Scene {
        name: "infrastructure-vanishes",
        play: |stage| infrastructure_vanishes(stage).boxed(),
        probe: |stage| newcomer(stage).boxed(),
    },
];

/// The infrastructure complains for a moment, and the Cluster with it.
async fn mirrored(stage: &Stage, kind: &str) {
    let infra = stage.story.generics(kind).get("infra").await.unwrap();
    let before = infra.data["status"]["conditions"].clone();
    let probe = json!([{"type": "Ready", "status": "False", "reason": "Probe", "message": "still there?"}]);
    stage.story.set_generic_status(kind, "infra", json!({"conditions": probe})).await;
    until_says(stage, "InfrastructureReady", "Probe").await;
    stage.story.set_generic_status(kind, "infra", json!({"conditions": before})).await;
}

/// Another Cluster comes and goes.
async fn newcomer(stage: &Stage) {
    stage.story.create_generic(INFRA, "probe", json!({})).await;
    stage.story.create_cluster("probe", INFRA, "probe").await;
    until_adopted(stage, INFRA, "probe").await;
    let cluster = ApiResource::erase::<Cluster>(&());
    stage.until(&cluster, "probe", "there", |cluster| cluster.is_some()).await;
    stage.story.clusters().delete("probe", &DeleteParams::default()).await.unwrap();
    stage.until(&cluster, "probe", "gone", |cluster| cluster.is_none()).await;
    stage.until(&generic::resource(INFRA), "probe", "gone", |infra| infra.is_none()).await;
}

async fn infrastructure_first(stage: &Stage, kind: &str) {
    stage.story.create_generic(kind, "infra", spec_with_endpoint()).await;
    stage.story.create_cluster("c", kind, "infra").await;
    until_adopted(stage, kind, "infra").await;
    until_says(stage, "InfrastructureReady", "NotReady").await;
    stage.story.set_generic_status(kind, "infra", provisioned(kind)).await;
    until_provisioned(stage).await;
}

async fn cluster_first(stage: &Stage) {
    stage.story.create_cluster("c", INFRA, "infra").await;
    until_says(stage, "InfrastructureReady", "ObjectDoesNotExist").await;
    stage.story.create_generic(INFRA, "infra", spec_with_endpoint()).await;
    until_adopted(stage, INFRA, "infra").await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    until_provisioned(stage).await;
}

async fn endpoint_of_the_control_plane(stage: &Stage) {
    let spec = json!({
        "infrastructureRef": reference(INFRA, "infra"),
        "controlPlaneRef": reference(CONTROL_PLANE, "cp"),
    });
    stage.story.create_generic(INFRA, "infra", json!({})).await;
    stage.story.create_generic(CONTROL_PLANE, "cp", json!({"replicas": 3})).await;
    stage.story.create_cluster_with("c", spec).await;
    until_adopted(stage, INFRA, "infra").await;
    until_adopted(stage, CONTROL_PLANE, "cp").await;
    until_says(stage, "ControlPlaneAvailable", "NotAvailable").await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    until(stage, "with infrastructure", |_, status| !status.failure_domains.is_empty()).await;
    patch(stage, CONTROL_PLANE, "cp", json!({"spec": spec_with_endpoint()})).await;
    let status = json!({
        "initialization": {"controlPlaneInitialized": true},
        "replicas": 3, "readyReplicas": 2, "availableReplicas": 1,
    });
    stage.story.set_generic_status(CONTROL_PLANE, "cp", status).await;
    until(stage, "initialized", |_, status| {
        conditions::is_true(&status.conditions, "ControlPlaneInitialized")
    })
    .await;
    until_phase(stage, "Provisioned").await;
}

async fn endpoint_of_the_user(stage: &Stage) {
    let spec = json!({
        "infrastructureRef": reference(INFRA, "infra"),
        "controlPlaneEndpoint": {"host": "192.0.2.7", "port": 8443},
    });
    stage.story.create_generic(INFRA, "infra", spec_with_endpoint()).await;
    stage.story.create_cluster_with("c", spec).await;
    until_adopted(stage, INFRA, "infra").await;
    until_says(stage, "InfrastructureReady", "NotReady").await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    until_provisioned(stage).await;
    let broken = json!({
        "initialization": {"provisioned": false},
        "conditions": [{"type": "Ready", "status": "False", "reason": "CableCut", "message": "no carrier"}],
    });
    stage.story.set_generic_status(INFRA, "infra", broken).await;
    until_says(stage, "InfrastructureReady", "CableCut").await;
}

async fn pause(stage: &Stage) {
    stage.story.create_generic(INFRA, "infra", spec_with_endpoint()).await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    let spec = json!({"infrastructureRef": reference(INFRA, "infra"), "paused": true});
    stage.story.create_cluster_with("c", spec).await;
    until_says(stage, "Paused", "Paused").await;
    patch_cluster(stage, json!({"spec": {"paused": null}})).await;
    until_provisioned(stage).await;
    let annotated = |value: Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
    patch_cluster(stage, annotated(json!("true"))).await;
    until_says(stage, "Paused", "Paused").await;
    let other = json!({"failureDomains": [{"name": "z", "controlPlane": true}]});
    stage.story.set_generic_status(INFRA, "infra", other).await;
    patch_cluster(stage, annotated(Value::Null)).await;
    until(stage, "with failure domain z", |_, status| {
        status.failure_domains.iter().any(|domain| domain.name == "z")
            && conditions::is_false(&status.conditions, "Paused")
    })
    .await;
}

/// Core makes the kubeconfig, and renews it once the authority is the one that the server knows.
async fn kubeconfig(stage: &Stage) {
    let url = stage.story.plane.config().await.cluster_url;
    let endpoint = json!({"host": url.host().unwrap(), "port": url.port_u16().unwrap()});
    create_authority(&stage.story, "c", Some("c"), OTHER).await;
    stage.story.create_generic(INFRA, "infra", json!({"controlPlaneEndpoint": endpoint})).await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    stage.story.create_cluster("c", INFRA, "infra").await;
    until_provisioned(stage).await;
    let secret = ApiResource::erase::<Secret>(&());
    stage.until(&secret, "c-kubeconfig", "made", |secret| secret.is_some()).await;
    let (certificate, key) = stage.story.plane.authority();
    change_authority(&stage.story, "c", (&certificate, &key)).await;
    until_says(stage, "RemoteConnectionProbe", "ProbeSucceeded").await;
}

async fn workers(stage: &Stage) {
    stage.story.create_generic(INFRA, "infra", spec_with_endpoint()).await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    let cluster = stage.story.create_cluster("c", INFRA, "infra").await;
    until_provisioned(stage).await;
    create_machines(stage, &cluster, json!({"replicas": 3})).await;
    for replicas in [2, 3] {
        let status = Patch::Merge(json!({"status": {"replicas": replicas}}));
        let api = objects(stage, &generic::core_resource(MACHINES));
        api.patch_status("md", &PatchParams::default(), &status).await.unwrap();
        until(stage, "counted", |_, status| {
            let counted = status.workers.as_ref();
            counted.is_some_and(|it| it.desired_replicas == Some(3) && it.replicas == Some(replicas))
        })
        .await;
    }
    stage.story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    until_says(stage, "Deleting", "WaitingForWorkersDeletion").await;
    until_going(stage, &generic::core_resource(MACHINES), "md").await;
    release(stage, &generic::core_resource(MACHINES), "md").await;
    stage.until(&ApiResource::erase::<Cluster>(&()), "c", "gone", |cluster| cluster.is_none()).await;
}

async fn deletion(stage: &Stage) {
    let spec = json!({
        "infrastructureRef": reference(INFRA, "infra"),
        "controlPlaneRef": reference(CONTROL_PLANE, "cp"),
        "controlPlaneEndpoint": {"host": "192.0.2.7", "port": 8443},
    });
    stage.story.create_generic(INFRA, "infra", json!({})).await;
    stage.story.create_generic(CONTROL_PLANE, "cp", json!({})).await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    for (kind, name) in [(INFRA, "infra"), (CONTROL_PLANE, "cp")] {
        patch(stage, kind, name, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    }
    let cluster = stage.story.create_cluster_with("c", spec).await;
    create_machines(stage, &cluster, json!({})).await;
    until_adopted(stage, INFRA, "infra").await;
    until_adopted(stage, CONTROL_PLANE, "cp").await;
    until_phase(stage, "Provisioned").await;

    stage.story.clusters().delete("c", &DeleteParams::default()).await.unwrap();
    let order = [
        (generic::core_resource(MACHINES), "md", "WaitingForWorkersDeletion"),
        (generic::resource(CONTROL_PLANE), "cp", "WaitingForControlPlaneDeletion"),
        (generic::resource(INFRA), "infra", "WaitingForInfrastructureDeletion"),
    ];
    for (place, (kind, name, waiting)) in order.iter().enumerate() {
        until_says(stage, "Deleting", waiting).await;
        until_going(stage, kind, name).await;
        for (kind, name, _) in &order[place + 1..] {
            let later = objects(stage, kind).get(name).await.unwrap();
            assert_eq!(later.metadata.deletion_timestamp, None, "{name} goes too early");
        }
        release(stage, kind, name).await;
    }
    stage.until(&ApiResource::erase::<Cluster>(&()), "c", "gone", |cluster| cluster.is_none()).await;
}

async fn infrastructure_vanishes(stage: &Stage) {
    stage.story.create_generic(INFRA, "infra", spec_with_endpoint()).await;
    stage.story.set_generic_status(INFRA, "infra", provisioned(INFRA)).await;
    stage.story.create_cluster("c", INFRA, "infra").await;
    until_adopted(stage, INFRA, "infra").await;
    until_provisioned(stage).await;
    stage.story.generics(INFRA).delete("infra", &DeleteParams::default()).await.unwrap();
    until_says(stage, "InfrastructureReady", "ObjectDeleted").await;
}

/// A MachineDeployment of the Cluster, held by a finalizer.
async fn create_machines(stage: &Stage, cluster: &Cluster, spec: Value) {
    let kind = generic::core_resource(MACHINES);
    let mut machines = DynamicObject::new("md", &kind).data(json!({ "spec": spec }));
    machines.metadata.labels = Some([("cluster.x-k8s.io/cluster-name".to_owned(), "c".to_owned())].into());
    machines.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    machines.metadata.owner_references = Some(vec![cluster.owner_ref(&()).unwrap()]);
    objects(stage, &kind).create(&PostParams::default(), &machines).await.unwrap();
}

async fn until_going(stage: &Stage, kind: &ApiResource, name: &str) {
    let is_going = |it: &DynamicObject| it.metadata.deletion_timestamp.is_some();
    stage.until(kind, name, "being deleted", |it| it.is_some_and(is_going)).await;
}

async fn release(stage: &Stage, kind: &ApiResource, name: &str) {
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    objects(stage, kind).patch(name, &PatchParams::default(), &release).await.unwrap();
}

fn spec_with_endpoint() -> Value {
    json!({"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}})
}

/// What a provider says when it is done, in the contract that the kind speaks.
fn provisioned(kind: &str) -> Value {
    if kind == OLD_INFRA {
        json!({"ready": true, "failureDomains": {"b": {}, "a": {"controlPlane": true}}})
    } else {
        json!({
            "initialization": {"provisioned": true},
            "failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": true}],
        })
    }
}

fn objects(stage: &Stage, kind: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(stage.story.client.clone(), &stage.story.namespace, kind)
}

async fn patch(stage: &Stage, kind: &str, name: &str, change: Value) {
    let change = Patch::Merge(change);
    stage.story.generics(kind).patch(name, &PatchParams::default(), &change).await.unwrap();
}

async fn patch_cluster(stage: &Stage, change: Value) {
    stage.story.clusters().patch("c", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn until(stage: &Stage, what: &str, is_so: impl Fn(&Cluster, &ClusterStatus) -> bool) {
    let kind = ApiResource::erase::<Cluster>(&());
    stage
        .until(&kind, "c", what, |object| {
            let cluster: Option<Cluster> = object.and_then(|object| object.clone().try_parse().ok());
            cluster.is_some_and(|it| it.status.as_ref().is_some_and(|status| is_so(&it, status)))
        })
        .await;
}

async fn until_phase(stage: &Stage, phase: &'static str) {
    until(stage, phase, |_, status| status.phase.as_deref() == Some(phase)).await;
}

async fn until_provisioned(stage: &Stage) {
    until(stage, "provisioned", |cluster, status| {
        status.phase.as_deref() == Some("Provisioned")
            && !status.failure_domains.is_empty()
            && status.observed_generation == cluster.metadata.generation
    })
    .await;
}

async fn until_says(stage: &Stage, condition: &str, reason: &str) {
    until(stage, reason, |_, status| {
        conditions::get(&status.conditions, condition).is_some_and(|it| it.reason == reason)
    })
    .await;
}

async fn until_adopted(stage: &Stage, kind: &str, name: &str) {
    stage
        .until(&generic::resource(kind), name, "adopted", |object| {
            object.is_some_and(|object| !object.owner_references().is_empty())
        })
        .await;
}
