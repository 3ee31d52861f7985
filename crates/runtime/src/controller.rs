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

/// A reconcile that takes longer than this is given up and tried again.
const RECONCILE_LIMIT: Duration = Duration::from_mins(1);

/// What a reconcile leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Settled,
    /// Look again after a while.
    Again(Duration),
}

/// Brings the world nearer to what one object asks for.
pub trait Reconciler: Send + Sync + 'static {
    /// What can go wrong.
    type Error: Error + Send + Sync;

    /// Does all that can be done now for one object.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// Whether a failure is worth a line at warning level (a conflict, say, is not).
    fn is_noteworthy(&self, _error: &Self::Error) -> bool {
        true
    }
}

/// Runs a controller until it is told to stop; what is at work then is finished.
pub async fn run<R: Reconciler>(
    name: &'static str,
    queue: Arc<Queue<ObjectKey>>,
    reconciler: Arc<R>,
    workers: usize,
    leadership: Leadership,
    metrics: ControllerMetrics,
    stop: CancellationToken,
) {
    tokio::select! {
        () = leadership.acquired() => {}
        () = stop.cancelled() => return,
    }
    metrics.set_workers(workers);
    let mut tasks = JoinSet::new();
    for _ in 0..workers.max(1) {
        tasks.spawn(work(name, Arc::clone(&queue), Arc::clone(&reconciler), metrics.clone()));
    }
    stop.cancelled().await;
    queue.close();
    while tasks.join_next().await.is_some() {}
}

async fn work<R: Reconciler>(
    name: &'static str,
    queue: Arc<Queue<ObjectKey>>,
    reconciler: Arc<R>,
    metrics: ControllerMetrics,
) {
    while let Some((key, waited)) = queue.next().await {
        let started = Instant::now();
        metrics.started(waited);
        let span = info_span!("reconcile", controller = name, object = %key);
        let outcome = reconcile_once(&*reconciler, &key).instrument(span).await;
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
async fn reconcile_once<R: Reconciler>(reconciler: &R, key: &ObjectKey) -> Outcome {
    let attempt = AssertUnwindSafe(reconciler.reconcile(key)).catch_unwind();
    match tokio::time::timeout(RECONCILE_LIMIT, attempt).await {
        Ok(Ok(Ok(Next::Settled))) => Outcome::Settled,
        Ok(Ok(Ok(Next::Again(delay)))) => Outcome::Again(delay),
        Ok(Ok(Err(failure))) => {
            if reconciler.is_noteworthy(&failure) {
                warn!(error = %with_causes(&failure), "reconcile failed, trying again");
            }
            Outcome::Failed
        }
        Ok(Err(panic)) => {
            error!(panic = %panic_text(&*panic), "reconcile panicked, trying again");
            Outcome::Failed
        }
        Err(_) => {
            error!(limit = ?RECONCILE_LIMIT, "reconcile took too long, trying again");
            Outcome::Failed
        }
    }
}

/// Asks for every object from time to time, spread over the period; `between` runs after each round.
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
