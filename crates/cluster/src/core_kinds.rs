//! Kinds of the core group that may or may not be installed, each watched in the newest version that is served.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::{contract::GroupKind, names::CORE_GROUP};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    hub::{Hub, HubListener, WatchedKind},
    watch::WatchState,
};
use kube::{Client, core::ApiResource};

use crate::resolve::CrdRecord;

/// The versions that can be read, the one to prefer first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

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

/// Watches such kinds once they are asked for.
pub(crate) struct CoreKinds<T: Cached> {
    crds: Cache<CrdRecord>,
    hub: Hub<T>,
    /// Which of the versions each kind is watched in.
    watched: Mutex<HashMap<CoreKind, usize>>,
}

impl<T: Cached> std::fmt::Debug for CoreKinds<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreKinds").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl<T: Cached> CoreKinds<T> {
    pub(crate) fn new(
        client: Client,
        namespace: Option<String>,
        crds: Cache<CrdRecord>,
        project: fn(Observed) -> T,
        listener: Arc<dyn HubListener<T>>,
    ) -> Self {
        Self { crds, hub: Hub::new(client, namespace, project, listener), watched: Mutex::default() }
    }

    /// The objects of a kind, as far as they are known, and the version that they are read in; nothing where the
    /// kind is not installed.
    pub(crate) fn watch(&self, kind: CoreKind) -> Option<(WatchedKind<T>, &'static str)> {
        self.crds.get(&kind.crd())?;
        let mut watched = self.lock();
        let version = watched.entry(kind).or_default();
        loop {
            let found = self.hub.ensure(&kind.group_kind(), &kind.resource(VERSIONS[*version]));
            if found.state == WatchState::Absent && *version + 1 < VERSIONS.len() {
                *version += 1;
            } else {
                return Some((found, VERSIONS[*version]));
            }
        }
    }

    /// A CRD came, changed or went: perhaps another version is served now. Says whether it is one of those watched.
    pub(crate) fn crd_changed(&self, crd: &str) -> bool {
        let mut watched = self.lock();
        let Some((_, version)) = watched.iter_mut().find(|(kind, _)| *kind.crd().name == *crd) else {
            return false;
        };
        *version = 0;
        drop(watched);
        self.hub.crd_changed(crd);
        true
    }

    /// Ends the watches on kinds that are not installed any more.
    pub(crate) fn drop_unused(&self) {
        let mut watched = self.lock();
        watched.retain(|kind, _| self.crds.get(&kind.crd()).is_some());
        self.hub.retain(|used| watched.keys().any(|kind| kind.group_kind() == *used));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CoreKind, usize>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
