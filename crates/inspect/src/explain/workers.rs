//! Workers: what makes Machines, and their versions beside that of the control plane.

use capstan_api::{conditions::ConditionStatus, names::CORE_GROUP};
use serde_json::{Value, json};

use super::{
    commands,
    control_plane::is_control_plane,
    finding::{Finding, Problem},
    infrastructure::worst,
    inspector::{Inspector, say},
};
use crate::fields::{self, created, is_deleting, is_paused_by_annotation, is_true, kind, number, text};
use crate::snapshot::Reference;
use capstan_management::ObjectRef;

/// What makes Machines; those that make others come first.
pub(crate) const MAKERS: [&str; 3] = ["MachineDeployment", "MachineSet", "MachinePool"];

impl Inspector<'_> {
    pub(crate) fn look_at_workers(&mut self) {
        let makers: Vec<_> = MAKERS
            .into_iter()
            .flat_map(|kind| self.workload.all(CORE_GROUP, kind))
            .filter(|it| !is_deleting(it) && !is_enough(it))
            .collect();
        for maker in &makers {
            self.look_at_maker(maker);
        }
        let pools: Vec<_> = makers.iter().filter(|it| kind(it) == "MachinePool").copied().collect();
        for pool in pools {
            self.look_at_template(pool, "/spec/template/spec", "spec.template.spec");
        }
        self.look_at_machines(|it| !is_control_plane(it));
        for maker in makers.into_iter().filter(|it| is_independent(it)) {
            self.tell_of_workers(maker);
        }
    }

    /// What keeps Machines from being made.
    fn look_at_maker(&mut self, maker: &Value) {
        if is_true(maker, &["/spec/paused"]) {
            let finding = Finding::new(
                Problem::Paused,
                ObjectRef::of(maker),
                format!(
                    "{} is paused by spec.paused: its Machines are neither made nor replaced.",
                    self.call(maker)
                ),
            )
            .saying(fields::report(maker, "Paused").as_ref())
            .go_on(commands::patch(self.snapshot, maker, &json!({"spec": {"paused": false}})));
            self.tell(finding);
        }
        if is_paused_by_annotation(maker) {
            self.tell_of_annotation(maker);
        }
        if let Some(finding) = self.skew(maker) {
            self.tell(finding);
        }
    }

    /// A kubelet must not be newer than the API server that it talks to.
    fn skew(&self, maker: &Value) -> Option<Finding> {
        let reference = Reference::at(self.cluster, "/spec/controlPlaneRef")?;
        let control_plane = self.index.object(&reference)?;
        let running =
            text(control_plane, "/status/version").or_else(|| text(control_plane, "/spec/version"))?;
        let wanted = text(maker, "/spec/template/spec/version")?;
        (minor(wanted)? > minor(running)?).then(|| {
            let sentence = format!(
                "{} is to make Machines of version {wanted}, but {} has version {running}: no Machine is made that is newer \
                 than its control plane.",
                self.call(maker),
                self.call(control_plane)
            );
            let patch = json!({"spec": {"template": {"spec": {"version": running}}}});
            Finding::new(Problem::VersionSkew, ObjectRef::of(maker), sentence)
                .since(created(maker))
                .saying(worst(maker).as_ref())
                .by(self.controller_of(maker))
                .look(commands::describe(self.snapshot, control_plane))
                .go_on(commands::patch(self.snapshot, maker, &patch))
        })
    }

    fn tell_of_workers(&mut self, maker: &Value) {
        let report = worst(maker);
        let says = report.as_ref().map(|it| format!("; {}", say(it))).unwrap_or_default();
        let desired = number(maker, "/spec/replicas").unwrap_or(1);
        let ready = number(maker, "/status/readyReplicas").unwrap_or(0);
        let controller = self.controller_of(maker);
        let finding = Finding::new(
            Problem::WorkersNotAvailable,
            ObjectRef::of(maker),
            format!("{} has {ready} of {desired} Machines ready{says}.", self.call(maker)),
        )
        .since(created(maker))
        .saying(report.as_ref())
        .look(commands::describe(self.snapshot, maker))
        .look_if(controller.logs())
        .by(controller);
        self.tell(finding);
    }
}

/// Whether a maker has all that it is to have.
fn is_enough(maker: &Value) -> bool {
    if let Some(report) = fields::report(maker, "Available") {
        return report.status == ConditionStatus::True;
    }
    let desired = number(maker, "/spec/replicas").unwrap_or(1);
    number(maker, "/status/readyReplicas").unwrap_or(0) >= desired
}

/// Whether nothing else tells what is wrong with a maker: a MachineDeployment speaks for its MachineSets.
fn is_independent(maker: &Value) -> bool {
    kind(maker) != "MachineSet" || !fields::is_owned(maker)
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let version = semver::Version::parse(version.trim_start_matches('v')).ok()?;
    Some((version.major, version.minor))
}
