//! Conditions and counters of a Cluster.

use capstan_api::{
    cluster::v1beta2::{ClusterStatus, ControlPlaneStatus, ObjectReference},
    conditions::{self, ConditionStatus, Mirror, Report, legacy},
    contract::{ContractVersion, InfraCluster, ProviderControlPlane},
    names::annotation,
};
use capstan_runtime::events::Severity;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    available, connection,
    descendants::merge_versions,
    machines,
    plan::{Draft, is_deleting},
    snapshot::Referenced,
};

/// The longest message that the schema accepts.
const LONGEST_MESSAGE: usize = 32768;

/// What was found out about the objects that the Cluster refers to.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) infrastructure: Finding,
    pub(crate) control_plane: Finding,
    /// Why the Cluster is still there although it is to be deleted.
    pub(crate) deletion: Option<(&'static str, String)>,
}

/// What was found out about one object.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    /// Its fields.
    pub(crate) essence: Option<Value>,
    /// It is provisioned or initialized, now or earlier.
    pub(crate) done: bool,
    /// It breaks the contract.
    pub(crate) violation: Option<String>,
    /// It cannot be used.
    pub(crate) trouble: Option<String>,
}

impl Finding {
    /// Whether nothing must be taken from the object.
    pub(crate) fn refused(&self) -> bool {
        self.violation.is_some() || self.trouble.is_some()
    }
}

/// Reasons on the wire.
mod reason {
    pub(super) const PAUSED: &str = "Paused";
    pub(super) const NOT_PAUSED: &str = "NotPaused";
    pub(super) const NOT_DELETING: &str = "NotDeleting";
    pub(super) const READY: &str = "Ready";
    pub(super) const NOT_READY: &str = "NotReady";
    pub(super) const AVAILABLE: &str = "Available";
    pub(super) const NOT_AVAILABLE: &str = "NotAvailable";
    pub(super) const INITIALIZED: &str = "Initialized";
    pub(super) const NOT_INITIALIZED: &str = "NotInitialized";
    pub(super) const OBJECT_DELETED: &str = "ObjectDeleted";
    pub(super) const OBJECT_DOES_NOT_EXIST: &str = "ObjectDoesNotExist";
    pub(super) const INTERNAL_ERROR: &str = "InternalError";
    /// Upstream has no word for this: it says InternalError and points to its logs.
    pub(super) const CONTRACT_VIOLATED: &str = "ContractViolated";
    pub(super) const OWNED_BY_ANOTHER_CLUSTER: &str = "OwnedByAnotherCluster";
}

/// A paused Cluster says so, and nothing else of it changes.
pub(crate) fn report_paused(draft: &mut Draft<'_>, now: Timestamp) {
    let mut why = Vec::new();
    if draft.cluster.spec.paused == Some(true) {
        why.push("Cluster spec.paused is set to true".to_owned());
    }
    if capstan_api::contract::is_paused(&draft.cluster.metadata) {
        why.push(format!("Cluster has the {} annotation", annotation::PAUSED));
    }
    let report = Report::new("Paused", true, reason::PAUSED).with_message(why.join(", "));
    let generation = draft.generation();
    conditions::set(&mut draft.status.conditions, report, generation, now);
}

/// Reports what the plan found.
pub(crate) fn report(draft: &mut Draft<'_>, now: Timestamp) {
    let generation = draft.generation();
    let deleting = match &draft.findings.deletion {
        Some((reason, message)) => Report::new("Deleting", true, *reason).with_message(message.as_str()),
        None => Report::new("Deleting", false, reason::NOT_DELETING),
    };
    let mut reports = vec![Report::new("Paused", false, reason::NOT_PAUSED), deleting];
    let infrastructure = judge(draft, &INFRASTRUCTURE);
    let control_plane = judge(draft, &CONTROL_PLANE);
    for (seen, subject) in [(&infrastructure, &INFRASTRUCTURE), (&control_plane, &CONTROL_PLANE)] {
        if let Some(report) = seen {
            warn_about(draft, subject, report);
        }
    }
    reports.extend(infrastructure.clone());
    reports.extend(control_plane.clone());
    reports.push(initialized(draft));
    reports.push(connection_probe(draft, now));
    reports.extend(machines::report(draft, now));
    for report in reports {
        conditions::set(&mut draft.status.conditions, within_limits(report), generation, now);
    }
    let available = within_limits(available::report(draft));
    conditions::set(&mut draft.status.conditions, available, generation, now);
    report_legacy(draft, &[(&INFRASTRUCTURE, infrastructure), (&CONTROL_PLANE, control_plane)], now);
    draft.status.observed_generation = generation;
}

/// `RemoteConnectionProbe`; where its grace is about to end, the Cluster is looked at then.
fn connection_probe(draft: &mut Draft<'_>, now: Timestamp) -> Report {
    let (health, grace) = (&draft.snapshot.connection, draft.snapshot.connection_grace);
    if let Some(after) = connection::stale_after(health, grace, now) {
        draft.look_again(after);
    }
    let previous = conditions::get(&draft.cluster.status.conditions, connection::CONDITION);
    connection::report(health, previous, grace, now)
}

/// One of the two objects that a Cluster refers to, and the words for it.
struct Subject {
    condition: &'static str,
    source: &'static str,
    field: &'static str,
    good: &'static str,
    bad: &'static str,
    /// The field that says that the object is complete, by contract.
    done_path: fn(ContractVersion) -> &'static str,
    referenced: for<'a> fn(&'a Draft<'_>) -> &'a Referenced,
    finding: for<'a> fn(&'a Draft<'_>) -> &'a Finding,
    was_done: fn(&Draft<'_>) -> bool,
    legacy: &'static str,
    legacy_waiting: &'static str,
}

const INFRASTRUCTURE: Subject = Subject {
    condition: "InfrastructureReady",
    source: "Ready",
    field: "spec.infrastructureRef",
    good: reason::READY,
    bad: reason::NOT_READY,
    done_path: InfraCluster::provisioned_path,
    referenced: |draft| &draft.snapshot.infrastructure,
    finding: |draft| &draft.findings.infrastructure,
    was_done: |draft| draft.cluster.was_provisioned(),
    legacy: "InfrastructureReady",
    legacy_waiting: "WaitingForInfrastructure",
};

const CONTROL_PLANE: Subject = Subject {
    condition: "ControlPlaneAvailable",
    source: "Available",
    field: "spec.controlPlaneRef",
    good: reason::AVAILABLE,
    bad: reason::NOT_AVAILABLE,
    done_path: ProviderControlPlane::initialized_path,
    referenced: |draft| &draft.snapshot.control_plane,
    finding: |draft| &draft.findings.control_plane,
    was_done: |draft| draft.cluster.was_initialized(),
    legacy: "ControlPlaneReady",
    legacy_waiting: "WaitingForControlPlane",
};

/// The condition that mirrors an object; nothing where there is no object to speak of.
fn judge(draft: &Draft<'_>, subject: &Subject) -> Option<Report> {
    let (referenced, finding) = ((subject.referenced)(draft), (subject.finding)(draft));
    let deleting = draft.cluster.is_deleting();
    let was_done = (subject.was_done)(draft);
    let say = |status: ConditionStatus, reason: &str, message: String| {
        Some(Report::new(subject.condition, status, reason).with_message(message))
    };
    match referenced {
        Referenced::Nothing if draft.cluster.has_topology() => {
            let message = waiting_for_topology(draft).to_owned();
            say(ConditionStatus::False, reason::OBJECT_DOES_NOT_EXIST, message)
        }
        Referenced::Nothing if subject.condition == INFRASTRUCTURE.condition => {
            if draft.cluster.spec.control_plane_ref.is_some() {
                let message = format!("{} is not set: the control plane brings its own", subject.field);
                say(ConditionStatus::True, subject.good, message)
            } else {
                let message = format!("Waiting for {} to be set", subject.field);
                say(ConditionStatus::False, reason::OBJECT_DOES_NOT_EXIST, message)
            }
        }
        Referenced::Nothing => Some(machines::control_plane_available(draft)),
        Referenced::Unresolved { reason: why, .. } => {
            say(ConditionStatus::Unknown, reason::INTERNAL_ERROR, why.clone())
        }
        Referenced::ClusterScoped { reference, crd } => {
            say(ConditionStatus::False, reason::CONTRACT_VIOLATED, cluster_scoped(reference, crd))
        }
        Referenced::Missing { reference, .. } => {
            let kind = &reference.kind;
            match (deleting, was_done) {
                (true, true) => {
                    say(ConditionStatus::False, reason::OBJECT_DELETED, format!("{kind} has been deleted"))
                }
                (false, true) => say(
                    ConditionStatus::False,
                    reason::OBJECT_DELETED,
                    format!("{kind} has been deleted while the cluster still exists"),
                ),
                (_, false) => say(
                    ConditionStatus::False,
                    reason::OBJECT_DOES_NOT_EXIST,
                    format!("{kind} does not exist"),
                ),
            }
        }
        Referenced::Found(found) => {
            if let Some(trouble) = &finding.trouble {
                return say(ConditionStatus::False, reason::OWNED_BY_ANOTHER_CLUSTER, trouble.clone());
            }
            if let Some(violation) = &finding.violation {
                return say(ConditionStatus::False, reason::CONTRACT_VIOLATED, violation.clone());
            }
            let essence = finding.essence.as_ref()?;
            let mirror = Mirror::of(subject.source).to(subject.condition).reason_if_true(subject.good);
            let mirror = if finding.done {
                mirror.or_else(true, subject.good, "")
            } else {
                let path = (subject.done_path)(found.contract);
                mirror.or_else(false, subject.bad, format!("{} {path} is false", found.reference.kind))
            };
            let source = format!("{} {}", found.reference.kind, found.reference.name);
            let reported = conditions::read_from(&source, essence);
            Some(presentable(mirror.apply(&reported), subject, &found.reference))
        }
    }
}

/// A provider's words as far as the Cluster's own schema accepts them.
fn presentable(report: Report, subject: &Subject, source: &ObjectReference) -> Report {
    if is_reason(&report.reason) {
        return report;
    }
    let reason: String = report.reason.chars().take(64).collect();
    let message = format!(
        "{} {}: the reason {reason:?} of condition {} must be a word of letters and digits that begins with a letter",
        source.kind, source.name, subject.source
    );
    Report::new(subject.condition, ConditionStatus::Unknown, conditions::reason::INVALID_CONDITION_REPORTED)
        .with_message(message)
}

fn is_reason(word: &str) -> bool {
    let first = word.chars().next().is_some_and(|it| it.is_ascii_alphabetic());
    let last = word.chars().last().is_some_and(|it| it.is_ascii_alphanumeric() || it == '_');
    let inner = word.chars().all(|it| it.is_ascii_alphanumeric() || "_,:".contains(it));
    first && last && inner && word.len() <= 1024
}

/// An event where the condition began to say that something is wrong which no controller will mend.
fn warn_about(draft: &mut Draft<'_>, subject: &Subject, report: &Report) {
    const WORTH_A_WARNING: [&str; 5] = [
        reason::INTERNAL_ERROR,
        reason::CONTRACT_VIOLATED,
        reason::OWNED_BY_ANOTHER_CLUSTER,
        reason::OBJECT_DELETED,
        conditions::reason::INVALID_CONDITION_REPORTED,
    ];
    let before = conditions::get(&draft.cluster.status.conditions, subject.condition);
    let is_new =
        before.is_none_or(|before| before.reason != report.reason || before.message != report.message);
    if is_new
        && !draft.cluster.is_deleting()
        && let Some(reason) = WORTH_A_WARNING.into_iter().find(|reason| *reason == report.reason)
    {
        draft.event(Severity::Warning, reason, report.message.clone());
    }
}

/// `ControlPlaneInitialized`, once true for ever.
fn initialized(draft: &Draft<'_>) -> Report {
    const TYPE: &str = "ControlPlaneInitialized";
    let finding = &draft.findings.control_plane;
    if conditions::is_true(&draft.cluster.status.conditions, TYPE) || (finding.done && !finding.refused()) {
        return Report::new(TYPE, true, reason::INITIALIZED);
    }
    let unknown = |reason: &str, message: String| {
        Report::new(TYPE, ConditionStatus::Unknown, reason).with_message(message)
    };
    match &draft.snapshot.control_plane {
        Referenced::Nothing if draft.cluster.has_topology() => {
            unknown(reason::OBJECT_DOES_NOT_EXIST, waiting_for_topology(draft).to_owned())
        }
        Referenced::Nothing => match &draft.snapshot.descendants.trouble {
            Some(trouble) => unknown(reason::INTERNAL_ERROR, trouble.clone()),
            None => Report::new(TYPE, false, reason::NOT_INITIALIZED)
                .with_message("Waiting for the first control plane machine to have status.nodeRef set"),
        },
        Referenced::Unresolved { reason: why, .. } => unknown(reason::INTERNAL_ERROR, why.clone()),
        Referenced::ClusterScoped { reference, crd } => {
            unknown(reason::CONTRACT_VIOLATED, cluster_scoped(reference, crd))
        }
        Referenced::Missing { reference, .. } => {
            unknown(reason::OBJECT_DOES_NOT_EXIST, format!("{} does not exist", reference.kind))
        }
        Referenced::Found(_) => Report::new(TYPE, false, reason::NOT_INITIALIZED)
            .with_message("Control plane not yet initialized"),
    }
}

fn cluster_scoped(reference: &ObjectReference, crd: &str) -> String {
    format!(
        "{} is cluster-scoped: the contract requires spec.scope Namespaced in CustomResourceDefinition {crd}",
        reference.kind
    )
}

fn waiting_for_topology(draft: &Draft<'_>) -> &'static str {
    if draft.cluster.is_deleting() { "" } else { "Waiting for cluster topology to be reconciled" }
}

/// A message no longer than the schema accepts.
fn within_limits(mut report: Report) -> Report {
    if let Some((end, _)) = report.message.char_indices().nth(LONGEST_MESSAGE) {
        report.message.truncate(end);
    }
    report
}

/// The conditions in the style of v1beta1, for clients that still read them. They agree with today's conditions.
fn report_legacy(draft: &mut Draft<'_>, judged: &[(&Subject, Option<Report>)], now: Timestamp) {
    let mut reports = Vec::new();
    for (subject, report) in judged {
        reports.extend(judge_legacy(draft, subject, report.as_ref()));
    }
    reports.push(if initialized(draft).status == ConditionStatus::True {
        legacy::Report::holds("ControlPlaneInitialized")
    } else {
        let (reason, message) = match &draft.snapshot.control_plane {
            Referenced::Nothing => (
                "MissingNodeRef",
                "Waiting for the first control plane machine to have its status.nodeRef set",
            ),
            _ => ("WaitingForControlPlaneProviderInitialized", ""),
        };
        legacy::Report::fails("ControlPlaneInitialized", legacy::Severity::Info, reason, message)
    });
    let list =
        &mut draft.status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default().conditions;
    for report in reports {
        legacy::set(list, report, now);
    }
    if let Some(ready) = legacy::summary(list, &["ControlPlaneReady", "InfrastructureReady"]) {
        legacy::set(list, legacy::Report { type_: "Ready".to_owned(), ..ready }, now);
    }
}

fn judge_legacy(draft: &Draft<'_>, subject: &Subject, judged: Option<&Report>) -> Option<legacy::Report> {
    let (referenced, finding) = ((subject.referenced)(draft), (subject.finding)(draft));
    let info = |reason: &str| legacy::Report::fails(subject.legacy, legacy::Severity::Info, reason, "");
    let legacy = match referenced {
        Referenced::Nothing => {
            let provisioned = draft.status.initialization.as_ref()?.infrastructure_provisioned == Some(true);
            let is_infrastructure = subject.legacy == INFRASTRUCTURE.legacy;
            (is_infrastructure && provisioned).then(|| legacy::Report::holds(subject.legacy))?
        }
        Referenced::Unresolved { .. } | Referenced::ClusterScoped { .. } => repeat(subject, judged?),
        Referenced::Missing { .. } if draft.cluster.is_deleting() => info("Deleted"),
        Referenced::Missing { .. } => info(subject.legacy_waiting),
        Referenced::Found(_) if finding.refused() => repeat(subject, judged?),
        Referenced::Found(found) => {
            let mirrored = legacy::mirror(&legacy::read(finding.essence.as_ref()?), subject.legacy);
            match (mirrored, judged) {
                (_, Some(report)) if report.reason == conditions::reason::INVALID_CONDITION_REPORTED => {
                    repeat(subject, report)
                }
                (Some(mirrored), _) => mirrored,
                (None, _) if is_deleting(found) => info("Deleting"),
                (None, _) if finding.done => legacy::Report::holds(subject.legacy),
                (None, _) => info(subject.legacy_waiting),
            }
        }
    };
    let cut = |text: &str, longest: usize| text.chars().take(longest).collect::<String>();
    Some(legacy::Report {
        type_: subject.legacy.to_owned(),
        severity: cut(&legacy.severity, 32),
        reason: cut(&legacy.reason, 256),
        message: cut(&legacy.message, 10240),
        ..legacy
    })
}

/// Today's condition in the style of v1beta1. What is False here needs a person.
fn repeat(subject: &Subject, report: &Report) -> legacy::Report {
    let (reason, message) = (report.reason.as_str(), report.message.as_str());
    match report.status {
        ConditionStatus::True => legacy::Report::holds(subject.legacy),
        ConditionStatus::False => {
            legacy::Report::fails(subject.legacy, legacy::Severity::Error, reason, message)
        }
        ConditionStatus::Unknown => legacy::Report::unknown(subject.legacy, reason, message),
    }
}

/// What the control plane does not report keeps its last value.
pub(crate) fn count_control_plane(status: &mut ClusterStatus, counted: &ControlPlaneStatus) {
    if *counted == ControlPlaneStatus::default() && status.control_plane.is_none() {
        return;
    }
    let known = status.control_plane.get_or_insert_default();
    let keep = |known: &mut Option<i32>, counted: Option<i32>| *known = counted.or(*known);
    keep(&mut known.desired_replicas, counted.desired_replicas);
    keep(&mut known.replicas, counted.replicas);
    keep(&mut known.ready_replicas, counted.ready_replicas);
    keep(&mut known.available_replicas, counted.available_replicas);
    keep(&mut known.up_to_date_replicas, counted.up_to_date_replicas);
    known.versions = merge_versions(&counted.versions);
}
