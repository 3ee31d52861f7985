//! The infrastructure of a Cluster, and the endpoint of its control plane.

use capstan_api::{conditions::ConditionStatus, contract::ContractVersion, names::annotation};
use serde_json::{Value, json};

use super::{
    commands,
    finding::{ExplainProblem, Finding},
    inspector::{Inspector, condition_text},
    references::{Found, PROVISIONED},
};
use crate::fields::{self, created, has_endpoint, has_external_manager};
use crate::snapshot::Reference;
use capstan_management::ObjectRef;

impl<'a> Inspector<'a> {
    pub(crate) fn check_infrastructure(&mut self) {
        let Some(reference) = Reference::at(self.cluster, "/spec/infrastructureRef") else {
            return;
        };
        let Some(found) = self.follow(self.cluster, "spec.infrastructureRef", &reference) else {
            return;
        };
        if self.check_provisioned(found) && !has_endpoint(self.cluster) {
            self.add_missing_endpoint(found.object);
        }
    }

    /// Adds why infrastructure is not done. Returns whether it is.
    pub(crate) fn check_provisioned(&mut self, found: Found<'a>) -> bool {
        if self.add_standstill(found) {
            return false;
        }
        let object = found.object;
        let is_provisioned = found.is_true(PROVISIONED);
        let report = worst(object);
        if is_provisioned && report.is_none() {
            return true;
        }
        if !is_provisioned && has_external_manager(object) {
            self.add_external_manager(found);
            return false;
        }
        let state = if is_provisioned {
            "is not ready".to_owned()
        } else {
            format!("is not provisioned: {} is not true", found.path(PROVISIONED))
        };
        let says = report.as_ref().map(|it| format!("; {}", condition_text(it))).unwrap_or_default();
        let sentence = format!("{} {state}{says}.", self.title(object));
        let finding = Finding::new(ExplainProblem::InfrastructureNotReady, ObjectRef::of(object), sentence)
            .since(created(object))
            .with_condition(report.as_ref());
        self.add_unfinished(object, finding);
        is_provisioned
    }

    fn add_external_manager(&mut self, found: Found<'a>) {
        let object = found.object;
        let status = match found.contract {
            Some(ContractVersion::V1Beta1) => json!({"ready": true}),
            _ => json!({"initialization": {"provisioned": true}}),
        };
        let finding = Finding::new(
            ExplainProblem::ExternallyManaged,
            ObjectRef::of(object),
            format!(
                "{} is managed externally, because it has {}: its provider leaves it alone, and its manager has not set {} to \
                 true.",
                self.title(object),
                annotation::MANAGED_BY,
                found.path(PROVISIONED),
            ),
        )
        .since(created(object))
        .look(commands::describe(self.snapshot, object))
        .go_on(format!(
            "{} --subresource status",
            commands::patch(self.snapshot, object, &json!({ "status": status }))
        ));
        self.add(finding);
    }

    fn add_missing_endpoint(&mut self, infrastructure: &Value) {
        let cluster = self.cluster;
        let control_plane =
            Reference::at(cluster, "/spec/controlPlaneRef").and_then(|it| self.index.object(&it));
        let giver = [Some(infrastructure), control_plane].into_iter().flatten().find(|it| has_endpoint(it));
        let (object, sentence) = if let Some(giver) = giver {
            let sentence = format!(
                "{} has no spec.controlPlaneEndpoint, though {} has one: core has not copied it.",
                self.title(cluster),
                self.title(giver)
            );
            (cluster, sentence)
        } else {
            let also = match control_plane {
                Some(other) => {
                    format!("neither {} nor {} sets it", self.title(infrastructure), self.title(other))
                }
                None => format!("{} is provisioned without it", self.title(infrastructure)),
            };
            let sentence =
                format!("The address of the control plane is not known (spec.controlPlaneEndpoint): {also}.");
            (infrastructure, sentence)
        };
        let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "HOST", "port": 6443}}});
        let controller = self.controller_of(object);
        let finding = Finding::new(ExplainProblem::EndpointMissing, ObjectRef::of(object), sentence)
            .since(created(cluster))
            .look(commands::describe(self.snapshot, object))
            .look_if(controller.logs())
            .go_on(commands::patch(self.snapshot, cluster, &endpoint))
            .with_controller(controller);
        self.add(finding);
    }
}

/// The condition of a provider's object that says what is wrong: its summary, or else the first that does not hold.
pub(crate) fn worst(object: &Value) -> Option<capstan_api::conditions::Report> {
    // Conditions that are good news when they are False.
    const NEGATIVE: [&str; 7] =
        ["Paused", "Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Remediating"];
    let reports = fields::reports(object);
    let summary = |type_: &str| reports.iter().find(|it| it.type_ == type_);
    match summary("Ready").or_else(|| summary("Available")) {
        Some(report) if report.status == ConditionStatus::True => None,
        Some(report) => Some(report.clone()),
        None => reports
            .iter()
            .find(|it| it.status != ConditionStatus::True && !NEGATIVE.contains(&it.type_.as_str()))
            .cloned(),
    }
}
