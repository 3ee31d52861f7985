//! From a reference to its object, or to why there is none.

use capstan_api::{
    contract::{ContractVersion, NoCompatibleContract, compare_versions, crd_name, list_served},
    names::{BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, annotation},
};
use serde_json::{Value, json};

use super::{
    commands, controllers::ControllerState, draft::Draft, finding::ExplainProblem, inspector::Inspector,
};
use crate::fields::{self, is_deleting, is_paused_by_annotation, kind, terminal_failure, text};
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
        let Reference { group, kind, name, .. } = reference;
        if let Some(note) = self.workload.unreadable(group, kind, name) {
            let stand_in = fields::stand_in(&self.target(owner, reference));
            // A conversion webhook that does not answer is a finding of its own.
            if !self.check_webhooks(&stand_in, None) {
                let sentence = format!(
                    "{kind} {name}, which {field} of {} names, cannot be read: {}.",
                    self.title(owner),
                    note.reason
                );
                self.sentence(ExplainProblem::Unreadable, &stand_in, sentence).describe().add_to(self);
            }
            return None;
        }
        let contract = match self.workload.crd(group, kind) {
            None if self.workload.is_crd_unreadable(group, kind) => None,
            None => {
                self.add_missing_kind(owner, field, reference);
                return None;
            }
            Some(crd) => match crd.picked() {
                Ok(picked) if crd.is_namespaced => Some(picked.contract),
                picked => {
                    let broken = picked.err().filter(|_| crd.is_namespaced);
                    self.unusable(owner, field, reference, crd, broken.as_ref()).add_once_to(self);
                    return None;
                }
            },
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
        let why = match self.workload.misnamed.get(&crd) {
            None => format!("but that kind is not installed: CustomResourceDefinition {crd} does not exist"),
            Some(other) => format!(
                "whose CustomResourceDefinition is called {other}; controllers look for it under the name {crd}, and do not \
                 find it"
            ),
        };
        let predicate = format!("refers by {field} to a {kind} of {group}, {why}.");
        let flag = match group.as_str() {
            BOOTSTRAP_GROUP => "bootstrap",
            CONTROL_PLANE_GROUP => "control-plane",
            _ => "infrastructure",
        };
        self.finding(ExplainProblem::KindNotInstalled, owner, predicate)
            .about(self.target(owner, reference))
            .since_created()
            .look(format!("kubectl get crds | grep {}", commands::word(group)))
            .go_on(format!("{} init --{flag} PROVIDER", self.program))
            .add_to(self);
    }

    /// What is wrong with a CRD that core does not speak with: its contract labels, or else its scope.
    fn unusable<'o>(
        &self,
        owner: &'o Value,
        field: &str,
        reference: &Reference,
        crd: &Crd,
        broken: Option<&NoCompatibleContract>,
    ) -> Draft<'a, 'o> {
        let crd_name = &crd.name;
        let draft = |problem: ExplainProblem, reason: &str| {
            let Reference { kind, name, .. } = reference;
            let predicate = format!(
                "refers by {field} to {kind} {name}, but CustomResourceDefinition {crd_name} {reason}."
            );
            self.finding(problem, owner, predicate)
                .about(crd.reference())
                .since_created()
                .look(format!("kubectl get crd {crd_name} --show-labels"))
        };
        let set = |label: &str| {
            let version = crd.served().max_by(|a, b| compare_versions(a, b)).unwrap_or("VERSION");
            format!("kubectl label crd {crd_name} {label}={version} --overwrite")
        };
        match broken {
            None => {
                let reason = "has spec.scope Cluster: the kind is cluster-scoped, and the contract asks for a namespaced one. \
                              Its scope cannot be changed; install a release of the provider whose CRD has scope Namespaced";
                draft(ExplainProblem::ClusterScoped, reason)
            }
            Some(NoCompatibleContract::Unlabelled { .. }) => {
                let [new, old] = ContractVersion::PREFERENCE.map(ContractVersion::label);
                let reason = format!(
                    "has no label {new} or {old}, so no controller knows how to speak with its provider"
                );
                draft(ExplainProblem::NoContract, &reason).go_on(set(&new))
            }
            Some(NoCompatibleContract::Unserved { named, served, .. }) => {
                let named = || named.iter().filter(|(_, value)| !value.is_empty());
                let list: Vec<_> = named().map(|(label, value)| format!("{label}={value}")).collect();
                let reason = format!(
                    "serves none of the versions that its contract labels name: it has {}, and serves {}. Correct the label, \
                     or serve the version",
                    list.join(", "),
                    list_served(served)
                );
                let mut draft = draft(ExplainProblem::VersionNotServed, &reason);
                if let Some((label, _)) = named().next() {
                    draft = draft.go_on(set(label));
                }
                let is_named =
                    |version: &str| named().any(|(_, value)| value.split('_').any(|it| it == version));
                if let Some(index) = crd.versions.iter().position(|it| is_named(&it.0)) {
                    let path = format!("/spec/versions/{index}/served");
                    let patch = json!([{"op": "replace", "path": path, "value": true}]);
                    draft = draft.go_on(format!("kubectl patch crd {crd_name} --type json -p '{patch}'"));
                }
                draft
            }
        }
    }

    fn add_missing_object(&mut self, owner: &Value, field: &str, reference: &Reference) {
        let Reference { group, kind, name, .. } = reference;
        let predicate = format!("refers by {field} to {kind} {name}, which does not exist.");
        self.finding(ExplainProblem::ObjectMissing, owner, predicate)
            .about(self.target(owner, reference))
            .since_created()
            .look(commands::list(self.snapshot, group, kind, self.namespace))
            .go_on(format!(
                "kubectl create -n {} -f {}.yaml",
                self.namespace,
                commands::word(&kind.to_lowercase())
            ))
            .add_to(self);
    }

    /// Adds what keeps a provider from reconciling an object, however far it is. Returns whether there is something.
    pub(crate) fn add_standstill(&mut self, found: Found<'a>) -> bool {
        let object = found.object;
        if is_deleting(object) {
            let held = fields::finalizers(object).join(", ");
            let predicate =
                format!("is being deleted, though what stands on it is not; its finalizers are {held}.");
            self.finding(ExplainProblem::ObjectDeleting, object, predicate)
                .since_deleted()
                .describe()
                .add_to(self);
            return true;
        }
        if is_paused_by_annotation(object) {
            self.add_paused_by_annotation(object);
            return true;
        }
        // The newer contract has no such failures.
        let failure = terminal_failure(object).filter(|_| found.contract != Some(ContractVersion::V1Beta2));
        if let Some(failure) = failure {
            let sentence = format!(
                "The provider of {} has given up: {failure}. It does not retry with this object.",
                self.title(object)
            );
            let delete = commands::delete(self.snapshot, object);
            self.sentence(ExplainProblem::TerminalFailure, object, sentence)
                .reported("Ready")
                .controller()
                .describe()
                .go_on(format!("{delete} # then create the {} again", kind(object)))
                .add_to(self);
            return true;
        }
        false
    }

    pub(crate) fn add_paused_by_annotation(&mut self, object: &Value) {
        let predicate =
            format!("is paused by its annotation {}: no controller touches it.", annotation::PAUSED);
        self.finding(ExplainProblem::PausedByAnnotation, object, predicate)
            .reported("Paused")
            .go_on(commands::unannotate(self.snapshot, object, annotation::PAUSED))
            .add_to(self);
    }

    /// Adds an object that is not done: behind what keeps its controller from acting, but before the doubt whether there
    /// is a controller, because one that reports runs.
    pub(crate) fn add_unfinished(&mut self, object: &Value, draft: Draft<'_, '_>) {
        self.check_controller(object);
        draft.controller().describe().logs().add_to(self);
        if let Some(doubt) = self.doubt(object, &self.controller_of(object)) {
            doubt.add_once_to(self);
        }
    }

    /// Adds a controller that does not run and webhooks that do not answer. Returns whether there are any.
    pub(crate) fn check_controller(&mut self, object: &Value) -> bool {
        let controller = self.controller_of(object);
        let doubt = self.doubt(object, &controller);
        let Some(doubt) = doubt.filter(|_| controller.state != ControllerState::Elsewhere) else {
            return self.check_webhooks(object, None);
        };
        doubt.since_created().add_once_to(self);
        // A controller that is down does not answer its webhooks either, which is no finding of its own.
        self.check_webhooks(object, controller.namespace.as_deref());
        true
    }

    /// Adds webhooks that do not answer, but for those of one namespace. Returns whether there are any.
    pub(crate) fn check_webhooks(&mut self, object: &Value, but: Option<&str>) -> bool {
        let unanswered = self.unanswered(object, but);
        let is_any = !unanswered.is_empty();
        for draft in unanswered {
            draft.add_once_to(self);
        }
        is_any
    }

    /// What a reference names.
    fn target(&self, owner: &Value, reference: &Reference) -> ObjectRef {
        let Reference { group, kind, name, .. } = reference;
        let picked = self.workload.crd(group, kind).and_then(|it| it.picked().ok());
        let version = picked.map(|it| format!("/{}", it.version)).unwrap_or_default();
        ObjectRef::new(&format!("{group}{version}"), kind, text(owner, "/metadata/namespace"), name)
    }
}
