//! Machines: bootstrap data, infrastructure, a Node.

use capstan_api::{conditions::ConditionStatus, names::CORE_GROUP};
use serde_json::Value;

use super::{
    commands,
    finding::{ExplainProblem, Finding},
    infrastructure::worst,
    inspector::{Inspector, condition_text},
    references::DATA_CREATED,
};
use crate::fields::{
    self, created, is_deleting, is_paused_by_annotation, is_true, name, terminal_failure, text,
};
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
            let finding = Finding::new(
                ExplainProblem::MachineFailed,
                ObjectRef::of(machine),
                format!(
                    "{} has failed{failure}. It does not recover and must be replaced.",
                    self.title(machine)
                ),
            )
            .since(created(machine))
            .with_condition(worst(machine).as_ref())
            .look(commands::describe(self.snapshot, machine))
            .go_on(format!(
                "kubectl delete {} {} -n {}",
                commands::resource(self.snapshot, CORE_GROUP, "Machine"),
                name(machine),
                self.namespace
            ));
            self.add(finding);
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
        let says = report.as_ref().map(|it| format!("; {}", condition_text(it))).unwrap_or_default();
        let sentence = format!(
            "{} waits for its bootstrap data, which {} has not created: {} is not true{says}.",
            self.title(owner),
            self.title(object),
            found.path(DATA_CREATED)
        );
        let finding = Finding::new(ExplainProblem::BootstrapNotReady, ObjectRef::of(object), sentence)
            .since(created(object))
            .with_condition(report.as_ref());
        self.add_unfinished(object, finding);
        false
    }

    fn check_bootstrap_data(&mut self, owner: &Value, secret: &str, path: &str) -> bool {
        let is_readable = self.workload.unreadable("", "Secret", secret).is_none();
        let is_needed = text(owner, "/status/nodeRef/name").is_none();
        if self.snapshot.secrets.contains(secret) || !is_readable || !is_needed {
            return true;
        }
        let object = ObjectRef {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(self.namespace.clone()),
            name: secret.to_owned(),
        };
        let sentence = format!(
            "{} waits for its bootstrap data, but Secret {}/{secret} ({path}.bootstrap.dataSecretName) does not exist.",
            self.title(owner),
            self.namespace
        );
        let finding = Finding::new(ExplainProblem::BootstrapDataMissing, object, sentence)
            .since(created(owner))
            .with_condition(fields::report(owner, "BootstrapConfigReady").as_ref())
            .look(format!("kubectl get secrets -n {}", self.namespace))
            .go_on(format!(
                "kubectl create secret generic {secret} -n {} --from-file value=bootstrap-data",
                self.namespace
            ));
        self.add(finding);
        false
    }

    fn check_node(&mut self, machine: &'a Value) {
        let controller = self.controller_of(machine);
        let has_node = text(machine, "/status/nodeRef/name").is_some();
        let provider_id = text(machine, "/spec/providerID");
        let report = if has_node {
            worst(machine)
        } else {
            fields::report(machine, "NodeReady").or_else(|| worst(machine))
        };
        let says = report.as_ref().map(|it| format!("; {}", condition_text(it))).unwrap_or_default();
        let finding = if has_node {
            let sentence = format!("{} has a Node, but is not ready{says}.", self.title(machine));
            Finding::new(ExplainProblem::MachineNotReady, ObjectRef::of(machine), sentence)
        } else {
            let sentence = match provider_id {
                Some(id) => format!(
                    "{} runs as {id}, but no Node with that providerID has joined the workload cluster{says}. Either the \
                     machine failed to boot and join, or no cloud provider sets the providerID of its Node.",
                    self.title(machine)
                ),
                None => {
                    format!("{} has no providerID, so its Node cannot be found{says}.", self.title(machine))
                }
            };
            let (program, cluster) = (self.program, name(self.cluster));
            Finding::new(ExplainProblem::MachineWithoutNode, ObjectRef::of(machine), sentence).look(format!(
                "kubectl --kubeconfig <({program} get kubeconfig {cluster} -n {}) get nodes -o wide",
                self.namespace
            ))
        };
        let finding = finding
            .since(created(machine))
            .with_condition(report.as_ref())
            .look(commands::describe(self.snapshot, machine))
            .with_controller(controller);
        self.add(finding);
    }
}

/// Whether nothing is wrong with a Machine.
fn is_well(machine: &Value) -> bool {
    let is_ready = match fields::report(machine, "Ready") {
        Some(report) => report.status == ConditionStatus::True,
        None => is_true(
            machine,
            &["/status/initialization/infrastructureProvisioned", "/status/infrastructureReady"],
        ),
    };
    text(machine, "/status/nodeRef/name").is_some()
        && is_ready
        && !is_deleting(machine)
        && terminal_failure(machine).is_none()
}
