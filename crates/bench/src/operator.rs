//! The provider operator: core, both kubeadm providers and gcp from ConfigMaps, from their objects' creation to Ready.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use capstan_api::{operator, provider::ProviderType};
use capstan_management::ObjectRef;
use capstan_manifest::yaml;
use capstan_runtime::install::install_crds;
use capstan_testkit::{Plane, hostile::free_port, kubelet::Kubelet};
use flate2::{Compression, write::GzEncoder};
use futures::{StreamExt, future::try_join_all};
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{contender::webhook_certificates, process};

/// Rounds of each program, on a new control plane each; the median is reported.
const ROUNDS: usize = 3;
/// How long an operator may start before its memory at rest is read, and rest after the last provider is ready.
const REST: Duration = Duration::from_secs(8);
const LIMIT: Duration = Duration::from_mins(4);
/// API servers refuse ConfigMaps of more than 1 MiB.
const MOST: usize = 900_000;
const LABEL: &str = "provider-components";
const UPSTREAM_GROUP: &str = "operator.cluster.x-k8s.io";
const UPSTREAM_VERSION: &str = "v1alpha2";

/// What is installed: the type, name, version and file of a release.
const PROVIDERS: [(ProviderType, &str, &str, &str); 4] = [
    (ProviderType::Core, "cluster-api", "v1.13.6", "core-components.yaml"),
    (ProviderType::Bootstrap, "kubeadm", "v1.13.6", "bootstrap-components.yaml"),
    (ProviderType::ControlPlane, "kubeadm", "v1.13.6", "control-plane-components.yaml"),
    (ProviderType::Infrastructure, "gcp", "v1.10.0", "infrastructure-components.yaml"),
];

/// Where what is needed is.
pub(crate) struct Stock<'a> {
    pub(crate) ours: &'a Path,
    /// Upstream's operator and the folder with its CRDs.
    pub(crate) upstream: Option<(&'a Path, &'a Path)>,
    /// Real releases of core, both kubeadm providers and gcp.
    pub(crate) releases: &'a Path,
    /// A manifest of cert-manager's kinds: the releases have objects of them.
    pub(crate) cert_manager: &'a Path,
}

/// An operator under measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Capstan,
    Upstream,
}

/// How a round went.
#[derive(Clone, Copy)]
struct Run {
    /// From the creation of the first object to the last one that is Ready.
    ready: Duration,
    rest_mib: f64,
    peak_mib: f64,
    after_mib: f64,
    cpu: Duration,
}

/// Measures both programs, a round of one after a round of the other, and gives a table.
pub(crate) async fn measure(stock: &Stock<'_>) -> Result<String> {
    let mut runs: Vec<(Program, Run)> = Vec::new();
    for round in 1..=ROUNDS {
        for program in [Program::Capstan, Program::Upstream] {
            if program == Program::Capstan || stock.upstream.is_some() {
                eprintln!("{}, round {round}", program.name());
                runs.push((program, self::round(program, stock).await?));
            }
        }
    }
    let mut text = format!(
        "{:<22}{:>10}{:>12}{:>12}{:>12}{:>10}\n",
        "4 providers", "ready in", "at rest", "peak", "after", "CPU"
    );
    let of = |program: Program| median(runs.iter().filter(|it| it.0 == program).map(|it| it.1));
    for program in [Program::Capstan, Program::Upstream] {
        if let Some(run) = of(program) {
            let _ = writeln!(
                text,
                "{:<22}{:>8.2} s{:>8.1} MiB{:>8.1} MiB{:>8.1} MiB{:>8.2} s",
                program.name(),
                run.ready.as_secs_f64(),
                run.rest_mib,
                run.peak_mib,
                run.after_mib,
                run.cpu.as_secs_f64(),
            );
        }
    }
    if let (Some(ours), Some(theirs)) = (of(Program::Capstan), of(Program::Upstream)) {
        let _ = writeln!(
            text,
            "{:.1} times as fast, with {:.1} times less memory at its peak",
            theirs.ready.as_secs_f64() / ours.ready.as_secs_f64(),
            theirs.peak_mib / ours.peak_mib,
        );
    }
    Ok(text)
}

/// The run with the median time.
fn median(runs: impl Iterator<Item = Run>) -> Option<Run> {
    let mut sorted: Vec<Run> = runs.collect();
    sorted.sort_by_key(|it| it.ready);
    sorted.get(sorted.len() / 2).copied()
}

async fn round(program: Program, stock: &Stock<'_>) -> Result<Run> {
    let plane = Plane::start_bare().await;
    let client = plane.client().await;
    install_crds(&client, &program.crds(stock)?, "bench").await?;
    install_crds(&client, &crds_in(stock.cert_manager)?, "bench").await?;
    for provider in PROVIDERS {
        publish(&client, provider, stock.releases).await?;
    }
    let _kubelet = Kubelet::start(client.clone());
    let mut child = program.start(stock, plane.kubeconfig())?;
    let pid = child.id().context("the operator has ended")?;
    sleep(REST).await;
    let rest = process::usage(pid)?;
    let began = Instant::now();
    for provider in PROVIDERS {
        program.create(&client, provider).await?;
    }
    let all =
        try_join_all(PROVIDERS.map(|provider| until_ready(program.objects(&client, provider), provider.1)));
    tokio::select! {
        all = timeout(LIMIT, all) => all.with_context(|| format!("not all ready within {LIMIT:?}"))??,
        ended = child.wait() => bail!("{} ended early: {}", program.name(), ended?),
    };
    let ready = began.elapsed();
    sleep(REST).await;
    let after = process::usage(pid)?;
    child.kill().await?;
    Ok(Run { ready, rest_mib: rest.mib, peak_mib: after.peak_mib, after_mib: after.mib, cpu: after.cpu })
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Capstan => "capstan",
            Self::Upstream => "cluster-api-operator",
        }
    }

    fn crds(self, stock: &Stock<'_>) -> Result<Vec<CustomResourceDefinition>> {
        let (Self::Upstream, Some((_, folder))) = (self, stock.upstream) else { return Ok(operator::crds()) };
        let mut crds = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            crds.extend(crds_in(&entry?.path())?);
        }
        // Its conversion webhook would need a Service; one version is enough here.
        for crd in &mut crds {
            crd.spec.conversion = None;
        }
        Ok(crds)
    }

    fn start(self, stock: &Stock<'_>, kubeconfig: &Path) -> Result<Child> {
        let mut command = if let (Self::Upstream, Some((binary, _))) = (self, stock.upstream) {
            let mut command = Command::new(binary);
            command
                .args(["--insecure-diagnostics", "--diagnostics-address=127.0.0.1:0"])
                .args(["--health-addr=127.0.0.1:0", "--profiler-address="])
                .arg(format!("--webhook-port={}", free_port()))
                .arg("--webhook-cert-dir")
                .arg(webhook_certificates(kubeconfig)?);
            command
        } else {
            let mut command = Command::new(stock.ours);
            command.args(["manager", "operator", "--webhook-port=0", "--health-addr=0"]);
            command.arg("--diagnostics-address=0").arg("--kubeconfig").arg(kubeconfig);
            command
        };
        let log = fs::File::create(kubeconfig.with_file_name("operator.log"))?;
        command.env("KUBECONFIG", kubeconfig).env("CAPSTAN_OFFLINE", "true");
        command.stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log)).kill_on_drop(true);
        command.spawn().with_context(|| format!("cannot start {}", self.name()))
    }

    fn objects(self, client: &Client, provider: Provider) -> Api<DynamicObject> {
        let resource = match self {
            Self::Capstan => operator::resource(provider.0),
            Self::Upstream => {
                let kind = provider.0.as_str();
                ApiResource::from_gvk(&GroupVersionKind::gvk(UPSTREAM_GROUP, UPSTREAM_VERSION, kind))
            }
        };
        Api::namespaced_with(client.clone(), &namespace(provider), &resource)
    }

    async fn create(self, client: &Client, provider: Provider) -> Result<()> {
        let (kind, name, version, _) = provider;
        let namespace = namespace(provider);
        let selector = json!({"matchLabels": {LABEL: kind.label(name)}});
        let mut spec = json!({"version": version, "fetchConfig": {"selector": selector}});
        let api_version = match self {
            Self::Capstan => {
                spec["secretName"] = json!("variables");
                format!("{}/{}", operator::GROUP, operator::VERSION)
            }
            Self::Upstream => {
                spec["configSecret"] = json!({"name": "variables", "namespace": namespace});
                format!("{UPSTREAM_GROUP}/{UPSTREAM_VERSION}")
            }
        };
        let object = json!({"apiVersion": api_version, "kind": kind.as_str(), "metadata": {"name": name}, "spec": spec});
        self.objects(client, provider)
            .create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        Ok(())
    }
}

type Provider = (ProviderType, &'static str, &'static str, &'static str);

fn namespace((kind, name, ..): Provider) -> String {
    format!("{}-system", kind.label(name))
}

/// Creates a provider's namespace with its release and its variables.
async fn publish(client: &Client, provider: Provider, releases: &Path) -> Result<()> {
    let (kind, name, version, file) = provider;
    let (label, namespace) = (kind.label(name), namespace(provider));
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    let read = |file: &str| {
        let path: PathBuf =
            [releases, Path::new(&label), Path::new(version), Path::new(file)].iter().collect();
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (components, metadata) = (read(file)?, read("metadata.yaml")?);
    let mut map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": version, "labels": {LABEL: label, "provider.cluster.x-k8s.io/version": version}},
        "data": {"metadata": metadata},
    }))?;
    if components.len() > MOST {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        std::io::Write::write_all(&mut encoder, components.as_bytes())?;
        map.annotations_mut().insert("provider.cluster.x-k8s.io/compressed".to_owned(), "true".to_owned());
        map.binary_data = Some([("components".to_owned(), ByteString(encoder.finish()?))].into());
    } else {
        map.data.get_or_insert_default().insert("components".to_owned(), components);
    }
    Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &map).await?;
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "variables"}, "stringData": {"GCP_B64ENCODED_CREDENTIALS": "eA=="}}),
    )?;
    Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &secret).await?;
    Ok(())
}

async fn until_ready(objects: Api<DynamicObject>, name: &str) -> Result<()> {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = Box::pin(watcher(objects, config).default_backoff().applied_objects());
    while let Some(event) = events.next().await {
        let Ok(object) = event else { continue };
        let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
        let is_true = |type_: &str| {
            let is_it = |it: &&Value| it["type"] == type_ && it["status"] == "True";
            conditions.clone().any(|it| is_it(&it))
        };
        if is_true("Ready") && is_true("ProviderInstalled") {
            return Ok(());
        }
    }
    bail!("the watch on {name} ended")
}

/// The CRDs of a manifest.
fn crds_in(manifest: &Path) -> Result<Vec<CustomResourceDefinition>> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let documents = yaml::read(&text).with_context(|| format!("cannot read {}", manifest.display()))?;
    let values = documents.into_iter().map(|it| it.value);
    let crds = values.filter(|it| it["kind"] == "CustomResourceDefinition");
    let crds = crds.map(|it| {
        let id = ObjectRef::of(&it);
        serde_json::from_value(it).with_context(|| format!("{id} is no CRD"))
    });
    let crds: Vec<CustomResourceDefinition> = crds.collect::<Result<_>>()?;
    ensure!(!crds.is_empty(), "{} has no CRDs", manifest.display());
    Ok(crds)
}
