//! Kinds of the core group that may or may not be installed, each watched in the newest version that is served.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use capstan_api::{contract::GroupKind, names::CORE_GROUP};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    hub::{Hub, HubListener},
    manager::Manager,
    watch::WatchState,
};
use kube::core::ApiResource;
use tokio::time::Instant;

use crate::crds::{Crds, Lookup};

/// The versions that can be read, the one to prefer first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// A server that has just learnt of a kind may not serve it for a moment: then all versions are tried once more.
const SECOND_CHANCE: Duration = Duration::from_secs(5);

/// A kind of the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CoreKind {
    pub(crate) name: &'static str,
    pub(crate) plural: &'static str,
}

impl CoreKind {
    /// The name of its CRD.
    pub(crate) fn crd(self) -> ObjectKey {
        ObjectKey::new("", &format!("{}.{CORE_GROUP}", self.plural))
    }

    /// How it is addressed in a version.
    pub(crate) fn resource(self, version: &str) -> ApiResource {
        ApiResource {
            group: CORE_GROUP.to_owned(),
            version: version.to_owned(),
            api_version: format!("{CORE_GROUP}/{version}"),
            kind: self.name.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    fn group_kind(self) -> GroupKind {
        GroupKind::new(CORE_GROUP, self.name)
    }
}

/// What is known of the objects of a kind.
#[derive(Debug)]
pub(crate) enum Knowledge<T> {
    /// The kind is not installed: there are none.
    NotInstalled,
    /// Nothing yet; Clusters are woken once it is.
    Loading,
    /// All of them, read in that version.
    All(Cache<T>, &'static str),
    /// They cannot be read.
    Unreadable(String),
}

/// Watches such kinds once they are asked for.
pub(crate) struct CoreKinds<T: Cached> {
    crds: Arc<Crds>,
    hub: Hub<T>,
    watched: Mutex<HashMap<CoreKind, Choice>>,
}

/// Which of the versions a kind is watched in, and since when.
#[derive(Clone, Copy)]
struct Choice {
    version: usize,
    since: Instant,
}

impl<T: Cached> std::fmt::Debug for CoreKinds<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreKinds").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl<T: Cached> CoreKinds<T> {
    pub(crate) fn new(
        manager: &Manager,
        crds: Arc<Crds>,
        project: fn(&GroupKind, Observed) -> T,
        listener: Arc<dyn HubListener<T>>,
    ) -> Self {
        let hub = Hub::new(manager.client(), manager.namespace(), project, listener, manager.outages());
        Self { crds, hub, watched: Mutex::default() }
    }

    /// What is known of a kind's objects; it is watched from then on.
    pub(crate) fn know(&self, kind: CoreKind) -> Knowledge<T> {
        match self.crds.find(&kind.crd()) {
            Lookup::Found(_) => {}
            Lookup::Missing => return Knowledge::NotInstalled,
            Lookup::Loading => return Knowledge::Loading,
            Lookup::Unreadable(reason) => return Knowledge::Unreadable(reason),
        }
        let mut watched = self.lock();
        let choice = watched.entry(kind).or_insert_with(|| Choice { version: 0, since: Instant::now() });
        loop {
            let version = VERSIONS[choice.version];
            let found = self.hub.ensure(&kind.group_kind(), &kind.resource(version));
            match found.state {
                WatchState::Syncing => return Knowledge::Loading,
                WatchState::Synced => return Knowledge::All(found.cache, version),
                WatchState::Failing(reason) => {
                    return Knowledge::Unreadable(format!("cannot watch {}s: {reason}", kind.name));
                }
                WatchState::Absent if choice.version + 1 < VERSIONS.len() => {
                    *choice = Choice { version: choice.version + 1, since: Instant::now() };
                }
                WatchState::Absent if choice.since.elapsed() > SECOND_CHANCE => {
                    *choice = Choice { version: 0, since: Instant::now() };
                }
                WatchState::Absent => {
                    return Knowledge::Unreadable(format!(
                        "{}s are served in none of the versions {}",
                        kind.name,
                        VERSIONS.join(", ")
                    ));
                }
            }
        }
    }

    /// A CRD came, changed or went: perhaps another version is served now.
    pub(crate) fn crd_changed(&self, crd: &str) {
        let mut watched = self.lock();
        if let Some((_, choice)) = watched.iter_mut().find(|(kind, _)| *kind.crd().name == *crd) {
            *choice = Choice { version: 0, since: Instant::now() };
            drop(watched);
            self.hub.crd_changed(crd);
        }
    }

    /// Ends the watches on kinds that are not installed any more.
    pub(crate) fn drop_unused(&self) {
        let mut watched = self.lock();
        watched.retain(|kind, _| matches!(self.crds.find(&kind.crd()), Lookup::Found(_)));
        self.hub.retain(|used| watched.keys().any(|kind| kind.group_kind() == *used));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CoreKind, Choice>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
