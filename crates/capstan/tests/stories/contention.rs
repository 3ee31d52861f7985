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
/// Five writers with a tenth of a second between their writes are fifty writes a second.
const WRITERS: usize = 5;
const PACE: Duration = Duration::from_millis(100);
/// Six seconds at that pace.
const ROUNDS: usize = 60;
/// How late core may be on a busy machine while the others go on writing: they stop only when it has kept up.
const KEEPS_UP: Duration = Duration::from_secs(20);

/// A client that writes a label, an annotation and a field of the spec, and catches up when the server was slow. Gives
/// back the last round.
async fn write_fields(clusters: Api<DynamicObject>, writer: usize, enough: CancellationToken) -> usize {
    let mut pace = tokio::time::interval(PACE);
    let mut round = 0;
    while round < ROUNDS || !enough.is_cancelled() {
        pace.tick().await;
        let written = write_round(&clusters, writer, round + 1).await;
        let before = &written.labels()[&key_of(writer)];
        round += 1;
        assert_eq!(*before, round.to_string(), "the server has what it was sent");
    }
    round
}

fn key_of(writer: usize) -> String {
    format!("example.com/writer-{writer}")
}

async fn write_round(clusters: &Api<DynamicObject>, writer: usize, round: usize) -> DynamicObject {
    let (key, value) = (key_of(writer), round.to_string());
    let mut change = json!({"metadata": {"labels": {&key: value}, "annotations": {&key: value}}});
    if writer == 0 {
        change["spec"] = json!({"clusterNetwork": {"serviceDomain": format!("round-{round}.local")}});
    }
    clusters.patch("c", &PatchParams::default(), &Patch::Merge(change)).await.unwrap()
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
    let fields: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_fields(clusters.clone(), writer, enough.clone())))
        .collect();
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
        let writing = fields.iter().all(|writer| !writer.is_finished()) && !condition.is_finished();
        assert!(writing, "the others write meanwhile");
    }
    enough.cancel();
    let mut rounds = Vec::new();
    for writer in fields {
        rounds.push(writer.await.unwrap());
    }
    let condition_rounds = condition.await.unwrap();
    let wrote_for = writing_since.elapsed();
    println!(
        "{} writes of fields and {condition_rounds} of a condition in {wrote_for:.1?}; core was {slowest:.2?} late at most",
        rounds.iter().sum::<usize>()
    );

    let cluster = wait::until_is(&story.clusters(), "c", "settled", KEEPS_UP, |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        status.observed_generation == cluster.metadata.generation
    })
    .await;
    for (writer, round) in rounds.iter().enumerate() {
        let key = key_of(writer);
        assert_eq!(cluster.labels()[&key], round.to_string(), "label {key}");
        assert_eq!(cluster.annotations()[&key], round.to_string(), "annotation {key}");
    }
    let network = json!(cluster.spec.cluster_network);
    assert_eq!(network["serviceDomain"], format!("round-{}.local", rounds[0]));
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
