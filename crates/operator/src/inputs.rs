//! Watches the Secrets and ConfigMaps that a provider waits for. After it is installed, their changes mean nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use capstan_runtime::{
    Observed,
    cache::{Cache, Cached},
    outages::Outages,
    watch::{Change, WatchHandle, WatchTarget, watch_metadata},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Client, core::ApiResource};
use tokio::task::JoinHandle;

/// Is called with a namespace in which a Secret or ConfigMap changed.
pub type OnInput = Arc<dyn Fn(&str) + Send + Sync>;

/// Watches the inputs in namespaces while providers wait there.
pub struct Inputs {
    client: Client,
    outages: Outages,
    on_input: OnInput,
    watches: Mutex<HashMap<String, Watching>>,
}

struct Watching([JoinHandle<()>; 2]);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Inputs").finish_non_exhaustive()
    }
}

struct Input(ObjectMeta);

impl Cached for Input {
    fn metadata(&self) -> &ObjectMeta {
        &self.0
    }
}

impl Input {
    fn new(object: Observed) -> Self {
        let ObjectMeta { uid, resource_version, .. } = object.metadata;
        Self(ObjectMeta { uid, resource_version, ..ObjectMeta::default() })
    }
}

impl Inputs {
    /// Watches nothing yet.
    pub fn new(client: Client, outages: Outages, on_input: OnInput) -> Self {
        Self { client, outages, on_input, watches: Mutex::default() }
    }

    /// Watches a namespace. What changed before the watch began is found by its first list.
    pub fn watch(&self, namespace: &str) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.entry(namespace.to_owned()).or_insert_with(|| {
            let resources = [ApiResource::erase::<Secret>(&()), ApiResource::erase::<ConfigMap>(&())];
            Watching(resources.map(|resource| tokio::spawn(self.run(resource, namespace))))
        });
    }

    /// Ends the watches on namespaces in which no provider waits.
    pub fn retain(&self, is_waited_in: impl Fn(&str) -> bool) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|namespace, _| is_waited_in(namespace));
    }

    fn run(&self, resource: ApiResource, namespace: &str) -> impl Future<Output = ()> + use<> {
        let namespace: Arc<str> = namespace.into();
        let target = WatchTarget {
            resource,
            namespace: Some(namespace.to_string()),
            label_selector: None,
            field_selector: None,
        };
        let on_input = Arc::clone(&self.on_input);
        let listener = move |_: Change<'_, Input>| on_input(&namespace);
        let handle = Arc::new(WatchHandle::new(&self.outages));
        watch_metadata(self.client.clone(), target, Input::new, Cache::default(), listener, handle)
    }
}
