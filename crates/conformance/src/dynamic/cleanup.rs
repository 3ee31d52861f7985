//! Removing what the run created, whatever became of it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use capstan_api::names::annotation;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use serde_json::json;

use super::stage::{is_missing, patch_params};

/// How long an object may still take that was asked to go before, or after the run was broken off.
const SHORT: Duration = Duration::from_secs(3);

/// The annotation with the mark of a run.
pub(crate) const MARK: &str = "capstan.dev/conformance-run";

/// What the run created.
pub(crate) struct Props {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Whether the namespace was created for this run.
    pub(crate) own_namespace: bool,
    pub(crate) kind: String,
    pub(crate) infra: Api<DynamicObject>,
    pub(crate) clusters: Api<DynamicObject>,
    /// Names of InfraClusters and Clusters.
    names: Mutex<BTreeSet<String>>,
    /// The uids of those that were created. In a shared namespace there may be others of the same names.
    made: Mutex<BTreeSet<String>>,
    /// The mark of objects whose creation was not confirmed.
    pub(crate) mark: String,
    /// What else was in the manifest, in the order of creation.
    others: Mutex<Vec<(Api<DynamicObject>, String)>>,
}

impl Props {
    pub(crate) fn new(
        client: Client,
        namespace: String,
        own_namespace: bool,
        kind: String,
        infra: Api<DynamicObject>,
        clusters: Api<DynamicObject>,
    ) -> Self {
        let (names, made, others) = (Mutex::default(), Mutex::default(), Mutex::default());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{:x}-{:x}", now.as_nanos(), std::process::id());
        Self { client, namespace, own_namespace, kind, infra, clusters, names, made, mark, others }
    }

    /// Notes a scenario's name before anything is created under it.
    pub(crate) fn add(&self, name: &str) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// Notes an object that was created.
    pub(crate) fn made(&self, object: &DynamicObject) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).extend(object.uid());
    }

    /// What is there under a scenario's name, if it is ours.
    async fn ours(&self, api: &Api<DynamicObject>, name: &str) -> Result<Option<DynamicObject>, kube::Error> {
        let found = api.get_opt(name).await?;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(found.filter(|it| {
            let marked = it.annotations().get(MARK) == Some(&self.mark);
            self.own_namespace || marked || it.uid().is_some_and(|uid| made.contains(&uid))
        }))
    }

    /// Notes another object.
    pub(crate) fn add_other(&self, api: Api<DynamicObject>, name: String) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push((api, name));
    }

    /// Removes a scenario's objects; reports those that could not be removed in order.
    pub(crate) async fn clear(&self, name: &str, patience: Duration) -> Vec<String> {
        let mut notes = Vec::new();
        if let Err(error) = self.let_go(name).await {
            notes.push(format!("cannot end the pause of {name}: {error}"));
        }
        for (kind, api) in [(self.kind.as_str(), &self.infra), ("Cluster", &self.clusters)] {
            let removed = match self.ours(api, name).await {
                Ok(Some(object)) => remove(api, &object, patience).await,
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            match removed {
                Ok(None) => {}
                Ok(Some(finalizers)) => notes.push(format!(
                    "{kind} {}/{name} was never released by its finalizers {finalizers}: they were removed by force, \
                     and what it stood for may still exist",
                    self.namespace
                )),
                Err(error) => {
                    notes.push(format!("cannot remove {kind} {}/{name}: {error}", self.namespace));
                }
            }
        }
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        notes
    }

    /// What is paused is never released.
    async fn let_go(&self, name: &str) -> Result<(), kube::Error> {
        let Some(object) = self.ours(&self.infra, name).await? else { return Ok(()) };
        if object.annotations().contains_key(annotation::PAUSED) {
            let patch = json!({"metadata": {"annotations": {annotation::PAUSED: null}}});
            ignore_missing(self.infra.patch(name, &patch_params(), &Patch::Merge(patch)).await)?;
        }
        let Some(cluster) = self.ours(&self.clusters, name).await? else { return Ok(()) };
        if cluster.data.pointer("/spec/paused") == Some(&json!(true)) {
            let patch = Patch::Merge(json!({"spec": {"paused": false}}));
            ignore_missing(self.clusters.patch(name, &patch_params(), &patch).await)?;
        }
        Ok(())
    }

    /// Removes all that is left.
    pub(crate) async fn clear_all(&self, patience: Duration) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cleared = futures::future::join_all(names.iter().map(|name| self.clear(name, patience)));
        let mut notes: Vec<_> = cleared.await.into_iter().flatten().collect();
        let others = std::mem::take(&mut *self.others.lock().unwrap_or_else(PoisonError::into_inner));
        for (api, name) in others.into_iter().rev() {
            if let Err(error) = ignore_missing(api.delete(&name, &DeleteParams::default()).await) {
                notes.push(format!("cannot remove {name}: {error}"));
            }
        }
        if self.own_namespace {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            if let Err(error) =
                ignore_missing(namespaces.delete(&self.namespace, &DeleteParams::default()).await)
            {
                notes.push(format!("cannot remove namespace {}: {error}", self.namespace));
            }
        }
        notes
    }
}

/// Deletes an object and waits for its end; on a timeout, removes its finalizers and reports them.
async fn remove(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    patience: Duration,
) -> Result<Option<String>, kube::Error> {
    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
    let name = name.as_str();
    let patience = if object.metadata.deletion_timestamp.is_some() { patience.min(SHORT) } else { patience };
    match api.delete(name, &DeleteParams::default()).await {
        // Nothing held it.
        Ok(answer) if answer.is_right() => return Ok(None),
        answer => ignore_missing(answer)?,
    }
    let gone = |limit| {
        let wait = await_condition(api.clone(), name, is_deleted(&uid));
        async move { matches!(tokio::time::timeout(limit, wait).await, Ok(Ok(_))) }
    };
    if gone(patience).await {
        return Ok(None);
    }
    let Some(object) = api.get_opt(name).await? else { return Ok(None) };
    let finalizers = object.finalizers().join(", ");
    let patch = Patch::Merge(json!({"metadata": {"uid": uid, "finalizers": null}}));
    ignore_missing(api.patch(name, &patch_params(), &patch).await)?;
    gone(SHORT).await;
    Ok(Some(finalizers))
}

fn ignore_missing<T>(answer: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what is left when the run is dropped before its end, as far as the runtime lives on.
pub(crate) struct Broom {
    props: Arc<Props>,
    armed: bool,
}

impl Broom {
    pub(crate) fn new(props: Arc<Props>) -> Self {
        Self { props, armed: true }
    }

    /// Removes what is left now.
    pub(crate) async fn sweep(mut self, patience: Duration) -> Vec<String> {
        let notes = self.props.clear_all(patience).await;
        self.armed = false;
        notes
    }

    /// The same after the run was broken off.
    pub(crate) async fn sweep_quickly(self) -> Vec<String> {
        self.sweep(SHORT).await
    }
}

impl Drop for Broom {
    fn drop(&mut self) {
        if self.armed
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let props = Arc::clone(&self.props);
            runtime.spawn(async move { props.clear_all(SHORT).await });
        }
    }
}
