//! The walk over a snapshot, and the order of findings.

use capstan_api::{
    conditions::{ConditionStatus, Report},
    names::{CORE_PROVIDER, label},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    controllers::{Controller, controller},
    finding::{ClusterState, ExplainProblem, Explanation, Finding},
    snapshot::ExplainSnapshot,
};
use crate::fields::{
    self, created, deleted, group, is_deleting, is_paused_by_annotation, is_true, kind, name, namespace, text,
};
use crate::snapshot::{WorkloadIndex, WorkloadSnapshot};
use capstan_management::ObjectRef;

/// Conditions that make up whether a Cluster is available.
const PARTS: [&str; 5] = [
    "InfrastructureReady",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "RemoteConnectionProbe",
    "TopologyReconciled",
];

/// Walks over a snapshot.
pub(crate) struct Inspector<'a> {
    pub(crate) snapshot: &'a ExplainSnapshot,
    pub(crate) workload: &'a WorkloadSnapshot,
    pub(crate) index: WorkloadIndex<'a>,
    pub(crate) cluster: &'a Value,
    pub(crate) namespace: &'a str,
    pub(crate) program: &'a str,
    pub(crate) now: Timestamp,
    findings: Vec<Finding>,
}

impl<'a> Inspector<'a> {
    pub(crate) fn new(snapshot: &'a ExplainSnapshot, program: &'a str, now: Timestamp) -> Self {
        let workload = &snapshot.workload;
        let (cluster, index) = (&workload.cluster, workload.index());
        let namespace = namespace(cluster);
        Self { snapshot, workload, index, cluster, namespace, program, now, findings: Vec::new() }
    }

    /// Adds a finding.
    pub(crate) fn add(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Adds a finding that concerns many objects, for the first of them.
    pub(crate) fn add_once(&mut self, finding: Finding) {
        let is_told =
            self.findings.iter().any(|it| it.problem == finding.problem && it.object == finding.object);
        if !is_told {
            self.findings.push(finding);
        }
    }

    /// How many findings there are so far.
    pub(crate) fn count(&self) -> usize {
        self.findings.len()
    }

    /// What an object is called in a sentence.
    pub(crate) fn title(&self, object: &Value) -> String {
        format!("{} {}/{}", kind(object), self.namespace, name(object))
    }

    /// The command that asks the workload cluster something.
    pub(crate) fn in_workload_cluster(&self, words: &str) -> String {
        let (program, name, namespace) = (self.program, name(self.cluster), self.namespace);
        format!("kubectl --kubeconfig <({program} get kubeconfig {name} -n {namespace}) {words}")
    }

    pub(crate) fn controller_of(&self, object: &Value) -> Controller {
        controller(self.snapshot, object, self.now)
    }

    /// A condition of the Cluster.
    pub(crate) fn condition(&self, type_: &str) -> Option<Report> {
        fields::report(self.cluster, type_)
    }

    /// Whether a condition of the Cluster says that something is wrong.
    pub(crate) fn is_bad(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|it| it.status != ConditionStatus::True)
    }

    pub(crate) fn has_topology(&self) -> bool {
        self.cluster.pointer("/spec/topology").is_some_and(Value::is_object)
    }

    pub(crate) fn is_provisioned(&self) -> bool {
        fields::is_provisioned(self.cluster)
    }

    pub(crate) fn is_initialized(&self) -> bool {
        let latched = [
            "/status/initialization/controlPlaneInitialized",
            "/status/v1beta2/initialization/controlPlaneInitialized",
        ];
        is_true(self.cluster, &latched)
            || self.condition("ControlPlaneInitialized").is_some_and(|it| it.status == ConditionStatus::True)
    }

    pub(crate) fn state(&self) -> ClusterState {
        if is_deleting(self.cluster) {
            return ClusterState::Deleting;
        }
        match fields::summary(self.cluster).map(|it| it.status) {
            Some(ConditionStatus::True) => ClusterState::Available,
            Some(ConditionStatus::False) => ClusterState::NotAvailable,
            Some(ConditionStatus::Unknown) | None => ClusterState::Unknown,
        }
    }

    /// The Cluster itself: paused, without controller, or not observed.
    pub(crate) fn check_cluster(&mut self) {
        let cluster = self.cluster;
        if let Some(note) = self.workload.unreadable(group(cluster), "Cluster", name(cluster)) {
            let predicate = format!("cannot be read: {}.", note.reason);
            if !self.check_controller(cluster) {
                self.finding(ExplainProblem::Unreadable, cluster, predicate).add_to(self);
            }
            return;
        }
        if is_true(cluster, &["/spec/paused"]) {
            self.add_paused(cluster, "no controller touches it or anything that belongs to it");
        }
        if is_paused_by_annotation(cluster) {
            self.add_paused_by_annotation(cluster);
        }
        self.check_controller(cluster);
        let is_seen = text(cluster, "/status/phase").is_some() || !fields::reports(cluster).is_empty();
        if !is_seen && self.count() == 0 {
            let sentence = format!(
                "No controller has reported on {} yet: it has neither phase nor conditions.",
                self.title(cluster)
            );
            self.sentence(ExplainProblem::NotObserved, cluster, sentence)
                .since_created()
                .controller()
                .look(format!("kubectl get deployments -A -l {}={CORE_PROVIDER}", label::PROVIDER))
                .add_to(self);
        }
    }

    pub(crate) fn add_paused(&mut self, object: &Value, effect: &str) {
        self.finding(ExplainProblem::Paused, object, format_args!("is paused by spec.paused: {effect}."))
            .reported("Paused")
            .patch(&json!({"spec": {"paused": false}}))
            .add_to(self);
    }

    /// What nothing else explains: gates, and conditions with reasons of the Cluster's controller.
    pub(crate) fn check_other_conditions(&mut self) {
        if self.state() == ClusterState::Available {
            return;
        }
        let gates = self.cluster.pointer("/spec/availabilityGates").and_then(Value::as_array);
        for gate in gates.into_iter().flatten() {
            let type_ = gate["conditionType"].as_str().unwrap_or_default();
            let wanted =
                if gate["polarity"] == "Negative" { ConditionStatus::False } else { ConditionStatus::True };
            let report = self.condition(type_);
            if report.as_ref().is_none_or(|it| it.status != wanted) {
                let says =
                    report.as_ref().map_or_else(|| "no controller reports it".to_owned(), condition_text);
                self.add_condition(report.as_ref(), &format!("waits for its gate {type_}: {says}"));
            }
        }
        if self.count() > 0 {
            return;
        }
        let all = fields::reports(self.cluster);
        let bad =
            all.iter().find(|it| PARTS.contains(&it.type_.as_str()) && it.status != ConditionStatus::True);
        if let Some(report) = bad.cloned().or_else(|| fields::summary(self.cluster)) {
            self.add_condition(Some(&report), &format!("reports only this: {}", condition_text(&report)));
        }
    }

    fn add_condition(&mut self, report: Option<&Report>, says: &str) {
        self.finding(ExplainProblem::Condition, self.cluster, format_args!("{says}."))
            .since_created()
            .condition(report)
            .controller()
            .describe()
            .add_to(self);
    }

    pub(crate) fn finish(self) -> Explanation {
        let state = self.state();
        let call = self.title(self.cluster);
        let summary = match (state, self.findings.is_empty()) {
            (ClusterState::Available, true) => format!("{call} is available. Nothing is in its way."),
            (ClusterState::Available, false) => {
                format!("{call} reports that it is available, but not everything is as it should be.")
            }
            (ClusterState::NotAvailable | ClusterState::Unknown, true) => {
                format!("{call} is not available, and nothing was found that is in its way.")
            }
            (ClusterState::NotAvailable, false) => format!("{call} is not available."),
            (ClusterState::Unknown, false) => format!("{call} does not report whether it is available."),
            (ClusterState::Deleting, true) => {
                format!("{call} is being deleted, and nothing was found that is in the way.")
            }
            (ClusterState::Deleting, false) => format!("{call} is being deleted."),
        };
        let since = match state {
            ClusterState::Deleting => deleted(self.cluster),
            _ => fields::summary(self.cluster).and_then(|it| it.since).or_else(|| created(self.cluster)),
        };
        let unreadable = self.workload.unreadable.iter().map(|it| match it.what.name.as_str() {
            "" => format!("{} objects: {}", it.what.kind, it.reason),
            _ => format!("{}: {}", it.what, it.reason),
        });
        Explanation {
            cluster: ObjectRef::of(self.cluster),
            state,
            since,
            phase: text(self.cluster, "/status/phase").map(str::to_owned),
            summary,
            findings: self.findings,
            unreadable: unreadable.collect(),
        }
    }
}

/// A condition behind a sentence.
pub(crate) fn says(report: Option<&Report>) -> String {
    report.map(|it| format!("; {}", condition_text(it))).unwrap_or_default()
}

/// A condition within a sentence.
pub(crate) fn condition_text(report: &Report) -> String {
    let message = report.message.trim_end_matches('.');
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    format!("{} is {} ({}){message}", report.type_, report.status, report.reason)
}
