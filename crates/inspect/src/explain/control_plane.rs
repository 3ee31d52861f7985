//! Control planes, and the connection to them.

use capstan_api::{
    conditions::ConditionStatus,
    names::{CONTROL_PLANE_GROUP, CORE_GROUP, secret},
};
use serde_json::json;

use super::{
    finding::{ClusterState, ExplainProblem},
    infrastructure::worst,
    inspector::{Inspector, condition_text, says},
    references::{Found, INITIALIZED},
};
use crate::fields::{is_control_plane, name, text};
use crate::snapshot::{Reference, selector};
use capstan_management::ObjectRef;

impl<'a> Inspector<'a> {
    pub(crate) fn check_control_plane(&mut self) {
        let Some(reference) = Reference::at(self.cluster, "/spec/controlPlaneRef") else {
            self.check_control_plane_machines();
            return;
        };
        let Some(found) = self.follow(self.cluster, "spec.controlPlaneRef", &reference) else {
            return;
        };
        if self.add_standstill(found) {
            return;
        }
        let is_initialized = found.is_true(INITIALIZED);
        if !is_initialized || self.is_bad("ControlPlaneAvailable") {
            self.check_controller(found.object);
            self.check_machines(is_control_plane);
            self.add_control_plane(found, is_initialized);
        }
    }

    fn add_control_plane(&mut self, found: Found<'a>, is_initialized: bool) {
        let object = found.object;
        let report = worst(object).or_else(|| self.condition("ControlPlaneAvailable"));
        let report = report.filter(|it| it.status != ConditionStatus::True);
        let (problem, state) = if is_initialized {
            (ExplainProblem::ControlPlaneNotAvailable, "was initialized, but is not available".to_owned())
        } else {
            let state = format!(
                "is not initialized, so it does not accept requests yet: {} is not true",
                found.path(INITIALIZED)
            );
            (ExplainProblem::ControlPlaneNotInitialized, state)
        };
        let has_infrastructure = self.cluster.pointer("/spec/infrastructureRef").is_some();
        let waits = if !is_initialized && !self.is_provisioned() && has_infrastructure {
            ". It waits for the infrastructure of the Cluster"
        } else {
            ""
        };
        let predicate = format!("{state}{}{waits}.", says(report.as_ref()));
        let finding = self.finding(problem, object, predicate);
        self.add_unfinished(object, finding.since_created().condition(report.as_ref()));
    }

    /// A control plane of Machines without an object that creates them, or none at all.
    fn check_control_plane_machines(&mut self) {
        let is_connected =
            self.condition("RemoteConnectionProbe").is_some_and(|it| it.status == ConditionStatus::True);
        if self.has_topology()
            || self.is_initialized()
            || is_connected
            || self.state() == ClusterState::Available
        {
            return;
        }
        let before = self.count();
        self.check_machines(is_control_plane);
        let has_machines = self.workload.all(CORE_GROUP, "Machine").any(is_control_plane);
        if has_machines || self.count() > before {
            return;
        }
        let predicate = "has neither spec.controlPlaneRef nor a control plane Machine, so no controller creates a control plane \
                         for it.";
        self.finding(ExplainProblem::ControlPlaneRefMissing, self.cluster, predicate)
            .since_created()
            .reported("ControlPlaneInitialized")
            .patch(&json!({"spec": {"controlPlaneRef": {
                "apiGroup": CONTROL_PLANE_GROUP, "kind": "KubeadmControlPlane", "name": "NAME",
            }}}))
            .add_to(self);
    }

    /// The connection to the workload cluster.
    pub(crate) fn check_connection(&mut self) {
        let Some(report) =
            self.condition("RemoteConnectionProbe").filter(|it| it.status != ConditionStatus::True)
        else {
            return;
        };
        let has_control_plane = self.cluster.pointer("/spec/controlPlaneRef").is_some();
        // Before that there is nothing to connect to.
        if !self.is_provisioned() || (has_control_plane && !self.is_initialized()) {
            return;
        }
        let cluster = self.cluster;
        let secret = format!("{}-{}", name(cluster), secret::KUBECONFIG);
        let namespace = self.namespace;
        let is_there = self.snapshot.secrets.contains(&secret);
        let is_readable = self.workload.unreadable("", "Secret", &secret).is_none();
        let draft = if !is_there && is_readable {
            let sentence = format!(
                "Secret {namespace}/{secret} does not exist, so the workload cluster of {} cannot be reached.",
                self.title(cluster)
            );
            self.sentence(ExplainProblem::KubeconfigMissing, cluster, sentence)
                .about(ObjectRef::new("v1", "Secret", Some(namespace), &secret))
                .look(format!("kubectl get secrets -n {namespace} -l {}", selector(name(cluster))))
        } else {
            let host = text(cluster, "/spec/controlPlaneEndpoint/host").unwrap_or("its endpoint");
            let sentence = format!(
                "The workload cluster of {} cannot be reached at {host}: {}.",
                self.title(cluster),
                condition_text(&report)
            );
            self.sentence(ExplainProblem::ConnectionLost, cluster, sentence)
                .look(self.in_workload_cluster("get --raw /readyz"))
                .describe()
        };
        draft.since_created().condition(Some(&report)).controller().add_to(self);
    }
}
