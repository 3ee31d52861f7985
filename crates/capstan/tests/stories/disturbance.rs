//! The same ends are reached through crashes, faults and a server that goes away.

use std::{collections::BTreeMap, process::Stdio, sync::Arc, time::Duration};

use capstan_api::{cluster::v1beta2::Cluster, crd::Conversion};
use capstan_testkit::{
    Plane, Story, Which,
    faults::{self, Faults},
    requests,
    wait::{self, LIMIT},
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Event};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("c{number}")).collect()
}

async fn create(story: &Story, name: &str) {
    story.create_cluster(name, "LocalCluster", name).await;
    story.create_local(name, json!({"failureDomains": [{"name": "a", "controlPlane": true}]})).await;
}

/// What a run leads to, less what differs between any two runs: times, versions, uids, ports.
async fn end_state(story: &Story) -> BTreeMap<String, Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| {
                    ![
                        "lastTransitionTime",
                        "uid",
                        "port",
                        "resourceVersion",
                        "generation",
                        "creationTimestamp",
                        "managedFields",
                        "namespace",
                        "observedGeneration",
                        "capstan.dev/infrastructure-id",
                    ]
                    .contains(&name.as_str())
                });
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut states = BTreeMap::new();
    for cluster in story.clusters().list(&ListParams::default()).await.unwrap() {
        let mut value = json!(cluster);
        strip(&mut value);
        states.insert(format!("cluster/{}", cluster.name_any()), value);
    }
    for local in story.locals().list(&ListParams::default()).await.unwrap() {
        let mut value = json!(local);
        strip(&mut value);
        states.insert(format!("local/{}", local.name_any()), value);
    }
    states
}

/// The state that an undisturbed run leads to.
async fn undisturbed(count: usize) -> BTreeMap<String, Value> {
    let story = Story::begin("undisturbed").await;
    let manager = story.manager(Which::All);
    for name in names(count) {
        create(&story, &name).await;
    }
    for name in names(count) {
        story.until_phase(&name, "Provisioned", PATIENCE).await;
    }
    settle(&story).await;
    manager.stop().await;
    end_state(&story).await
}

/// Waits until both sides agree, which may be a moment after the phase says so.
async fn settle(story: &Story) {
    for local in story.locals().list(&ListParams::default()).await.unwrap() {
        let name = local.name_any();
        wait::until_is(&story.clusters(), &name, "settled", PATIENCE, |cluster: &Cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            status.observed_generation == cluster.meta().generation && !status.failure_domains.is_empty()
        })
        .await;
    }
}

async fn delete_all(story: &Story, count: usize) {
    for name in names(count) {
        story.clusters().delete(&name, &DeleteParams::default()).await.unwrap();
    }
    for name in names(count) {
        wait::until_gone(&story.clusters(), &name, PATIENCE).await;
        wait::until_gone(&story.locals(), &name, PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_change_nothing_in_the_end() {
    let expected = undisturbed(8).await;
    for seed in [1, 42, 4711] {
        let story = Story::begin("faults").await;
        let faults = Faults {
            seed,
            lost_requests: 15,
            lost_answers: 15,
            conflicts: 15,
            latest_news: Duration::from_millis(300),
        };
        let client = faults::client(story.plane.config().await, faults);
        let manager = story.manager_on(client, Which::All);
        for name in names(8) {
            create(&story, &name).await;
        }
        for name in names(8) {
            story.until_phase(&name, "Provisioned", PATIENCE).await;
        }
        settle(&story).await;
        assert_eq!(end_state(&story).await, expected, "seed {seed}");
        delete_all(&story, 8).await;
        manager.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_change_nothing_in_the_end() {
    let expected = undisturbed(8).await;
    let story = Story::begin("crashes").await;
    // Each manager lives until it has brought the next Cluster a step further, wherever the others are.
    for name in names(8) {
        let manager = story.manager(Which::All);
        create(&story, &name).await;
        wait::until_is(&story.clusters(), &name, "begun", PATIENCE, |cluster| {
            !cluster.finalizers().is_empty()
        })
        .await;
        manager.crash().await;
    }
    let manager = story.manager(Which::All);
    for name in names(8) {
        story.until_phase(&name, "Provisioned", PATIENCE).await;
    }
    settle(&story).await;
    assert_eq!(end_state(&story).await, expected);
    manager.crash().await;
    for name in names(8) {
        story.clusters().delete(&name, &DeleteParams::default()).await.unwrap();
        let manager = story.manager(Which::All);
        wait::until(&story.locals(), &name, "being deleted", PATIENCE, |local| {
            local.is_none_or(|local| local.metadata.deletion_timestamp.is_some())
        })
        .await;
        manager.crash().await;
    }
    let manager = story.manager(Which::All);
    for name in names(8) {
        wait::until_gone(&story.clusters(), &name, PATIENCE).await;
        wait::until_gone(&story.locals(), &name, PATIENCE).await;
    }
    manager.stop().await;
}

/// The binary itself, killed without warning at moments that move with each round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_manager_goes_on_where_it_was() {
    let expected = undisturbed(8).await;
    let story = Story::begin("killed").await;
    let start = || {
        tokio::process::Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["manager", "all", "--webhook-port=0", "--health-addr=0", "--diagnostics-address=0"])
            .arg(format!("--namespace={}", story.namespace))
            .arg("--kubeconfig")
            .arg(story.plane.kubeconfig())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    for (round, name) in names(8).into_iter().enumerate() {
        let mut manager = start();
        create(&story, &name).await;
        let round = u32::try_from(round).unwrap();
        // A different depth each round: from "just seen" to "provisioned".
        wait::until_is(&story.clusters(), &name, "far enough", PATIENCE, |cluster| match round % 3 {
            0 => !cluster.finalizers().is_empty(),
            1 => cluster.status.is_some(),
            _ => cluster.spec.control_plane_endpoint.is_some(),
        })
        .await;
        manager.kill().await.unwrap();
    }
    let mut manager = start();
    for name in names(8) {
        story.until_phase(&name, "Provisioned", PATIENCE).await;
    }
    settle(&story).await;
    assert_eq!(end_state(&story).await, expected);
    delete_all(&story, 8).await;
    manager.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_api_server_is_found_again() {
    let plane = Plane::start().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(Arc::clone(&plane), "restart").await;
    let manager = story.manager(Which::All);
    create(&story, "before").await;
    story.until_phase("before", "Provisioned", LIMIT).await;
    tokio::task::spawn_blocking(move || plane.process().restart_api_server()).await.unwrap().unwrap();
    create(&story, "after").await;
    story.until_phase("after", "Provisioned", LIMIT).await;
    story.clusters().delete("before", &DeleteParams::default()).await.unwrap();
    wait::until_gone(&story.clusters(), "before", LIMIT).await;
    manager.stop().await;
}

/// After convergence not a single write, events included: the server's own count says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_rest_nothing_is_written() {
    let plane = Plane::start().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(plane, "rest").await;
    let manager = story.manager(Which::All);
    for name in names(5) {
        create(&story, &name).await;
    }
    for name in names(5) {
        story.until_phase(&name, "Provisioned", LIMIT).await;
    }
    settle(&story).await;
    until_told(&story, "Provisioned", 5).await;

    let before = writes(&story).await;
    for name in names(5) {
        // Wakes both controllers, and gives neither of them anything to do.
        let touch = Patch::Merge(json!({"metadata": {"annotations": {"story": "touched"}}}));
        story.locals().patch(&name, &PatchParams::default(), &touch).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(15)).await;
    let mut after = writes(&story).await;
    *after.get_mut("PATCH localclusters").unwrap() -= 5;
    assert_eq!(before, after);

    create(&story, "witness").await;
    story.until_phase("witness", "Provisioned", LIMIT).await;
    manager.stop().await;
}

/// Waits for events, which are written in the background.
async fn until_told(story: &Story, reason: &str, count: usize) {
    let events: Api<Event> = Api::namespaced(story.client.clone(), &story.namespace);
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let told = events.list(&ListParams::default()).await.unwrap().items;
        if told.iter().filter(|event| event.reason.as_deref() == Some(reason)).count() >= count {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the events do not come");
    }
}

/// Writes to our kinds, and of events.
async fn writes(story: &Story) -> BTreeMap<String, u64> {
    let mut counts =
        requests::count(&story.client, |group| group.is_empty() || requests::is_ours(group)).await;
    counts.retain(|name, _| {
        let resource = name.split([' ', '/']).nth(1).unwrap_or_default();
        requests::is_write(name) && ["clusters", "localclusters", "events"].contains(&resource)
    });
    counts
}

/// Several managers stand for election: one acts, the next takes over when it goes, in order or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_manager_leads() {
    let story = Story::begin("leaders").await;
    let leases: Api<Lease> = Api::namespaced(story.client.clone(), &story.namespace);
    let held_by = async |host: &str| {
        wait::until_is(&leases, "story", host, LIMIT, |lease: &Lease| {
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
            holder.is_some_and(|holder| holder.starts_with(host))
        })
        .await
    };
    let first = story.elected_manager(Which::All, "first").await;
    held_by("first").await;
    let second = story.elected_manager(Which::All, "second").await;
    create(&story, "a").await;
    story.until_phase("a", "Provisioned", LIMIT).await;
    held_by("first").await;

    first.stop().await;
    create(&story, "b").await;
    story.until_phase("b", "Provisioned", LIMIT).await;
    held_by("second").await;

    second.crash().await;
    let third = story.elected_manager(Which::All, "third").await;
    create(&story, "c").await;
    story.until_phase("c", "Provisioned", PATIENCE).await;
    let lease = held_by("third").await;
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(2));
    third.stop().await;
}
