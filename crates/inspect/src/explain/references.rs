//! From a reference to its object, or to why there is none.

use capstan_api::{
    contract::{ContractVersion, compare_versions, crd_name},
    names::{BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, annotation},
};
use serde_json::{Value, json};

use super::{
    commands,
    controllers::{self, ControllerState},
    finding::{ExplainProblem, Finding},
    inspector::Inspector,
};
use crate::fields::{
    self, created, is_deleting, is_paused_by_annotation, kind, name, terminal_failure, text,
};
use crate::snapshot::{Crd, Reference};
use capstan_management::ObjectRef;

/// The object behind a reference.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) object: &'a Value,
    /// The contract that its provider keeps; not known where CRDs cannot be read.
    pub(crate) contract: Option<ContractVersion>,
}

/// A field that moved between the contracts: its path in v1beta1 and in v1beta2.
pub(crate) type Moved = [&'static str; 2];

/// Whether infrastructure is provisioned.
pub(crate) const PROVISIONED: Moved = ["status.ready", "status.initialization.provisioned"];
/// Whether a control plane accepts requests.
pub(crate) const INITIALIZED: Moved = ["status.initialized", "status.initialization.controlPlaneInitialized"];
/// Whether bootstrap data is in a Secret.
pub(crate) const DATA_CREATED: Moved = ["status.ready", "status.initialization.dataSecretCreated"];

impl Found<'_> {
    fn paths(self, [old, new]: Moved) -> Vec<&'static str> {
        match self.contract {
            Some(ContractVersion::V1Beta1) => vec![old],
            Some(ContractVersion::V1Beta2) => vec![new],
            None => vec![new, old],
        }
    }

    /// Whether a field is true in the contract that the object speaks.
    pub(crate) fn is_true(self, field: Moved) -> bool {
        self.paths(field)
            .iter()
            .any(|it| fields::is_true(self.object, &[&format!("/{}", it.replace('.', "/"))]))
    }

    /// The path of a field in the contract that the object speaks; both where that is not known.
    pub(crate) fn path(self, field: Moved) -> String {
        self.paths(field).join(" or ")
    }
}

impl<'a> Inspector<'a> {
    /// The object that a field of another one names. Adds what keeps it from being found.
    pub(crate) fn follow(&mut self, owner: &Value, field: &str, reference: &Reference) -> Option<Found<'a>> {
        let snapshot = self.snapshot;
        let Reference { group, kind, name, .. } = reference;
        if let Some(note) = self.workload.unreadable(group, kind, name) {
            // A conversion webhook that does not answer is a finding of its own.
            if !self.check_webhooks(&self.stand_in(owner, reference)) {
                let sentence = format!(
                    "{kind} {name}, which {field} of {} names, cannot be read: {}.",
                    self.title(owner),
                    note.reason
                );
                self.add(
                    Finding::new(ExplainProblem::Unreadable, self.target(owner, reference), sentence)
                        .look(commands::describe(snapshot, &self.stand_in(owner, reference))),
                );
            }
            return None;
        }
        let contract = match self.workload.crd(group, kind) {
            None if self.workload.is_crd_unreadable(group, kind) => None,
            None => {
                self.add_missing_kind(owner, field, reference);
                return None;
            }
            Some(crd) => {
                let Some(picked) = crd.picked().filter(|_| crd.is_namespaced) else {
                    self.add_once(self.broken_contract(owner, field, reference, crd));
                    return None;
                };
                Some(picked.contract)
            }
        };
        let Some(object) = self.index.object(reference) else {
            self.add_missing_object(owner, field, reference);
            return None;
        };
        Some(Found { object, contract })
    }

    fn add_missing_kind(&mut self, owner: &Value, field: &str, reference: &Reference) {
        let Reference { group, kind, .. } = reference;
        let crd = crd_name(group, kind);
        let sentence = match self.workload.misnamed.get(&crd) {
            None => format!(
                "{} refers by {field} to a {kind} of {group}, but that kind is not installed: CustomResourceDefinition \
                 {crd} does not exist.",
                self.title(owner)
            ),
            Some(other) => format!(
                "{} refers by {field} to a {kind} of {group}, whose CustomResourceDefinition is called {other}; \
                 controllers look for it under the name {crd}, and do not find it.",
                self.title(owner)
            ),
        };
        let flag = match group.as_str() {
            BOOTSTRAP_GROUP => "bootstrap",
            CONTROL_PLANE_GROUP => "control-plane",
            _ => "infrastructure",
        };
        let finding = Finding::new(ExplainProblem::KindNotInstalled, self.target(owner, reference), sentence)
            .since(created(owner))
            .look(format!("kubectl get crds | grep {}", commands::word(group)))
            .go_on(format!("{} init --{flag} PROVIDER", self.program));
        self.add(finding);
    }

    /// What is wrong with a CRD that core does not speak with: its scope, or its contract labels.
    fn broken_contract(&self, owner: &Value, field: &str, reference: &Reference, crd: &Crd) -> Finding {
        let crd_name = &crd.name;
        let finding = |problem: ExplainProblem, reason: &str| {
            let object = ObjectRef {
                api_version: "apiextensions.k8s.io/v1".to_owned(),
                kind: "CustomResourceDefinition".to_owned(),
                namespace: None,
                name: crd_name.clone(),
            };
            let sentence = format!(
                "{} refers by {field} to {} {}, but CustomResourceDefinition {crd_name} {reason}.",
                self.title(owner),
                reference.kind,
                reference.name
            );
            Finding::new(problem, object, sentence)
                .since(created(owner))
                .look(format!("kubectl get crd {crd_name} --show-labels"))
        };
        if !crd.is_namespaced {
            let reason = "has spec.scope Cluster: the kind is cluster-scoped, and the contract asks for a namespaced one. \
                          Its scope cannot be changed; install a release of the provider whose CRD has scope Namespaced";
            return finding(ExplainProblem::ClusterScoped, reason);
        }
        let served: Vec<_> = crd.served().collect();
        let set = |label: &str| {
            let version = served.iter().max_by(|a, b| compare_versions(a, b)).unwrap_or(&"VERSION");
            format!("kubectl label crd {crd_name} {label}={version} --overwrite")
        };
        let labels = ContractVersion::PREFERENCE.map(ContractVersion::label);
        let named = |label: &String| {
            let value = crd.labels.get(label).filter(|it| !it.is_empty())?;
            Some((label.clone(), value.clone()))
        };
        let named: Vec<_> = labels.iter().filter_map(named).collect();
        let Some((label, _)) = named.first() else {
            let [new, old] = &labels;
            let reason =
                format!("has no label {new} or {old}, so no controller knows how to speak with its provider");
            return finding(ExplainProblem::NoContract, &reason).go_on(set(new));
        };
        let list: Vec<_> = named.iter().map(|(label, value)| format!("{label}={value}")).collect();
        let reason = format!(
            "serves none of the versions that its contract labels name: it has {}, and serves {}. Correct the label, or serve \
             the version",
            list.join(", "),
            if served.is_empty() { "no version".to_owned() } else { served.join(", ") }
        );
        let mut finding = finding(ExplainProblem::VersionNotServed, &reason).go_on(set(label));
        let is_named = |version: &str| named.iter().any(|it| it.1.split('_').any(|it| it == version));
        if let Some(index) = crd.versions.iter().position(|it| is_named(&it.0)) {
            let patch =
                json!([{"op": "replace", "path": format!("/spec/versions/{index}/served"), "value": true}]);
            finding = finding.go_on(format!("kubectl patch crd {crd_name} --type json -p '{patch}'"));
        }
        finding
    }

    fn add_missing_object(&mut self, owner: &Value, field: &str, reference: &Reference) {
        let Reference { group, kind, name, .. } = reference;
        let finding = Finding::new(
            ExplainProblem::ObjectMissing,
            self.target(owner, reference),
            format!("{} refers by {field} to {kind} {name}, which does not exist.", self.title(owner)),
        )
        .since(created(owner))
        .look(commands::list(self.snapshot, group, kind, &self.namespace))
        .go_on(format!(
            "kubectl create -n {} -f {}.yaml",
            self.namespace,
            commands::word(&kind.to_lowercase())
        ));
        self.add(finding);
    }

    /// Adds what keeps a provider from reconciling an object, however far it is. Returns whether there is something.
    pub(crate) fn add_standstill(&mut self, found: Found<'a>) -> bool {
        let object = found.object;
        let call = self.title(object);
        if is_deleting(object) {
            let held = fields::finalizers(object).join(", ");
            let sentence = format!(
                "{call} is being deleted, though what stands on it is not; its finalizers are {held}."
            );
            let finding = Finding::new(ExplainProblem::ObjectDeleting, ObjectRef::of(object), sentence)
                .since(fields::deleted(object))
                .look(commands::describe(self.snapshot, object));
            self.add(finding);
            return true;
        }
        if is_paused_by_annotation(object) {
            self.add_paused_by_annotation(object);
            return true;
        }
        // The newer contract has no such failures.
        let failure = terminal_failure(object).filter(|_| found.contract != Some(ContractVersion::V1Beta2));
        if let Some(failure) = failure {
            let (kind, name) = (kind(object), name(object));
            let finding = Finding::new(
                ExplainProblem::TerminalFailure,
                ObjectRef::of(object),
                format!(
                    "The provider of {call} has given up: {failure}. It does not retry with this object."
                ),
            )
            .with_condition(fields::report(object, "Ready").as_ref())
            .with_controller(self.controller_of(object))
            .look(commands::describe(self.snapshot, object))
            .go_on(format!(
                "kubectl delete {} {name} -n {} # then create the {kind} again",
                commands::resource(self.snapshot, fields::group(object), kind),
                self.namespace
            ));
            self.add(finding);
            return true;
        }
        false
    }

    pub(crate) fn add_paused_by_annotation(&mut self, object: &Value) {
        let finding = Finding::new(
            ExplainProblem::PausedByAnnotation,
            ObjectRef::of(object),
            format!(
                "{} is paused by its annotation {}: no controller touches it.",
                self.title(object),
                annotation::PAUSED
            ),
        )
        .with_condition(fields::report(object, "Paused").as_ref())
        .go_on(commands::unannotate(self.snapshot, object, annotation::PAUSED));
        self.add(finding);
    }

    /// Adds an object that is not done: behind what keeps its controller from acting, but before the doubt whether there
    /// is a controller, because one that reports runs.
    pub(crate) fn add_unfinished(&mut self, object: &Value, finding: Finding) {
        self.check_controller(object);
        let controller = self.controller_of(object);
        let doubt = controllers::finding(&controller, kind(object), self.program);
        self.add(
            finding
                .look(commands::describe(self.snapshot, object))
                .look_if(controller.logs())
                .with_controller(controller),
        );
        if let Some(doubt) = doubt {
            self.add_once(doubt);
        }
    }

    /// Adds a controller that does not run and webhooks that do not answer. Returns whether there are any.
    pub(crate) fn check_controller(&mut self, object: &Value) -> bool {
        let controller = self.controller_of(object);
        let finding = controllers::finding(&controller, kind(object), self.program);
        let Some(finding) = finding.filter(|_| controller.state != ControllerState::Elsewhere) else {
            return self.check_webhooks(object);
        };
        self.add_once(finding.since(created(object)));
        // A controller that is down does not answer its webhooks either, which is no finding of its own.
        self.check_webhooks_except(object, controller.namespace.as_deref());
        true
    }

    pub(crate) fn check_webhooks(&mut self, object: &Value) -> bool {
        self.check_webhooks_except(object, None)
    }

    /// The same but for webhooks that are answered from a namespace.
    fn check_webhooks_except(&mut self, object: &Value, namespace: Option<&str>) -> bool {
        let findings = super::webhooks::findings(self.snapshot, object, namespace);
        let is_any = !findings.is_empty();
        for finding in findings {
            let controller = self.controller_of(object);
            self.add_once(finding.with_controller(controller));
        }
        is_any
    }

    /// As much of an object as its reference says.
    fn stand_in(&self, owner: &Value, reference: &Reference) -> Value {
        let target = self.target(owner, reference);
        json!({
            "apiVersion": target.api_version, "kind": target.kind,
            "metadata": {"namespace": target.namespace, "name": target.name},
        })
    }

    /// What a reference names.
    fn target(&self, owner: &Value, reference: &Reference) -> ObjectRef {
        let picked = self.workload.crd(&reference.group, &reference.kind).and_then(Crd::picked);
        let version = picked.map(|it| format!("/{}", it.version)).unwrap_or_default();
        ObjectRef {
            api_version: format!("{}{version}", reference.group),
            kind: reference.kind.clone(),
            namespace: text(owner, "/metadata/namespace").map(str::to_owned),
            name: reference.name.clone(),
        }
    }
}
