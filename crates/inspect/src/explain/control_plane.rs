//! Control planes, and the way to them.

use capstan_api::{
    conditions::ConditionStatus,
    names::{CORE_GROUP, label, secret},
};
use serde_json::Value;

use super::{
    commands,
    finding::{Finding, Problem, State},
    infrastructure::worst,
    inspector::{Inspector, say},
    references::{Found, INITIALIZED},
};
use crate::fields::{self, created, name, text};
use crate::snapshot::Reference;
use capstan_management::ObjectRef;

pub(crate) fn is_control_plane(machine: &Value) -> bool {
    fields::label(machine, label::CONTROL_PLANE).is_some()
}

impl<'a> Inspector<'a> {
    pub(crate) fn look_at_control_plane(&mut self) {
        let Some(reference) = Reference::at(self.cluster, "/spec/controlPlaneRef") else {
            self.look_at_loose_control_plane();
            return;
        };
        let Some(found) = self.follow(self.cluster, "spec.controlPlaneRef", &reference) else {
            return;
        };
        if self.tell_of_standstill(found) {
            return;
        }
        let is_initialized = found.is_true(INITIALIZED);
        if !is_initialized || self.is_bad("ControlPlaneAvailable") {
            self.blame(found.object);
            self.look_at_machines(is_control_plane);
            self.tell_of_control_plane(found, is_initialized);
        }
    }

    fn tell_of_control_plane(&mut self, found: Found<'a>, is_initialized: bool) {
        let object = found.object;
        let report = worst(object).or_else(|| self.report("ControlPlaneAvailable"));
        let report = report.filter(|it| it.status != ConditionStatus::True);
        let says = report.as_ref().map(|it| format!("; {}", say(it))).unwrap_or_default();
        let (problem, state) = if is_initialized {
            (Problem::ControlPlaneNotAvailable, "was initialized, but is not available".to_owned())
        } else {
            let state = format!(
                "is not initialized, so it does not accept requests yet: {} is not true",
                found.path(INITIALIZED)
            );
            (Problem::ControlPlaneNotInitialized, state)
        };
        let waits = if !is_initialized && !self.is_provisioned() && !self.has_no_infrastructure() {
            ". It waits for the infrastructure of the Cluster"
        } else {
            ""
        };
        let sentence = format!("{} {state}{says}{waits}.", self.call(object));
        let finding = Finding::new(problem, ObjectRef::of(object), sentence)
            .since(created(object))
            .saying(report.as_ref());
        self.tell_of_unfinished(object, finding);
    }

    fn has_no_infrastructure(&self) -> bool {
        self.cluster.pointer("/spec/infrastructureRef").is_none()
    }

    /// A control plane of Machines that nobody but a person makes, or none at all.
    fn look_at_loose_control_plane(&mut self) {
        let is_connected =
            self.report("RemoteConnectionProbe").is_some_and(|it| it.status == ConditionStatus::True);
        if self.has_topology() || self.is_initialized() || is_connected || self.state() == State::Available {
            return;
        }
        let before = self.count();
        self.look_at_machines(is_control_plane);
        let has_machines = self.workload.all(CORE_GROUP, "Machine").any(is_control_plane);
        if has_machines || self.count() > before {
            return;
        }
        let cluster = self.cluster;
        let finding = Finding::new(
            Problem::ControlPlaneRefMissing,
            ObjectRef::of(cluster),
            format!(
                "{} has neither spec.controlPlaneRef nor a control plane Machine, so nobody makes a control plane for it.",
                self.call(cluster)
            ),
        )
        .since(created(cluster))
        .saying(self.report("ControlPlaneInitialized").as_ref())
        .go_on(commands::patch(
            self.snapshot,
            cluster,
            &serde_json::json!({"spec": {"controlPlaneRef": {
                "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "NAME",
            }}}),
        ));
        self.tell(finding);
    }

    /// The way to the workload cluster.
    pub(crate) fn look_at_connection(&mut self) {
        let Some(report) =
            self.report("RemoteConnectionProbe").filter(|it| it.status != ConditionStatus::True)
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
        let namespace = self.namespace.clone();
        let is_there = self.snapshot.secrets.contains(&secret);
        let is_readable = self.workload.unreadable("", "Secret", &secret).is_none();
        let finding = if !is_there && is_readable {
            let sentence = format!(
                "Secret {namespace}/{secret} does not exist, so the workload cluster of {} cannot be reached.",
                self.call(cluster)
            );
            let object = ObjectRef {
                api_version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                namespace: Some(namespace.clone()),
                name: secret,
            };
            Finding::new(Problem::KubeconfigMissing, object, sentence).look(format!(
                "kubectl get secrets -n {namespace} -l {}={}",
                label::CLUSTER_NAME,
                name(cluster)
            ))
        } else {
            let host = text(cluster, "/spec/controlPlaneEndpoint/host").unwrap_or("its endpoint");
            let sentence = format!(
                "The workload cluster of {} cannot be reached at {host}: {}.",
                self.call(cluster),
                say(&report)
            );
            let (program, cluster_name) = (self.program, name(cluster));
            Finding::new(Problem::ConnectionLost, ObjectRef::of(cluster), sentence)
                .look(format!(
                    "kubectl --kubeconfig <({program} get kubeconfig {cluster_name} -n {namespace}) get --raw /readyz"
                ))
                .look(commands::describe(self.snapshot, cluster))
        };
        self.tell(finding.since(created(cluster)).saying(Some(&report)).by(self.controller_of(cluster)));
    }
}
