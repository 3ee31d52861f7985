//! The watch hub: kinds that become known only at run time, each watched once.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::contract::GroupKind;
use kube::{Client, core::ApiResource};
use tokio::task::JoinHandle;

use crate::{
    ObjectKey,
    cache::{Cache, Cached},
    observed::Observed,
    outages::Outages,
    watch::{Change, Listener, WatchHandle, WatchState, WatchTarget, watch},
};

/// Listens to all watches of a hub.
pub trait HubListener<T>: Send + Sync + 'static {
    /// An object of that kind was created, changed or deleted.
    fn changed(&self, kind: &GroupKind, change: Change<'_, T>);
    /// The watch on that kind became synced, absent or failing.
    fn state_changed(&self, kind: &GroupKind, state: &WatchState);
}

/// Watches each kind once, on demand.
pub struct Hub<T: Cached> {
    client: Client,
    namespace: Option<String>,
    project: fn(&GroupKind, Observed) -> T,
    listener: Arc<dyn HubListener<T>>,
    kinds: Mutex<HashMap<GroupKind, Entry<T>>>,
    outages: Outages,
}

struct Entry<T> {
    resource: ApiResource,
    cache: Cache<T>,
    handle: Arc<WatchHandle>,
    task: JoinHandle<()>,
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A kind that the hub watches.
#[derive(Debug)]
pub struct WatchedKind<T> {
    /// Its cached objects.
    pub cache: Cache<T>,
    /// How far the watch is.
    pub state: WatchState,
}

impl<T: Cached> fmt::Debug for Hub<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl<T: Cached> Hub<T> {
    /// A hub that watches nothing yet. `project` keeps of an object what its readers need. Broken watches are reported
    /// to `outages`, see [`Manager::outages`](crate::manager::Manager::outages).
    pub fn new(
        client: Client,
        namespace: Option<String>,
        project: fn(&GroupKind, Observed) -> T,
        listener: Arc<dyn HubListener<T>>,
        outages: Outages,
    ) -> Self {
        Self { client, namespace, project, listener, kinds: Mutex::default(), outages }
    }

    /// Makes sure that a kind is watched in that version.
    ///
    /// A watch in another version is replaced: the provider was upgraded.
    pub fn ensure(&self, kind: &GroupKind, resource: &ApiResource) -> WatchedKind<T> {
        let mut kinds = self.lock();
        let fresh = kinds.get(kind).is_none_or(|entry| entry.resource != *resource);
        if fresh {
            kinds.insert(kind.clone(), self.start(kind, resource));
        }
        let entry = &kinds[kind];
        WatchedKind { cache: entry.cache.clone(), state: entry.handle.state() }
    }

    /// Caches the answer to our own write, if the kind is still watched in that version.
    pub fn remember(&self, kind: &GroupKind, resource: &ApiResource, key: &ObjectKey, object: T) {
        if let Some(entry) = self.lock().get(kind).filter(|entry| entry.resource == *resource) {
            entry.cache.remember(key, object);
        }
    }

    /// Retries the watches on a CRD's kind, since the CRD has changed.
    pub fn crd_changed(&self, crd: &str) {
        for entry in self.lock().values() {
            if crd.split_once('.') == Some((&entry.resource.plural, &entry.resource.group)) {
                entry.handle.retry_now();
            }
        }
    }

    /// Ends the watches on kinds that are not used any more.
    pub fn retain(&self, used: impl Fn(&GroupKind) -> bool) {
        self.lock().retain(|kind, _| used(kind));
    }

    /// The kinds that are watched.
    pub fn kinds(&self) -> Vec<GroupKind> {
        self.lock().keys().cloned().collect()
    }

    fn start(&self, kind: &GroupKind, resource: &ApiResource) -> Entry<T> {
        let (cache, handle) = (Cache::default(), Arc::new(WatchHandle::new(&self.outages)));
        let target = WatchTarget {
            resource: resource.clone(),
            namespace: self.namespace.clone(),
            label_selector: None,
            field_selector: None,
        };
        let listener = ForKind { kind: kind.clone(), listener: Arc::clone(&self.listener) };
        let (project, of) = (self.project, kind.clone());
        let task = tokio::spawn(watch(
            self.client.clone(),
            target,
            move |object| project(&of, object),
            cache.clone(),
            listener,
            Arc::clone(&handle),
        ));
        Entry { resource: resource.clone(), cache, handle, task }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupKind, Entry<T>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ForKind<T> {
    kind: GroupKind,
    listener: Arc<dyn HubListener<T>>,
}

impl<T: Cached> Listener<T> for ForKind<T> {
    fn changed(&self, change: Change<'_, T>) {
        self.listener.changed(&self.kind, change);
    }

    fn state_changed(&self, state: &WatchState) {
        self.listener.state_changed(&self.kind, state);
    }
}
