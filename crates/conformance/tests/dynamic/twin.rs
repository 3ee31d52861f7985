//! A small provider that keeps the whole contract, and its twins that each break it in one way.

use std::{collections::BTreeSet, time::Duration};

use capstan_api::{
    contract::{ContractVersion, is_externally_managed, is_paused, owned_by_cluster},
    names::{CORE_GROUP, annotation, label},
};
use capstan_testkit::generic;
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const FINALIZER: &str = "twin.example.com/infrastructure";

/// What a twin does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    ActsWithoutOwner,
    WantsControllerOwner,
    RefusesControllerOwner,
    IgnoresClusterPause,
    IgnoresAnnotationPause,
    DeletesWhilePaused,
    StuckAfterPause,
    HasNoFinalizer,
    AddsFinalizerLate,
    KeepsOrphans,
    WritesOddTimes,
    WritesOddStatus,
    WritesFailureAsNumber,
    SetsHalfAnEndpoint,
    SetsEndpointLate,
    DoesNotWaitForEndpoint,
    NeverProvisions,
    ProvisionsInText,
    SpeaksAnotherContract,
    Flaps,
    ShapesDomainsWrong,
    HasNoReady,
    DropsReadyOnDeletion,
    WritesAnnotatedExternal,
    WritesLabelledExternal,
    DropsLabel,
    DropsOwner,
    NeverReleases,
    ReportsOnlyOnce,
    MovesWithoutStatus,
    ForgetsOnRestart,
    BeatsItsHeart,
    HidesPause,
    ShowsPauseForEver,
}

/// What a twin is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nature {
    pub(crate) kind: &'static str,
    pub(crate) contract: ContractVersion,
    /// The version in which it reads Clusters.
    pub(crate) clusters: &'static str,
    /// Whether it needs the Cluster's endpoint, instead of making one.
    pub(crate) waits: bool,
    pub(crate) fault: Option<Fault>,
}

/// A running provider.
#[derive(Debug)]
pub(crate) struct Twin(JoinHandle<()>);

impl Twin {
    pub(crate) fn start(client: &Client, namespace: &str, nature: Nature) -> Self {
        let cluster = GroupVersionKind::gvk(CORE_GROUP, nature.clusters, "Cluster");
        let cluster = ApiResource::from_gvk_with_plural(&cluster, "clusters");
        let provider = Provider {
            infra: Api::namespaced_with(client.clone(), namespace, &generic::resource(nature.kind)),
            clusters: Api::namespaced_with(client.clone(), namespace, &cluster),
            nature,
            written: BTreeSet::new(),
            held: BTreeSet::new(),
            known: BTreeSet::new(),
            paused: BTreeSet::new(),
            beats: 0,
        };
        Self(tokio::spawn(provider.run()))
    }

    pub(crate) async fn stop(self) {
        self.0.abort();
        assert!(self.0.await.is_err_and(|ended| ended.is_cancelled()), "the twin ended by itself");
    }
}

struct Provider {
    infra: Api<DynamicObject>,
    clusters: Api<DynamicObject>,
    nature: Nature,
    /// The versions that it wrote: their echo is no news.
    written: BTreeSet<Option<String>>,
    /// What this process has put its finalizer on.
    held: BTreeSet<String>,
    /// What this process has provisioned.
    known: BTreeSet<String>,
    paused: BTreeSet<String>,
    beats: u64,
}

impl Provider {
    async fn run(mut self) {
        let names = |api: &Api<DynamicObject>| {
            let objects = watcher(api.clone(), Config::default()).default_backoff().applied_objects();
            objects
                .filter_map(async |event| {
                    event.ok().map(|object| (object.name_any(), object.resource_version()))
                })
                .boxed()
        };
        let mut wakes = futures::stream::select(names(&self.infra), names(&self.clusters));
        let mut heart = tokio::time::interval(Duration::from_millis(150));
        loop {
            let (name, result) = tokio::select! {
                object = wakes.next() => {
                    let (name, version) = object.expect("watches do not end");
                    if self.written.contains(&version) {
                        continue;
                    }
                    let result = self.reconcile(&name).await;
                    (name, result)
                }
                _ = heart.tick(), if self.has(Fault::BeatsItsHeart) => {
                    ("all".to_owned(), self.beat().await)
                }
            };
            match result {
                // Another client was faster: the event is on its way.
                Ok(()) => {}
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                Err(error) => unreachable!("{name}: {error}"),
            }
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.nature.fault == Some(fault)
    }

    async fn reconcile(&mut self, name: &str) -> Result<(), kube::Error> {
        let Some(mut object) = self.infra.get_opt(name).await? else { return Ok(()) };
        if is_externally_managed(&object.metadata) {
            let annotated = object.annotations().contains_key(annotation::MANAGED_BY);
            let written =
                if annotated { Fault::WritesAnnotatedExternal } else { Fault::WritesLabelledExternal };
            if !self.has(written) {
                return Ok(());
            }
        }
        let owner = owned_by_cluster(&object.metadata).filter(|owner| match self.nature.fault {
            Some(Fault::WantsControllerOwner) => owner.controller == Some(true),
            Some(Fault::RefusesControllerOwner) => owner.controller != Some(true),
            _ => true,
        });
        let owned = owner.is_some();
        let cluster = match owner {
            Some(owner) => self.clusters.get_opt(&owner.name).await?,
            None => None,
        };
        let deleting = object.metadata.deletion_timestamp.is_some();
        let by_cluster =
            cluster.as_ref().is_some_and(|it| it.data.pointer("/spec/paused") == Some(&json!(true)));
        let paused = owned
            && ((by_cluster && !self.has(Fault::IgnoresClusterPause))
                || (is_paused(&object.metadata) && !self.has(Fault::IgnoresAnnotationPause)))
            && !(deleting && self.has(Fault::DeletesWhilePaused));
        if paused {
            self.paused.insert(name.to_owned());
            if !self.has(Fault::HidesPause) {
                let conditions = with_condition(&object, "Paused", "True");
                self.status(&mut object, json!({"conditions": conditions})).await?;
            }
            return Ok(());
        }
        if self.has(Fault::StuckAfterPause) && self.paused.contains(name) && !deleting {
            return Ok(());
        }
        if deleting {
            return self.deprovision(object, owned).await;
        }
        if (!owned || cluster.is_none()) && !self.has(Fault::ActsWithoutOwner) {
            return Ok(());
        }
        self.provision(object, cluster.as_ref()).await
    }

    async fn deprovision(&mut self, mut object: DynamicObject, owned: bool) -> Result<(), kube::Error> {
        let stuck = self.has(Fault::NeverReleases) || (self.has(Fault::KeepsOrphans) && !owned);
        if stuck || !object.finalizers().iter().any(|it| it == FINALIZER) {
            return Ok(());
        }
        let conditions = if self.has(Fault::DropsReadyOnDeletion) {
            json!([])
        } else if self.has(Fault::HasNoReady) {
            json!(conditions(&object))
        } else {
            with_condition(&object, "Ready", "False")
        };
        self.status(&mut object, json!({"conditions": conditions})).await?;
        self.merge(&mut object, json!({"metadata": {"finalizers": null}})).await
    }

    async fn provision(
        &mut self,
        mut object: DynamicObject,
        cluster: Option<&DynamicObject>,
    ) -> Result<(), kube::Error> {
        let name = object.name_any();
        if self.has(Fault::DropsLabel) && object.labels().contains_key(label::CLUSTER_NAME) {
            self.merge(&mut object, json!({"metadata": {"labels": {label::CLUSTER_NAME: null}}})).await?;
        }
        let held = !object.finalizers().is_empty();
        let forgotten = self.has(Fault::ForgetsOnRestart) && held && !self.held.contains(&name);
        if !held {
            self.held.insert(name.clone());
        }
        if !held && !self.has(Fault::HasNoFinalizer) && !self.has(Fault::AddsFinalizerLate) {
            self.merge(&mut object, json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
        }
        let reported = object.data.get("status").is_some_and(|it| it.get("failureDomains").is_some());
        let lost = self.known.contains(&name) && !reported;
        if !self.nature.waits {
            let moved = forgotten || (lost && self.has(Fault::MovesWithoutStatus));
            let wanted = if moved { 7443 } else { port(&object).unwrap_or(6443) };
            let endpoint = match self.nature.fault {
                Some(Fault::SetsHalfAnEndpoint) => json!({"host": "10.0.0.1"}),
                _ => json!({"host": "10.0.0.1", "port": wanted}),
            };
            let skipped =
                self.has(Fault::DoesNotWaitForEndpoint) || (self.has(Fault::SetsEndpointLate) && !reported);
            if !skipped {
                self.merge(&mut object, json!({"spec": {"controlPlaneEndpoint": endpoint}})).await?;
            }
        } else if cluster.is_some_and(|it| it.data.pointer("/spec/controlPlaneEndpoint/host").is_none()) {
            let mut status = self.wanted_status(&object, false);
            status["conditions"] = with_condition(&object, "Ready", "False");
            return self.status(&mut object, status).await;
        }
        self.known.insert(name);
        if lost && self.has(Fault::ReportsOnlyOnce) {
            return Ok(());
        }
        let first = !reported;
        let status = self.wanted_status(&object, !self.has(Fault::NeverProvisions));
        self.status(&mut object, status).await?;
        if first && self.has(Fault::Flaps) {
            for provisioned in [false, true] {
                let status = self.wanted_status(&object, provisioned);
                self.status(&mut object, status).await?;
            }
        }
        if self.has(Fault::SetsEndpointLate) {
            let endpoint = json!({"host": "10.0.0.1", "port": 6443});
            self.merge(&mut object, json!({"spec": {"controlPlaneEndpoint": endpoint}})).await?;
        }
        if self.has(Fault::AddsFinalizerLate) {
            self.merge(&mut object, json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
        }
        if self.has(Fault::DropsOwner) {
            self.merge(&mut object, json!({"metadata": {"ownerReferences": null}})).await?;
        }
        Ok(())
    }

    fn wanted_status(&self, object: &DynamicObject, provisioned: bool) -> Value {
        let ready = if provisioned { "True" } else { "False" };
        let paused = if self.has(Fault::ShowsPauseForEver) { None } else { Some(("Paused", "False")) };
        let ready = if self.has(Fault::HasNoReady) { None } else { Some(("Ready", ready)) };
        let mut list = conditions(object);
        for (type_, status) in [ready, paused].into_iter().flatten() {
            put(&mut list, type_, status);
        }
        for condition in &mut list {
            match self.nature.fault {
                Some(Fault::WritesOddTimes) => condition["lastTransitionTime"] = json!("yesterday"),
                Some(Fault::WritesOddStatus) => condition["status"] = json!("Perhaps"),
                _ => {}
            }
        }
        let mut status = json!({"conditions": list});
        let old = (self.nature.contract == ContractVersion::V1Beta1) ^ self.has(Fault::SpeaksAnotherContract);
        let value = if self.has(Fault::ProvisionsInText) { json!("true") } else { json!(provisioned) };
        if old {
            status["ready"] = value;
        } else {
            status["initialization"] = json!({"provisioned": value});
        }
        let map = (self.nature.contract == ContractVersion::V1Beta1) ^ self.has(Fault::ShapesDomainsWrong);
        status["failureDomains"] = if map {
            json!({"a": {"controlPlane": true}})
        } else {
            json!([{"name": "a", "controlPlane": true}])
        };
        if self.has(Fault::WritesFailureAsNumber) {
            status["failureReason"] = json!(7);
        }
        status
    }

    /// Writes at rest, and only there.
    async fn beat(&mut self) -> Result<(), kube::Error> {
        for mut object in self.infra.list(&kube::api::ListParams::default()).await? {
            let ready = conditions(&object).iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
            let paused =
                conditions(&object).iter().any(|it| it["type"] == "Paused" && it["status"] == "True");
            let leave = is_paused(&object.metadata) || is_externally_managed(&object.metadata) || paused;
            if ready && !leave && object.metadata.deletion_timestamp.is_none() {
                self.beats += 1;
                self.status(&mut object, json!({"heartbeat": self.beats})).await?;
            }
        }
        Ok(())
    }

    async fn merge(&mut self, object: &mut DynamicObject, patch: Value) -> Result<(), kube::Error> {
        if let Some(patch) = guarded(object, patch) {
            let name = object.name_any();
            *object = self.infra.patch(&name, &params(), &Patch::Merge(patch)).await?;
            self.written.insert(object.resource_version());
        }
        Ok(())
    }

    async fn status(&mut self, object: &mut DynamicObject, status: Value) -> Result<(), kube::Error> {
        if let Some(patch) = guarded(object, json!({ "status": status })) {
            let name = object.name_any();
            *object = self.infra.patch_status(&name, &params(), &Patch::Merge(patch)).await?;
            self.written.insert(object.resource_version());
        }
        Ok(())
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some("twin".to_owned()), ..PatchParams::default() }
}

/// The patch with the version that it was made from, unless it changes nothing.
fn guarded(object: &DynamicObject, mut patch: Value) -> Option<Value> {
    let before = serde_json::to_value(object).unwrap();
    let mut after = before.clone();
    merge_into(&mut after, &patch);
    if after == before {
        return None;
    }
    patch["metadata"]["resourceVersion"] = json!(object.resource_version());
    Some(patch)
}

fn merge_into(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let into = into.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            into.remove(key);
        } else {
            merge_into(into.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn port(object: &DynamicObject) -> Option<u64> {
    object.data.pointer("/spec/controlPlaneEndpoint/port")?.as_u64()
}

fn conditions(object: &DynamicObject) -> Vec<Value> {
    object.data.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn with_condition(object: &DynamicObject, type_: &str, status: &str) -> Value {
    let mut list = conditions(object);
    put(&mut list, type_, status);
    json!(list)
}

fn put(list: &mut Vec<Value>, type_: &str, status: &str) {
    let condition = json!({
        "type": type_, "status": status, "reason": "Twin", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    match list.iter_mut().find(|it| it["type"] == type_) {
        Some(known) => *known = condition,
        None => list.push(condition),
    }
}
