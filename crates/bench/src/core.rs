//! The Cluster controller: N Clusters whose infrastructure is ready, from first sight to Provisioned.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    pin::pin,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use capstan_api::crd::Conversion;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, Story, generic, requests, story::reference};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, watch_object, watcher},
    },
};
use serde_json::json;

use crate::process;

/// Writers at once, for the preparation and for the floor.
const WRITERS: usize = 8;
const LIMIT: Duration = Duration::from_mins(15);
const KIND: &str = "BenchCluster";

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) async fn run(clusters: usize, binary: &Path, flags: &[String]) -> Result<()> {
    let binary = binary.canonicalize().with_context(|| format!("{} is not built", binary.display()))?;
    eprintln!("starting a control plane");
    let plane = Plane::start_bare().await;
    plane.install(Conversion::Nobody).await;
    let story = Story::begin_on(Arc::clone(&plane), "bench").await;
    let crd = generic::crd(KIND, &[("v1beta2", "v1beta2")]);
    install_crds(&story.client, &[crd], "bench").await?;

    eprintln!("creating {clusters} Clusters with infrastructure that is ready");
    let names: Vec<_> = (0..clusters).map(|number| format!("c{number:05}")).collect();
    for_each(&names, |name| prepare(&story, name)).await?;

    eprintln!("writing each once, plainly: the floor");
    let started = Instant::now();
    for_each(&names, |name| write_plainly(&story, name)).await?;
    let floor = started.elapsed();

    eprintln!("running {} manager core", binary.display());
    let before = requests::count(&story.client, requests::is_ours).await;
    let started = Instant::now();
    let mut manager = tokio::process::Command::new(&binary)
        .args(["manager", "core", "--webhook-port=0", "--health-addr=0", "--diagnostics-address=0", "-v0"])
        .arg(format!("--namespace={}", story.namespace))
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .args(flags)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let pid = manager.id().context("the manager has ended")?;
    let all = wait_for_all(&story, clusters, started).await?;
    // Whatever is still written after the last Cluster is Provisioned counts as well.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let usage = process::usage(pid)?;
    let after = requests::count(&story.client, requests::is_ours).await;

    let count = clusters as f64;
    let writes = |counts: &BTreeMap<String, u64>| -> u64 {
        counts.iter().filter(|(name, _)| requests::is_write(name)).map(|(_, count)| count).sum()
    };
    println!("clusters             {clusters}");
    println!("all Provisioned in   {:.2} s ({:.0} Clusters/s)", all.as_secs_f64(), count / all.as_secs_f64());
    println!(
        "floor, one write     {:.2} s ({:.0} writes/s, {WRITERS} at once)",
        floor.as_secs_f64(),
        count / floor.as_secs_f64()
    );
    println!("ratio to the floor   {:.2}", all.as_secs_f64() / floor.as_secs_f64());
    println!("writes per Cluster   {:.2}", (writes(&after) - writes(&before)) as f64 / count);
    println!("manager CPU          {:.2} s", usage.cpu.as_secs_f64());
    println!("manager memory       {:.1} MiB peak, {:.1} MiB after", usage.peak_mib, usage.resident_mib);
    let mut delays = follow(&story, &names[..clusters.min(50)]).await?;
    manager.kill().await?;
    delays.sort();
    let [median, longest] =
        [delays[delays.len() / 2], delays[delays.len() - 1]].map(|it| it.as_secs_f64() * 1e3);
    println!("follows a change in  {median:.1} ms (median), {longest:.1} ms (longest of {})", delays.len());
    println!("requests per Cluster");
    for (name, total) in &after {
        let each = (total - before.get(name).copied().unwrap_or_default()) as f64 / count;
        if each > 0.0 {
            println!("  {name:<32} {each:.3}");
        }
    }
    Ok(())
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

async fn write_plainly(story: &Story, name: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"raw": name}}}));
    story.generics(KIND).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// How long a Cluster takes to follow a change of its infrastructure, one after another.
async fn follow(story: &Story, names: &[String]) -> Result<Vec<Duration>> {
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
    Ok(delays)
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
