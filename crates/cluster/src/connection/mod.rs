//! Connections to workload clusters: one for each Cluster that is provisioned and has a kubeconfig Secret.
//!
//! Three queues do the work, so that servers which hang hold up only each other: *attempts* try a kubeconfig for the
//! first time, *retries* try it again later, *probes* ask the connected ones whether they are still there. Namespaces take
//! turns in each, and none gets all workers. All run on the leader alone. A Cluster is woken only when it would have
//! something else to say.

mod access;
mod health;
mod pace;
mod probe;
mod retry;
pub(crate) mod secrets;

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use capstan_api::names::{label, secret};
use capstan_runtime::{
    ObjectKey,
    cache::Cache,
    client::ClientOptions,
    clock,
    controller::{Next, Reconciler},
    events::Recorder,
    manager::Manager,
    metrics::Metrics,
    queue::Queue,
    watch::{Change, Listener, WatchHandle, WatchState},
    writer::{WriteError, Writer},
};
use kube::Client;
use tokio::time::Instant;
use tracing::{debug, info};

pub use self::health::Health;
pub(crate) use self::health::{CONDITION, report, stale_after};
use self::{
    health::FAILURES_TO_DISCONNECT,
    pace::Pace,
    probe::probe,
    retry::back_off,
    secrets::{Content, Mark, SecretRecord, cluster_of, kubeconfig_in, secret_of},
};
use crate::{
    known::KnownCluster,
    kubeconfig::{Keeper, Kubeconfigs},
};

/// How many kubeconfigs are made at the same time.
const KUBECONFIG_WORKERS: usize = 10;
const FIELD_MANAGER: &str = "capstan-cluster";

/// How workload clusters are connected to.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionOptions {
    /// First attempts at the same time, and as many retries, and as many probes.
    pub concurrency: usize,
    /// Requests a second to each workload cluster; 0 for no limit.
    pub client_qps: f64,
    /// Requests at once beyond that.
    pub client_burst: u32,
    /// How long a workload cluster may be silent before its Cluster says so.
    pub grace_period: Duration,
    /// How often a connected workload cluster is asked whether it is there.
    pub probe_period: Duration,
    /// How long it may take to answer.
    pub probe_limit: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            concurrency: 100,
            client_qps: 20.0,
            client_burst: 30,
            grace_period: Duration::from_secs(50),
            probe_period: Duration::from_secs(10),
            probe_limit: Duration::from_secs(5),
        }
    }
}

/// There is no connection to a workload cluster now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no connection to the workload cluster of Cluster {cluster}: {reason}")]
pub struct NotConnected {
    cluster: ObjectKey,
    reason: String,
}

/// The connections to all workload clusters. Clones share them.
#[derive(Clone, Debug)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    options: ConnectionOptions,
    clusters: Cache<KnownCluster>,
    secrets: Cache<SecretRecord>,
    secrets_watch: OnceLock<Arc<WatchHandle>>,
    accessors: Mutex<HashMap<ObjectKey, Accessor>>,
    pace: Mutex<Pace<ObjectKey>>,
    writer: Writer,
    attempts: Arc<Queue<ObjectKey>>,
    retries: Arc<Queue<ObjectKey>>,
    probes: Arc<Queue<ObjectKey>>,
    /// Clusters that have something else to say.
    readers: Arc<Queue<ObjectKey>>,
    kubeconfigs: Arc<Kubeconfigs>,
    metrics: Metrics,
    connections_made: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A kubeconfig by its mark, or why there is none in its Secret.
type Kubeconfig = Result<Mark, String>;

/// What is known of one workload cluster.
struct Accessor {
    /// What the last attempt was made with.
    tried: Option<Kubeconfig>,
    failed_attempts: u32,
    /// When to try again.
    retry_at: Option<Instant>,
    connected: Option<Connected>,
    health: Health,
}

impl Accessor {
    /// After which wait a kubeconfig is to be tried. Each of the two queues leaves to the other what is its own: a
    /// Cluster that changes during its first attempt must not bring about a second one without a wait.
    fn due(&self, kubeconfig: &Kubeconfig, retries: bool, now: Instant) -> Option<Duration> {
        let is_tried = self.tried.as_ref() == Some(kubeconfig);
        let has_failed = is_tried && self.failed_attempts > 0;
        if (is_tried && self.connected.is_some()) || has_failed != retries {
            return None;
        }
        if has_failed {
            // Without a time, nothing but another kubeconfig helps.
            return self.retry_at.map(|at| at.saturating_duration_since(now));
        }
        Some(Duration::ZERO)
    }
}

#[derive(Clone)]
struct Connected {
    /// Tells this connection from those before and after it.
    number: u64,
    client: Client,
    address: Arc<str>,
    asked: Instant,
}

/// Adds the connections, and what makes kubeconfigs, to a manager.
pub(crate) fn register(
    manager: &mut Manager,
    options: ConnectionOptions,
    clusters: &Cache<KnownCluster>,
    readers: &Arc<Queue<ObjectKey>>,
    recorder: Recorder,
) -> Connections {
    let queue = || Arc::new(Queue::fair(options.concurrency, |key: &ObjectKey| &key.namespace));
    let secrets = Cache::<SecretRecord>::default();
    let kubeconfigs = Arc::new(Kubeconfigs::new(Arc::clone(readers)));
    let shared = Arc::new(Shared {
        options,
        clusters: clusters.clone(),
        secrets: secrets.clone(),
        secrets_watch: OnceLock::new(),
        accessors: Mutex::default(),
        pace: Mutex::default(),
        writer: manager.writer(FIELD_MANAGER),
        attempts: queue(),
        retries: queue(),
        probes: queue(),
        readers: Arc::clone(readers),
        kubeconfigs: Arc::clone(&kubeconfigs),
        metrics: manager.metrics(),
        connections_made: AtomicU64::new(0),
    });
    let watch = manager.watch_secrets(
        label::CLUSTER_NAME,
        SecretRecord::new,
        &secrets,
        SecretListener(Arc::clone(&shared)),
    );
    let _ = shared.secrets_watch.set(Arc::clone(&watch));
    let workers = options.concurrency;
    let first = Connector { shared: Arc::clone(&shared), retries: false };
    manager.controller("clustercache", &shared.attempts, Arc::new(first), workers);
    let again = Connector { shared: Arc::clone(&shared), retries: true };
    manager.controller("clustercache-retry", &shared.retries, Arc::new(again), workers);
    manager.controller("clustercache-probe", &shared.probes, Arc::new(Prober(Arc::clone(&shared))), workers);
    let keeper = Keeper {
        clusters: clusters.clone(),
        secrets,
        secrets_watch: watch,
        kubeconfigs: Arc::clone(&kubeconfigs),
        writer: manager.writer(FIELD_MANAGER),
        recorder,
    };
    manager.controller("kubeconfig", &kubeconfigs.queue, Arc::new(keeper), KUBECONFIG_WORKERS);
    Connections { shared }
}

impl Connections {
    /// How the connection to a Cluster's workload cluster fares.
    pub fn health(&self, cluster: &ObjectKey) -> Health {
        self.shared.health(cluster)
    }

    /// A client of a Cluster's workload cluster.
    pub fn client(&self, cluster: &ObjectKey) -> Result<Client, NotConnected> {
        let connected = self.shared.connected(cluster);
        connected.map(|connected| connected.client).ok_or_else(|| {
            let reason =
                self.health(cluster).trouble.unwrap_or_else(|| "it is not established yet".to_owned());
            NotConnected { cluster: cluster.clone(), reason }
        })
    }

    /// How long a workload cluster may be silent.
    pub fn grace_period(&self) -> Duration {
        self.shared.options.grace_period
    }

    /// Takes in that something about a Cluster may be different.
    pub(crate) fn observe(&self, cluster: &ObjectKey) {
        self.shared.observe(cluster);
    }
}

impl Shared {
    fn accessors(&self) -> MutexGuard<'_, HashMap<ObjectKey, Accessor>> {
        self.accessors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self, cluster: &ObjectKey) -> Option<Connected> {
        self.accessors().get(cluster)?.connected.clone()
    }

    fn kubeconfig(&self, cluster: &ObjectKey) -> Option<Kubeconfig> {
        match &self.secrets.get(&secret_of(cluster, secret::KUBECONFIG))?.content {
            Content::Kubeconfig(kubeconfig) => Some(kubeconfig.clone()),
            Content::Authority(_) => None,
        }
    }

    fn health(&self, cluster: &ObjectKey) -> Health {
        if let Some(accessor) = self.accessors().get(cluster) {
            return accessor.health.clone();
        }
        let state = self.secrets_watch.get().map(|watch| watch.state());
        let (undecided, trouble) = match state {
            Some(WatchState::Failing(error)) => (false, Some(format!("cannot watch Secrets: {error}"))),
            Some(WatchState::Synced) => (false, self.kubeconfigs.trouble(cluster)),
            _ => (true, None),
        };
        Health { trouble, undecided, ..Health::default() }
    }

    fn is_troubled(&self, cluster: &ObjectKey) -> bool {
        self.accessors().get(cluster).is_some_and(|accessor| accessor.health.trouble.is_some())
    }

    /// Begins, renews or ends a connection, as the Cluster and its Secret ask for.
    fn observe(&self, key: &ObjectKey) {
        enum Step {
            Attempt,
            End,
            Nothing,
        }
        let cluster = self.clusters.get(key);
        let bare = cluster.as_deref().map(KnownCluster::bare);
        self.kubeconfigs.observe(key, bare, || self.is_troubled(key));
        let wanted =
            cluster.filter(|cluster| cluster.bare().was_provisioned()).and_then(|_| self.kubeconfig(key));
        let step = {
            let mut accessors = self.accessors();
            match (wanted, accessors.get(key)) {
                (Some(_), None) => {
                    let health = Health { undecided: true, ..Health::default() };
                    let accessor =
                        Accessor { tried: None, failed_attempts: 0, retry_at: None, connected: None, health };
                    accessors.insert(key.clone(), accessor);
                    Step::Attempt
                }
                (Some(kubeconfig), Some(accessor)) if accessor.tried.as_ref() != Some(&kubeconfig) => {
                    Step::Attempt
                }
                (None, Some(_)) => {
                    accessors.remove(key);
                    Step::End
                }
                _ => Step::Nothing,
            }
        };
        match step {
            Step::Attempt => self.attempts.add(key.clone()),
            Step::End => {
                self.metrics.remote_gone(key);
                self.readers.add(key.clone());
            }
            Step::Nothing => {}
        }
    }

    /// The kubeconfig to connect with and the wait before, unless there is nothing to do.
    fn due(&self, key: &ObjectKey, retries: bool) -> Option<Due> {
        let (kubeconfig, now) = (self.kubeconfig(key)?, Instant::now());
        let accessors = self.accessors();
        let accessor = accessors.get(key)?;
        let wait = accessor.due(&kubeconfig, retries, now)?;
        let is_change = accessor.tried.as_ref() != Some(&kubeconfig);
        drop(accessors);
        let wait = if is_change { wait.max(self.pace().wait(key, now)) } else { wait };
        Some(Due { kubeconfig, is_change, wait })
    }

    fn pace(&self) -> MutexGuard<'_, Pace<ObjectKey>> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(
        &self,
        key: &ObjectKey,
        text: Result<Vec<u8>, &String>,
    ) -> Result<Connected, AttemptError> {
        let name = secret_of(key, secret::KUBECONFIG).name;
        let lasting = |words: String| AttemptError::lasting(format!("Secret {name}: {words}"));
        let text = text.map_err(|words| lasting(words.clone()))?;
        let options = ClientOptions {
            qps: self.options.client_qps,
            burst: self.options.client_burst,
            ..ClientOptions::default()
        };
        let unusable = |words| lasting(format!("key {} cannot be used: {words}", secret::VALUE_KEY));
        let (client, address) = access::client(&text, &options).map_err(unusable)?;
        // What may be large is not held while the server is waited for.
        drop(text);
        let address: Arc<str> = address.into();
        probe(&client, &address, self.options.probe_limit)
            .await
            .map_err(|failure| AttemptError { words: failure.words, lasting: false })?;
        let number = self.connections_made.fetch_add(1, Ordering::Relaxed);
        Ok(Connected { number, client, address, asked: Instant::now() })
    }

    /// Takes in how an attempt ended; says after which wait to try again, if at all.
    fn attempted(
        &self,
        key: &ObjectKey,
        tried: Kubeconfig,
        result: Result<Connected, AttemptError>,
    ) -> Option<Duration> {
        if self.kubeconfig(key).as_ref() != Some(&tried) {
            // The Secret was changed meanwhile: this tells nothing any more.
            self.attempts.add(key.clone());
            return None;
        }
        let mut accessors = self.accessors();
        let accessor = accessors.get_mut(key)?;
        if accessor.tried.as_ref() != Some(&tried) {
            // What an earlier one has earned is none of this one's business.
            accessor.failed_attempts = 0;
            accessor.tried = Some(tried);
        }
        accessor.retry_at = None;
        let was_connected = accessor.connected.is_some();
        let is_connected = result.is_ok();
        self.metrics.remote_checked(key, is_connected);
        self.metrics.remote_up(key, is_connected);
        let (news, wait) = match result {
            Ok(connected) => {
                info!(cluster = %key, address = %connected.address, "connected to the workload cluster");
                accessor.failed_attempts = 0;
                accessor.connected = Some(connected);
                (accessor.health.succeeded(clock::now()), None)
            }
            Err(AttemptError { words, lasting }) => {
                accessor.failed_attempts = accessor.failed_attempts.saturating_add(1);
                accessor.connected = None;
                // What only another kubeconfig can mend is not tried again with this one.
                let wait = (!lasting).then(|| back_off(accessor.failed_attempts, key));
                debug!(cluster = %key, %words, ?wait, "no connection to the workload cluster");
                accessor.retry_at = wait.map(|wait| Instant::now() + wait);
                (accessor.health.failed(words, lasting), wait)
            }
        };
        drop(accessors);
        if is_connected {
            self.probes.add(key.clone());
        }
        self.tell(key, news || was_connected != is_connected, !is_connected);
        wait
    }

    /// Takes in how a probe ended.
    fn probed(&self, key: &ObjectKey, number: u64, result: Result<(), probe::Failure>) -> Next {
        let mut accessors = self.accessors();
        let Some(accessor) = accessors.get_mut(key) else {
            return Next::Settled;
        };
        let Some(connected) = accessor.connected.as_mut().filter(|connected| connected.number == number)
        else {
            return Next::Settled;
        };
        connected.asked = Instant::now();
        let answered = result.is_ok();
        let (news, disconnect) = match result {
            Ok(()) => (accessor.health.succeeded(clock::now()), false),
            Err(failure) => {
                let news = accessor.health.failed(failure.words, false);
                (news, failure.unauthorized || accessor.health.consecutive_failures >= FAILURES_TO_DISCONNECT)
            }
        };
        if disconnect {
            info!(cluster = %key, trouble = accessor.health.trouble, "disconnected from the workload cluster");
            accessor.connected = None;
            accessor.failed_attempts = 0;
            self.metrics.remote_up(key, false);
        }
        self.metrics.remote_checked(key, answered);
        drop(accessors);
        if disconnect {
            self.attempts.add(key.clone());
        }
        self.tell(key, news || disconnect, !answered);
        if disconnect { Next::Settled } else { Next::Again(self.options.probe_period) }
    }

    fn tell(&self, key: &ObjectKey, news: bool, troubled: bool) {
        if news {
            self.readers.add(key.clone());
            self.kubeconfigs.connection_changed(key, troubled);
        }
    }
}

/// An attempt that is to be made.
struct Due {
    kubeconfig: Kubeconfig,
    /// Because the kubeconfig is another one than the one that was tried before.
    is_change: bool,
    wait: Duration,
}

/// Reads a Cluster's kubeconfig past all caches. Nothing if it is another one than the watch has shown.
pub(crate) async fn read_kubeconfig(
    writer: &Writer,
    cluster: &ObjectKey,
    mark: Mark,
) -> Result<Option<Vec<u8>>, WriteError> {
    let found = writer.read_secret(&secret_of(cluster, secret::KUBECONFIG)).await?;
    let text = found.as_ref().and_then(|found| kubeconfig_in(found).ok());
    Ok(text.filter(|text| Mark::of(text) == mark).map(<[u8]>::to_vec))
}

/// An attempt failed.
struct AttemptError {
    words: String,
    /// It would fail again with the same kubeconfig.
    lasting: bool,
}

impl AttemptError {
    fn lasting(words: String) -> Self {
        Self { words, lasting: true }
    }
}

/// Makes connections.
struct Connector {
    shared: Arc<Shared>,
    /// Whether it tries again what has failed, or what is new.
    retries: bool,
}

impl Reconciler for Connector {
    type Error = WriteError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, WriteError> {
        let Some(Due { kubeconfig, is_change, wait }) = self.shared.due(key, self.retries) else {
            return Ok(Next::Settled);
        };
        if !wait.is_zero() {
            return Ok(Next::Again(wait));
        }
        let text = match &kubeconfig {
            Err(words) => Err(words),
            Ok(mark) => match read_kubeconfig(&self.shared.writer, key, *mark).await {
                Ok(Some(text)) => Ok(text),
                Ok(None) => return Ok(Next::Settled),
                Err(error) if error.lasting_refusal().is_some() => {
                    let failed = AttemptError { words: error.to_string(), lasting: false };
                    return Ok(self.ended(key, kubeconfig, Err(failed)));
                }
                Err(error) => return Err(error),
            },
        };
        if is_change {
            self.shared.pace().begin(key, Instant::now());
        }
        let result = self.shared.connect(key, text).await;
        Ok(self.ended(key, kubeconfig, result))
    }

    fn is_noteworthy(&self, error: &WriteError) -> bool {
        !error.is_ordinary()
    }
}

impl Connector {
    fn ended(&self, key: &ObjectKey, tried: Kubeconfig, result: Result<Connected, AttemptError>) -> Next {
        match self.shared.attempted(key, tried, result) {
            Some(wait) if self.retries => Next::Again(wait),
            Some(_) => {
                self.shared.retries.add(key.clone());
                Next::Settled
            }
            None => Next::Settled,
        }
    }
}

/// Asks connected workload clusters whether they are still there.
struct Prober(Arc<Shared>);

impl Reconciler for Prober {
    type Error = Infallible;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Infallible> {
        let Some(connected) = self.0.connected(key) else {
            return Ok(Next::Settled);
        };
        let left = self.0.options.probe_period.saturating_sub(connected.asked.elapsed());
        if !left.is_zero() {
            return Ok(Next::Again(left));
        }
        let result = probe(&connected.client, &connected.address, self.0.options.probe_limit).await;
        Ok(self.0.probed(key, connected.number, result))
    }
}

struct SecretListener(Arc<Shared>);

impl Listener<SecretRecord> for SecretListener {
    fn changed(&self, change: Change<'_, SecretRecord>) {
        let kubeconfig_of = cluster_of(&change.key.name, secret::KUBECONFIG);
        let Some(cluster) = kubeconfig_of.or_else(|| cluster_of(&change.key.name, secret::CA)) else {
            return;
        };
        let cluster = change.key.beside(cluster);
        self.0.kubeconfigs.secret_changed(&cluster);
        if kubeconfig_of.is_some() {
            self.0.observe(&cluster);
        }
    }

    fn state_changed(&self, state: &WatchState) {
        self.0.kubeconfigs.look_at_all();
        // Until now an earlier process was believed that a Cluster is connected. Without a kubeconfig it is not.
        if matches!(state, WatchState::Syncing) {
            return;
        }
        for key in self.0.clusters.keys() {
            let said_good = self.0.clusters.get(&key).is_some_and(|cluster| cluster.says_connected());
            if said_good && self.0.kubeconfig(&key).is_none() {
                self.0.readers.add(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_tries_what_is_its_own() {
        let now = Instant::now();
        let text = |text: &str| -> Kubeconfig { Ok(Mark::of(text.as_bytes())) };
        let soon = Some(Duration::from_secs(3));
        let at_once = Some(Duration::ZERO);
        for (name, tried, failed_attempts, retry_in, first, again) in [
            ("new", None, 0, None, at_once, None),
            ("lost", Some("k"), 0, None, at_once, None),
            ("failed", Some("k"), 1, soon, None, soon),
            ("failed, time has come", Some("k"), 2, at_once, None, at_once),
            ("failed for good", Some("k"), 1, None, None, None),
            ("another one failed", Some("other"), 3, soon, at_once, None),
            ("another one failed for good", Some("other"), 1, None, at_once, None),
        ] {
            let accessor = Accessor {
                tried: tried.map(text),
                failed_attempts,
                retry_at: retry_in.map(|wait| now + wait),
                connected: None,
                health: Health::default(),
            };
            let due = [false, true].map(|retries| accessor.due(&text("k"), retries, now));
            assert_eq!(due, [first, again], "{name}");
        }
    }
}
