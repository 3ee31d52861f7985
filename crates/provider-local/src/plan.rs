//! What is to be done about a LocalCluster, as the behaviour section of the contract orders it.

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ClusterSpec},
    conditions::{self, Report},
    contract::{is_externally_managed, is_paused, owned_by_cluster},
};
use capstan_runtime::{Observed, cache::Cached, patch::merge_diff};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::api::{
    FINALIZER,
    v1beta2::{LocalClusterInitialization, LocalClusterSpec, LocalClusterStatus},
};

/// A LocalCluster as the controller reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalRecord {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: LocalClusterSpec,
    pub(crate) status: LocalClusterStatus,
    /// What is wrong with the object if it cannot be read.
    pub(crate) malformed: Option<String>,
}

impl LocalRecord {
    pub(crate) fn new(object: Observed) -> Self {
        match (object.spec.read(), object.status.read()) {
            (Ok(spec), Ok(status)) => Self { metadata: object.metadata, spec, status, malformed: None },
            (Err(error), _) | (_, Err(error)) => {
                Self { metadata: object.metadata, malformed: Some(error.to_string()), ..Self::default() }
            }
        }
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().flatten().any(|name| name == FINALIZER)
    }
}

impl Cached for LocalRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// What is read of a Cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerRecord {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ClusterSpec,
}

impl OwnerRecord {
    pub(crate) fn new(object: Observed) -> Self {
        let spec = object.spec.read().unwrap_or_default();
        Self { metadata: object.metadata, spec }
    }
}

impl Cached for OwnerRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The object is none of our business, now or at all.
    Leave,
    /// Say that nothing is done.
    ReportPause(Option<Value>),
    /// Put the finalizer on, before anything is created.
    AddFinalizer(Value),
    /// Make the load balancer listen here, or anywhere.
    Provision(Option<ApiEndpoint>),
    /// Take the load balancer down, then let the object go.
    Deprovision,
    /// There is nothing to take down: let the object go.
    Release,
}

/// Decides the next step.
pub(crate) fn next_step(local: &LocalRecord, owner: Option<&Arc<OwnerRecord>>, now: Timestamp) -> Step {
    if is_externally_managed(&local.metadata) {
        return Step::Leave;
    }
    let owned = owned_by_cluster(&local.metadata).is_some();
    if owned {
        let why = pause_reasons(local, owner);
        if !why.is_empty() {
            return Step::ReportPause(pause_patch(local, &why.join(", "), now));
        }
    }
    match (local.is_deleting(), owned) {
        (true, _) if !local.has_finalizer() => Step::Leave,
        (true, true) => Step::Deprovision,
        (true, false) => Step::Release,
        (false, false) => Step::Leave,
        (false, true) if !local.has_finalizer() => Step::AddFinalizer(finalizers(local, true)),
        // Without its Cluster's word on the endpoint nothing can be decided; the Cluster's arrival is an event.
        (false, true) => owner.map_or(Step::Leave, |owner| Step::Provision(wanted_endpoint(local, owner))),
    }
}

fn pause_reasons(local: &LocalRecord, owner: Option<&Arc<OwnerRecord>>) -> Vec<&'static str> {
    let mut why = Vec::new();
    if owner.is_some_and(|owner| owner.spec.paused == Some(true)) {
        why.push("Cluster spec.paused is set to true");
    }
    if is_paused(&local.metadata) {
        why.push("LocalCluster has the cluster.x-k8s.io/paused annotation");
    }
    why
}

/// Where the load balancer should listen: what is recorded, else what users asked of the Cluster, else anywhere.
fn wanted_endpoint(local: &LocalRecord, owner: &OwnerRecord) -> Option<ApiEndpoint> {
    [&local.spec.control_plane_endpoint, &owner.spec.control_plane_endpoint]
        .into_iter()
        .flatten()
        .find(|endpoint| endpoint.is_valid())
        .cloned()
}

/// The patch that puts the finalizer on, or takes it off.
pub(crate) fn finalizers(local: &LocalRecord, wanted: bool) -> Value {
    let mut names = local.metadata.finalizers.clone().unwrap_or_default();
    names.retain(|name| name != FINALIZER);
    if wanted {
        names.push(FINALIZER.to_owned());
    }
    json!({"metadata": {"resourceVersion": local.metadata.resource_version, "finalizers": names}})
}

/// The patch that records where the load balancer listens.
pub(crate) fn record_endpoint(local: &LocalRecord, endpoint: &ApiEndpoint) -> Option<Value> {
    (local.spec.control_plane_endpoint.as_ref() != Some(endpoint)).then(|| {
        json!({
            "metadata": {"resourceVersion": local.metadata.resource_version},
            "spec": {"controlPlaneEndpoint": endpoint},
        })
    })
}

/// The status once the load balancer listens.
pub(crate) fn report_provisioned(local: &LocalRecord, now: Timestamp) -> Option<Value> {
    let mut status = local.status.clone();
    status.initialization = Some(LocalClusterInitialization { provisioned: Some(true) });
    status.failure_domains.clone_from(&local.spec.failure_domains);
    set_conditions(local, &mut status, Report::new("Ready", true, "Ready"), now);
    status_patch(local, &status)
}

/// The status while the load balancer cannot listen.
pub(crate) fn report_trouble(local: &LocalRecord, message: &str, now: Timestamp) -> Option<Value> {
    let mut status = local.status.clone();
    let message = format!("{message}: free the address, or name another in spec.controlPlaneEndpoint");
    let report = Report::new("Ready", false, "LoadBalancerNotListening").with_message(message);
    set_conditions(local, &mut status, report, now);
    status_patch(local, &status)
}

/// The status while the object goes away.
pub(crate) fn report_deleting(local: &LocalRecord, now: Timestamp) -> Option<Value> {
    let mut status = local.status.clone();
    let report =
        Report::new("Ready", false, "Deleting").with_message("The load balancer is being taken down");
    set_conditions(local, &mut status, report, now);
    status_patch(local, &status)
}

fn set_conditions(local: &LocalRecord, status: &mut LocalClusterStatus, ready: Report, now: Timestamp) {
    let generation = local.metadata.generation;
    for report in [ready, Report::new("Paused", false, "NotPaused")] {
        conditions::set(&mut status.conditions, report, generation, now);
    }
}

fn pause_patch(local: &LocalRecord, why: &str, now: Timestamp) -> Option<Value> {
    let mut status = local.status.clone();
    let report = Report::new("Paused", true, "Paused").with_message(why);
    conditions::set(&mut status.conditions, report, local.metadata.generation, now);
    status_patch(local, &status)
}

fn status_patch(local: &LocalRecord, status: &LocalClusterStatus) -> Option<Value> {
    let difference = merge_diff(&json!(local.status), json!(status))?;
    Some(json!({
        "metadata": {"resourceVersion": local.metadata.resource_version},
        "status": difference,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_api::names::annotation;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn local(owned: bool, finalizer: bool, deleting: bool) -> LocalRecord {
        let owner = OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".into(),
            kind: "Cluster".into(),
            name: "c".into(),
            uid: "u".into(),
            ..OwnerReference::default()
        };
        LocalRecord {
            metadata: ObjectMeta {
                resource_version: Some("1".into()),
                owner_references: owned.then(|| vec![owner]),
                finalizers: finalizer.then(|| vec![FINALIZER.to_owned()]),
                deletion_timestamp: deleting.then(|| Time(now())),
                ..ObjectMeta::default()
            },
            ..LocalRecord::default()
        }
    }

    fn owner(endpoint: Option<(&str, i32)>, paused: bool) -> Arc<OwnerRecord> {
        let mut owner = OwnerRecord::default();
        owner.spec.paused = Some(paused);
        owner.spec.control_plane_endpoint =
            endpoint.map(|(host, port)| ApiEndpoint { host: host.into(), port });
        Arc::new(owner)
    }

    #[test]
    fn the_contract_decides_the_step() {
        let cluster = owner(None, false);
        for (owned, finalizer, deleting, expected) in [
            (false, false, false, Step::Leave),
            (true, false, false, Step::AddFinalizer(finalizers(&local(true, false, false), true))),
            (true, true, false, Step::Provision(None)),
            (true, true, true, Step::Deprovision),
            (false, true, true, Step::Release),
            (true, false, true, Step::Leave),
        ] {
            let step = next_step(&local(owned, finalizer, deleting), Some(&cluster), now());
            assert_eq!(step, expected, "owned {owned}, finalizer {finalizer}, deleting {deleting}");
        }
    }

    #[test]
    fn what_others_manage_is_never_touched() {
        for deleting in [false, true] {
            let mut managed = local(true, true, deleting);
            managed.metadata.labels = Some([(annotation::MANAGED_BY.to_owned(), "x".to_owned())].into());
            assert_eq!(next_step(&managed, Some(&owner(None, true)), now()), Step::Leave);
        }
    }

    #[test]
    fn a_pause_stops_everything_and_says_so_once() {
        let mut paused = local(true, true, true);
        let Step::ReportPause(Some(patch)) = next_step(&paused, Some(&owner(None, true)), now()) else {
            panic!("no pause");
        };
        let condition = &patch["status"]["conditions"][0];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("Paused"), &json!("True")));
        paused.status = serde_json::from_value(patch["status"].clone()).unwrap();
        assert_eq!(next_step(&paused, Some(&owner(None, true)), now()), Step::ReportPause(None));
    }

    #[test]
    fn the_recorded_endpoint_comes_first_then_the_users() {
        let mut recorded = local(true, true, false);
        let users = owner(Some(("10.0.0.1", 1)), false);
        let at = |host: &str, port| Some(ApiEndpoint { host: host.into(), port });
        assert_eq!(next_step(&recorded, Some(&users), now()), Step::Provision(at("10.0.0.1", 1)));
        recorded.spec.control_plane_endpoint = at("127.0.0.1", 2);
        assert_eq!(next_step(&recorded, Some(&users), now()), Step::Provision(at("127.0.0.1", 2)));
        recorded.spec.control_plane_endpoint = at("127.0.0.1", 0);
        assert_eq!(next_step(&recorded, Some(&users), now()), Step::Provision(at("10.0.0.1", 1)));
        assert_eq!(next_step(&recorded, None, now()), Step::Leave, "the Cluster is not known yet");
    }

    #[test]
    fn a_status_that_is_right_is_not_written_again() {
        let mut record = local(true, true, false);
        record.spec.failure_domains =
            serde_json::from_value(json!([{"name": "a", "controlPlane": true}])).unwrap();
        let patch = report_provisioned(&record, now()).unwrap();
        record.status = serde_json::from_value(patch["status"].clone()).unwrap();
        assert_eq!(record.status.failure_domains, record.spec.failure_domains);
        let later = "2026-01-02T00:00:00Z".parse().unwrap();
        assert_eq!(report_provisioned(&record, later), None);
        assert_eq!(
            record_endpoint(&record, &ApiEndpoint { host: "h".into(), port: 1 }).unwrap()["spec"],
            json!({"controlPlaneEndpoint": {"host": "h", "port": 1}})
        );
    }
}
