//! The loop of a controller: workers take keys off a queue and reconcile them.

use std::{any::Any, error::Error, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::{
    ObjectKey,
    cache::{Cache, Cached},
    leadership::Leadership,
    metrics::{ControllerMetrics, ReconcileResult},
    queue::{Outcome, Queue},
};

/// Limits of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerOptions {
    /// Objects that are reconciled at the same time.
    pub workers: usize,
    /// A reconcile that takes longer than this is cancelled and retried.
    pub reconcile_limit: Duration,
    /// How long running reconciles may continue after the stop signal; then they are cancelled. A process that
    /// has lost leadership does not wait.
    pub drain_limit: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self { workers: 1, reconcile_limit: Duration::from_mins(1), drain_limit: Duration::from_secs(10) }
    }
}

/// When to reconcile the object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Settled,
    /// After this time, or when something changes.
    Again(Duration),
}

/// Reconciles one object.
pub trait Reconciler: Send + Sync + 'static {
    /// Why a reconcile failed.
    type Error: Error + Send + Sync;

    /// Does all that can be done now for one object.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Whether a failure is worth a line at warning level (a conflict, say, is not).
    fn is_noteworthy(&self, _error: &Self::Error) -> bool {
        true
    }
}

/// Runs a controller until it is stopped. Running reconciles then have [`ControllerOptions::drain_limit`] to finish.
pub async fn run<R: Reconciler>(
    name: &'static str,
    queue: Arc<Queue<ObjectKey>>,
    reconciler: Arc<R>,
    options: ControllerOptions,
    leadership: Leadership,
    metrics: ControllerMetrics,
    stop: CancellationToken,
) {
    tokio::select! {
        () = leadership.acquired() => {}
        () = stop.cancelled() => return,
    }
    let ControllerOptions { workers, reconcile_limit, drain_limit } = options;
    metrics.set_workers(workers);
    let mut tasks = JoinSet::new();
    for _ in 0..workers.max(1) {
        let (queue, reconciler) = (Arc::clone(&queue), Arc::clone(&reconciler));
        tasks.spawn(work(name, queue, reconciler, reconcile_limit, metrics.clone()));
    }
    stop.cancelled().await;
    queue.close();
    let drained = tokio::time::timeout(drain_limit, async { while tasks.join_next().await.is_some() {} });
    if drained.await.is_err() {
        warn!(controller = name, limit = ?drain_limit, "cancelling reconciles that did not end in time");
        tasks.shutdown().await;
    }
}

async fn work<R: Reconciler>(
    name: &'static str,
    queue: Arc<Queue<ObjectKey>>,
    reconciler: Arc<R>,
    limit: Duration,
    metrics: ControllerMetrics,
) {
    while let Some((key, waited)) = queue.next().await {
        let started = Instant::now();
        metrics.started(waited);
        let span = info_span!("reconcile", controller = name, object = %key);
        let outcome = reconcile_once(&*reconciler, &key, limit).instrument(span).await;
        let result = match outcome {
            Outcome::Settled => ReconcileResult::Success,
            Outcome::Again(_) => ReconcileResult::RequeueAfter,
            Outcome::Failed => ReconcileResult::Error,
        };
        metrics.finished(result, started.elapsed());
        queue.done(key, outcome);
    }
}

/// A panic or a hang in one object's reconcile is that object's failure, never the controller's.
async fn reconcile_once<R: Reconciler>(reconciler: &R, key: &ObjectKey, limit: Duration) -> Outcome {
    let attempt = AssertUnwindSafe(reconciler.reconcile(key)).catch_unwind();
    match tokio::time::timeout(limit, attempt).await {
        Ok(Ok(Ok(Next::Settled))) => Outcome::Settled,
        Ok(Ok(Ok(Next::Again(delay)))) => Outcome::Again(delay),
        Ok(Ok(Err(failure))) => {
            if reconciler.is_noteworthy(&failure) {
                warn!(error = %with_causes(&failure), "reconcile failed, retrying");
            }
            Outcome::Failed
        }
        Ok(Err(panic)) => {
            error!(panic = %panic_text(&*panic), "reconcile panicked, retrying");
            Outcome::Failed
        }
        Err(_) => {
            error!(?limit, "reconcile took too long, retrying");
            Outcome::Failed
        }
    }
}

/// Queues every object once a period, evenly spread; `between` runs after each round.
pub async fn resync<T: Cached>(
    period: Duration,
    cache: Cache<T>,
    queue: Arc<Queue<ObjectKey>>,
    between: impl Fn() + Send,
) {
    loop {
        let keys = cache.keys();
        let pause = period / u32::try_from(keys.len().max(1)).unwrap_or(u32::MAX);
        if keys.is_empty() {
            tokio::time::sleep(period).await;
        }
        for key in keys {
            tokio::time::sleep(pause).await;
            queue.add(key);
        }
        between();
    }
}

/// An error and what caused it, on one line.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        // Many errors repeat their cause in their own text.
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use super::*;
    use crate::metrics::Metrics;

    /// Takes its time, and counts.
    #[derive(Default)]
    struct Slow {
        takes: Duration,
        started: AtomicUsize,
        finished: AtomicUsize,
    }

    impl Reconciler for Slow {
        type Error = Infallible;

        async fn reconcile(&self, _key: &ObjectKey) -> Result<Next, Infallible> {
            self.started.fetch_add(1, SeqCst);
            tokio::time::sleep(self.takes).await;
            self.finished.fetch_add(1, SeqCst);
            Ok(Next::Settled)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_has_limits_of_its_own() {
        let usual = ControllerOptions::default();
        let hour = Duration::from_hours(1);
        let patient = ControllerOptions { reconcile_limit: 2 * hour, drain_limit: 3 * hour, ..usual };
        for (name, options, takes, stops_after, finished, lasted) in [
            ("quick", usual, 1, 30, 1, 30),
            ("finishes while it drains", usual, 40, 35, 1, 40),
            ("does not finish while it drains", usual, 50, 35, 0, 45),
            ("slower than the limit of a reconcile", usual, 61, 100, 0, 110),
            ("slower than the usual limit", patient, 3_000, 4_000, 1, 4_000),
            ("drains for longer than usual", patient, 3_000, 10, 1, 3_000),
            ("does not drain", ControllerOptions { drain_limit: Duration::ZERO, ..usual }, 40, 35, 0, 35),
        ] {
            let queue = Arc::new(Queue::default());
            queue.add(ObjectKey::new("n", "a"));
            let slow = Arc::new(Slow { takes: Duration::from_secs(takes), ..Slow::default() });
            let stop = CancellationToken::new();
            let metrics = Metrics::default().controller("slow", Arc::clone(&queue));
            let began = Instant::now();
            let leadership = Leadership::always();
            let run = run("slow", queue, Arc::clone(&slow), options, leadership, metrics, stop.clone());
            tokio::join!(run, async {
                tokio::time::sleep(Duration::from_secs(stops_after)).await;
                stop.cancel();
            });
            let seen = (slow.finished.load(SeqCst), began.elapsed().as_secs());
            assert_eq!(seen, (finished, lasted), "{name}");
        }
    }
}
