//! Watches that are broken for longer than a moment: each outage is logged when it begins and when it ends, counted, and
//! listed while it lasts.
//!
//! A watch works again once it brings an event, or once it has been open for a while without an error.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{info, warn};

use crate::metrics::Metrics;

/// Watches break and resume all the time. What lasts longer than this is an outage.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The outages of all watches of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    metrics: Metrics,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    watches: u64,
    lasting: BTreeMap<u64, Lasting>,
}

#[derive(Debug)]
struct Lasting {
    resource: String,
    reason: String,
    since: Instant,
}

impl Outages {
    /// Outages that are counted in these metrics.
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, shared: Arc::default() }
    }

    /// The watches that are broken now, with the time and the reason.
    pub fn list(&self) -> Vec<String> {
        let describe =
            |it: &Lasting| format!("{}, for {}s: {}", it.resource, it.since.elapsed().as_secs(), it.reason);
        lock(&self.shared).lasting.values().map(describe).collect()
    }

    /// The record of one more watch.
    pub(crate) fn record(&self) -> Record {
        let number = {
            let mut shared = lock(&self.shared);
            shared.watches += 1;
            shared.watches
        };
        Record { outages: self.clone(), number, state: Mutex::default() }
    }
}

/// The state of one watch.
#[derive(Debug)]
pub(crate) struct Record {
    outages: Outages,
    number: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    broken_since: Option<Instant>,
    is_reported: bool,
    /// All failures so far.
    failures: u64,
}

impl Record {
    /// Records that the watch is broken. A `lasting` reason is reported at once, any other after a while.
    pub(crate) fn failed(&self, resource: &str, reason: &str, lasting: bool) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        state.failures += 1;
        let since = *state.broken_since.get_or_insert(now);
        if state.is_reported || (!lasting && now - since < GRACE) {
            return;
        }
        state.is_reported = true;
        warn!(resource, reason, "watch is broken, retrying: changes to these objects are not seen");
        self.outages.metrics.watch_broken(resource);
        let lasting = Lasting { resource: resource.to_owned(), reason: reason.to_owned(), since };
        lock(&self.outages.shared).lasting.insert(self.number, lasting);
    }

    /// Records that the watch works.
    pub(crate) fn works(&self, resource: &str) {
        if let Some(outage) = self.clear() {
            info!(resource, ?outage, "watch works again");
        }
    }

    /// Takes in that the server does not serve the kind: there is nothing to watch.
    pub(crate) fn absent(&self, resource: &str) {
        if let Some(outage) = self.clear() {
            info!(resource, ?outage, "the kind is not served, its watch is not broken any more");
        }
    }

    /// The number of the last failure; nothing if the watch works.
    pub(crate) fn last_failure(&self) -> Option<u64> {
        let state = lock(&self.state);
        state.broken_since.map(|_| state.failures)
    }

    /// Ends an outage; says how long it was, if it was reported.
    fn clear(&self) -> Option<Duration> {
        let mut state = lock(&self.state);
        let since = state.broken_since.take();
        if !std::mem::take(&mut state.is_reported) {
            return None;
        }
        lock(&self.outages.shared).lasting.remove(&self.number);
        since.map(|since| since.elapsed())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        lock(&self.outages.shared).lasting.remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_once_it_lasts_and_until_it_ends() {
        let metrics = Metrics::default();
        let outages = Outages::new(metrics.clone());
        let count = || {
            let text = metrics.expose();
            let line = text.lines().find(|line| line.starts_with("capstan_watch_outages_total{"));
            line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
        };
        let record = outages.record();
        let pause = || tokio::time::advance(Duration::from_secs(3));
        record.failed("foos.g", "no way", false);
        pause().await;
        record.failed("foos.g", "no way", false);
        record.works("foos.g");
        pause().await;
        record.failed("foos.g", "no way", false);
        assert_eq!((outages.list().len(), count()), (0, 0), "short outages are nothing to report");
        for _ in 0..3 {
            pause().await;
            record.failed("foos.g", "no way", false);
        }
        assert_eq!((outages.list(), count()), (vec!["foos.g, for 9s: no way".to_owned()], 1));
        record.works("foos.g");
        assert_eq!((outages.list().len(), count()), (0, 1));
        record.failed("foos.g", "forbidden", true);
        assert_eq!((outages.list(), count()), (vec!["foos.g, for 0s: forbidden".to_owned()], 2));
        drop(record);
        assert_eq!(outages.list().len(), 0, "a watch that has ended is not broken");
    }
}
