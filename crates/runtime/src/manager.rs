//! The shell around controllers: client, election, servers, signals, an orderly end.

use std::{future::Future, sync::Arc, time::Duration};

use capstan_api::contract::crd_name;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, core::ApiResource};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    ObjectKey,
    admission::Admitters,
    cache::{Cache, Cached},
    certificates::{Keeper, WebhookIdentity},
    client::{self, ClientError, ClientOptions},
    controller::{self, ControllerOptions, Reconciler},
    diagnostics::{guarded_metrics_router, health_router, metrics_router},
    events::Recorder,
    fence::fenced,
    leadership::{Election, Leadership, LeadershipLost, identity},
    metrics::Metrics,
    observed::{Observed, ObservedSecret},
    options::{ManagerOptions, OptionsError},
    outages::Outages,
    proxy::ProxyVariables,
    queue::Queue,
    readiness::Readiness,
    refusals::Refusals,
    review::Desk,
    serve::{self, ListenError, Server, listen},
    tls::{CertificateError, CertificateFolder, OwnCertificate, ServingCertificate},
    watch::{Listener, WatchHandle, WatchTarget, describe, watch, watch_metadata, watch_secrets},
    webhook::Converters,
    writer::Writer,
};

/// How long releasing the Lease may take.
const RESIGN_LIMIT: Duration = Duration::from_secs(10);
/// How long webhooks behind a Service are served at least after the stop signal: it takes a moment until the
/// Service sends no more requests here.
const LINGER: Duration = Duration::from_secs(2);

/// Why a manager could not start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Flags contradict each other.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// No client for the API server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// No certificate for the webhooks.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Another process may lead now.
    #[error(transparent)]
    LeadershipLost(#[from] LeadershipLost),
    /// A part of the process broke down.
    #[error("{0} ended unexpectedly: this is a defect in Capstan, please report it")]
    PartEnded(&'static str),
}

/// Runs controllers on one API server.
pub struct Manager {
    options: ManagerOptions,
    /// What the parts of the process share.
    client: Client,
    /// Refuses writes while this process does not lead.
    leader_client: Client,
    leadership: Leadership,
    metrics: Metrics,
    readiness: Readiness,
    converters: Converters,
    admitters: Admitters,
    webhooks: Webhooks,
    stop: CancellationToken,
    /// Ends the webhook server; cancelled once nothing is at work any more that may need it.
    stop_webhooks: CancellationToken,
    /// How long the webhook server keeps serving at least.
    linger: Duration,
    /// Gives the Lease up; cancelled once nothing is at work any more.
    resign: CancellationToken,
    election: Option<BoxFuture<'static, Result<(), LeadershipLost>>>,
    /// Ended at once when the process stops.
    background: Vec<(&'static str, BoxFuture<'static, ()>)>,
    /// Waited for when the process stops.
    controllers: Vec<BoxFuture<'static, ()>>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Manager {
    /// A manager that finds the API server by its options.
    pub async fn connect(
        options: ManagerOptions,
        lease: &str,
        host: &str,
        stop: CancellationToken,
    ) -> Result<Self, ManagerError> {
        options.validate()?;
        let client_options = ClientOptions {
            kubeconfig: options.kubeconfig.clone(),
            context: None,
            qps: options.kube_api_qps,
            burst: options.kube_api_burst,
            at_once: 0,
            proxies: ProxyVariables::of_process(),
            // Each part of a manager has limits of its own.
            answer_limit: None,
        };
        let metrics = Metrics::default();
        let server = client::find_config(&client_options).await?;
        let client = client::connect(server, &client_options, &metrics)?;
        Ok(Self::new(options, client, metrics, lease, host, stop))
    }

    /// A manager on a given client.
    pub fn new(
        options: ManagerOptions,
        client: Client,
        metrics: Metrics,
        lease: &str,
        host: &str,
        stop: CancellationToken,
    ) -> Self {
        let resign = CancellationToken::new();
        let (leadership, election) = if options.leader_elect {
            let election = Election {
                namespace: client.default_namespace().to_owned(),
                name: lease.to_owned(),
                identity: identity(host),
                lease_duration: options.leader_elect_lease_duration,
                renew_deadline: options.leader_elect_renew_deadline,
                retry_period: options.leader_elect_retry_period,
            };
            let (leadership, run) = election.start(client.clone(), resign.clone());
            let (metrics, lease, held) = (metrics.clone(), lease.to_owned(), leadership.clone());
            metrics.leading(&lease, false);
            let run = Box::pin(async move {
                let report = async {
                    held.acquired().await;
                    metrics.leading(&lease, true);
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    result = run => result,
                    () = report => Ok(()),
                }
            });
            (leadership, Some(run as BoxFuture<'static, _>))
        } else {
            (Leadership::always(), None)
        };
        let readiness = Readiness::new(Outages::new(metrics.clone()));
        // Without an election there is nothing to refuse.
        let leader_client = if options.leader_elect { fenced(&client, &leadership) } else { client.clone() };
        Self {
            options,
            client,
            leader_client,
            leadership,
            metrics,
            readiness,
            converters: Converters::default(),
            admitters: Admitters::default(),
            webhooks: Webhooks::Unset,
            stop,
            stop_webhooks: CancellationToken::new(),
            linger: Duration::ZERO,
            resign,
            election,
            background: Vec::new(),
            controllers: Vec::new(),
        }
    }

    /// The client of the process. It writes whether or not this process leads, as webhooks' certificates and Leases need
    /// it: controllers write by [`leader_client`](Self::leader_client).
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The client for controllers: it refuses writes with [`NotLeading`](crate::fence::NotLeading) while this process does
    /// not lead.
    pub fn leader_client(&self) -> Client {
        self.leader_client.clone()
    }

    /// The manager's flags.
    pub fn options(&self) -> &ManagerOptions {
        &self.options
    }

    /// The one namespace to watch, or all.
    pub fn namespace(&self) -> Option<String> {
        Some(self.options.namespace.clone()).filter(|namespace| !namespace.is_empty())
    }

    /// Cancelled when the process stops.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The metrics of the process.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// What must have happened before the process is ready.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// The watches that are broken.
    pub fn outages(&self) -> Outages {
        self.readiness.outages().clone()
    }

    /// A writer under a field manager's name.
    pub fn writer(&self, field_manager: &'static str) -> Writer {
        Writer::new(self.leader_client(), self.leadership.clone(), field_manager)
    }

    /// A recorder of events for one component.
    pub fn recorder(&mut self, component: &'static str) -> Recorder {
        let (recorder, write) =
            Recorder::new(self.client.clone(), self.leadership.clone(), self.metrics.clone(), component);
        self.background.push(("the event writer", Box::pin(write)));
        recorder
    }

    /// The converters that the webhook server offers.
    pub fn converters(&mut self) -> &mut Converters {
        &mut self.converters
    }

    /// The judges of objects that the webhook server offers.
    pub fn admitters(&mut self) -> &mut Admitters {
        &mut self.admitters
    }

    /// Serves webhooks on this address with this certificate; overrides the flags.
    pub fn serve_webhooks_on(&mut self, listener: TcpListener, certificate: OwnCertificate) {
        self.webhooks = Webhooks::On(listener, certificate);
    }

    /// Serves webhooks on `--webhook-port` with certificates that the manager makes itself, unless
    /// `--webhook-cert-dir` says otherwise.
    pub fn keep_webhook_certificates(&mut self, identity: WebhookIdentity) {
        self.webhooks = Webhooks::Kept(None, identity);
    }

    /// Serves webhooks on this address with certificates that the manager makes itself; overrides the flags.
    pub fn keep_webhook_certificates_on(&mut self, listener: TcpListener, identity: WebhookIdentity) {
        self.webhooks = Webhooks::Kept(Some(listener), identity);
    }

    /// Watches a kind from the start.
    pub fn watch<T: Cached>(
        &mut self,
        target: WatchTarget,
        project: impl Fn(Observed) -> T + Send + Sync + 'static,
        cache: &Cache<T>,
        listener: impl Listener<T>,
    ) -> Arc<WatchHandle> {
        let handle = self.readiness.mention(describe(&target.resource));
        let run = watch(self.client.clone(), target, project, cache.clone(), listener, Arc::clone(&handle));
        self.background.push(("a watch", Box::pin(run)));
        handle
    }

    /// Watches the metadata of a kind from the start; the process is ready only once it is synced.
    pub fn watch_metadata<T: Cached>(
        &mut self,
        target: WatchTarget,
        project: impl Fn(Observed) -> T + Send + Sync + 'static,
        cache: &Cache<T>,
        listener: impl Listener<T>,
    ) -> Arc<WatchHandle> {
        let handle = self.readiness.expect(describe(&target.resource));
        let run = watch_metadata(
            self.client.clone(),
            target,
            project,
            cache.clone(),
            listener,
            Arc::clone(&handle),
        );
        self.background.push(("a watch", Box::pin(run)));
        handle
    }

    /// Watches Secrets with their contents from the start; those that `project` has no use for are not kept.
    pub fn watch_secrets<T: Cached>(
        &mut self,
        label_selector: &str,
        project: impl Fn(ObservedSecret) -> Option<T> + Send + Sync + 'static,
        cache: &Cache<T>,
        listener: impl Listener<T>,
    ) -> Arc<WatchHandle> {
        let target = WatchTarget {
            resource: ApiResource::erase::<Secret>(&()),
            namespace: self.namespace(),
            label_selector: Some(label_selector.to_owned()),
            field_selector: None,
        };
        let handle = self.readiness.mention(describe(&target.resource));
        let (client, cache) = (self.client.clone(), cache.clone());
        let run = watch_secrets(client, target, project, cache, listener, Arc::clone(&handle));
        self.background.push(("a watch", Box::pin(run)));
        handle
    }

    /// Adds something that runs as long as the process.
    pub fn background(&mut self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) {
        self.background.push((name, Box::pin(run)));
    }

    /// Adds a controller with so many workers and the usual limits.
    pub fn controller<R: Reconciler>(
        &mut self,
        name: &'static str,
        queue: &Arc<Queue<ObjectKey>>,
        reconciler: Arc<R>,
        workers: usize,
    ) {
        let options = ControllerOptions { workers, ..ControllerOptions::default() };
        self.controller_with(name, queue, reconciler, options);
    }

    /// Adds a controller with limits of its own.
    pub fn controller_with<R: Reconciler>(
        &mut self,
        name: &'static str,
        queue: &Arc<Queue<ObjectKey>>,
        reconciler: Arc<R>,
        options: ControllerOptions,
    ) {
        let metrics = self.metrics.controller(name, Arc::clone(queue));
        self.controllers.push(Box::pin(controller::run(
            name,
            Arc::clone(queue),
            reconciler,
            options,
            self.leadership.clone(),
            metrics,
            self.stop.clone(),
        )));
    }

    /// Runs until the stop token is cancelled, leadership is lost, or a part breaks down.
    pub async fn run(mut self) -> Result<(), ManagerError> {
        let mut background = JoinSet::new();
        let mut webhooks = JoinSet::new();
        self.start_servers(&mut background, &mut webhooks).await?;
        for (name, part) in std::mem::take(&mut self.background) {
            background.spawn(async move {
                part.await;
                name
            });
        }
        let mut controllers = JoinSet::new();
        for run in std::mem::take(&mut self.controllers) {
            controllers.spawn(run);
        }
        // Like all parts of the process, it ends at the latest when this future is dropped.
        let mut election = JoinSet::new();
        if let Some(run) = self.election.take() {
            election.spawn(run);
        }
        let result = tokio::select! {
            () = self.stop.cancelled() => Ok(()),
            Some(ended) = election.join_next() => match ended {
                Ok(Ok(())) => Ok(()),
                Ok(Err(lost)) => Err(lost.into()),
                Err(_) => Err(ManagerError::PartEnded("the election")),
            },
            Some(ended) = background.join_next() => {
                let name = ended.unwrap_or("a part of the manager that panicked");
                // Servers and watches may end a moment before the token is looked at.
                if self.stop.is_cancelled() { Ok(()) } else { Err(ManagerError::PartEnded(name)) }
            }
            Some(_) = webhooks.join_next() => Err(ManagerError::PartEnded("the webhook server")),
        };
        if let Err(error) = &result {
            error!(%error, "stopping");
        } else {
            info!("stopping");
        }
        let told = Instant::now();
        if matches!(result, Err(ManagerError::LeadershipLost(_))) {
            // Another process may lead any moment, so running reconciles are not finished.
            controllers.shutdown().await;
        }
        self.stop.cancel();
        // Each controller ends within its own limit.
        while controllers.join_next().await.is_some() {}
        self.resign.cancel();
        let resigned =
            tokio::time::timeout(RESIGN_LIMIT, async { while election.join_next().await.is_some() {} });
        if resigned.await.is_err() {
            warn!(limit = ?RESIGN_LIMIT, "the Lease was not released in time; it expires by itself");
        }
        // The last write may have been a Cluster, whose webhooks this process serves.
        if !webhooks.is_empty() {
            tokio::time::sleep_until(told + self.linger).await;
            self.stop_webhooks.cancel();
            while webhooks.join_next().await.is_some() {}
        }
        background.shutdown().await;
        result
    }

    async fn start_servers(
        &mut self,
        tasks: &mut JoinSet<&'static str>,
        webhooks: &mut JoinSet<()>,
    ) -> Result<(), ManagerError> {
        let off = |address: &str| address.is_empty() || address == "0";
        let (metrics, client) = (self.metrics.clone(), self.client.clone());
        let refusals = |server| Refusals::new(server, metrics.clone());
        if !off(&self.options.health_addr) {
            let listener = listen("--health-addr", &self.options.health_addr).await?;
            let server = Server {
                router: health_router(self.readiness.clone()),
                tls: None,
                limits: serve::DIAGNOSTICS,
                refusals: refusals("health"),
            };
            tasks.spawn(named("the health server", server.run(listener, self.stop.clone())));
        }
        if !off(&self.options.diagnostics_address) {
            let listener = listen("--diagnostics-address", &self.options.diagnostics_address).await?;
            let (router, tls) = if self.options.insecure_diagnostics {
                (metrics_router(metrics.clone()), None)
            } else {
                let own = OwnCertificate::make(&["localhost"])?;
                (guarded_metrics_router(metrics.clone(), client), Some(own.serving.server_config()?))
            };
            let server =
                Server { router, tls, limits: serve::DIAGNOSTICS, refusals: refusals("diagnostics") };
            tasks.spawn(named("the diagnostics server", server.run(listener, self.stop.clone())));
        }
        if let Some((listener, serving)) = self.prepare_webhooks(tasks).await? {
            let refusals = refusals("webhooks");
            let desk = Desk::new(refusals.clone());
            let converters = std::mem::take(&mut self.converters).router(&desk);
            let server = Server {
                router: converters.merge(std::mem::take(&mut self.admitters).router(&desk)),
                tls: Some(serving.server_config()?),
                limits: serve::WEBHOOKS,
                refusals,
            };
            webhooks.spawn(server.run(listener, self.stop_webhooks.clone()));
        }
        Ok(())
    }

    /// Where webhooks are served and what they show, if they are served at all.
    async fn prepare_webhooks(
        &mut self,
        tasks: &mut JoinSet<&'static str>,
    ) -> Result<Option<(TcpListener, Arc<ServingCertificate>)>, ManagerError> {
        let port = self.options.webhook_port;
        let listen = || async move { listen("--webhook-port", &format!(":{port}")).await };
        let unwanted = port == 0 || (self.converters.is_empty() && self.admitters.is_empty());
        let folder = self.options.webhook_cert_dir.clone();
        let webhooks = std::mem::replace(&mut self.webhooks, Webhooks::Unset);
        if matches!(webhooks, Webhooks::Kept(None, _)) {
            self.linger = LINGER;
        }
        match (webhooks, folder) {
            (Webhooks::On(listener, own), _) => Ok(Some((listener, own.serving))),
            (Webhooks::Kept(Some(listener), identity), _) => {
                Ok(Some((listener, self.keep_certificates(identity, tasks))))
            }
            _ if unwanted => Ok(None),
            (_, Some(folder)) => {
                let folder = CertificateFolder::open(&folder).await?;
                let (listener, serving) = (listen().await?, folder.serving());
                tasks.spawn(named("the certificate's follower", folder.follow()));
                Ok(Some((listener, serving)))
            }
            (Webhooks::Kept(None, identity), None) => {
                let listener = listen().await?;
                Ok(Some((listener, self.keep_certificates(identity, tasks))))
            }
            (Webhooks::Unset, None) => {
                info!(
                    "no webhooks are served: $POD_NAMESPACE is not set, nor is --webhook-namespace, --webhook-service or --webhook-cert-dir"
                );
                Ok(None)
            }
        }
    }

    fn keep_certificates(
        &self,
        identity: WebhookIdentity,
        tasks: &mut JoinSet<&'static str>,
    ) -> Arc<ServingCertificate> {
        let serving = ServingCertificate::awaited();
        let gate = self.readiness.gate("the webhooks' certificate");
        let crds = self.converters.kinds().map(|kind| crd_name(&kind.group, &kind.kind)).collect();
        // Every replica serves webhooks and records events, whether it leads or not.
        let (recorder, write) =
            Recorder::new(self.client.clone(), Leadership::always(), self.metrics.clone(), "webhooks");
        tasks.spawn(named("the webhooks' event writer", write));
        let client = self.client.clone();
        let keeper = Keeper::new(client, identity, crds, Arc::clone(&serving), gate, recorder);
        tasks.spawn(named("the certificates' keeper", keeper.run()));
        serving
    }
}

/// How webhooks are served.
enum Webhooks {
    /// As the flags say.
    Unset,
    On(TcpListener, OwnCertificate),
    Kept(Option<TcpListener>, WebhookIdentity),
}

async fn named(name: &'static str, run: impl Future<Output = ()>) -> &'static str {
    run.await;
    name
}
