//! What a ClusterClass asks of all its Clusters.

use std::sync::Arc;

use capstan_api::{cluster::v1beta2::AvailabilityGate, contract::GroupKind};
use capstan_runtime::{
    ObjectKey, Observed,
    cache::Cached,
    hub::HubListener,
    manager::Manager,
    watch::{Change, WatchState},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{
    controller::Waker,
    core_kinds::{CoreKind, CoreKinds, Knowledge},
    crds::Crds,
    snapshot::ClusterRecord,
};

const CLUSTER_CLASS: CoreKind = CoreKind { name: "ClusterClass", plural: "clusterclasses" };

/// The availability gates that a class asks for, or why they are not known.
pub type ClassGates = Result<Vec<AvailabilityGate>, String>;

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
        let gates =
            serde_json::from_value(object.spec.value()["availabilityGates"].take()).unwrap_or_default();
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
    waker: Arc<Waker>,
}

impl ClassWatch {
    pub(crate) fn new(manager: &Manager, crds: Arc<Crds>, waker: Arc<Waker>) -> Self {
        let listener = Arc::new(WakeAll(Arc::clone(&waker))) as Arc<dyn HubListener<ClassRecord>>;
        let project = |_: &GroupKind, object| ClassRecord::new(object);
        Self { kinds: CoreKinds::new(manager, crds, project, listener), waker }
    }

    /// The gates that a Cluster's class asks for; nothing while classes are still being loaded.
    pub(crate) fn gates_of(&self, cluster: &ClusterRecord) -> Option<ClassGates> {
        let class = cluster.spec.topology.as_ref().and_then(|topology| topology.class_ref.as_ref());
        let Some(class) = class else { return Some(Ok(Vec::new())) };
        let classes = match self.kinds.know(CLUSTER_CLASS) {
            Knowledge::All(classes, _) => classes,
            Knowledge::NotInstalled => return Some(Ok(Vec::new())),
            Knowledge::Loading => return None,
            Knowledge::Unreadable(reason) => return Some(Err(reason)),
        };
        let own_namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let namespace = class.namespace.as_deref().unwrap_or(own_namespace);
        let class = classes.get(&ObjectKey::new(namespace, &class.name));
        Some(Ok(class.map(|class| class.gates.clone()).unwrap_or_default()))
    }

    /// A CRD came, changed or went.
    pub(crate) fn crd_changed(&self, crd: &str) {
        if *CLUSTER_CLASS.crd().name == *crd {
            self.kinds.crd_changed(crd);
            self.waker.wake_all();
        }
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
