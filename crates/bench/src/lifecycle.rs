//! Commands that change a management cluster: how long they take, and how many requests they make for each object.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use capstan_api::names::label;
use capstan_management::{
    ManagementCluster,
    apply::apply,
    dry_run::{Known, try_over},
    sweep::sweep,
};
use capstan_manifest::yaml;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, requests};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    runtime::{conditions, wait::await_condition},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Rounds of each program, on a new control plane each; the median is reported.
const ROUNDS: usize = 3;
/// How long a server may go on with itself after it has started, or has got new kinds.
const REST: Duration = Duration::from_secs(3);
/// How long a server may take to make new kinds known.
const SETTLE_LIMIT: Duration = Duration::from_mins(1);
/// Kinds of others that a grown management cluster has.
const GROWN: usize = 300;

/// What is done, in this order, by both programs.
const STEPS: [(&str, &[&str]); 3] = [
    (
        "init",
        &[
            "init",
            "--core=cluster-api:v1.13.6",
            "--bootstrap=kubeadm:v1.13.6",
            "--control-plane=kubeadm:v1.13.6",
            "--infrastructure=gcp:v1.10.0",
        ],
    ),
    (
        "upgrade",
        &[
            "upgrade",
            "apply",
            "--core=cluster-api:v1.14.2",
            "--bootstrap=kubeadm:v1.14.2",
            "--control-plane=kubeadm:v1.14.2",
        ],
    ),
    ("delete", &["delete", "--all"]),
];

/// Where what is needed is.
pub(crate) struct Stock<'a> {
    pub(crate) ours: &'a Path,
    pub(crate) upstream: Option<&'a Path>,
    /// Real releases of core, both kubeadm providers and gcp.
    pub(crate) releases: &'a Path,
    /// A manifest of cert-manager's kinds, named VERSION/cert-manager.yaml.
    pub(crate) cert_manager: &'a Path,
}

/// How a step went.
#[derive(Clone, Copy)]
struct Run {
    took: Duration,
    requests: u64,
    objects: usize,
}

/// Measures both programs, a round of one after a round of the other, and gives a table.
pub(crate) async fn measure(stock: &Stock<'_>) -> anyhow::Result<String> {
    let folder = std::env::temp_dir().join(format!("capstan-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let config = configure(&folder, stock)?;
    let mut programs = vec![("capstan", stock.ours)];
    programs.extend(stock.upstream.map(|it| ("clusterctl", it)));
    let mut table = String::new();
    for others in [0, GROWN] {
        let mut runs: BTreeMap<(usize, &str), Vec<Run>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for (name, program) in &programs {
                for (step, run) in round(program, &config, &folder, others).await?.into_iter().enumerate() {
                    runs.entry((step, name)).or_default().push(run);
                }
            }
        }
        writeln!(table, "{others} kinds of others")?;
        for (step, (title, _)) in STEPS.iter().enumerate() {
            write_step(&mut table, title, |name| runs.get(&(step, name)).and_then(|it| median(it)))?;
            if *title == "upgrade" {
                let mut least = [Duration::ZERO; ROUNDS];
                for took in &mut least {
                    *took = crds_alone(stock, others).await?;
                }
                least.sort();
                let seconds = least[ROUNDS / 2].as_secs_f64();
                writeln!(table, "           the least   {seconds:>7.2} s   its CRDs, tried and written")?;
            }
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(table)
}

fn write_step(table: &mut String, title: &str, measured: impl Fn(&str) -> Option<Run>) -> anyhow::Result<()> {
    let Some(own) = measured("capstan") else { return Ok(()) };
    writeln!(table, "  {title:<9}capstan     {}", line(own))?;
    if let Some(theirs) = measured("clusterctl") {
        let times = theirs.took.as_secs_f64() / own.took.as_secs_f64();
        writeln!(table, "  {:<9}clusterctl  {}   {times:.1} times as fast", "", line(theirs))?;
    }
    Ok(())
}

fn line(run: Run) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of small numbers")]
    let each = run.requests as f64 / run.objects.max(1) as f64;
    let seconds = run.took.as_secs_f64();
    format!("{seconds:>7.2} s   {:>6} requests for {} objects, {each:.1} each", run.requests, run.objects)
}

fn median(runs: &[Run]) -> Option<Run> {
    let mut sorted = runs.to_vec();
    sorted.sort_by_key(|it| it.took);
    sorted.get(sorted.len() / 2).copied()
}

fn configure(folder: &Path, stock: &Stock<'_>) -> anyhow::Result<PathBuf> {
    let releases = fs::canonicalize(stock.releases)
        .with_context(|| format!("no releases in {}", stock.releases.display()))?;
    let provider = |name: &str, kind: &str, label: &str, prefix: &str| {
        let url = releases.join(label).join("latest").join(format!("{prefix}-components.yaml"));
        json!({"name": name, "type": kind, "url": url})
    };
    let cert_manager = fs::canonicalize(stock.cert_manager)?;
    let version = cert_manager.parent().and_then(Path::file_name).context("cert-manager has no version")?;
    let config = json!({
        "providers": [
            provider("cluster-api", "CoreProvider", "cluster-api", "core"),
            provider("kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap"),
            provider("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane"),
            provider("gcp", "InfrastructureProvider", "infrastructure-gcp", "infrastructure"),
        ],
        "cert-manager": {"url": cert_manager, "version": version.to_string_lossy()},
    });
    let file = folder.join("clusterctl.yaml");
    fs::write(&file, config.to_string())?;
    Ok(file)
}

/// All steps on a new control plane.
async fn round(program: &Path, config: &Path, home: &Path, others: usize) -> anyhow::Result<Vec<Run>> {
    let plane = Plane::start_bare().await;
    let client = plane.client().await;
    install_crds(&client, &kinds_of_others(others)?, "bench").await?;
    let mut runs = Vec::new();
    for (_, arguments) in STEPS {
        settle(&client).await?;
        let (before, asked) = (installed(&client).await?, asked(&client).await);
        // No step is charged with what came before it: the server comes to rest.
        sleep(REST).await;
        let mut command = Command::new(program);
        command.args(arguments).arg("--config").arg(config).arg("--kubeconfig").arg(plane.kubeconfig());
        command.env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true").env("GCP_B64ENCODED_CREDENTIALS", "e30=");
        let began = Instant::now();
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let took = began.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {} failed: {said}", program.display(), arguments.join(" "));
        let requests = self::asked(&client).await - asked;
        runs.push(Run { took, requests, objects: before.max(installed(&client).await?) });
    }
    Ok(runs)
}

/// What the server takes for the CRDs of an upgrade alone: each is tried, and then each is written, by a client
/// that does nothing else.
async fn crds_alone(stock: &Stock<'_>, others: usize) -> anyhow::Result<Duration> {
    let plane = Plane::start_bare().await;
    let client = plane.client().await;
    install_crds(&client, &kinds_of_others(others)?, "bench").await?;
    let cluster = ManagementCluster::new(client.clone(), "the benchmark's server");
    apply(&cluster, &crds_in(stock.releases, "v1.13.6")?, &|_| {}).await?;
    settle(&client).await?;
    let found = Api::<CustomResourceDefinition>::all(client).list_metadata(&ListParams::default()).await?;
    let crds = found.into_iter().map(|it| (it.name_any(), it.metadata)).collect();
    let known = Known { crds, ..Known::default() };
    let crds = crds_in(stock.releases, "v1.14.2")?;
    sleep(REST).await;
    let began = Instant::now();
    try_over(&cluster, &crds, &known).await?;
    apply(&cluster, &crds, &|_| {}).await?;
    Ok(began.elapsed())
}

/// The CRDs of core and both kubeadm providers.
fn crds_in(releases: &Path, version: &str) -> anyhow::Result<Vec<Value>> {
    let mut crds = Vec::new();
    for (label, prefix) in [
        ("cluster-api", "core"),
        ("bootstrap-kubeadm", "bootstrap"),
        ("control-plane-kubeadm", "control-plane"),
    ] {
        let file = releases.join(label).join(version).join(format!("{prefix}-components.yaml"));
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let objects = yaml::read(&text)?.into_iter().map(|it| it.value);
        crds.extend(objects.filter(|it| it["kind"] == "CustomResourceDefinition"));
    }
    Ok(crds)
}

/// Waits until the server has made all kinds known that the step before brought.
async fn settle(client: &Client) -> anyhow::Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds.list_metadata(&ListParams::default()).await? {
        let name = crd.name_any();
        let settled = await_condition(crds.clone(), &name, conditions::is_crd_established());
        timeout(SETTLE_LIMIT, settled).await.context("the server has not settled")??;
    }
    Ok(())
}

/// How many requests the server has answered.
async fn asked(client: &Client) -> u64 {
    requests::count(client, |_| true).await.values().sum()
}

/// How many objects carry clusterctl's label.
async fn installed(client: &Client) -> anyhow::Result<usize> {
    let cluster = ManagementCluster::new(client.clone(), "the benchmark's server");
    Ok(sweep(&cluster, label::CLUSTERCTL).await?.len())
}

fn kinds_of_others(count: usize) -> anyhow::Result<Vec<CustomResourceDefinition>> {
    let kinds = (0..count).map(|at| {
        let (group, plural) = (format!("group{}.example.com", at / 10), format!("kind{at}s"));
        serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": format!("Kind{at}"), "plural": plural},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        }))
    });
    Ok(kinds.collect::<Result<_, _>>()?)
}
