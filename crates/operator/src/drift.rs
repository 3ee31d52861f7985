//! Watches installed objects for changes by others.
//!
//! Only metadata is watched, and only of kinds that installed releases have objects of. What a change means is found out
//! by comparing with the release.

use std::{
    collections::{BTreeMap, HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use capstan_api::names::label;
use capstan_management::Kind;
use capstan_runtime::{
    Observed,
    cache::{Cache, Cached},
    outages::Outages,
    watch::{Change, WatchHandle, WatchTarget, watch_metadata},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, core::ApiResource};
use tokio::task::JoinHandle;

/// An annotation that the Deployment controller writes.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// What is kept of an installed object: enough to see that it changed.
#[derive(Debug)]
pub struct Fingerprint {
    metadata: ObjectMeta,
    provider: String,
    hash: u64,
}

impl Cached for Fingerprint {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Fingerprint {
    fn new(object: Observed) -> Self {
        let metadata = object.metadata;
        let labels = metadata.labels.clone().unwrap_or_default();
        let mut annotations = metadata.annotations.clone().unwrap_or_default();
        annotations.remove(REVISION);
        let hash = hash(&metadata, &labels, &annotations);
        let provider = labels.get(label::PROVIDER).cloned().unwrap_or_default();
        // The cache needs no more.
        let metadata = ObjectMeta {
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Self { metadata, provider, hash }
    }
}

/// What changes with an object's content. A status changes the version of an object, but not its generation; objects
/// without a generation have no status.
fn hash(
    metadata: &ObjectMeta,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    match metadata.generation {
        Some(generation) => generation.hash(&mut hasher),
        None => metadata.resource_version.hash(&mut hasher),
    }
    (&metadata.uid, labels, annotations).hash(&mut hasher);
    hasher.finish()
}

/// Is called with the label of a provider whose objects may have changed.
pub type OnChange = Arc<dyn Fn(&str) + Send + Sync>;

/// Watches kinds of installed objects, each once.
pub struct DriftWatch {
    client: Client,
    outages: Outages,
    on_change: OnChange,
    watches: Mutex<HashMap<(String, String), Watching>>,
}

struct Watching {
    resource: ApiResource,
    task: JoinHandle<()>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl std::fmt::Debug for DriftWatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DriftWatch").finish_non_exhaustive()
    }
}

impl DriftWatch {
    /// A watch on nothing yet.
    pub fn new(client: Client, outages: Outages, on_change: OnChange) -> Self {
        Self { client, outages, on_change, watches: Mutex::default() }
    }

    /// Makes sure that these kinds are watched.
    pub fn ensure<'k>(&self, kinds: impl IntoIterator<Item = &'k Kind>) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for kind in kinds {
            let key = (kind.resource.group.clone(), kind.resource.kind.clone());
            // A kind in another version gets another watch: the old version may not be served any more.
            if watches.get(&key).is_none_or(|it| it.resource != kind.resource) {
                let task = tokio::spawn(self.run(kind));
                watches.insert(key, Watching { resource: kind.resource.clone(), task });
            }
        }
    }

    fn run(&self, kind: &Kind) -> impl Future<Output = ()> + use<> {
        let target = WatchTarget {
            resource: kind.resource.clone(),
            namespace: None,
            label_selector: Some(format!("{},{}", label::CLUSTERCTL, label::PROVIDER)),
            field_selector: None,
        };
        let on_change = Arc::clone(&self.on_change);
        let listener = move |change: Change<'_, Fingerprint>| {
            if let Some(provider) = changed(&change) {
                on_change(provider);
            }
        };
        let handle = Arc::new(WatchHandle::new(&self.outages));
        watch_metadata(self.client.clone(), target, Fingerprint::new, Cache::default(), listener, handle)
    }
}

/// The provider whose object changed or is gone. A new object is our own, or no component yet.
fn changed<'a>(change: &Change<'a, Fingerprint>) -> Option<&'a str> {
    let before = change.before?;
    let is_same = change.now.is_some_and(|now| now.hash == before.hash);
    (!is_same).then_some(before.provider.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fingerprint(metadata: &Value) -> Arc<Fingerprint> {
        Arc::new(Fingerprint::new(serde_json::from_value(json!({"metadata": metadata})).unwrap()))
    }

    #[test]
    fn a_status_is_no_change_but_content_is() {
        let metadata = |version: &str, generation: Option<i64>, revision: &str, label: &str| {
            json!({"name": "a", "uid": "u", "resourceVersion": version, "generation": generation,
                   "labels": {label::PROVIDER: "infrastructure-aws", "l": label},
                   "annotations": {REVISION: revision}})
        };
        let before = fingerprint(&metadata("1", Some(1), "1", "x"));
        for (now, expected) in [
            (Some(metadata("2", Some(1), "1", "x")), None),
            (Some(metadata("2", Some(1), "2", "x")), None),
            (Some(metadata("2", Some(2), "1", "x")), Some("infrastructure-aws")),
            (Some(metadata("2", Some(1), "1", "y")), Some("infrastructure-aws")),
            (None, Some("infrastructure-aws")),
        ] {
            let now = now.map(|it| fingerprint(&it));
            let key = capstan_runtime::ObjectKey::new("n", "a");
            let change = Change { key: &key, before: Some(&before), now: now.as_ref() };
            assert_eq!(changed(&change), expected, "{now:?}");
            assert_eq!(changed(&Change { before: None, ..change }), None, "a new object");
        }
        let uncounted = |version: &str| fingerprint(&metadata(version, None, "1", "x"));
        assert_ne!(uncounted("1").hash, uncounted("2").hash);
    }
}
