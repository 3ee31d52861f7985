//! Machines: bootstrap data, infrastructure, a Node.

use capstan_api::{conditions::ConditionStatus, names::CORE_GROUP};
use serde_json::Value;

use super::{
    commands,
    finding::ExplainProblem,
    infrastructure::worst,
    inspector::{Inspector, says},
    references::DATA_CREATED,
};
use crate::fields::{self, is_deleting, is_paused_by_annotation, is_provisioned, terminal_failure, text};
use crate::snapshot::Reference;
use capstan_management::ObjectRef;

impl<'a> Inspector<'a> {
    /// Looks at those Machines that are not as they should be.
    pub(crate) fn check_machines(&mut self, is_meant: impl Fn(&Value) -> bool) {
        let machines: Vec<_> =
            self.workload.all(CORE_GROUP, "Machine").filter(|it| is_meant(it) && !is_well(it)).collect();
        for machine in machines {
            self.check_machine(machine);
        }
    }

    fn check_machine(&mut self, machine: &'a Value) {
        if is_deleting(machine) {
            self.check_deleting_machine(machine);
            return;
        }
        if is_paused_by_annotation(machine) {
            self.add_paused_by_annotation(machine);
            return;
        }
        let failure = terminal_failure(machine);
        if failure.is_some() || text(machine, "/status/phase") == Some("Failed") {
            let failure = failure.map(|it| format!(": {it}")).unwrap_or_default();
            let predicate = format!("has failed{failure}. It does not recover and must be replaced.");
            self.finding(ExplainProblem::MachineFailed, machine, predicate)
                .since_created()
                .condition(worst(machine).as_ref())
                .describe()
                .go_on(commands::delete(self.snapshot, machine))
                .add_to(self);
            return;
        }
        if !self.check_template(machine, "/spec", "spec") {
            return;
        }
        self.check_node(machine);
    }

    /// The bootstrap data and the infrastructure of a Machine, or of the Machines of a pool: bootstrap data first, because
    /// infrastructure needs it. Returns whether both are done.
    pub(crate) fn check_template(&mut self, owner: &'a Value, pointer: &str, path: &str) -> bool {
        if !self.check_bootstrap(owner, pointer, path) {
            return false;
        }
        let Some(reference) = Reference::at(owner, &format!("{pointer}/infrastructureRef")) else {
            return true;
        };
        let field = format!("{path}.infrastructureRef");
        match self.follow(owner, &field, &reference) {
            Some(found) => self.check_provisioned(found),
            None => false,
        }
    }

    fn check_bootstrap(&mut self, owner: &'a Value, pointer: &str, path: &str) -> bool {
        if let Some(secret) = text(owner, &format!("{pointer}/bootstrap/dataSecretName")) {
            return self.check_bootstrap_data(owner, secret, path);
        }
        let Some(reference) = Reference::at(owner, &format!("{pointer}/bootstrap/configRef")) else {
            return true;
        };
        let Some(found) = self.follow(owner, &format!("{path}.bootstrap.configRef"), &reference) else {
            return false;
        };
        if self.add_standstill(found) {
            return false;
        }
        if found.is_true(DATA_CREATED) {
            return true;
        }
        let object = found.object;
        let report = worst(object);
        let sentence = format!(
            "{} waits for its bootstrap data, which {} has not created: {} is not true{}.",
            self.title(owner),
            self.title(object),
            found.path(DATA_CREATED),
            says(report.as_ref())
        );
        let finding = self.sentence(ExplainProblem::BootstrapNotReady, object, sentence);
        self.add_unfinished(object, finding.since_created().condition(report.as_ref()));
        false
    }

    fn check_bootstrap_data(&mut self, owner: &Value, secret: &str, path: &str) -> bool {
        let is_readable = self.workload.unreadable("", "Secret", secret).is_none();
        let is_needed = text(owner, "/status/nodeRef/name").is_none();
        if self.snapshot.secrets.contains(secret) || !is_readable || !is_needed {
            return true;
        }
        let namespace = self.namespace;
        let predicate = format!(
            "waits for its bootstrap data, but Secret {namespace}/{secret} ({path}.bootstrap.dataSecretName) does not exist."
        );
        self.finding(ExplainProblem::BootstrapDataMissing, owner, predicate)
            .about(ObjectRef::new("v1", "Secret", Some(namespace), secret))
            .since_created()
            .reported("BootstrapConfigReady")
            .look(format!("kubectl get secrets -n {namespace}"))
            .go_on(format!(
                "kubectl create secret generic {secret} -n {namespace} --from-file value=bootstrap-data"
            ))
            .add_to(self);
        false
    }

    fn check_node(&mut self, machine: &'a Value) {
        let has_node = text(machine, "/status/nodeRef/name").is_some();
        let report = fields::report(machine, "NodeReady").filter(|_| !has_node).or_else(|| worst(machine));
        let says = says(report.as_ref());
        let draft = if has_node {
            let predicate = format!("has a Node, but is not ready{says}.");
            self.finding(ExplainProblem::MachineNotReady, machine, predicate)
        } else {
            let predicate = match text(machine, "/spec/providerID") {
                Some(id) => format!(
                    "runs as {id}, but no Node with that providerID has joined the workload cluster{says}. Either the machine \
                     failed to boot and join, or no cloud provider sets the providerID of its Node."
                ),
                None => format!("has no providerID, so its Node cannot be found{says}."),
            };
            self.finding(ExplainProblem::MachineWithoutNode, machine, predicate)
                .look(self.in_workload_cluster("get nodes -o wide"))
        };
        draft.since_created().condition(report.as_ref()).describe().controller().add_to(self);
    }
}

/// Whether nothing is wrong with a Machine.
fn is_well(machine: &Value) -> bool {
    let is_ready = match fields::report(machine, "Ready") {
        Some(report) => report.status == ConditionStatus::True,
        None => is_provisioned(machine),
    };
    text(machine, "/status/nodeRef/name").is_some()
        && is_ready
        && !is_deleting(machine)
        && terminal_failure(machine).is_none()
}
