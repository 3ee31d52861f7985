//! Keeping every Cluster's descendants at hand.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::contract::GroupKind;
use capstan_runtime::{
    ObjectKey,
    cache::Cache,
    hub::HubListener,
    watch::{Change, WatchState},
};
use kube::Client;

use super::{Descendant, Descendants, Kind, Member};
use crate::{controller::Waker, core_kinds::CoreKinds, resolve::CrdRecord};

/// Watches the kinds of descendants that are installed.
#[derive(Debug)]
pub(crate) struct DescendantWatch {
    kinds: CoreKinds<Descendant>,
    families: Arc<Families>,
}

impl DescendantWatch {
    pub(crate) fn new(
        client: Client,
        namespace: Option<String>,
        crds: Cache<CrdRecord>,
        waker: Arc<Waker>,
    ) -> Self {
        let families = Arc::new(Families { members: Mutex::default(), waker });
        let listener = Arc::clone(&families) as Arc<dyn HubListener<Descendant>>;
        Self { kinds: CoreKinds::new(client, namespace, crds, Descendant::new, listener), families }
    }

    /// A Cluster's descendants; nothing while a kind is still being loaded. The Cluster is woken when that is done.
    pub(crate) fn of(&self, cluster: &ObjectKey) -> Option<Descendants> {
        let mut trouble = None;
        let mut versions = HashMap::new();
        for kind in Kind::ALL {
            let Some((watched, version)) = self.kinds.watch(kind.core()) else { continue };
            match watched.state {
                WatchState::Syncing => return None,
                WatchState::Failing(reason) => {
                    trouble.get_or_insert(format!("Cannot read {}s: {reason}", kind.name()));
                }
                WatchState::Synced | WatchState::Absent => {
                    versions.insert(kind, version);
                }
            }
        }
        let family = self.families.of(cluster).into_iter();
        let members = family.filter_map(|(kind, object)| {
            Some(Member { kind, version: versions.get(&kind).copied()?, object })
        });
        Some(Descendants { members: members.collect(), trouble })
    }

    /// A CRD came, changed or went.
    pub(crate) fn crd_changed(&self, crd: &str) {
        let is_one_of_them = Kind::ALL.into_iter().any(|kind| *kind.core().crd().name == *crd);
        if is_one_of_them {
            self.kinds.crd_changed(crd);
            self.families.waker.wake_all();
        }
    }

    /// Ends the watches on kinds that are not installed any more.
    pub(crate) fn drop_unused(&self) {
        self.kinds.drop_unused();
    }
}

/// Which objects belong to which Cluster.
struct Families {
    members: Mutex<HashMap<ObjectKey, Family>>,
    waker: Arc<Waker>,
}

type Family = BTreeMap<(Kind, String), Arc<Descendant>>;

impl std::fmt::Debug for Families {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Families").finish_non_exhaustive()
    }
}

impl Families {
    fn of(&self, cluster: &ObjectKey) -> Vec<(Kind, Arc<Descendant>)> {
        let families = self.lock();
        let members = families.get(cluster).into_iter().flatten();
        members.map(|((kind, _), object)| (*kind, Arc::clone(object))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Family>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubListener<Descendant> for Families {
    fn changed(&self, kind: &GroupKind, change: Change<'_, Descendant>) {
        let Some(kind) = Kind::ALL.into_iter().find(|known| known.name() == kind.kind) else { return };
        let place = (kind, change.key.name.to_string());
        let mut families = self.lock();
        for cluster in change.before.into_iter().flat_map(|before| before.clusters()) {
            if let Some(family) = families.get_mut(&cluster) {
                family.remove(&place);
                if family.is_empty() {
                    families.remove(&cluster);
                }
            }
        }
        if let Some(now) = change.now {
            for cluster in now.clusters() {
                families.entry(cluster).or_default().insert(place.clone(), Arc::clone(now));
            }
        }
        drop(families);
        let is_news = match (change.before, change.now) {
            (Some(before), Some(now)) => before.differs(now),
            _ => true,
        };
        if is_news {
            for state in [change.before, change.now].into_iter().flatten() {
                state.clusters().for_each(|cluster| self.waker.wake(cluster));
            }
        }
    }

    fn state_changed(&self, _kind: &GroupKind, _state: &WatchState) {
        self.waker.wake_all();
    }
}
