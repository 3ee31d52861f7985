//! Metrics under the names that controller-runtime's dashboards know.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{ObjectKey, queue::Queue};

/// All metrics of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Mutex<Registry>,
    reconciles: Family<ReconcileLabels, Counter>,
    capi_reconciles: Family<ReconcileLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    reconcile_seconds: Family<ControllerLabels, Histogram>,
    active_workers: Family<ControllerLabels, Gauge>,
    max_workers: Family<ControllerLabels, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    queue_seconds: Family<QueueLabels, Histogram>,
    work_seconds: Family<QueueLabels, Histogram>,
    requests: Family<RequestLabels, Counter>,
    leading: Family<LeaseLabels, Gauge>,
    events_dropped: Counter,
    refused: Family<RefusalLabels, Counter>,
    watch_outages: Family<WatchLabels, Counter>,
    remote_health: Family<RemoteLabels, Gauge>,
    remote_checks: Family<RemoteCheckLabels, Counter>,
    remote_up: Family<RemoteLabels, Gauge>,
    queues: Mutex<Vec<(QueueLabels, Arc<Queue<ObjectKey>>)>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    host: String,
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    server: &'static str,
    limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RemoteLabels {
    cluster_name: String,
    cluster_namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RemoteCheckLabels {
    cluster_name: String,
    cluster_namespace: String,
    status: &'static str,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Nothing is left to do.
    Success,
    /// It will be looked at again after a while.
    RequeueAfter,
    /// It failed.
    Error,
}

impl ReconcileResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let reconcile_buckets = || {
            Histogram::new([
                0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8,
                0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0,
                20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
            ])
        };
        let queue_buckets =
            || Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0]);
        let inner = Inner {
            registry: Mutex::new(Registry::default()),
            reconciles: Family::default(),
            capi_reconciles: Family::default(),
            errors: Family::default(),
            reconcile_seconds: Family::new_with_constructor(reconcile_buckets),
            active_workers: Family::default(),
            max_workers: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queue_seconds: Family::new_with_constructor(queue_buckets),
            work_seconds: Family::new_with_constructor(queue_buckets),
            requests: Family::default(),
            leading: Family::default(),
            events_dropped: Counter::default(),
            refused: Family::default(),
            watch_outages: Family::default(),
            remote_health: Family::default(),
            remote_checks: Family::default(),
            remote_up: Family::default(),
            queues: Mutex::default(),
        };
        {
            let mut registry = inner.registry.lock().unwrap_or_else(PoisonError::into_inner);
            let r = &mut *registry;
            // The encoder adds "_total" to counters.
            r.register(
                "controller_runtime_reconcile",
                "Reconciles by controller and result",
                inner.reconciles.clone(),
            );
            r.register(
                "controller_runtime_reconcile_errors",
                "Failed reconciles by controller",
                inner.errors.clone(),
            );
            r.register(
                "controller_runtime_reconcile_time_seconds",
                "Length of a reconcile by controller",
                inner.reconcile_seconds.clone(),
            );
            r.register(
                "controller_runtime_active_workers",
                "Workers that are reconciling",
                inner.active_workers.clone(),
            );
            r.register(
                "controller_runtime_max_concurrent_reconciles",
                "Workers by controller",
                inner.max_workers.clone(),
            );
            r.register(
                "capi_reconcile",
                "Reconciles by controller and result",
                inner.capi_reconciles.clone(),
            );
            r.register("workqueue_depth", "Keys that wait for a worker", inner.depth.clone());
            r.register("workqueue_adds", "Keys added to the queue", inner.adds.clone());
            r.register("workqueue_retries", "Keys added again after a failure", inner.retries.clone());
            r.register(
                "workqueue_queue_duration_seconds",
                "How long a key waited for a worker",
                inner.queue_seconds.clone(),
            );
            r.register(
                "workqueue_work_duration_seconds",
                "How long a worker had a key",
                inner.work_seconds.clone(),
            );
            r.register(
                "rest_client_requests",
                "Requests to the API server by method, host and code",
                inner.requests.clone(),
            );
            r.register(
                "leader_election_master_status",
                "1 while this process holds the Lease",
                inner.leading.clone(),
            );
            r.register(
                "capstan_events_dropped",
                "Events not written because too many were waiting",
                inner.events_dropped.clone(),
            );
            r.register(
                "capstan_requests_refused",
                "Connections and requests turned away, by server and the limit that they hit",
                inner.refused.clone(),
            );
            r.register(
                "capstan_watch_outages",
                "Times that a watch was broken for longer than a few seconds, by resource",
                inner.watch_outages.clone(),
            );
            r.register(
                "capi_cluster_cache_healthcheck",
                "1 if the workload cluster answered when it was last asked",
                inner.remote_health.clone(),
            );
            r.register(
                "capi_cluster_cache_healthchecks",
                "Answers and failures of workload clusters that were asked",
                inner.remote_checks.clone(),
            );
            r.register(
                "capi_cluster_cache_connection_up",
                "1 while there is a connection to the workload cluster",
                inner.remote_up.clone(),
            );
        }
        Self { inner: Arc::new(inner) }
    }
}

impl Metrics {
    /// The metrics of one controller and its queue.
    pub fn controller(&self, name: &str, queue: Arc<Queue<ObjectKey>>) -> ControllerMetrics {
        let labels = QueueLabels { name: name.to_owned(), controller: name.to_owned() };
        self.inner.queues.lock().unwrap_or_else(PoisonError::into_inner).push((labels.clone(), queue));
        ControllerMetrics {
            metrics: self.clone(),
            name: ControllerLabels { controller: name.to_owned() },
            labels,
        }
    }

    /// Counts a request to the API server.
    pub fn request(&self, method: &str, host: &str, code: &str) {
        let labels =
            RequestLabels { code: code.to_owned(), host: host.to_owned(), method: method.to_owned() };
        self.inner.requests.get_or_create(&labels).inc();
    }

    /// Says whether this process leads.
    pub fn leading(&self, lease: &str, leads: bool) {
        self.inner.leading.get_or_create(&LeaseLabels { name: lease.to_owned() }).set(i64::from(leads));
    }

    /// Counts an event that was not written.
    pub fn event_dropped(&self) {
        self.inner.events_dropped.inc();
    }

    /// Counts a caller that a server turned away.
    pub(crate) fn refused(&self, server: &'static str, limit: &'static str) {
        self.inner.refused.get_or_create(&RefusalLabels { server, limit }).inc();
    }

    /// Counts an outage of a watch.
    pub fn watch_broken(&self, resource: &str) {
        self.inner.watch_outages.get_or_create(&WatchLabels { resource: resource.to_owned() }).inc();
    }

    /// Says whether a Cluster's workload cluster answered when it was asked.
    pub fn remote_checked(&self, cluster: &ObjectKey, answered: bool) {
        let labels = RemoteLabels::new(cluster);
        self.inner.remote_health.get_or_create(&labels).set(i64::from(answered));
        let status = if answered { "success" } else { "error" };
        self.inner.remote_checks.get_or_create(&labels.with_status(status)).inc();
    }

    /// Says whether there is a connection to a Cluster's workload cluster.
    pub fn remote_up(&self, cluster: &ObjectKey, up: bool) {
        self.inner.remote_up.get_or_create(&RemoteLabels::new(cluster)).set(i64::from(up));
    }

    /// Forgets a Cluster's workload cluster.
    pub fn remote_gone(&self, cluster: &ObjectKey) {
        let labels = RemoteLabels::new(cluster);
        self.inner.remote_health.remove(&labels);
        self.inner.remote_up.remove(&labels);
        for status in ["success", "error"] {
            self.inner.remote_checks.remove(&labels.with_status(status));
        }
    }

    /// The exposition in OpenMetrics' text form.
    pub fn expose(&self) -> String {
        for (labels, queue) in self.inner.queues.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let figures = queue.figures();
            self.inner.depth.get_or_create(labels).set(i64::try_from(figures.depth).unwrap_or(i64::MAX));
            raise(&self.inner.adds.get_or_create(labels), figures.adds);
            raise(&self.inner.retries.get_or_create(labels), figures.retries);
        }
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &self.inner.registry.lock().unwrap_or_else(PoisonError::into_inner));
        text
    }
}

impl RemoteLabels {
    fn new(cluster: &ObjectKey) -> Self {
        Self { cluster_name: cluster.name.to_string(), cluster_namespace: cluster.namespace.to_string() }
    }

    fn with_status(&self, status: &'static str) -> RemoteCheckLabels {
        RemoteCheckLabels {
            cluster_name: self.cluster_name.clone(),
            cluster_namespace: self.cluster_namespace.clone(),
            status,
        }
    }
}

fn raise(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

/// The metrics of one controller.
#[derive(Clone, Debug)]
pub struct ControllerMetrics {
    metrics: Metrics,
    name: ControllerLabels,
    labels: QueueLabels,
}

impl ControllerMetrics {
    /// Says how many workers there are.
    pub fn set_workers(&self, workers: usize) {
        let gauge = self.metrics.inner.max_workers.get_or_create(&self.name);
        gauge.set(i64::try_from(workers).unwrap_or(i64::MAX));
    }

    /// A worker took a key that had waited that long.
    pub fn started(&self, waited: Duration) {
        self.metrics.inner.queue_seconds.get_or_create(&self.labels).observe(waited.as_secs_f64());
        self.metrics.inner.active_workers.get_or_create(&self.name).inc();
    }

    /// A worker is done with a key.
    pub fn finished(&self, result: ReconcileResult, took: Duration) {
        let inner = &self.metrics.inner;
        let labels = ReconcileLabels { controller: self.name.controller.clone(), result: result.as_str() };
        inner.active_workers.get_or_create(&self.name).dec();
        inner.reconciles.get_or_create(&labels).inc();
        inner.capi_reconciles.get_or_create(&labels).inc();
        if result == ReconcileResult::Error {
            inner.errors.get_or_create(&self.name).inc();
        }
        inner.reconcile_seconds.get_or_create(&self.name).observe(took.as_secs_f64());
        inner.work_seconds.get_or_create(&self.labels).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_controller_runtime() {
        let metrics = Metrics::default();
        let queue = Arc::new(Queue::default());
        queue.add(ObjectKey::new("n", "a"));
        let controller = metrics.controller("cluster", queue);
        controller.set_workers(3);
        controller.started(Duration::ZERO);
        controller.finished(ReconcileResult::Error, Duration::from_millis(1));
        metrics.request("GET", "h", "200");
        metrics.leading("lease", true);
        let text = metrics.expose();
        for line in [
            "controller_runtime_reconcile_total{controller=\"cluster\",result=\"error\"} 1",
            "controller_runtime_reconcile_errors_total{controller=\"cluster\"} 1",
            "controller_runtime_reconcile_time_seconds_count{controller=\"cluster\"} 1",
            "controller_runtime_max_concurrent_reconciles{controller=\"cluster\"} 3",
            "workqueue_depth{name=\"cluster\",controller=\"cluster\"} 1",
            "workqueue_adds_total{name=\"cluster\",controller=\"cluster\"} 1",
            "rest_client_requests_total{code=\"200\",host=\"h\",method=\"GET\"} 1",
            "leader_election_master_status{name=\"lease\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn a_workload_cluster_is_reported_until_its_cluster_goes() {
        let (metrics, cluster) = (Metrics::default(), ObjectKey::new("n", "c"));
        metrics.remote_up(&cluster, true);
        metrics.remote_checked(&cluster, true);
        metrics.remote_checked(&cluster, false);
        let labels = "cluster_name=\"c\",cluster_namespace=\"n\"";
        let text = metrics.expose();
        for line in [
            format!("capi_cluster_cache_healthcheck{{{labels}}} 0"),
            format!("capi_cluster_cache_healthchecks_total{{{labels},status=\"success\"}} 1"),
            format!("capi_cluster_cache_healthchecks_total{{{labels},status=\"error\"}} 1"),
            format!("capi_cluster_cache_connection_up{{{labels}}} 1"),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
        metrics.remote_gone(&cluster);
        assert!(!metrics.expose().contains(labels));
    }
}
