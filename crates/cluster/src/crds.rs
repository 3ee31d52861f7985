//! Which kinds are installed, as far as it is known.
//!
//! CustomResourceDefinitions are large, and a management cluster has hundreds. All are watched by their metadata. Only
//! those that Clusters refer to are read as a whole, to see which versions they serve.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use capstan_api::contract::{NoCompatibleContract, PickedVersion, pick_served_version};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    outages::Outages,
    watch::{Change, Listener, WatchHandle, WatchState, WatchTarget, watch},
};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Client, core::ApiResource};
use serde::Deserialize;
use tokio::task::JoinHandle;

/// What is kept of a CustomResourceDefinition: name and labels.
#[derive(Clone, Debug)]
pub(crate) struct CrdRecord {
    metadata: ObjectMeta,
}

impl CrdRecord {
    pub(crate) fn new(object: Observed) -> Self {
        Self { metadata: essential(object.metadata) }
    }
}

fn essential(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        deletion_timestamp: metadata.deletion_timestamp,
        labels: metadata.labels,
        ..ObjectMeta::default()
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
    /// It is not known yet; all Clusters are woken once it is.
    Loading,
    /// The server refuses to show them.
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

/// What is kept of a CustomResourceDefinition that was read as a whole.
#[derive(Clone, Debug)]
pub(crate) struct CrdDetails {
    metadata: ObjectMeta,
    spec: CrdSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CrdSpec {
    scope: String,
    versions: Vec<CrdVersion>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CrdVersion {
    name: String,
    served: bool,
}

impl CrdDetails {
    pub(crate) fn new(object: Observed) -> Self {
        // The server has validated it: what cannot be read here does not exist.
        let spec = object.spec.read().unwrap_or_default();
        Self { metadata: essential(object.metadata), spec }
    }

    /// Whether objects of the kind are outside of namespaces.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.spec.scope == "Cluster"
    }

    /// The version in which core speaks with the provider.
    pub(crate) fn pick(&self) -> Result<PickedVersion, NoCompatibleContract> {
        let served: Vec<_> =
            self.spec.versions.iter().filter(|it| it.served).map(|it| it.name.as_str()).collect();
        let none = BTreeMap::new();
        let labels = self.metadata.labels.as_ref().unwrap_or(&none);
        pick_served_version(self.metadata.name.as_deref().unwrap_or_default(), labels, &served)
    }
}

impl Cached for CrdDetails {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Receives the name of a CRD of which more is known than before.
pub(crate) type OnDetails = Arc<dyn Fn(&str) + Send + Sync>;

/// The CustomResourceDefinitions that Clusters refer to, each watched as a whole.
pub(crate) struct CrdReader {
    client: Client,
    outages: Outages,
    on_details: OnDetails,
    watched: Mutex<HashMap<String, Reading>>,
}

struct Reading {
    cache: Cache<CrdDetails>,
    handle: Arc<WatchHandle>,
    task: JoinHandle<()>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is known of a CRD that exists.
#[derive(Debug)]
pub(crate) enum Details {
    /// All that core needs.
    Known(Arc<CrdDetails>),
    /// Nothing yet; `OnDetails` is called once there is more.
    Loading,
    /// The server refuses to show it.
    Unreadable(String),
}

impl std::fmt::Debug for CrdReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrdReader").finish_non_exhaustive()
    }
}

impl CrdReader {
    /// A reader that watches nothing yet. Broken watches are reported to `outages`.
    pub(crate) fn new(client: Client, outages: Outages, on_details: OnDetails) -> Self {
        Self { client, outages, on_details, watched: Mutex::default() }
    }

    /// What is known of a CRD that exists; it is watched from then on.
    pub(crate) fn read(&self, crd: &str) -> Details {
        let mut watched = self.lock();
        let reading = watched.entry(crd.to_owned()).or_insert_with(|| self.start(crd));
        match (reading.cache.get(&ObjectKey::new("", crd)), reading.handle.state()) {
            (Some(details), _) => Details::Known(details),
            (None, WatchState::Failing(reason)) => {
                Details::Unreadable(format!("cannot watch CustomResourceDefinition {crd}: {reason}"))
            }
            (None, _) => Details::Loading,
        }
    }

    /// Ends the watches on CRDs that are not used any more.
    pub(crate) fn retain(&self, used: impl Fn(&str) -> bool) {
        self.lock().retain(|crd, _| used(crd));
    }

    fn start(&self, crd: &str) -> Reading {
        let (cache, handle) = (Cache::default(), Arc::new(WatchHandle::new(&self.outages)));
        let target = WatchTarget {
            resource: ApiResource::erase::<CustomResourceDefinition>(&()),
            namespace: None,
            label_selector: None,
            field_selector: Some(format!("metadata.name={crd}")),
        };
        let listener = DetailsListener { crd: crd.to_owned(), on_details: Arc::clone(&self.on_details) };
        let task = tokio::spawn(watch(
            self.client.clone(),
            target,
            CrdDetails::new,
            cache.clone(),
            listener,
            Arc::clone(&handle),
        ));
        Reading { cache, handle, task }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Reading>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct DetailsListener {
    crd: String,
    on_details: OnDetails,
}

impl Listener<CrdDetails> for DetailsListener {
    fn changed(&self, _change: Change<'_, CrdDetails>) {
        (self.on_details)(&self.crd);
    }

    fn state_changed(&self, _state: &WatchState) {
        (self.on_details)(&self.crd);
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
        crds.watched_by(Arc::new(WatchHandle::new(&Outages::default())));
        assert!(matches!(crds.find(&name), Lookup::Loading), "the first list is under way");
        let listed = Observed {
            metadata: ObjectMeta { resource_version: Some("1".into()), ..ObjectMeta::default() },
            ..Observed::default()
        };
        crds.records.arrive(&name, CrdRecord::new(listed));
        assert!(matches!(crds.find(&name), Lookup::Found(_)), "what has arrived is there");
    }

    #[test]
    fn the_whole_definition_says_scope_and_version() {
        let read = |scope: &str, label: &str| {
            let version = |name: &str, served: bool| serde_json::json!({"name": name, "served": served, "storage": served, "schema": {"openAPIV3Schema": {}}});
            let object = serde_json::json!({
                "metadata": {"name": "foos.g.io", "labels": {"cluster.x-k8s.io/v1beta2": label}},
                "spec": {"scope": scope, "group": "g.io", "versions": [version("v1", true), version("v2", false)]},
            });
            CrdDetails::new(serde_json::from_value(object).unwrap())
        };
        assert_eq!(read("Namespaced", "v1_v2").pick().unwrap().version, "v1");
        assert!(read("Namespaced", "v2").pick().unwrap_err().to_string().contains("it serves v1:"));
        assert!(read("Cluster", "v1").is_cluster_scoped());
        assert!(!read("Namespaced", "v1").is_cluster_scoped());
    }
}
