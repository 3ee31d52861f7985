//! `capstan quickstart`: a whole management plane on one machine, and a Cluster on it.

use std::{
    path::PathBuf,
    pin::pin,
    time::{Duration, Instant},
};

use capstan_api::{
    cluster::{
        self,
        admission::{Address, webhook_configurations},
        v1beta2::{Cluster, ClusterSpec, ObjectReference},
    },
    conditions,
    crd::Conversion,
    names::INFRASTRUCTURE_GROUP,
};
use capstan_control_plane::{Binaries, ControlPlane, KUBERNETES_VERSION, Options, Progress, Sources};
use capstan_provider_local::api as local;
use capstan_provider_local::api::v1beta2::{LocalCluster, LocalClusterSpec};
use capstan_runtime::{
    client::{self, ClientOptions},
    install::{install_crds, install_webhooks},
    manager::Manager,
    metrics::Metrics,
    options::ManagerOptions,
    tls::OwnCertificate,
};
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
    runtime::watcher::watch_object,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::QuickstartArgs,
    commands::generate::check_cluster_name,
    error::CommandError,
    logging,
    printer::{Picture, Printer, Text, coloured, dim},
};
use capstan_runtime::shell::{host_name, stop_on_signal};

const NAMESPACE: &str = "default";
const FIELD_MANAGER: &str = "capstan-quickstart";
/// How long the API server may take to learn the new address of the webhooks: a former run stored its own port.
const PROPAGATION_LIMIT: Duration = Duration::from_secs(10);
/// How long the sample Cluster may take to be Provisioned.
const PROVISIONED_LIMIT: Duration = Duration::from_mins(1);

pub(crate) async fn run(args: QuickstartArgs, printer: Printer) -> Result<(), CommandError> {
    check_cluster_name("--name", &args.name)?;
    let stop = stop_on_signal().map_err(|error| CommandError::new("cannot listen for signals", error))?;
    let started = Instant::now();
    let plane = tokio::select! {
        plane = start_control_plane(args.state_dir.clone(), printer) => plane?,
        // What has been started by then ends with this process.
        () = stop.cancelled() => return Err(CommandError::plain("interrupted before the control plane was up")),
    };
    let took = started.elapsed().as_secs_f64();
    printer.done(&format!("Kubernetes {KUBERNETES_VERSION} control plane at {} ({took:.1} s)", plane.url()));
    // Whatever happens from here on, the control plane stops in order.
    let result = run_on(&plane, &args, printer, stop).await;
    printer.step("Stopping the control plane");
    let stopped = tokio::task::spawn_blocking(|| plane.stop()).await;
    result?;
    match stopped {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(CommandError::new("cannot stop the control plane", error)),
        Err(error) => Err(CommandError::new("cannot stop the control plane", error)),
    }
}

async fn start_control_plane(
    state_dir: Option<PathBuf>,
    printer: Printer,
) -> Result<ControlPlane, CommandError> {
    printer.step("Looking for etcd, kube-apiserver and kube-controller-manager");
    let start = move || {
        let sources = Sources::from_env(|name| std::env::var_os(name));
        let binaries = Binaries::locate(&sources, &mut |progress| match progress {
            Progress::Building { .. } => printer.progress(&progress.to_string()),
            other => {
                printer.progress_done();
                printer.step(&other.to_string());
            }
        })?;
        printer.step(&format!("Starting {}", binaries.kube_apiserver.display()));
        ControlPlane::start(match state_dir {
            Some(dir) => Options::persistent(binaries, dir),
            None => Options::temporary(binaries, std::env::temp_dir()),
        })
    };
    match tokio::task::spawn_blocking(start).await {
        Ok(Ok(plane)) => Ok(plane),
        Ok(Err(error)) => Err(CommandError::new("cannot start a control plane", error)),
        Err(error) => Err(CommandError::new("cannot start a control plane", error)),
    }
}

async fn run_on(
    plane: &ControlPlane,
    args: &QuickstartArgs,
    printer: Printer,
    stop: CancellationToken,
) -> Result<(), CommandError> {
    let log = plane.logs().join("controllers.log");
    logging::to_file(args.verbosity, &log)
        .map_err(|error| CommandError::new(format!("cannot write {}", log.display()), error))?;
    let metrics = Metrics::default();
    let client_options =
        ClientOptions { kubeconfig: Some(plane.kubeconfig().to_owned()), ..ClientOptions::default() };
    let unusable = |error| CommandError::new("cannot reach the control plane", error);
    let config = client::find_config(&client_options).await.map_err(unusable)?;
    let client = client::connect(config, &client_options, &metrics).map_err(unusable)?;
    let wrap = |doing: &'static str| move |error| CommandError::new(doing, error);

    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(wrap("cannot listen for webhooks"))?;
    let port = listener.local_addr().map_err(wrap("cannot listen for webhooks"))?.port();
    let certificate = OwnCertificate::make(&["127.0.0.1", "localhost"])
        .map_err(|error| CommandError::new("cannot make a certificate for the webhooks", error))?;
    let base = format!("https://127.0.0.1:{port}");
    let url = format!("{base}/convert");
    let conversion = Conversion::Url { url: &url, ca_bundle_pem: certificate.ca_pem.as_bytes() };
    let mut crds = vec![cluster::crd(conversion)];
    crds.extend(local::crds(conversion));
    install_crds(&client, &crds, FIELD_MANAGER)
        .await
        .map_err(|error| CommandError::new("cannot install the CustomResourceDefinitions", error))?;
    let address = Address::Url { base: &base, ca_bundle_pem: certificate.ca_pem.as_bytes() };
    let (mutating, validating) = webhook_configurations(address);
    install_webhooks(&client, &mutating, &validating, FIELD_MANAGER)
        .await
        .map_err(|error| CommandError::new("cannot install the webhooks", error))?;
    let names: Vec<_> = crds.iter().map(|crd| crd.spec.names.kind.as_str()).collect();
    printer.done(&format!("CRDs installed: {}", names.join(", ")));

    let options = ManagerOptions::embedded();
    let lease = capstan_cluster::LEASE;
    let mut manager = Manager::new(options, client.clone(), metrics, lease, &host_name(), stop.clone());
    manager.serve_webhooks_on(listener, certificate);
    capstan_cluster::register(&mut manager, capstan_cluster::Options::default());
    let registered =
        capstan_provider_local::register(&mut manager, capstan_provider_local::Options::default());
    registered.map_err(|error| CommandError::new("the local provider cannot run", error))?;
    printer.done(&format!("Core provider and local provider running (log: {})", log.display()));
    let mut manager = tokio::spawn(manager.run());

    let demo = async {
        show_demo(&client, plane, args, printer, &stop).await?;
        if !args.exit_when_ready {
            stop.cancelled().await;
        }
        Ok::<(), CommandError>(())
    };
    let (demo, ended) = tokio::select! {
        demo = demo => {
            stop.cancel();
            (demo, manager.await)
        }
        ended = &mut manager => (Ok(()), ended),
    };
    demo?;
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(CommandError::new("the manager ended", error)),
        Err(error) => Err(CommandError::new("the manager ended", error)),
    }
}

async fn show_demo(
    client: &Client,
    plane: &ControlPlane,
    args: &QuickstartArgs,
    printer: Printer,
    stop: &CancellationToken,
) -> Result<(), CommandError> {
    let started = Instant::now();
    create_sample(client, &args.name).await?;
    printer.done(&format!("Cluster {NAMESPACE}/{0} and LocalCluster {NAMESPACE}/{0} created", args.name));
    printer.line("");
    let watching = tokio::time::timeout(PROVISIONED_LIMIT, follow(client, &args.name, printer));
    let endpoint = tokio::select! {
        endpoint = watching => endpoint.map_err(|_| {
            CommandError::plain(format!(
                "Cluster {NAMESPACE}/{} was not Provisioned within {PROVISIONED_LIMIT:?}", args.name
            ))
            .hint(format!("see {}", plane.logs().join("controllers.log").display()))
        })??,
        () = stop.cancelled() => return Ok(()),
    };
    let took = started.elapsed();
    // After a restart the Cluster is Provisioned on record before its load balancer is back.
    let answer = async {
        while TcpStream::connect(&endpoint).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PROVISIONED_LIMIT, answer)
        .await
        .map_err(|_| CommandError::plain(format!("the endpoint {endpoint} does not answer")))?;
    printer.line("");
    printer.done(&format!(
        "Provisioned in {} ms; its endpoint {endpoint} accepts connections",
        took.as_millis()
    ));
    if !args.exit_when_ready {
        printer.line("");
        printer.line("Continue in another terminal:");
        printer.line("");
        printer.command(&format!("export KUBECONFIG={}", plane.kubeconfig().display()));
        printer.command("kubectl get clusters,localclusters -o wide");
        printer.command(&format!("kubectl describe cluster {}", args.name));
        printer.command(&format!("kubectl delete cluster {}", args.name));
        printer.line("");
        printer.line("Ctrl-C stops everything.");
    }
    Ok(())
}

async fn create_sample(client: &Client, name: &str) -> Result<(), CommandError> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let metadata = || ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let infrastructure = LocalCluster {
        metadata: metadata(),
        spec: LocalClusterSpec {
            failure_domains: vec![cluster::v1beta2::FailureDomain {
                name: "this-machine".to_owned(),
                control_plane: Some(true),
                ..cluster::v1beta2::FailureDomain::default()
            }],
            ..LocalClusterSpec::default()
        },
        status: None,
    };
    let sample = Cluster {
        metadata: metadata(),
        spec: ClusterSpec {
            infrastructure_ref: Some(ObjectReference {
                api_group: INFRASTRUCTURE_GROUP.to_owned(),
                kind: "LocalCluster".to_owned(),
                name: name.to_owned(),
            }),
            ..ClusterSpec::default()
        },
        status: None,
    };
    let wrap = |kind: &'static str| {
        move |error| CommandError::new(format!("cannot create {kind} {NAMESPACE}/{name}"), error)
    };
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), NAMESPACE);
    let deadline = Instant::now() + PROPAGATION_LIMIT;
    loop {
        match clusters.patch(name, &params, &Patch::Apply(&sample)).await {
            Ok(_) => break,
            Err(error) if is_unreached_webhook(&error) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(wrap("Cluster")(error)),
        }
    }
    let locals: Api<LocalCluster> = Api::namespaced(client.clone(), NAMESPACE);
    locals.patch(name, &params, &Patch::Apply(&infrastructure)).await.map_err(wrap("LocalCluster"))?;
    Ok(())
}

/// Whether the API server could not ask a webhook; a webhook that refuses is another matter.
fn is_unreached_webhook(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 500
        && ["failed calling webhook", "conversion webhook"].iter().any(|it| status.message.contains(it))
}

/// Draws the Cluster and what belongs to it at each change, until it is Provisioned. Gives its endpoint.
async fn follow(client: &Client, name: &str, printer: Printer) -> Result<String, CommandError> {
    let mut clusters = pin!(watch_object(Api::<Cluster>::namespaced(client.clone(), NAMESPACE), name));
    let mut locals = pin!(watch_object(Api::<LocalCluster>::namespaced(client.clone(), NAMESPACE), name));
    let (mut cluster, mut local): (Option<Cluster>, Option<LocalCluster>) = (None, None);
    let mut picture = Picture::new(printer);
    loop {
        // A broken watch mends itself; the limit around us ends a hopeless one.
        tokio::select! {
            Some(event) = clusters.next() => if let Ok(now) = event { cluster = now },
            Some(event) = locals.next() => if let Ok(now) = event { local = now },
        }
        picture.draw(&draw(cluster.as_ref(), local.as_ref()));
        if let Some(cluster) = &cluster
            && cluster.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Provisioned")
            && let Some(endpoint) = &cluster.spec.control_plane_endpoint
        {
            return Ok(format!("{}:{}", endpoint.host, endpoint.port));
        }
    }
}

fn draw(cluster: Option<&Cluster>, local: Option<&LocalCluster>) -> Text {
    let Some(cluster) = cluster else { return Text::default() };
    let status = cluster.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_else(|| "Pending".to_owned());
    let endpoint = |endpoint: Option<&cluster::v1beta2::ApiEndpoint>| {
        endpoint.map_or_else(|| dim("endpoint not known yet"), |it| format!("{}:{}", it.host, it.port).into())
    };
    let mut lines = Text::from(format!("Cluster/{:<12} ", cluster.name_any()))
        .and(coloured(&phase))
        .and("  ")
        .and(endpoint(cluster.spec.control_plane_endpoint.as_ref()))
        .ended();
    match local {
        None => lines.line(Text::from("└─ ").and(dim("LocalCluster does not exist yet"))),
        Some(local) => {
            let status = local.status.clone().unwrap_or_default();
            let ready = conditions::get(&status.conditions, "Ready");
            let word = ready.map_or("Unknown", |it| it.status.as_str());
            let message = ready.map(|it| it.message.as_str()).unwrap_or_default();
            let line = Text::from(format!("└─ LocalCluster/{:<4} Ready ", local.name_any()))
                .and(coloured(word))
                .and("  ")
                .and(endpoint(local.spec.control_plane_endpoint.as_ref()))
                .and(" ")
                .and(dim(message));
            lines.line(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn only_webhooks_that_were_not_reached_are_asked_again() {
        for (code, message, expected) in [
            (
                500,
                "Internal error occurred: failed calling webhook \"default.x\": failed to call webhook: dial tcp 127.0.0.1:1: connect: connection refused",
                true,
            ),
            (500, "conversion webhook for cluster.x-k8s.io/v1beta1, Kind=Cluster failed: dial tcp", true),
            (500, "etcdserver: no leader", false),
            (422, "admission webhook \"validation.x\" denied the request: failed calling webhook", false),
        ] {
            let status = Status { code, ..Status::failure(message, "Reason") };
            assert_eq!(is_unreached_webhook(&kube::Error::Api(status.boxed())), expected, "{message}");
        }
    }
}
