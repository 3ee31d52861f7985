//! Clusters with a ClusterClass.

use capstan_api::{conditions::ConditionStatus, names::CORE_GROUP};

use super::{
    commands,
    finding::ExplainProblem,
    inspector::{Inspector, condition_text},
};
use crate::fields::{self, api_version, name, text};
use crate::snapshot::Reference;
use capstan_management::ObjectRef;

/// Namespace and name of the ClusterClass that a Cluster of either version names.
pub(crate) fn class(cluster: &serde_json::Value) -> Option<(String, String)> {
    let own = fields::namespace(cluster);
    let (name, namespace) = match text(cluster, "/spec/topology/classRef/name") {
        Some(name) => (name, text(cluster, "/spec/topology/classRef/namespace")),
        None => (text(cluster, "/spec/topology/class")?, text(cluster, "/spec/topology/classNamespace")),
    };
    Some((namespace.unwrap_or(own).to_owned(), name.to_owned()))
}

impl Inspector<'_> {
    pub(crate) fn check_topology(&mut self) {
        let Some((namespace, class)) = class(self.cluster) else {
            return;
        };
        let cluster = self.cluster;
        let report = self.condition("TopologyReconciled");
        let is_there = self
            .workload
            .all(CORE_GROUP, "ClusterClass")
            .any(|it| name(it) == class && fields::namespace(it) == namespace);
        let is_readable = self.workload.unreadable(CORE_GROUP, "ClusterClass", &class).is_none();
        if !is_there && is_readable {
            let object = ObjectRef::new(api_version(cluster), "ClusterClass", Some(&namespace), &class);
            let predicate = format!("names ClusterClass {namespace}/{class}, which does not exist.");
            self.finding(ExplainProblem::ClusterClassMissing, cluster, predicate)
                .about(object)
                .since_created()
                .condition(report.as_ref())
                .controller()
                .look(commands::list(self.snapshot, CORE_GROUP, "ClusterClass", &namespace))
                .go_on(format!("kubectl create -n {namespace} -f clusterclass.yaml"))
                .add_to(self);
            return;
        }
        // A topology on its way to its next state is no failure.
        let is_failed = report.as_ref().is_some_and(|it| {
            it.status != ConditionStatus::True
                && ["ReconcileFailed", "ClusterClassNotReconciled"].contains(&it.reason.as_str())
        });
        let is_empty = Reference::at(cluster, "/spec/infrastructureRef").is_none();
        if is_failed || is_empty {
            let says = match &report {
                Some(report) => condition_text(report),
                None => "no controller has reported on it; is feature ClusterTopology turned on?".to_owned(),
            };
            let sentence = format!(
                "The objects of {} have not been created from its ClusterClass: {says}.",
                self.title(cluster)
            );
            self.sentence(ExplainProblem::TopologyNotReconciled, cluster, sentence)
                .since_created()
                .condition(report.as_ref())
                .controller()
                .describe()
                .logs()
                .add_to(self);
        }
    }
}
