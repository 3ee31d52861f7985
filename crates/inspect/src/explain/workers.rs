//! Workers: what creates Machines, and their versions beside that of the control plane.

use capstan_api::{conditions::ConditionStatus, names::CORE_GROUP};
use serde_json::{Value, json};

use super::{
    commands,
    draft::Draft,
    finding::ExplainProblem,
    infrastructure::worst,
    inspector::{Inspector, says},
};
use crate::fields::{
    self, is_control_plane, is_deleting, is_paused_by_annotation, is_true, kind, number, text,
};
use crate::snapshot::Reference;

/// The kinds that create Machines; those that own others come first.
pub(crate) const MACHINE_OWNERS: [&str; 3] = ["MachineDeployment", "MachineSet", "MachinePool"];

impl<'a> Inspector<'a> {
    pub(crate) fn check_workers(&mut self) {
        let owners: Vec<_> = MACHINE_OWNERS
            .into_iter()
            .flat_map(|kind| self.workload.all(CORE_GROUP, kind))
            .filter(|it| !is_deleting(it) && !is_enough(it))
            .collect();
        for owner in &owners {
            self.check_machine_owner(owner);
        }
        let pools: Vec<_> = owners.iter().filter(|it| kind(it) == "MachinePool").copied().collect();
        for pool in pools {
            self.check_template(pool, "/spec/template/spec", "spec.template.spec");
        }
        self.check_machines(|it| !is_control_plane(it));
        for owner in owners.into_iter().filter(|it| is_independent(it)) {
            self.add_workers(owner);
        }
    }

    /// What keeps Machines from being created.
    fn check_machine_owner(&mut self, owner: &Value) {
        if is_true(owner, &["/spec/paused"]) {
            self.add_paused(owner, "its Machines are neither created nor replaced");
        }
        if is_paused_by_annotation(owner) {
            self.add_paused_by_annotation(owner);
        }
        if let Some(draft) = self.skew(owner) {
            draft.add_to(self);
        }
    }

    /// A kubelet must not be newer than the API server that it talks to.
    fn skew<'o>(&self, owner: &'o Value) -> Option<Draft<'a, 'o>> {
        let reference = Reference::at(self.cluster, "/spec/controlPlaneRef")?;
        let control_plane = self.index.object(&reference)?;
        let running =
            text(control_plane, "/status/version").or_else(|| text(control_plane, "/spec/version"))?;
        let wanted = text(owner, "/spec/template/spec/version")?;
        (minor(wanted)? > minor(running)?).then(|| {
            let predicate = format!(
                "asks for Machines of version {wanted}, but {} has version {running}: no Machine is created that is newer than \
                 its control plane.",
                self.title(control_plane)
            );
            self.finding(ExplainProblem::VersionSkew, owner, predicate)
                .since_created()
                .condition(worst(owner).as_ref())
                .controller()
                .look(commands::describe(self.snapshot, control_plane))
                .patch(&json!({"spec": {"template": {"spec": {"version": running}}}}))
        })
    }

    fn add_workers(&mut self, owner: &Value) {
        let report = worst(owner);
        let desired = number(owner, "/spec/replicas").unwrap_or(1);
        let ready = number(owner, "/status/readyReplicas").unwrap_or(0);
        let predicate = format!("has {ready} of {desired} Machines ready{}.", says(report.as_ref()));
        self.finding(ExplainProblem::WorkersNotAvailable, owner, predicate)
            .since_created()
            .condition(report.as_ref())
            .controller()
            .describe()
            .logs()
            .add_to(self);
    }
}

/// Whether an owner has all replicas that it asks for.
fn is_enough(owner: &Value) -> bool {
    if let Some(report) = fields::report(owner, "Available") {
        return report.status == ConditionStatus::True;
    }
    let desired = number(owner, "/spec/replicas").unwrap_or(1);
    number(owner, "/status/readyReplicas").unwrap_or(0) >= desired
}

/// Whether an owner is reported by itself: a MachineDeployment stands for its MachineSets.
fn is_independent(owner: &Value) -> bool {
    kind(owner) != "MachineSet" || !fields::is_owned(owner)
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let version = semver::Version::parse(version.trim_start_matches('v')).ok()?;
    Some((version.major, version.minor))
}
