//! Others write to the same Cluster all the time: nothing of theirs is lost, and core keeps up.

use std::time::{Duration, Instant};

use capstan_api::{cluster::v1beta2::Cluster, conditions};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Story, Which, generic,
    story::reference,
    wait::{self, LIMIT},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::ApiResource,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Another controller's condition.
const FOREIGN: &str = "example.com/Foreign";
/// Twenty milliseconds between two rounds are fifty rounds a second.
const PACE: Duration = Duration::from_millis(20);
/// Six seconds at that pace.
const ROUNDS: usize = 300;
/// Labels, and as many annotations, that are written in turn.
const COUNTERS: usize = 20;
/// How late core may be on a busy machine while the other goes on writing. Each pass has one write to win a race for.
const KEEPS_UP: Duration = Duration::from_secs(5);

/// Somebody who writes labels, annotations and a field of the spec, as fast as the server answers and no faster than
/// the pace. Gives back the last round.
async fn write_fields(clusters: Api<DynamicObject>, enough: CancellationToken) -> usize {
    let mut pace = tokio::time::interval(PACE);
    let mut round = 0;
    while round < ROUNDS || !enough.is_cancelled() {
        pace.tick().await;
        round += 1;
        write_round(&clusters, round).await;
    }
    round
}

/// Each label and annotation is written again after some rounds: an object with hundreds of them is slow to write.
fn key_of(round: usize) -> String {
    format!("example.com/counter-{}", round % COUNTERS)
}

async fn write_round(clusters: &Api<DynamicObject>, round: usize) {
    let (key, value) = (key_of(round), round.to_string());
    let change = json!({
        "metadata": {"labels": {&key: value}, "annotations": {&key: value}},
        "spec": {"clusterNetwork": {"serviceDomain": format!("round-{round}.local")}},
    });
    clusters.patch("c", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

/// A decent controller with a condition of its own, which it writes on top of what it has read, again and again.
/// Gives back the last round.
async fn write_condition(clusters: Api<DynamicObject>, enough: CancellationToken) -> usize {
    let mut pace = tokio::time::interval(PACE);
    let mut round = 0;
    while !enough.is_cancelled() {
        pace.tick().await;
        round += 1;
        loop {
            let read = clusters.get("c").await.unwrap();
            let mut list = read.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mine = list.iter().position(|it| it["type"] == FOREIGN).map(|place| list.remove(place));
            let last = mine.map_or(Value::Null, |mine| mine["message"].clone());
            let expected = if round == 1 { Value::Null } else { json!(format!("round {}", round - 1)) };
            assert_eq!(last, expected, "the condition of the round before is lost");
            list.push(json!({
                "type": FOREIGN, "status": "True", "reason": "Written", "message": format!("round {round}"),
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }));
            let version = read.resource_version();
            let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": list}});
            match clusters.patch_status("c", &PatchParams::default(), &Patch::Merge(change)).await {
                Ok(_) => break,
                Err(error) => {
                    assert!(matches!(&error, kube::Error::Api(it) if it.is_conflict()), "{error}");
                }
            }
        }
    }
    round
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writer_loses_nothing_and_core_keeps_up() {
    let story = Story::begin("contention").await;
    let crd = generic::crd("BusyCluster", &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "story").await.unwrap();
    let manager = story.manager(Which::Core);
    let endpoint = json!({"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}});
    story.create_generic("BusyCluster", "ic", endpoint).await;
    let spec = json!({"infrastructureRef": reference("BusyCluster", "ic"), "paused": true});
    story.create_cluster_with("c", spec).await;
    wait::until_is(&story.clusters(), "c", "paused", LIMIT, |cluster| {
        conditions::is_true(&cluster.status.clone().unwrap_or_default().conditions, "Paused")
    })
    .await;

    let resource = ApiResource::erase::<Cluster>(&());
    let clusters: Api<DynamicObject> =
        Api::namespaced_with(story.client.clone(), &story.namespace, &resource);
    let enough = CancellationToken::new();
    let writing_since = Instant::now();
    let fields = tokio::spawn(write_fields(clusters.clone(), enough.clone()));
    let condition = tokio::spawn(write_condition(clusters, enough.clone()));
    wait::until_is(&story.clusters(), "c", "written to", LIMIT, |cluster| !cluster.annotations().is_empty())
        .await;
    story.set_generic_status("BusyCluster", "ic", json!({"initialization": {"provisioned": true}})).await;
    let unpause = Patch::Merge(json!({"spec": {"paused": null}}));
    let mut slowest = Duration::ZERO;
    let mut started = Instant::now();
    story.clusters().patch("c", &PatchParams::default(), &unpause).await.unwrap();
    story.until_phase("c", "Provisioned", KEEPS_UP).await;
    slowest = slowest.max(started.elapsed());
    for change in 1..=10 {
        let message = format!("change {change}");
        let ready = json!([{"type": "Ready", "status": "False", "reason": "Changing", "message": message}]);
        started = Instant::now();
        story.set_generic_status("BusyCluster", "ic", json!({ "conditions": ready })).await;
        wait::until_is(&story.clusters(), "c", &message, KEEPS_UP, |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            conditions::get(&status.conditions, "InfrastructureReady").is_some_and(|it| it.message == message)
        })
        .await;
        slowest = slowest.max(started.elapsed());
        assert!(!fields.is_finished() && !condition.is_finished(), "the others write meanwhile");
    }
    enough.cancel();
    let (rounds, condition_rounds) = (fields.await.unwrap(), condition.await.unwrap());
    let wrote_for = writing_since.elapsed();
    println!(
        "{rounds} writes of fields and {condition_rounds} of a condition in {wrote_for:.1?}; \
         core was {slowest:.2?} late at most"
    );

    let cluster = wait::until_is(&story.clusters(), "c", "settled", KEEPS_UP, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        status.observed_generation == cluster.metadata.generation
    })
    .await;
    for round in rounds - COUNTERS + 1..=rounds {
        let (key, value) = (key_of(round), round.to_string());
        assert_eq!(cluster.labels()[&key], value, "label {key}");
        assert_eq!(cluster.annotations()[&key], value, "annotation {key}");
    }
    let network = json!(cluster.spec.cluster_network);
    assert_eq!(network["serviceDomain"], format!("round-{rounds}.local"));
    assert_eq!(cluster.spec.control_plane_endpoint.as_ref().unwrap().host, "192.0.2.1");
    let status = cluster.status.unwrap();
    assert_eq!(
        conditions::get(&status.conditions, FOREIGN).unwrap().message,
        format!("round {condition_rounds}")
    );
    assert_eq!(conditions::get(&status.conditions, "InfrastructureReady").unwrap().message, "change 10");
    assert!(conditions::is_false(&status.conditions, "Paused"));
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(status.initialization.unwrap().infrastructure_provisioned, Some(true));
    manager.stop().await;
}
