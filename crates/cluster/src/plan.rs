//! What is to be done about a Cluster, decided from a snapshot and nothing else.

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ClusterStatus, Initialization, MachinesStatus},
    contract::{FieldError, has_owner},
    names::finalizer,
};
use capstan_runtime::{ObjectKey, events::Severity, patch::merge_diff};
use jiff::Timestamp;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};

use crate::{
    deletion, machines,
    ownership::{self, OwnedByAnother},
    phase::phase,
    provider_object::{ControlPlaneFacts, InfrastructureFacts, terminal_failure},
    snapshot::{ClusterRecord, FoundObject, Referenced, Snapshot},
    status::{self, Findings},
};

/// How often a Cluster is looked at whose Machines cannot be read.
const TROUBLE_PERIOD: Duration = Duration::from_secs(10);

/// What is to be done, in this order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// A patch of the Cluster's metadata and spec.
    pub cluster: Option<Value>,
    /// Patches that make provider objects the Cluster's own.
    pub adoptions: Vec<ObjectPatch>,
    /// Whether what follows is only right while the Cluster has no Machines left.
    pub only_if_childless: bool,
    /// Objects to delete.
    pub deletions: Vec<ObjectDeletion>,
    /// A patch of the Cluster's status.
    pub status: Option<Value>,
    /// Let the Cluster go, once these objects have been seen to be gone.
    pub release: Option<Release>,
    /// The events to record after the writes.
    pub events: Vec<PlannedEvent>,
    /// When to look again even without an event, for changes that no watch shows.
    pub again: Option<Duration>,
}

/// A patch of a provider's object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectPatch {
    /// The kind.
    pub resource: ApiResource,
    /// The object.
    pub key: ObjectKey,
    /// The patch.
    pub patch: Value,
    /// What it was decided on.
    pub before: Value,
}

/// A provider's object that is to go.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectDeletion {
    /// The kind.
    pub resource: ApiResource,
    /// The object.
    pub key: ObjectKey,
    /// Its uid: a successor of the same name is left alone.
    pub uid: String,
}

/// The end of a Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Objects that the caches lack: to be requested once more, past the caches.
    pub gone: Vec<(ApiResource, ObjectKey)>,
    /// The patch that removes the finalizer.
    pub patch: Value,
}

/// An event on the Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// How serious it is.
    pub severity: Severity,
    /// One word.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

impl Plan {
    /// Whether there is nothing to write.
    pub fn is_idle(&self) -> bool {
        self.cluster.is_none()
            && self.adoptions.is_empty()
            && self.deletions.is_empty()
            && self.status.is_none()
            && self.release.is_none()
    }
}

/// Decides what is to be done.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan {
    let cluster = &*snapshot.cluster;
    let holds_finalizer = has_finalizer(cluster);
    if cluster.is_deleting() && !holds_finalizer {
        return Plan::default();
    }
    let mut draft = Draft::new(snapshot);
    if !cluster.is_deleting() && !holds_finalizer {
        draft.add_finalizer();
    }
    if cluster.is_paused() {
        status::report_paused(&mut draft, now);
        return draft.finish();
    }
    draft.take_in_infrastructure();
    draft.take_in_control_plane();
    machines::count_workers(&mut draft);
    if cluster.is_deleting() {
        deletion::plan(&mut draft);
    }
    draft.settle_phase();
    status::report(&mut draft, now);
    if snapshot.descendants.trouble.is_some() {
        // A watch that is refused retries by itself, but reports only its success.
        draft.look_again(TROUBLE_PERIOD);
    }
    if let Some(after) = machines::look_again(&draft, now) {
        draft.look_again(after);
    }
    draft.finish()
}

fn has_finalizer(cluster: &ClusterRecord) -> bool {
    cluster.metadata.finalizers.iter().flatten().any(|name| name == finalizer::CLUSTER)
}

/// A plan in the making.
pub(crate) struct Draft<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) cluster: &'a ClusterRecord,
    pub(crate) plan: Plan,
    /// The status that the Cluster should have.
    pub(crate) status: ClusterStatus,
    pub(crate) findings: Findings,
    metadata_patch: Map<String, Value>,
    endpoint: Option<ApiEndpoint>,
}

impl<'a> Draft<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            cluster: &snapshot.cluster,
            plan: Plan::default(),
            status: snapshot.cluster.status.clone(),
            findings: Findings::default(),
            metadata_patch: Map::new(),
            endpoint: None,
        }
    }

    /// The generation that the Cluster will have once the plan is carried out.
    pub(crate) fn generation(&self) -> Option<i64> {
        let change = i64::from(self.endpoint.is_some());
        self.cluster.metadata.generation.map(|generation| generation + change)
    }

    /// Asks for another look, no later than then.
    pub(crate) fn look_again(&mut self, after: Duration) {
        self.plan.again = Some(self.plan.again.map_or(after, |again| again.min(after)));
    }

    pub(crate) fn event(&mut self, severity: Severity, reason: &'static str, message: String) {
        self.plan.events.push(PlannedEvent { severity, reason, message });
    }

    pub(crate) fn key_of(&self, found: &FoundObject) -> ObjectKey {
        self.key_beside(&found.reference.name)
    }

    /// An object of that name in the Cluster's namespace.
    pub(crate) fn key_beside(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.cluster.metadata.namespace.as_deref().unwrap_or_default(), name)
    }

    fn add_finalizer(&mut self) {
        let mut finalizers = self.cluster.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(finalizer::CLUSTER.to_owned());
        self.metadata_patch.insert("finalizers".to_owned(), json!(finalizers));
    }

    /// The patch that removes the finalizer.
    pub(crate) fn finalizer_removal(&self) -> Value {
        let mut finalizers = self.cluster.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|name| name != finalizer::CLUSTER);
        json!({"metadata": {
            "resourceVersion": self.cluster.metadata.resource_version,
            "finalizers": finalizers,
        }})
    }

    fn take_in_infrastructure(&mut self) {
        match &self.snapshot.infrastructure {
            Referenced::Nothing => {
                // A control plane provider may bring its own infrastructure: then nothing else is to be awaited.
                let complete = self.cluster.spec.control_plane_ref.is_some() && !self.cluster.has_topology();
                if complete && !self.cluster.is_deleting() {
                    self.initialization().infrastructure_provisioned = Some(true);
                }
            }
            Referenced::Found(found) => {
                let essence = found.object.essence();
                if self.adopt(found, |findings| &mut findings.infrastructure) {
                    self.surface_failure(found, &essence);
                }
                match InfrastructureFacts::read(found, &essence) {
                    Ok(facts) => self.take_in_infrastructure_facts(found, facts),
                    Err(violation) => self.findings.infrastructure.blame(found, &violation),
                }
                self.findings.infrastructure.essence = Some(essence);
            }
            Referenced::Unresolved { .. } | Referenced::ClusterScoped { .. } | Referenced::Missing { .. } => {
            }
        }
    }

    fn take_in_infrastructure_facts(&mut self, found: &FoundObject, facts: InfrastructureFacts) {
        let was_provisioned = self.cluster.was_provisioned();
        self.findings.infrastructure.done = facts.provisioned || was_provisioned;
        if facts.provisioned
            && !facts.endpoint.is_valid()
            && !facts.endpoint.is_zero()
            && !self.has_endpoint()
        {
            let missing = if facts.endpoint.host.is_empty() { "host" } else { "port" };
            self.findings.infrastructure.violation = Some(format!(
                "{} {}: spec.controlPlaneEndpoint.{missing} must be set as well once the infrastructure is provisioned",
                found.reference.kind, found.reference.name
            ));
        }
        if is_deleting(found) || self.findings.infrastructure.refused() || !self.findings.infrastructure.done
        {
            return;
        }
        self.offer_endpoint(facts.endpoint);
        self.status.failure_domains = facts.failure_domains;
        if !was_provisioned {
            self.initialization().infrastructure_provisioned = Some(true);
            let message = format!("Cluster {} InfrastructureProvisioned is now True", self.cluster.name());
            self.event(Severity::Normal, "InfrastructureReady", message);
        }
    }

    fn take_in_control_plane(&mut self) {
        let found = match &self.snapshot.control_plane {
            Referenced::Found(found) => found,
            Referenced::Nothing if !self.cluster.has_topology() => {
                return self.take_in_control_plane_machines();
            }
            // How many there are is not known.
            Referenced::Nothing
            | Referenced::Missing { .. }
            | Referenced::ClusterScoped { .. }
            | Referenced::Unresolved { .. } => {
                machines::take_in(&mut self.status.control_plane, MachinesStatus::default());
                return;
            }
        };
        let essence = found.object.essence();
        if self.adopt(found, |findings| &mut findings.control_plane) {
            self.surface_failure(found, &essence);
        }
        match ControlPlaneFacts::read(found, &essence) {
            Ok(facts) => self.take_in_control_plane_facts(found, facts),
            Err(violation) => self.findings.control_plane.blame(found, &violation),
        }
        self.findings.control_plane.essence = Some(essence);
    }

    fn take_in_control_plane_facts(&mut self, found: &FoundObject, facts: ControlPlaneFacts) {
        let was_initialized = self.cluster.was_initialized();
        self.findings.control_plane.done = facts.initialized || was_initialized;
        if self.findings.control_plane.trouble.is_some() {
            // These are the Machines of another Cluster.
            machines::take_in(&mut self.status.control_plane, MachinesStatus::default());
        } else {
            status::count_control_plane(&mut self.status, &facts.counters);
        }
        if is_deleting(found) || self.findings.control_plane.refused() || !self.findings.control_plane.done {
            return;
        }
        self.offer_endpoint(facts.endpoint);
        self.latch_initialized();
    }

    /// A control plane of single Machines is initialized by the first Node.
    fn take_in_control_plane_machines(&mut self) {
        machines::count_control_plane(self);
        let mut machines = self.snapshot.descendants.control_plane_machines();
        if machines.any(|machine| machine.object.has_node()) {
            self.findings.control_plane.done = true;
            self.latch_initialized();
        }
    }

    fn latch_initialized(&mut self) {
        if !self.cluster.was_initialized() {
            self.initialization().control_plane_initialized = Some(true);
            let message = format!("Cluster {} ControlPlaneInitialized is now True", self.cluster.name());
            self.event(Severity::Normal, "ControlPlaneInitialized", message);
        }
    }

    fn has_endpoint(&self) -> bool {
        self.cluster.spec.control_plane_endpoint.as_ref().is_some_and(ApiEndpoint::is_valid)
    }

    /// Takes an endpoint that is whole, unless there is one: what users gave, or what was first, stays for ever.
    fn offer_endpoint(&mut self, offered: ApiEndpoint) {
        if !self.has_endpoint()
            && self.endpoint.is_none()
            && offered.is_valid()
            && !self.cluster.is_deleting()
        {
            self.endpoint = Some(offered);
        }
    }

    /// Plans the adoption of an object; says whether the object is the Cluster's own once the plan is carried out.
    fn adopt(&mut self, found: &FoundObject, finding: fn(&mut Findings) -> &mut status::Finding) -> bool {
        match ownership::adopt(self.cluster, metadata(found)) {
            Ok(_) if self.cluster.is_deleting() || is_deleting(found) => {
                has_owner(metadata(found), self.cluster.uid())
            }
            Ok(None) => true,
            Ok(Some(patch)) => {
                let (resource, key, metadata) = (found.resource.clone(), self.key_of(found), metadata(found));
                let before = json!({"metadata": {
                    "uid": metadata.uid, "labels": metadata.labels, "ownerReferences": metadata.owner_references,
                }});
                self.plan.adoptions.push(ObjectPatch { resource, key, patch, before });
                true
            }
            Err(OwnedByAnother { cluster }) => {
                finding(&mut self.findings).trouble = Some(format!(
                    "{} {} belongs to Cluster {cluster}: refer to an object of this Cluster's own",
                    found.reference.kind, found.reference.name
                ));
                false
            }
        }
    }

    /// A terminal failure of the Cluster's own object stays for ever, as the older contract says.
    fn surface_failure(&mut self, found: &FoundObject, essence: &Value) {
        let Some(failure) = terminal_failure(found, essence) else {
            return;
        };
        let legacy = self.status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
        if failure.reason.is_some() {
            legacy.failure_reason = failure.reason;
        }
        if let Some(message) = failure.message {
            legacy.failure_message = Some(message.chars().take(10240).collect());
        }
    }

    fn initialization(&mut self) -> &mut Initialization {
        self.status.initialization.get_or_insert_default()
    }

    fn settle_phase(&mut self) {
        let mut spec = self.cluster.spec.clone();
        if let Some(endpoint) = &self.endpoint {
            spec.control_plane_endpoint = Some(endpoint.clone());
        }
        let next = phase(&spec, &self.status, self.cluster.is_deleting());
        if self.status.phase.as_deref() != Some(next) {
            self.status.phase = Some(next.to_owned());
            let severity = if next == crate::phase::FAILED { Severity::Warning } else { Severity::Normal };
            self.event(severity, next, format!("Cluster {} is {next}", self.cluster.name()));
        }
    }

    /// Turns what was found into the smallest writes.
    fn finish(mut self) -> Plan {
        let mut patch = Map::new();
        if !self.metadata_patch.is_empty() || self.endpoint.is_some() {
            let version = json!(self.cluster.metadata.resource_version);
            self.metadata_patch.insert("resourceVersion".to_owned(), version);
            patch.insert("metadata".to_owned(), Value::Object(self.metadata_patch));
        }
        if let Some(endpoint) = self.endpoint {
            patch.insert("spec".to_owned(), json!({"controlPlaneEndpoint": endpoint}));
        }
        if !patch.is_empty() {
            self.plan.cluster = Some(Value::Object(patch));
        }
        // A Cluster that is let go needs no status any more.
        if self.plan.release.is_none() && self.status != self.cluster.status {
            // Both sides come from the same types, so that what the types do not know is never touched.
            let (before, after) = (json!(self.cluster.status), json!(self.status));
            self.plan.status = merge_diff(&before, after).map(|status| json!({"status": status}));
        }
        self.plan
    }
}

pub(crate) fn is_deleting(found: &FoundObject) -> bool {
    metadata(found).deletion_timestamp.is_some()
}

pub(crate) fn metadata(found: &FoundObject) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    use capstan_runtime::cache::Cached;
    found.object.metadata()
}

impl status::Finding {
    fn blame(&mut self, found: &FoundObject, violation: &FieldError) {
        self.violation = Some(format!("{} {}: {violation}", found.reference.kind, found.reference.name));
    }
}

#[cfg(test)]
mod tests;
