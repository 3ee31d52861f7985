//! The walk over a snapshot: what is told, and what is told first.

use capstan_api::{
    conditions::{ConditionStatus, Report},
    names::{CORE_PROVIDER, label},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    commands,
    controllers::{Controller, controller},
    finding::{Explanation, Finding, Problem, State},
    snapshot::ExplainSnapshot,
};
use crate::fields::{
    self, created, deleted, group, is_deleting, is_paused_by_annotation, is_true, kind, name, text,
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
    pub(crate) namespace: String,
    pub(crate) program: &'a str,
    pub(crate) now: Timestamp,
    findings: Vec<Finding>,
}

impl<'a> Inspector<'a> {
    pub(crate) fn new(snapshot: &'a ExplainSnapshot, program: &'a str, now: Timestamp) -> Self {
        let workload = &snapshot.workload;
        let (cluster, index) = (&workload.cluster, workload.index());
        let namespace = text(cluster, "/metadata/namespace").unwrap_or_default().to_owned();
        Self { snapshot, workload, index, cluster, namespace, program, now, findings: Vec::new() }
    }

    /// Tells something.
    pub(crate) fn tell(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Tells something that is in the way of many objects, and is told for the first of them.
    pub(crate) fn tell_once(&mut self, finding: Finding) {
        let is_told =
            self.findings.iter().any(|it| it.problem == finding.problem && it.object == finding.object);
        if !is_told {
            self.findings.push(finding);
        }
    }

    /// How many things are in the way so far.
    pub(crate) fn count(&self) -> usize {
        self.findings.len()
    }

    /// What an object is called in a sentence.
    pub(crate) fn call(&self, object: &Value) -> String {
        format!("{} {}/{}", kind(object), self.namespace, name(object))
    }

    pub(crate) fn controller_of(&self, object: &Value) -> Controller {
        controller(self.snapshot, object, self.now)
    }

    /// A condition of the Cluster.
    pub(crate) fn report(&self, type_: &str) -> Option<Report> {
        fields::report(self.cluster, type_)
    }

    /// Whether a condition of the Cluster says that something is wrong.
    pub(crate) fn is_bad(&self, type_: &str) -> bool {
        self.report(type_).is_some_and(|it| it.status != ConditionStatus::True)
    }

    pub(crate) fn has_topology(&self) -> bool {
        self.cluster.pointer("/spec/topology").is_some_and(Value::is_object)
    }

    pub(crate) fn is_provisioned(&self) -> bool {
        is_true(
            self.cluster,
            &["/status/initialization/infrastructureProvisioned", "/status/infrastructureReady"],
        )
    }

    pub(crate) fn is_initialized(&self) -> bool {
        let latched = [
            "/status/initialization/controlPlaneInitialized",
            "/status/v1beta2/initialization/controlPlaneInitialized",
        ];
        is_true(self.cluster, &latched)
            || self.report("ControlPlaneInitialized").is_some_and(|it| it.status == ConditionStatus::True)
    }

    /// What sums a Cluster up; older cores know only whether it is ready.
    fn summary_report(&self) -> Option<Report> {
        self.report("Available").or_else(|| self.report("Ready"))
    }

    pub(crate) fn state(&self) -> State {
        if is_deleting(self.cluster) {
            return State::Deleting;
        }
        match self.summary_report().map(|it| it.status) {
            Some(ConditionStatus::True) => State::Available,
            Some(ConditionStatus::False) => State::NotAvailable,
            Some(ConditionStatus::Unknown) | None => State::Unknown,
        }
    }

    /// The Cluster itself: paused, or nobody's.
    pub(crate) fn look_at_cluster(&mut self) {
        let cluster = self.cluster;
        if let Some(note) = self.workload.unreadable(group(cluster), "Cluster", name(cluster)) {
            let sentence = format!("{} cannot be read: {}.", self.call(cluster), note.reason);
            if !self.blame(cluster) {
                self.tell(Finding::new(Problem::Unreadable, ObjectRef::of(cluster), sentence));
            }
            return;
        }
        if is_true(cluster, &["/spec/paused"]) {
            let finding = Finding::new(
                Problem::Paused,
                ObjectRef::of(cluster),
                format!(
                    "{} is paused by spec.paused: no controller touches it or anything that belongs to it.",
                    self.call(cluster)
                ),
            )
            .saying(self.report("Paused").as_ref())
            .go_on(commands::patch(self.snapshot, cluster, &json!({"spec": {"paused": false}})));
            self.tell(finding);
        }
        if is_paused_by_annotation(cluster) {
            self.tell_of_annotation(cluster);
        }
        self.blame(cluster);
        let is_seen = text(cluster, "/status/phase").is_some() || !fields::reports(cluster).is_empty();
        if !is_seen && self.count() == 0 {
            let finding = Finding::new(
                Problem::NotObserved,
                ObjectRef::of(cluster),
                format!(
                    "No controller has looked at {} yet: it has neither phase nor conditions.",
                    self.call(cluster)
                ),
            )
            .since(created(cluster))
            .by(self.controller_of(cluster))
            .look(format!("kubectl get deployments -A -l {}={CORE_PROVIDER}", label::PROVIDER));
            self.tell(finding);
        }
    }

    /// What the Cluster complains of and nothing else explains: gates, or reasons that are its controller's alone.
    pub(crate) fn look_at_other_conditions(&mut self) {
        if self.state() == State::Available {
            return;
        }
        let gates = self.cluster.pointer("/spec/availabilityGates").and_then(Value::as_array);
        for gate in gates.into_iter().flatten() {
            let type_ = gate["conditionType"].as_str().unwrap_or_default();
            let wanted =
                if gate["polarity"] == "Negative" { ConditionStatus::False } else { ConditionStatus::True };
            let report = self.report(type_);
            if report.as_ref().is_none_or(|it| it.status != wanted) {
                let says = report.as_ref().map_or_else(|| "nobody reports it".to_owned(), say);
                self.tell_of_condition(report.as_ref(), &format!("waits for its gate {type_}: {says}"));
            }
        }
        if self.count() > 0 {
            return;
        }
        let all = fields::reports(self.cluster);
        let bad =
            all.iter().find(|it| PARTS.contains(&it.type_.as_str()) && it.status != ConditionStatus::True);
        if let Some(report) = bad.cloned().or_else(|| self.summary_report()) {
            self.tell_of_condition(Some(&report), &format!("says only this: {}", say(&report)));
        }
    }

    fn tell_of_condition(&mut self, report: Option<&Report>, says: &str) {
        let cluster = self.cluster;
        let finding = Finding::new(
            Problem::Condition,
            ObjectRef::of(cluster),
            format!("{} {says}.", self.call(cluster)),
        )
        .since(created(cluster))
        .saying(report)
        .by(self.controller_of(cluster))
        .look(commands::describe(self.snapshot, cluster));
        self.tell(finding);
    }

    pub(crate) fn finish(self) -> Explanation {
        let state = self.state();
        let call = self.call(self.cluster);
        let summary = match (state, self.findings.is_empty()) {
            (State::Available, true) => format!("{call} is available. Nothing is in its way."),
            (State::Available, false) => {
                format!("{call} says that it is available, but not all is as it should be.")
            }
            (State::NotAvailable | State::Unknown, true) => {
                format!("{call} is not available, and nothing was found that is in its way.")
            }
            (State::NotAvailable, false) => format!("{call} is not available."),
            (State::Unknown, false) => format!("{call} is not available, as far as anybody knows."),
            (State::Deleting, true) => {
                format!("{call} is being deleted, and nothing was found that is in the way.")
            }
            (State::Deleting, false) => format!("{call} is being deleted, and is not gone yet."),
        };
        let since = match state {
            State::Deleting => deleted(self.cluster),
            _ => self.summary_report().and_then(|it| it.since).or_else(|| created(self.cluster)),
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

/// A condition within a sentence.
pub(crate) fn say(report: &Report) -> String {
    let message = report.message.trim_end_matches('.');
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    format!("{} is {} ({}){message}", report.type_, report.status, report.reason)
}
