//! A watch that forgets nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api, ResourceExt,
    api::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use super::{
    Error,
    history::{History, Mark, State},
};

/// Records every state of every object of a kind in a namespace.
#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    histories: Mutex<BTreeMap<String, History>>,
    /// How many times something happened, and whether the first list is complete.
    news: watch::Sender<(u64, bool)>,
    trouble: Mutex<Option<String>>,
    began: Instant,
    real_core: bool,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Recorder {
    /// Begins, and waits until the watch is established.
    pub(crate) async fn start(
        objects: Api<DynamicObject>,
        kind: &str,
        limit: Duration,
        real_core: bool,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            histories: Mutex::default(),
            news: watch::Sender::new((0, false)),
            trouble: Mutex::default(),
            began: Instant::now(),
            real_core,
        });
        let mut news = shared.news.subscribe();
        let task = tokio::spawn(record(objects, Arc::clone(&shared)));
        let recorder = Self { shared, task };
        let begun = tokio::time::timeout(limit, news.wait_for(|(_, complete)| *complete)).await;
        if !matches!(begun, Ok(Ok(_))) {
            let why = lock(&recorder.shared.trouble).clone();
            let why = why.unwrap_or_else(|| format!("the server did not answer within {limit:?}"));
            return Err(Error::Watch { kind: kind.to_owned(), why });
        }
        Ok(recorder)
    }

    /// Notes that a write was the fake core's.
    pub(crate) fn note_ours(&self, name: &str, version: String) {
        self.shared.with(name, |history| history.ours.insert(version));
    }

    /// Notes what core did with a write.
    pub(crate) fn note_mark(&self, name: &str, version: String, mark: Mark) {
        self.shared.with(name, |history| history.marks.push((version, mark)));
    }

    /// Reads the history of an object.
    pub(crate) fn read<T>(&self, name: &str, read: impl FnOnce(&History) -> T) -> T {
        self.shared.with(name, |history| read(history))
    }

    /// All histories.
    pub(crate) fn all(&self) -> Vec<History> {
        lock(&self.shared.histories).values().cloned().collect()
    }

    /// Waits until the history of an object has what is looked for.
    pub(crate) async fn until<T>(
        &self,
        name: &str,
        limit: Duration,
        find: impl Fn(&History) -> Option<T>,
    ) -> Option<T> {
        let mut news = self.shared.news.subscribe();
        let wait = async {
            loop {
                if let Some(found) = self.read(name, &find) {
                    return found;
                }
                if news.changed().await.is_err() {
                    future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.ok()
    }

    /// The same, but gives up once nothing was written for a while.
    pub(crate) async fn until_or_quiet<T>(
        &self,
        name: &str,
        quiet: Duration,
        limit: Duration,
        find: impl Fn(&History) -> Option<T>,
    ) -> Option<T> {
        enum Seen<T> {
            Found(T),
            More,
        }
        let end = Instant::now() + limit;
        loop {
            let before = self.read(name, |history| history.states.len());
            let patience = quiet.min(end.saturating_duration_since(Instant::now()));
            let seen = self.until(name, patience, |history| match find(history) {
                Some(found) => Some(Seen::Found(found)),
                None => (history.states.len() > before).then_some(Seen::More),
            });
            match seen.await {
                Some(Seen::Found(found)) => return Some(found),
                Some(Seen::More) => {}
                None => return None,
            }
        }
    }
}

impl Shared {
    fn with<T>(&self, name: &str, act: impl FnOnce(&mut History) -> T) -> T {
        let mut histories = lock(&self.histories);
        let history = histories.entry(name.to_owned()).or_insert_with(|| History {
            name: name.to_owned(),
            real_core: self.real_core,
            ..History::default()
        });
        act(history)
    }

    fn add(&self, object: &DynamicObject, gone: bool) {
        let Ok(object_value) = serde_json::to_value(object) else { return };
        let at = self.began.elapsed();
        self.with(&object.name_any(), |history| {
            // A restarted watch lists known objects again.
            let known = history.states.last().is_some_and(|last| last.object == object_value && !gone);
            if !known {
                history.states.push(State { at, object: object_value, gone });
            }
        });
        self.news.send_modify(|(count, _)| *count += 1);
    }

    /// Ends the histories of objects that a new list no longer shows.
    fn end_all_but(&self, listed: &BTreeSet<String>) {
        let at = self.began.elapsed();
        for (name, history) in lock(&self.histories).iter_mut() {
            if !listed.contains(name)
                && let Some(object) = history.current().cloned()
            {
                history.states.push(State { at, object, gone: true });
            }
        }
        self.news.send_modify(|(count, complete)| (*count, *complete) = (*count + 1, true));
    }
}

async fn record(objects: Api<DynamicObject>, shared: Arc<Shared>) {
    let mut events = pin!(watcher(objects, watcher::Config::default()).default_backoff());
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(object.name_any());
                shared.add(&object, false);
            }
            Ok(Event::InitDone) => shared.end_all_but(&listed),
            Ok(Event::Apply(object)) => shared.add(&object, false),
            Ok(Event::Delete(object)) => shared.add(&object, true),
            // The stream mends itself; the last error explains a watch that never begins.
            Err(error) => *lock(&shared.trouble) = Some(error.to_string()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resourceVersion of an answer.
pub(crate) fn version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

/// The uid of an answer.
pub(crate) fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
