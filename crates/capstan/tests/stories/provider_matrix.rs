//! A provider on the SDK under every fault, at every request to the API server and at every call to its cloud:
//! infrastructure is never made twice, and never left behind.
//!
//! The cloud is as forgetful as real ones: it makes a second network under the same name without a word.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::{crd::Conversion, names::label};
use capstan_provider_sdk::{
    ApiEndpoint, ContractVersion, EndpointSource, InfraClusterStatus, Infrastructure, InfrastructureId,
    Options, Progress, Provider, Removal, Request, crd, register,
};
use capstan_runtime::install::install_crds;
use capstan_testkit::{
    Plane, RunningManager, Story,
    matrix::{Matrix, Scene, Stage},
    story,
    wait::{self, LIMIT},
};
use futures::FutureExt;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

/// Played side by side: most of a run is waiting.
const PARALLEL: usize = 16;
/// A fault costs a repeated pass or two, never a stream of writes.
const MOST_EXTRA_WRITES: usize = 4;
const NAME: &str = "infrastructure-cloud";

#[derive(Clone, Debug, Default, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "CloudCluster",
    namespaced,
    status = "InfraClusterStatus"
)]
#[serde(default, rename_all = "camelCase")]
struct CloudClusterSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane_endpoint: Option<ApiEndpoint>,
}

/// What goes wrong with a call to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloudFault {
    /// It is refused.
    Refused,
    /// It is done, but the answer is lost.
    LostReply,
    /// It is done, and then the provider crashes.
    CrashAfter,
    /// It is done, and the answer comes when it is let go.
    Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Network {
    number: usize,
    id: String,
}

/// The networks of one namespace, and what happened to them.
#[derive(Default)]
struct Region {
    networks: Vec<Network>,
    made: usize,
    calls: usize,
    fault: Option<(usize, CloudFault)>,
    crash: Arc<Notify>,
    /// Tells that a call is held, and lets it go.
    held: Arc<Notify>,
    go: Arc<Notify>,
}

#[derive(Clone, Default)]
struct Cloud(Arc<Mutex<HashMap<String, Region>>>);

#[derive(Debug, thiserror::Error)]
#[error("the cloud does not answer")]
struct CloudError;

impl Cloud {
    fn regions(&self) -> MutexGuard<'_, HashMap<String, Region>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(&self, region: &str, look: impl FnOnce(&mut Region) -> T) -> T {
        look(self.regions().entry(region.to_owned()).or_default())
    }

    /// One call over the network, which may go wrong.
    async fn call<T>(&self, region: &str, act: impl FnOnce(&mut Region) -> T) -> Result<T, CloudError> {
        let (done, fault, crash, held, go) = self.look(region, |region| {
            region.calls += 1;
            let fault = region.fault.filter(|(call, _)| *call == region.calls).map(|(_, fault)| fault);
            let done = (fault != Some(CloudFault::Refused)).then(|| act(region));
            (done, fault, Arc::clone(&region.crash), Arc::clone(&region.held), Arc::clone(&region.go))
        });
        if fault == Some(CloudFault::Held) {
            held.notify_one();
            go.notified().await;
        }
        if fault == Some(CloudFault::CrashAfter) {
            crash.notify_one();
            std::future::pending::<()>().await;
        }
        match (done, fault) {
            (Some(done), None | Some(CloudFault::Held)) => Ok(done),
            _ => Err(CloudError),
        }
    }
}

struct CloudProvider(Cloud);

impl CloudProvider {
    async fn find(&self, region: &str, id: &InfrastructureId) -> Result<Option<Network>, CloudError> {
        self.0.call(region, |region| region.networks.iter().find(|it| it.id == id.as_str()).cloned()).await
    }
}

impl Provider for CloudProvider {
    type Cluster = CloudCluster;
    type Error = CloudError;
    const NAME: &'static str = NAME;
    const ENDPOINT: EndpointSource = EndpointSource::Provider;

    async fn provision(&self, request: Request<'_, Self>) -> Result<Progress, CloudError> {
        let region = &*request.key.namespace;
        let network = if let Some(found) = self.find(region, request.id).await? {
            found
        } else {
            let id = request.id.as_str().to_owned();
            let make = |region: &mut Region| {
                region.made += 1;
                let network = Network { number: region.made, id };
                region.networks.push(network.clone());
                network
            };
            self.0.call(region, make).await?
        };
        let endpoint = ApiEndpoint { host: format!("net-{}.example.com", network.number), port: 6443 };
        Ok(Progress::Done(Infrastructure { endpoint: Some(endpoint), ..Infrastructure::default() }))
    }

    async fn deprovision(&self, request: Request<'_, Self>) -> Result<Removal, CloudError> {
        let region = &*request.key.namespace;
        if let Some(found) = self.find(region, request.id).await? {
            self.0.call(region, |region| region.networks.retain(|it| it.number != found.number)).await?;
        }
        Ok(Removal::Gone)
    }
}

fn start(cloud: &Cloud, story: &Story, client: Client) -> RunningManager {
    let crds = [crd::<CloudCluster>(NAME, ContractVersion::V1Beta2)];
    story.manager_that(client, |manager| {
        register(manager, CloudProvider(cloud.clone()), &crds, Options::default()).unwrap();
    })
}

/// A play: the API objects that it makes and what becomes of the cloud.
struct Play<'a> {
    story: &'a Story,
    cloud: &'a Cloud,
}

impl Play<'_> {
    fn objects(&self) -> Api<CloudCluster> {
        Api::namespaced(self.story.client.clone(), &self.story.namespace)
    }

    /// Core's part: a Cluster, and the object that it adopts.
    async fn create(&self, name: &str) {
        let reference = story::reference("CloudCluster", name);
        let cluster = self.story.create_cluster_with(name, json!({"infrastructureRef": reference})).await;
        let mut object = CloudCluster::new(name, CloudClusterSpec::default());
        object.metadata.labels = Some([(label::CLUSTER_NAME.to_owned(), name.to_owned())].into());
        object.metadata.owner_references =
            Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
                api_version: "cluster.x-k8s.io/v1beta2".into(),
                kind: "Cluster".into(),
                name: name.into(),
                uid: cluster.uid().unwrap(),
                ..Default::default()
            }]);
        self.objects().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn until_provisioned(&self, name: &str) {
        wait::until_is(&self.objects(), name, "provisioned", LIMIT, |object| {
            let status = object.status.as_ref();
            let provisioned = status.and_then(|it| it.initialization.as_ref()).and_then(|it| it.provisioned);
            provisioned == Some(true) && object.spec.control_plane_endpoint.is_some()
        })
        .await;
    }

    async fn delete(&self, name: &str) {
        self.objects().delete(name, &DeleteParams::default()).await.unwrap();
        wait::until_gone(&self.objects(), name, LIMIT).await;
        self.story.clusters().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// As after a move: the status is gone, the infrastructure is not.
    async fn wipe(&self, name: &str) {
        let wipe = Patch::Merge(json!({"status": null}));
        self.objects().patch_status(name, &PatchParams::default(), &wipe).await.unwrap();
        self.until_provisioned(name).await;
        self.expect(1, 1);
    }

    /// An object whose deletion began before its finalizer came is let go by the API server at once: what was made for
    /// it goes a moment later.
    async fn expect_none(&self) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let left = self.cloud.look(&self.story.namespace, |it| it.networks.clone());
            if left.is_empty() {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "left behind: {left:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One network for each object that is there, and never another one.
    fn expect(&self, networks: usize, made: usize) {
        let (found, all) = self.cloud.look(&self.story.namespace, |it| (it.networks.clone(), it.made));
        assert_eq!((found.len(), all), (networks, made), "networks there, and ever made: {found:?}");
    }
}

type Act = for<'a> fn(Play<'a>) -> futures::future::BoxFuture<'a, ()>;

/// What is played; and that the provider still listens afterwards, with everything put back as it was.
const PLAYS: [(&str, Act, Act); 3] = [
    (
        "provision",
        |play| {
            async move {
                play.create("a").await;
                play.until_provisioned("a").await;
                play.expect(1, 1);
            }
            .boxed()
        },
        |play| {
            async move {
                play.wipe("a").await;
            }
            .boxed()
        },
    ),
    (
        "wipe",
        |play| {
            async move {
                play.create("a").await;
                play.until_provisioned("a").await;
                play.wipe("a").await;
            }
            .boxed()
        },
        |play| {
            async move {
                play.wipe("a").await;
            }
            .boxed()
        },
    ),
    (
        "delete",
        |play| {
            async move {
                play.create("a").await;
                play.until_provisioned("a").await;
                play.delete("a").await;
                play.expect(0, 1);
            }
            .boxed()
        },
        |play| {
            async move {
                play.create("c").await;
                play.until_provisioned("c").await;
                play.delete("c").await;
                play.expect_none().await;
            }
            .boxed()
        },
    ),
];

/// Scenes are functions without a memory, so the cloud is where they find it.
static CLOUD: std::sync::LazyLock<Cloud> = std::sync::LazyLock::new(Cloud::default);

fn play_of(stage: &Stage) -> Play<'_> {
    Play { story: &stage.story, cloud: &CLOUD }
}

async fn plane() -> Arc<Plane> {
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let crds = [crd::<CloudCluster>(NAME, ContractVersion::V1Beta2)];
    install_crds(&plane.client().await, &crds, "story").await.unwrap();
    plane
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn infrastructure_is_neither_doubled_nor_lost() {
    let plane = plane().await;
    let scenes = [
        Scene {
            name: "provision",
            play: |stage| PLAYS[0].1(play_of(stage)),
            probe: |stage| PLAYS[0].2(play_of(stage)),
        },
        Scene {
            name: "wipe",
            play: |stage| PLAYS[1].1(play_of(stage)),
            probe: |stage| PLAYS[1].2(play_of(stage)),
        },
        Scene {
            name: "delete",
            play: |stage| PLAYS[2].1(play_of(stage)),
            probe: |stage| PLAYS[2].2(play_of(stage)),
        },
    ];
    let kinds = vec![ApiResource::erase::<CloudCluster>(&())];
    let matrix = Matrix::new(Arc::clone(&plane), kinds, PARALLEL, MOST_EXTRA_WRITES)
        .await
        .of(|story, client| start(&CLOUD, story, client));
    let (mut ran, mut survived, mut missed, mut rare, mut failures) = (0, 0, Vec::new(), 0, Vec::new());
    for scene in scenes {
        let tally = matrix.run(scene).await;
        println!(
            "{}: {} requests, {} faults, {} survived",
            scene.name, tally.requests, tally.ran, tally.survived
        );
        ran += tally.ran;
        survived += tally.survived;
        missed.extend(tally.missed);
        rare += tally.rare;
        failures.extend(tally.failures);
    }
    let (calls, more) = at_every_call(&plane).await;
    failures.extend(more);
    println!(
        "in all: {ran} faults at requests, {survived} survived, {} did not strike, {rare} at requests that come only \
         sometimes; {calls} at calls to the cloud",
        missed.len()
    );
    assert!(failures.is_empty(), "{} runs failed:\n{}", failures.len(), failures.join("\n"));
    assert!(missed.len() * 20 <= ran, "too many faults did not strike: {missed:#?}");
}

/// Some of these are let go by the API server although their finalizer has come meanwhile.
#[tokio::test]
async fn what_is_deleted_at_once_leaves_nothing_behind() {
    let plane = plane().await;
    let story = Story::begin_on(plane, "at-once").await;
    let cloud = Cloud::default();
    let manager = start(&cloud, &story, story.client.clone());
    let play = Play { story: &story, cloud: &cloud };
    for number in 0..60 {
        // Some follow each other under one name.
        let name = format!("c{}", number / 3);
        play.create(&name).await;
        play.delete(&name).await;
    }
    play.expect_none().await;
    manager.stop().await;
    play.expect_none().await;
}

/// The object goes by force while its network is being made: only this process knows of the network. Unless the
/// Cluster is paused, for then it may be about to be moved.
#[tokio::test]
async fn what_was_made_for_an_object_that_is_gone_is_taken_down_unless_it_is_paused() {
    let plane = plane().await;
    for (name, paused) in [("orphan", false), ("paused-orphan", true)] {
        let story = Story::begin_on(Arc::clone(&plane), name).await;
        let cloud = Cloud::default();
        let (held, go) = cloud.look(&story.namespace, |region| {
            // The first call looks for a network, the second one makes it.
            region.fault = Some((2, CloudFault::Held));
            (Arc::clone(&region.held), Arc::clone(&region.go))
        });
        let manager = start(&cloud, &story, story.client.clone());
        let play = Play { story: &story, cloud: &cloud };
        play.create("a").await;
        tokio::time::timeout(LIMIT, held.notified()).await.expect("the network is made");
        if paused {
            let pause = Patch::Merge(json!({"spec": {"paused": true}}));
            story.clusters().patch("a", &PatchParams::default(), &pause).await.unwrap();
        }
        play.objects().delete("a", &DeleteParams::default()).await.unwrap();
        let by_force = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        play.objects().patch("a", &PatchParams::default(), &by_force).await.unwrap();
        wait::until_gone(&play.objects(), "a", LIMIT).await;
        go.notify_one();
        if paused {
            // Another object shows that the provider had its chance.
            play.create("witness").await;
            play.until_provisioned("witness").await;
            play.expect(2, 2);
        } else {
            play.expect_none().await;
        }
        manager.stop().await;
    }
}

/// Plays everything once for each fault at each call to the cloud; says how many, and what went wrong.
async fn at_every_call(plane: &Arc<Plane>) -> (usize, Vec<String>) {
    let (mut ran, mut failures) = (0, Vec::new());
    for (name, act, probe) in PLAYS {
        let undisturbed = play(plane, name, act, probe, None).await.unwrap();
        for call in 1..=undisturbed {
            for fault in [CloudFault::Refused, CloudFault::LostReply, CloudFault::CrashAfter] {
                ran += 1;
                if let Err(failure) = play(plane, name, act, probe, Some((call, fault))).await {
                    failures.push(format!("{name}: {fault:?} at call {call}: {failure}"));
                }
            }
        }
    }
    (ran, failures)
}

/// Plays with a cloud of its own; gives the number of calls.
async fn play(
    plane: &Arc<Plane>,
    name: &str,
    act: Act,
    probe: Act,
    fault: Option<(usize, CloudFault)>,
) -> Result<usize, String> {
    let story = Story::begin_on(Arc::clone(plane), name).await;
    let cloud = Cloud::default();
    let crash = cloud.look(&story.namespace, |region| {
        region.fault = fault;
        Arc::clone(&region.crash)
    });
    let mut manager = Some(start(&cloud, &story, story.client.clone()));
    let played = async {
        act(Play { story: &story, cloud: &cloud }).await;
        probe(Play { story: &story, cloud: &cloud }).await;
    };
    let replace = async {
        crash.notified().await;
        if let Some(crashed) = manager.take() {
            crashed.crash().await;
        }
        manager = Some(start(&cloud, &story, story.client.clone()));
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = std::panic::AssertUnwindSafe(played).catch_unwind() => ended,
        () = replace => unreachable!("it goes on for ever"),
    };
    if let Some(manager) = manager {
        manager.stop().await;
    }
    match ended {
        Ok(()) => Ok(cloud.look(&story.namespace, |region| region.calls)),
        Err(panic) => Err(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
    }
}
