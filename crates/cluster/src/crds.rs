//! Which kinds are installed, as far as it is known.

use std::sync::{Arc, OnceLock};

use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    watch::{WatchHandle, WatchState},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What is kept of a CustomResourceDefinition: name and labels.
#[derive(Clone, Debug)]
pub(crate) struct CrdRecord {
    metadata: ObjectMeta,
}

impl CrdRecord {
    pub(crate) fn new(object: Observed) -> Self {
        let metadata = object.metadata;
        Self {
            metadata: ObjectMeta {
                name: metadata.name,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                deletion_timestamp: metadata.deletion_timestamp,
                labels: metadata.labels,
                ..ObjectMeta::default()
            },
        }
    }
}

impl Cached for CrdRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// The CustomResourceDefinitions.
#[derive(Debug, Default)]
pub(crate) struct Crds {
    pub(crate) records: Cache<CrdRecord>,
    watch: OnceLock<Arc<WatchHandle>>,
}

/// What became of a look at the CustomResourceDefinitions.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// Here it is.
    Found(Arc<CrdRecord>),
    /// There is none of that name.
    Missing,
    /// Nobody knows yet; all Clusters are woken once it is known.
    Loading,
    /// The server does not let us know.
    Unreadable(String),
}

impl Crds {
    /// Takes in the watch that fills the records.
    pub(crate) fn watched_by(&self, watch: Arc<WatchHandle>) {
        let _ = self.watch.set(watch);
    }

    /// Looks for a CRD. One that is not among the records may still be to come.
    pub(crate) fn find(&self, name: &ObjectKey) -> Lookup {
        if let Some(record) = self.records.get(name) {
            return Lookup::Found(record);
        }
        match self.watch.get() {
            Some(watch) if watch.was_synced() => Lookup::Missing,
            Some(watch) => match watch.state() {
                WatchState::Failing(reason) => {
                    Lookup::Unreadable(format!("cannot watch CustomResourceDefinitions: {reason}"))
                }
                _ => Lookup::Loading,
            },
            None => Lookup::Loading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_yet_is_not_missing() {
        let crds = Crds::default();
        let name = ObjectKey::new("", "machines.cluster.x-k8s.io");
        assert!(matches!(crds.find(&name), Lookup::Loading));
        crds.watched_by(Arc::default());
        assert!(matches!(crds.find(&name), Lookup::Loading), "the first list is under way");
        let listed = Observed {
            metadata: ObjectMeta { resource_version: Some("1".into()), ..ObjectMeta::default() },
            ..Observed::default()
        };
        crds.records.arrive(&name, CrdRecord::new(listed));
        assert!(matches!(crds.find(&name), Lookup::Found(_)), "what has arrived is there");
    }
}
