//! What the Machines of a Cluster, and what makes them, say together.

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::{MachinesStatus, WorkersStatus},
    conditions::{
        self, Aggregate, ConditionRef, ConditionStatus, Polarity, ReadError, Reasons, Report, Source,
    },
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    descendants::{Kind, Member, merge_versions},
    plan::Draft,
    snapshot::Referenced,
};

/// A Machine may be this young before it is asked whether it is up to date.
const UP_TO_DATE_GRACE: SignedDuration = SignedDuration::from_secs(10);

/// How many unhealthy Machines a message names.
const MOST_NAMES: usize = 3;

/// The conditions that come of Machines and of what makes them.
pub(crate) fn report(draft: &Draft<'_>, now: Timestamp) -> Vec<Report> {
    let descendants = &draft.snapshot.descendants;
    if let Some(trouble) = &descendants.trouble {
        let unknown = |type_: &&str| {
            Report::new(*type_, ConditionStatus::Unknown, "InternalError").with_message(trouble.as_str())
        };
        return TYPES.iter().map(unknown).collect();
    }
    // No controller reports conditions on the Machines of MachinePools, nor on MachinePools themselves.
    let control_plane: Vec<_> = descendants.control_plane_machines().collect();
    let workers: Vec<_> =
        descendants.worker_machines().filter(|machine| !machine.object.is_of_machine_pool()).collect();
    let deployments: Vec<_> = descendants.of_kind(Kind::MachineDeployment).collect();
    let sets = descendants.of_kind(Kind::MachineSet).filter(|it| it.object.is_child_of(draft.cluster));
    let scaled: Vec<_> = deployments.iter().copied().chain(sets).collect();
    let is_settled = |machine: &&&Member| {
        machine.object.condition("UpToDate").is_some() || age(machine, now) > UP_TO_DATE_GRACE
    };
    let settled = |machines: &[&'_ Member]| -> Vec<Member> {
        machines.iter().filter(is_settled).map(|machine| (*machine).clone()).collect()
    };
    let (settled_control_plane, settled_workers) = (settled(&control_plane), settled(&workers));
    vec![
        all(&WORKERS_AVAILABLE, &deployments),
        all(&CONTROL_PLANE_MACHINES_READY, &control_plane),
        all(&WORKER_MACHINES_READY, &workers),
        all(&CONTROL_PLANE_MACHINES_UP_TO_DATE, &settled_control_plane.iter().collect::<Vec<_>>()),
        all(&WORKER_MACHINES_UP_TO_DATE, &settled_workers.iter().collect::<Vec<_>>()),
        some(draft, &ROLLING_OUT, &deployments),
        some(draft, &SCALING_UP, &scaled),
        some(draft, &SCALING_DOWN, &scaled),
        remediating(&control_plane, &workers),
    ]
}

/// When a Machine that is too young today will be asked whether it is up to date.
pub(crate) fn look_again(draft: &Draft<'_>, now: Timestamp) -> Option<Duration> {
    let machines = draft.snapshot.descendants.of_kind(Kind::Machine);
    let young = machines
        .filter(|machine| {
            !machine.object.is_of_machine_pool() && machine.object.condition("UpToDate").is_none()
        })
        .map(|machine| UP_TO_DATE_GRACE - age(machine, now))
        .filter(|left| !left.is_negative())
        .min()?;
    // A little later, so that the grace is over by then.
    Duration::try_from(young).ok().map(|left| left + Duration::from_secs(1))
}

fn age(machine: &Member, now: Timestamp) -> SignedDuration {
    machine.object.created().map_or(SignedDuration::MAX, |created| now.duration_since(created))
}

const TYPES: [&str; 9] = [
    WORKERS_AVAILABLE.target,
    CONTROL_PLANE_MACHINES_READY.target,
    WORKER_MACHINES_READY.target,
    CONTROL_PLANE_MACHINES_UP_TO_DATE.target,
    WORKER_MACHINES_UP_TO_DATE.target,
    ROLLING_OUT.target,
    SCALING_UP.target,
    SCALING_DOWN.target,
    "Remediating",
];

/// A condition of many objects and the words for it.
struct Subject {
    target: &'static str,
    source: &'static str,
    reasons: Reasons<'static>,
    /// The reason where there is no object.
    none: &'static str,
}

const fn subject(
    target: &'static str,
    source: &'static str,
    [info, issue, unknown]: [&'static str; 3],
    none: &'static str,
) -> Subject {
    Subject { target, source, reasons: Reasons { issue, unknown, info }, none }
}

const WORKERS_AVAILABLE: Subject =
    subject("WorkersAvailable", "Available", ["Available", "NotAvailable", "AvailableUnknown"], "NoWorkers");
const READY: [&str; 3] = ["Ready", "NotReady", "ReadyUnknown"];
const CONTROL_PLANE_MACHINES_READY: Subject =
    subject("ControlPlaneMachinesReady", "Ready", READY, "NoReplicas");
const WORKER_MACHINES_READY: Subject = subject("WorkerMachinesReady", "Ready", READY, "NoReplicas");
const UP_TO_DATE: [&str; 3] = ["UpToDate", "NotUpToDate", "UpToDateUnknown"];
const CONTROL_PLANE_MACHINES_UP_TO_DATE: Subject =
    subject("ControlPlaneMachinesUpToDate", "UpToDate", UP_TO_DATE, "NoReplicas");
const WORKER_MACHINES_UP_TO_DATE: Subject =
    subject("WorkerMachinesUpToDate", "UpToDate", UP_TO_DATE, "NoReplicas");
const ROLLING_OUT: Subject = subject(
    "RollingOut",
    "RollingOut",
    ["NotRollingOut", "RollingOut", "RollingOutUnknown"],
    "NotRollingOut",
);
const SCALING_UP: Subject =
    subject("ScalingUp", "ScalingUp", ["NotScalingUp", "ScalingUp", "ScalingUpUnknown"], "NotScalingUp");
const SCALING_DOWN: Subject = subject(
    "ScalingDown",
    "ScalingDown",
    ["NotScalingDown", "ScalingDown", "ScalingDownUnknown"],
    "NotScalingDown",
);

/// True where all objects say so, or where there are none.
fn all(subject: &Subject, members: &[&Member]) -> Report {
    let sources: Vec<_> = members.iter().map(|member| member.source(subject.source)).collect();
    let aggregate = Aggregate::new(subject.source).to(subject.target).reasons(subject.reasons);
    aggregate.merge(&sources).unwrap_or_else(|_| Report::new(subject.target, true, subject.none))
}

/// True where the control plane or one of the objects says so.
fn some(draft: &Draft<'_>, subject: &Subject, members: &[&Member]) -> Report {
    let control_plane = match &draft.snapshot.control_plane {
        Referenced::Unresolved { reason, .. } => {
            return Report::new(subject.target, ConditionStatus::Unknown, "InternalError")
                .with_message(reason.as_str());
        }
        // The control plane of another Cluster says nothing about this one.
        Referenced::Found(_) if draft.findings.control_plane.trouble.is_some() => None,
        Referenced::Found(found) => {
            let (kind, name) = (found.reference.kind.as_str(), found.reference.name.as_str());
            let essence = draft.findings.control_plane.essence.as_ref();
            let reports = essence.map(|it| conditions::read_from(&format!("{kind} {name}"), it));
            // A control plane need not report these, so that one that does not is no unknown.
            let said = match reports.unwrap_or_else(|| Ok(Vec::new())) {
                Ok(reports) => reports.into_iter().find(|report| report.type_ == subject.source),
                Err(error) => Some(invalid(subject.source, &error)),
            };
            said.map(|report| (kind, name, report))
        }
        Referenced::Nothing | Referenced::ClusterScoped { .. } | Referenced::Missing { .. } => None,
    };
    let mut sources: Vec<_> = members.iter().map(|member| member.source(subject.source)).collect();
    sources.extend(control_plane.iter().map(|(kind, name, report)| Source {
        kind,
        name,
        is_control_plane_machine: false,
        condition: Some(ConditionRef::from(report)),
    }));
    let aggregate = Aggregate::new(subject.source)
        .to(subject.target)
        .polarity(Polarity::Negative)
        .reasons(subject.reasons);
    aggregate.merge(&sources).unwrap_or_else(|_| Report::new(subject.target, false, subject.none))
}

/// What is known of a condition that is in a malformed list.
fn invalid(type_: &str, error: &ReadError) -> Report {
    Report::new(type_, ConditionStatus::Unknown, conditions::reason::INVALID_CONDITION_REPORTED)
        .with_message(error.to_string())
}

/// Whether unhealthy Machines are being replaced.
fn remediating(control_plane: &[&Member], workers: &[&Member]) -> Report {
    const TYPE: &str = "Remediating";
    let machines = || control_plane.iter().chain(workers);
    let is_unhealthy = |it: &&&Member| it.object.is("HealthCheckSucceeded", ConditionStatus::False);
    let is_marked = |it: &&&Member| it.object.is("OwnerRemediated", ConditionStatus::False);
    let sources: Vec<_> = machines()
        .filter(|machine| is_unhealthy(machine) && is_marked(machine))
        .map(|machine| machine.source("OwnerRemediated"))
        .collect();
    if let Ok(merged) = Aggregate::new("OwnerRemediated").to(TYPE).merge(&sources) {
        return Report::new(TYPE, true, "Remediating").with_message(merged.message);
    }
    let mut unhealthy: Vec<_> =
        machines().filter(is_unhealthy).map(|machine| machine.object.name()).collect();
    unhealthy.sort_unstable();
    let message = match unhealthy.len() {
        0 => String::new(),
        1 => format!("Machine {} is not healthy (not to be remediated)", unhealthy[0]),
        count => {
            let more = match count.saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(", ... ({more} more)"),
            };
            unhealthy.truncate(MOST_NAMES);
            format!("Machines {}{more} are not healthy (not to be remediated)", unhealthy.join(", "))
        }
    };
    Report::new(TYPE, false, "NotRemediating").with_message(message)
}

/// `ControlPlaneAvailable` of a Cluster whose control plane is made of single Machines.
pub(crate) fn control_plane_available(draft: &Draft<'_>) -> Report {
    const SUBJECT: Subject = subject(
        "ControlPlaneAvailable",
        "Available",
        ["Available", "NotAvailable", "AvailableUnknown"],
        "ObjectDoesNotExist",
    );
    let descendants = &draft.snapshot.descendants;
    if let Some(trouble) = &descendants.trouble {
        return Report::new(SUBJECT.target, ConditionStatus::Unknown, "InternalError")
            .with_message(trouble.as_str());
    }
    let machines: Vec<_> = descendants.control_plane_machines().collect();
    if machines.is_empty() {
        let message = if draft.cluster.is_deleting() {
            ""
        } else {
            "Waiting for spec.controlPlaneRef to be set, or for a control plane Machine"
        };
        return Report::new(SUBJECT.target, false, SUBJECT.none).with_message(message);
    }
    all(&SUBJECT, &machines)
}

/// Counts the control plane's Machines where no provider's object does.
pub(crate) fn count_control_plane(draft: &mut Draft<'_>) {
    let descendants = &draft.snapshot.descendants;
    if descendants.trouble.is_none() {
        let counted = count(descendants.control_plane_machines());
        take_in(&mut draft.status.control_plane, counted);
    }
}

/// Counts all workers.
pub(crate) fn count_workers(draft: &mut Draft<'_>) {
    let descendants = &draft.snapshot.descendants;
    if descendants.trouble.is_some() {
        return;
    }
    let is_own = |member: &&Member| member.object.is_child_of(draft.cluster);
    let groups = descendants
        .of_kind(Kind::MachinePool)
        .chain(descendants.of_kind(Kind::MachineDeployment))
        .chain(descendants.of_kind(Kind::MachineSet).filter(is_own));
    let single = descendants.worker_machines().filter(is_own).filter(|it| !it.object.is_of_machine_pool());
    let mut counted = count(single);
    let mut versions = std::mem::take(&mut counted.versions);
    for group in groups.map(|group| group.object.counted()) {
        add(&mut counted.desired_replicas, group.desired_replicas);
        add(&mut counted.replicas, group.replicas);
        add(&mut counted.ready_replicas, group.ready_replicas);
        add(&mut counted.available_replicas, group.available_replicas);
        add(&mut counted.up_to_date_replicas, group.up_to_date_replicas);
        versions.extend(group.versions.iter().cloned());
    }
    counted.versions = merge_versions(&versions);
    take_in(&mut draft.status.workers, counted);
}

/// Counts single Machines; each was asked for, or it would not be there.
fn count<'a>(machines: impl Iterator<Item = &'a Member>) -> WorkersStatus {
    let mut counted = MachinesStatus::default();
    let mut versions = Vec::new();
    for Member { object: machine, .. } in machines {
        let one_if = |type_| machine.is(type_, ConditionStatus::True).then_some(1);
        add(&mut counted.desired_replicas, Some(1));
        add(&mut counted.replicas, Some(1));
        add(&mut counted.ready_replicas, one_if("Ready"));
        add(&mut counted.available_replicas, one_if("Available"));
        add(&mut counted.up_to_date_replicas, one_if("UpToDate"));
        versions.extend(machine.counted().versions.iter().cloned());
    }
    counted.versions = merge_versions(&versions);
    counted
}

/// Adds a reported figure; the sum is absent if none is reported.
fn add(sum: &mut Option<i32>, more: Option<i32>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// The topology controller owns the upgrade plan.
pub(crate) fn take_in(known: &mut Option<MachinesStatus>, counted: MachinesStatus) {
    if known.is_none() && counted == MachinesStatus::default() {
        return;
    }
    let known = known.get_or_insert_default();
    *known = MachinesStatus { upgrade_plan: std::mem::take(&mut known.upgrade_plan), ..counted };
}
