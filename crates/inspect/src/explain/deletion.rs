//! The deletion of a Cluster: what still exists, and which finalizers hold it.

use capstan_api::{
    conditions::ConditionStatus,
    names::{CORE_GROUP, annotation, finalizer},
};
use serde_json::Value;

use super::{
    commands,
    finding::ExplainProblem,
    inspector::{Inspector, says},
    workers::MACHINE_OWNERS,
};
use crate::fields::{
    self, annotations, finalizers, group, is_control_plane, is_deleting, is_owned, kind, name, text,
};
use crate::snapshot::{Reference, selector};
use capstan_management::{ObjectRef, ownership::OwnershipGraph};

/// Finalizers of core's own controllers.
const CORE_FINALIZERS: [&str; 5] = [
    finalizer::CLUSTER,
    finalizer::MACHINE,
    finalizer::MACHINE_SET,
    finalizer::MACHINE_DEPLOYMENT,
    finalizer::MACHINE_POOL,
];

/// How many names a sentence lists.
const NAMES: usize = 5;

impl<'a> Inspector<'a> {
    /// Everything in the order of deletion: Machines, control plane, infrastructure, the Cluster.
    pub(crate) fn check_deletion(&mut self) {
        let control_plane = Reference::at(self.cluster, "/spec/controlPlaneRef");
        let descendants: Vec<_> = self.descendants().collect();
        let ownership = OwnershipGraph::of(descendants.iter().copied());
        for machine in descendants.iter().filter(|it| kind(it) == "Machine" && is_deleting(it)) {
            self.check_deleting_machine(machine);
        }
        // An owner waits for its Machines; its own finalizer matters once they are deleted.
        for owner in descendants.iter().filter(|it| kind(it) != "Machine" && is_deleting(it)) {
            let id = ownership.find(&ObjectRef::of(owner));
            if id.is_none_or(|it| ownership.dependents(it).next().is_none()) {
                self.add_finalizers(owner);
            }
        }
        // The control plane's provider deletes its own Machines.
        let waited: Vec<_> = descendants
            .into_iter()
            .filter(|it| control_plane.is_none() || !(kind(it) == "Machine" && is_control_plane(it)))
            .collect();
        if !waited.is_empty() {
            self.add_descendants(&waited);
        }
        let infrastructure = Reference::at(self.cluster, "/spec/infrastructureRef");
        let mut is_anything_left = !waited.is_empty();
        for reference in [control_plane, infrastructure].into_iter().flatten() {
            let Some(object) = self.index.object(&reference) else { continue };
            is_anything_left = true;
            if is_deleting(object) {
                self.add_finalizers(object);
            } else {
                self.check_webhooks(object, None);
            }
        }
        self.check_own_finalizers(is_anything_left);
    }

    fn descendants(&self) -> impl Iterator<Item = &'a Value> {
        let workload = self.workload;
        MACHINE_OWNERS.into_iter().chain(["Machine"]).flat_map(|kind| workload.all(CORE_GROUP, kind))
    }

    fn check_own_finalizers(&mut self, is_anything_left: bool) {
        let cluster = self.cluster;
        for holder in finalizers(cluster) {
            // Core removes its own last, so it is a finding only if nothing else is left.
            if holder != finalizer::CLUSTER || !is_anything_left {
                self.add_finalizer(cluster, holder);
            }
        }
    }

    /// A Machine that is being deleted: hooks, then its infrastructure and bootstrap configuration, then itself.
    pub(crate) fn check_deleting_machine(&mut self, machine: &'a Value) {
        let prefixes = [annotation::PRE_DRAIN_HOOK_PREFIX, annotation::PRE_TERMINATE_HOOK_PREFIX];
        let is_hook = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let hooks: Vec<_> =
            annotations(machine).map(|(name, _)| name).filter(|it| is_hook(it)).cloned().collect();
        for hook in &hooks {
            let predicate = format!("is deleted only after its hook, the annotation {hook}, is removed.");
            self.finding(ExplainProblem::DeletionHeldByHook, machine, predicate)
                .since_deleted()
                .reported("Deleting")
                .describe()
                .go_on(commands::unannotate(self.snapshot, machine, hook))
                .add_to(self);
        }
        if !hooks.is_empty() {
            return;
        }
        let parts = ["/spec/infrastructureRef", "/spec/bootstrap/configRef"];
        let parts: Vec<_> = parts
            .iter()
            .filter_map(|pointer| self.index.object(&Reference::at(machine, pointer)?))
            .filter(|it| is_deleting(it))
            .collect();
        for part in &parts {
            self.add_finalizers(part);
        }
        if parts.is_empty() {
            self.add_finalizers(machine);
        }
    }

    fn add_descendants(&mut self, waited: &[&Value]) {
        let cluster = self.cluster;
        let list = |objects: &[&Value]| {
            let names: Vec<_> =
                objects.iter().take(NAMES).map(|it| format!("{} {}", kind(it), name(it))).collect();
            let rest = objects.len().saturating_sub(NAMES);
            let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            format!("{}{rest}", names.join(", "))
        };
        let uid = text(cluster, "/metadata/uid");
        let has_owner = |it: &&&Value| is_owned(it) || uid.is_none();
        let (owned, loose): (Vec<&Value>, Vec<&Value>) =
            waited.iter().filter(|it| !is_deleting(it)).copied().partition(|it| has_owner(&it));
        let more = match (owned.is_empty(), loose.is_empty()) {
            (_, false) => format!(
                " No controller deletes {}, because nothing owns it: it belongs to the Cluster by its label only.",
                list(&loose)
            ),
            (false, true) => format!(" No controller has deleted {} yet.", list(&owned)),
            (true, true) => String::new(),
        };
        let predicate = format!("is deleted after these: {}.{more}", list(waited));
        let look = format!(
            "kubectl get machinedeployments,machinesets,machines -n {} -l {}",
            self.namespace,
            selector(name(cluster))
        );
        let draft = self
            .finding(ExplainProblem::DeletionWaitsForDescendants, cluster, predicate)
            .since_deleted()
            .reported("Deleting")
            .controller()
            .look(look);
        let loose = loose.into_iter().take(NAMES);
        loose.fold(draft, |draft, it| draft.go_on(commands::delete(self.snapshot, it))).add_to(self);
    }

    /// Adds the finalizer that holds an object.
    fn add_finalizers(&mut self, object: &Value) {
        if let Some(holder) = finalizers(object).first() {
            self.add_finalizer(object, holder);
        }
    }

    fn add_finalizer(&mut self, object: &Value, holder: &str) {
        let report = fields::report(object, "Deleting").filter(|it| it.status == ConditionStatus::True);
        let says = says(report.as_ref());
        let draft = |whose: &str| {
            let predicate = format!("is being deleted, and held by finalizer {holder}, {whose}{says}.");
            self.finding(ExplainProblem::DeletionHeldByFinalizer, object, predicate)
                .since_deleted()
                .condition(report.as_ref())
        };
        let draft = match holder_of(object, holder) {
            Holder::Controller => {
                let whose = match self.controller_of(object).provider {
                    Some(provider) => format!("which provider {provider} removes"),
                    None => "which its own controller removes".to_owned(),
                };
                let draft = draft(&whose);
                return self.add_unfinished(object, draft);
            }
            Holder::Kubernetes => draft("which Kubernetes removes once all that it owns is gone").describe(),
            Holder::Stranger(domain) => {
                let whose = format!(
                    "which belongs to no provider: the owner of {domain} removes it, or you do once what it protects is gone"
                );
                draft(&whose).describe().go_on(commands::unfinalize(self.snapshot, object, holder))
            }
        };
        draft.add_to(self);
    }
}

/// What removes a finalizer.
#[derive(Debug, PartialEq, Eq)]
enum Holder<'a> {
    /// The controller of the object's kind.
    Controller,
    /// Kubernetes itself.
    Kubernetes,
    /// The owner of that domain.
    Stranger(&'a str),
}

fn holder_of<'a>(object: &Value, finalizer: &'a str) -> Holder<'a> {
    let domain = finalizer.split('/').next().unwrap_or(finalizer);
    if ["foregroundDeletion", "orphan"].contains(&finalizer) {
        Holder::Kubernetes
    } else if CORE_FINALIZERS.contains(&finalizer) || domain.ends_with(CORE_GROUP) || domain == group(object)
    {
        Holder::Controller
    } else {
        Holder::Stranger(domain)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finalizers_say_whose_they_are() {
        let object = json!({"apiVersion": "infra.example.org/v1", "kind": "FooCluster"});
        for (finalizer, expected) in [
            ("cluster.cluster.x-k8s.io", Holder::Controller),
            ("awscluster.infrastructure.cluster.x-k8s.io", Holder::Controller),
            ("cluster.x-k8s.io/machineset", Holder::Controller),
            ("infra.example.org/finalizer", Holder::Controller),
            ("foregroundDeletion", Holder::Kubernetes),
            ("backup.example.com/hold", Holder::Stranger("backup.example.com")),
            ("odd", Holder::Stranger("odd")),
        ] {
            assert_eq!(holder_of(&object, finalizer), expected, "{finalizer}");
        }
    }
}
