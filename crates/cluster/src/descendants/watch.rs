//! Keeping every Cluster's descendants at hand.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_api::contract::GroupKind;
use capstan_runtime::{
    ObjectKey,
    hub::HubListener,
    manager::Manager,
    watch::{Change, WatchState},
};

use super::{Descendant, Descendants, Kind, Member};
use crate::{
    controller::Waker,
    core_kinds::{CoreKinds, Knowledge},
    crds::Crds,
};

/// Watches the kinds of descendants that are installed.
#[derive(Debug)]
pub(crate) struct DescendantWatch {
    kinds: CoreKinds<Descendant>,
    families: Arc<Families>,
}

impl DescendantWatch {
    pub(crate) fn new(manager: &Manager, crds: Arc<Crds>, waker: Arc<Waker>) -> Self {
        let families = Arc::new(Families { members: Mutex::default(), waker });
        let listener = Arc::clone(&families) as Arc<dyn HubListener<Descendant>>;
        let project = |kind: &GroupKind, object| Descendant::new(&kind.kind, object);
        Self { kinds: CoreKinds::new(manager, crds, project, listener), families }
    }

    /// A Cluster's descendants; nothing while a kind is still being loaded. The Cluster is woken when that is done.
    pub(crate) fn of(&self, cluster: &ObjectKey) -> Option<Descendants> {
        let mut descendants = Descendants::default();
        for kind in Kind::ALL {
            match self.kinds.know(kind.core()) {
                Knowledge::Loading => return None,
                Knowledge::NotInstalled => {}
                Knowledge::Unreadable(reason) => {
                    descendants.trouble.get_or_insert(reason);
                }
                Knowledge::All(objects, version) => {
                    // The index only says where to look: a restarted watch may know of deletions.
                    let names = self.families.of(cluster, kind).into_iter();
                    let found = names.filter_map(|name| objects.get(&cluster.beside(&name)));
                    descendants.members.extend(found.map(|object| Member { kind, version, object }));
                }
            }
        }
        Some(descendants)
    }

    /// The kinds that are installed, with the version that each is read in.
    pub(crate) fn installed(&self) -> Vec<(Kind, &'static str)> {
        let version_of = |kind: Kind| match self.kinds.know(kind.core()) {
            Knowledge::All(_, version) => Some((kind, version)),
            _ => None,
        };
        Kind::ALL.into_iter().filter_map(version_of).collect()
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
#[derive(Debug)]
struct Families {
    members: Mutex<HashMap<ObjectKey, Family>>,
    waker: Arc<Waker>,
}

/// Objects by kind and name.
type Family = BTreeSet<(Kind, String)>;

impl Families {
    fn of(&self, cluster: &ObjectKey, kind: Kind) -> Vec<String> {
        let families = self.lock();
        let members = families.get(cluster).into_iter().flatten();
        members.filter(|(of, _)| *of == kind).map(|(_, name)| name.clone()).collect()
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
                families.entry(cluster).or_default().insert(place.clone());
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
