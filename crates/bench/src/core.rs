//! The Cluster controller: N Clusters whose infrastructure is ready, from first sight to Provisioned.

use std::{
    collections::{BTreeMap, HashSet},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use capstan_api::crd::Conversion;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic, requests, story::reference};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, watch_object, watcher},
    },
};
use serde_json::json;

use crate::{contender::Contender, process};

/// Writers at once, for the preparation and for the floor.
const WRITERS: usize = 8;
/// The least that a Cluster takes: its infrastructure is adopted, its endpoint and its status are written.
const FLOOR_WRITES: usize = 3;
const LIMIT: Duration = Duration::from_mins(30);
const KIND: &str = "BenchCluster";

/// What a contender needed.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) clusters: usize,
    pub(crate) all: Duration,
    pub(crate) floor: Duration,
    /// What the server takes for the very writes that bring a Cluster to Provisioned, from a client that knows them
    /// beforehand.
    pub(crate) same_writes: Duration,
    pub(crate) writes_each: f64,
    pub(crate) usage: process::Usage,
    /// How long a Cluster took to follow a change of its infrastructure: the median and the longest.
    pub(crate) follows: Option<(Duration, Duration)>,
}

/// Lets a contender bring Clusters to Provisioned, on a control plane of its own.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) async fn measure(
    contender: &Contender,
    other_kinds: &[CustomResourceDefinition],
    clusters: usize,
) -> Result<Measured> {
    let name = contender.name();
    eprintln!("{name}, {clusters} Clusters: starting a control plane");
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(Arc::clone(&plane), "bench").await;
    let mut crds = other_kinds.to_vec();
    crds.push(generic::crd(KIND, &[("v1beta2", "v1beta2")]));
    install_crds(&story.client, &crds, "bench").await?;

    eprintln!("{name}, {clusters} Clusters: creating them with infrastructure that is ready");
    let names: Vec<_> = (0..clusters).map(|number| format!("c{number:05}")).collect();
    for_each(&names, |name| prepare(&story, name)).await?;

    let started = Instant::now();
    for round in 0..FLOOR_WRITES {
        for_each(&names, |name| write_plainly(&story, name, round)).await?;
    }
    let floor = started.elapsed();

    eprintln!("{name}, {clusters} Clusters: running");
    let before = requests::count(&story.client, requests::is_ours).await;
    let started = Instant::now();
    let mut manager = contender.start(&story.namespace, plane.kubeconfig())?;
    let pid = manager.id().context("the manager has ended")?;
    let all = tokio::select! {
        all = wait_for_all(&story, clusters, started) => all?,
        ended = manager.wait() => bail!("{name} ended early: {}", ended?),
    };
    // Whatever is still written after the last Cluster is Provisioned counts as well.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let usage = process::usage(pid)?;
    let after = requests::count(&story.client, requests::is_ours).await;
    let writes = |counts: &BTreeMap<String, u64>| -> u64 {
        counts.iter().filter(|(name, _)| requests::is_write(name)).map(|(_, count)| count).sum()
    };
    let follows =
        if contender.is_ours() { Some(follow(&story, &names[..clusters.min(50)]).await?) } else { None };
    manager.kill().await?;
    let same_writes = repeat_writes(&story, &names).await?;
    Ok(Measured {
        name,
        clusters,
        all,
        floor,
        same_writes,
        writes_each: (writes(&after) - writes(&before)) as f64 / clusters as f64,
        usage,
        follows,
    })
}

async fn for_each<'a, F>(names: &'a [String], write: impl Fn(&'a str) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    stream::iter(names).map(|name| write(name)).buffer_unordered(WRITERS).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn prepare(story: &Story, name: &str) -> Result<()> {
    let spec = json!({"controlPlaneEndpoint": {"host": format!("{name}.example.test"), "port": 6443}});
    story.create_generic(KIND, name, spec).await;
    let status = json!({
        "ready": true,
        "initialization": {"provisioned": true},
        "failureDomains": [{"name": "a", "controlPlane": true}],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    });
    story.set_generic_status(KIND, name, status).await;
    story.create_cluster_with(name, json!({"infrastructureRef": reference(KIND, name)})).await;
    Ok(())
}

async fn write_plainly(story: &Story, name: &str, round: usize) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"raw": format!("{name}-{round}")}}}));
    story.generics(KIND).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Sends the writes that the first Cluster got for as many others, in a namespace that no controller watches: what a
/// controller would need that decided nothing and watched nothing.
async fn repeat_writes(done: &Story, names: &[String]) -> Result<Duration> {
    let story = Story::begin_on(Arc::clone(&done.plane), "again").await;
    for_each(names, |name| prepare(&story, name)).await?;
    let cluster = done.clusters().get(&names[0]).await?;
    let infrastructure = done.generics(KIND).get(&names[0]).await?;
    let adoption = json!({"metadata": {
        "labels": infrastructure.metadata.labels, "ownerReferences": infrastructure.metadata.owner_references,
    }});
    let main = json!({
        "metadata": {"finalizers": cluster.metadata.finalizers},
        "spec": {"controlPlaneEndpoint": cluster.spec.control_plane_endpoint},
    });
    let status = json!({"status": cluster.status});
    let (adoption, main, status) = (Patch::Merge(adoption), Patch::Merge(main), Patch::Merge(status));
    let (clusters, generics, params) = (story.clusters(), story.generics(KIND), PatchParams::default());
    let started = Instant::now();
    for_each(names, async |name| {
        clusters.patch_metadata(name, &params, &main).await?;
        generics.patch_metadata(name, &params, &adoption).await?;
        clusters.patch_status(name, &params, &status).await?;
        Ok(())
    })
    .await?;
    Ok(started.elapsed())
}

/// How long a Cluster takes to follow a change of its infrastructure, one after another: the median and the longest.
async fn follow(story: &Story, names: &[String]) -> Result<(Duration, Duration)> {
    let mut delays = Vec::new();
    for name in names {
        let api = story.clusters();
        let mut states = pin!(watch_object(api, name));
        states.next().await.context("the watch ended")??;
        let started = Instant::now();
        story.set_generic_status(KIND, name, json!({"failureDomains": [{"name": "moved"}]})).await;
        loop {
            let Some(cluster) = states.next().await.context("the watch ended")?? else { continue };
            let domains = cluster.status.unwrap_or_default().failure_domains;
            if domains.iter().any(|domain| domain.name == "moved") {
                delays.push(started.elapsed());
                break;
            }
        }
    }
    delays.sort();
    Ok((delays[delays.len() / 2], delays[delays.len() - 1]))
}

/// Counts by a watch: a list a moment would slow down what is counted.
async fn wait_for_all(story: &Story, clusters: usize, started: Instant) -> Result<Duration> {
    let count = async {
        let mut provisioned = HashSet::new();
        let mut events = pin!(watcher(story.clusters(), watcher::Config::default()).applied_objects());
        while provisioned.len() < clusters {
            let cluster = events.next().await.context("the watch ended")??;
            if cluster.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Provisioned") {
                provisioned.insert(cluster.name_any());
            }
        }
        Ok(started.elapsed())
    };
    match tokio::time::timeout(LIMIT, count).await {
        Ok(result) => result,
        Err(_) => bail!("not all Clusters were Provisioned within {LIMIT:?}"),
    }
}
