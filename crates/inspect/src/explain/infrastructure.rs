//! The infrastructure of a Cluster, and the endpoint of its control plane.

use capstan_api::{
    conditions::{ConditionStatus, Report},
    contract::ContractVersion,
    names::annotation,
};
use serde_json::{Value, json};

use super::{
    commands,
    finding::ExplainProblem,
    inspector::{Inspector, says},
    references::{Found, PROVISIONED},
};
use crate::fields::{self, created, has_endpoint, has_external_manager, is_negative};
use crate::snapshot::Reference;

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
        let predicate = format!("{state}{}.", says(report.as_ref()));
        let finding = self.finding(ExplainProblem::InfrastructureNotReady, object, predicate);
        self.add_unfinished(object, finding.since_created().condition(report.as_ref()));
        is_provisioned
    }

    fn add_external_manager(&mut self, found: Found<'a>) {
        let object = found.object;
        let status = match found.contract {
            Some(ContractVersion::V1Beta1) => json!({"ready": true}),
            _ => json!({"initialization": {"provisioned": true}}),
        };
        let predicate = format!(
            "is managed externally, because it has {}: its provider leaves it alone, and its manager has not set {} to true.",
            annotation::MANAGED_BY,
            found.path(PROVISIONED),
        );
        let patch = commands::patch(self.snapshot, object, &json!({ "status": status }));
        self.finding(ExplainProblem::ExternallyManaged, object, predicate)
            .since_created()
            .describe()
            .go_on(format!("{patch} --subresource status"))
            .add_to(self);
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
        self.sentence(ExplainProblem::EndpointMissing, object, sentence)
            .since(created(cluster))
            .controller()
            .describe()
            .logs()
            .go_on(commands::patch(self.snapshot, cluster, &endpoint))
            .add_to(self);
    }
}

/// The condition of a provider's object that says what is wrong: its summary, or else the first that does not hold.
pub(crate) fn worst(object: &Value) -> Option<Report> {
    let reports = fields::reports(object);
    let summary = |type_: &str| reports.iter().find(|it| it.type_ == type_);
    match summary("Ready").or_else(|| summary("Available")) {
        Some(report) if report.status == ConditionStatus::True => None,
        Some(report) => Some(report.clone()),
        None => {
            reports.iter().find(|it| it.status != ConditionStatus::True && !is_negative(&it.type_)).cloned()
        }
    }
}
