//! What a ClusterClass asks of all its Clusters.

use std::sync::Arc;

use capstan_api::{cluster::v1beta2::AvailabilityGate, contract::GroupKind};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::{Cache, Cached},
    hub::HubListener,
    watch::{Change, WatchState},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;

use crate::{
    controller::Waker,
    core_kinds::{CoreKind, CoreKinds},
    resolve::CrdRecord,
    snapshot::ClusterRecord,
};

const CLUSTER_CLASS: CoreKind = CoreKind { name: "ClusterClass", plural: "clusterclasses" };

/// What is kept of a ClusterClass.
#[derive(Clone, Debug)]
pub(crate) struct ClassRecord {
    metadata: ObjectMeta,
    gates: Vec<AvailabilityGate>,
}

impl ClassRecord {
    fn new(object: Observed) -> Self {
        let metadata = ObjectMeta {
            uid: object.metadata.uid,
            resource_version: object.metadata.resource_version,
            ..ObjectMeta::default()
        };
        // What is not a list of gates asks for nothing; the class's own admission is to say so.
        let gates = serde_json::from_value(object.spec["availabilityGates"].clone()).unwrap_or_default();
        Self { metadata, gates }
    }
}

impl Cached for ClassRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Watches ClusterClasses once a Cluster has one.
#[derive(Debug)]
pub(crate) struct ClassWatch {
    kinds: CoreKinds<ClassRecord>,
}

impl ClassWatch {
    pub(crate) fn new(
        client: Client,
        namespace: Option<String>,
        crds: Cache<CrdRecord>,
        waker: Arc<Waker>,
    ) -> Self {
        let listener = Arc::new(WakeAll(waker)) as Arc<dyn HubListener<ClassRecord>>;
        Self { kinds: CoreKinds::new(client, namespace, crds, ClassRecord::new, listener) }
    }

    /// The gates that a Cluster's class asks for; nothing while classes are still being loaded.
    pub(crate) fn gates_of(&self, cluster: &ClusterRecord) -> Option<Vec<AvailabilityGate>> {
        let Some(topology) = &cluster.spec.topology else { return Some(Vec::new()) };
        let Some((watched, _)) = self.kinds.watch(CLUSTER_CLASS) else { return Some(Vec::new()) };
        if watched.state == WatchState::Syncing {
            return None;
        }
        let own_namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let class = topology.class_ref.as_ref().and_then(|class| {
            let namespace = class.namespace.as_deref().unwrap_or(own_namespace);
            watched.cache.get(&ObjectKey::new(namespace, &class.name))
        });
        Some(class.map(|class| class.gates.clone()).unwrap_or_default())
    }

    /// A CRD came, changed or went.
    pub(crate) fn crd_changed(&self, crd: &str) {
        self.kinds.crd_changed(crd);
    }

    /// Ends the watch if the kind is not installed any more.
    pub(crate) fn drop_unused(&self) {
        self.kinds.drop_unused();
    }
}

/// Classes change so rarely that all Clusters may look.
struct WakeAll(Arc<Waker>);

impl HubListener<ClassRecord> for WakeAll {
    fn changed(&self, _kind: &GroupKind, change: Change<'_, ClassRecord>) {
        let gates = |class: Option<&Arc<ClassRecord>>| class.map(|class| class.gates.clone());
        if gates(change.before) != gates(change.now) {
            self.0.wake_all();
        }
    }

    fn state_changed(&self, _kind: &GroupKind, _state: &WatchState) {
        self.0.wake_all();
    }
}
