//! The end of a Cluster: Machines first, then control plane, then infrastructure, then the Cluster itself.

use capstan_api::contract::crd_name;
use capstan_runtime::{ObjectKey, cache::Cached, events::Severity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;

use crate::{
    descendants::{Kind, Member, enumerate},
    ownership::other_owner,
    plan::{Draft, ObjectDeletion, Release, is_deleting, metadata},
    snapshot::Referenced,
};

/// The reason where it is not known what is left.
const UNREADABLE: &str = "InternalError";

/// Plans the next step, and says what the Cluster waits for.
pub(crate) fn plan(draft: &mut Draft<'_>) {
    if wait_for_descendants(draft) {
        return;
    }
    let namespace = draft.cluster.metadata.namespace.clone().unwrap_or_default();
    let mut gone = Vec::new();
    let steps = [
        (&draft.snapshot.control_plane, "WaitingForControlPlaneDeletion"),
        (&draft.snapshot.infrastructure, "WaitingForInfrastructureDeletion"),
    ];
    for (referenced, waiting) in steps {
        match referenced {
            // A cluster-scoped kind has no object in the Cluster's namespace.
            Referenced::Nothing | Referenced::ClusterScoped { .. } => {}
            // Of a kind that is not installed there is no object to wait for.
            Referenced::Unresolved { kind_missing: true, reference, .. } => {
                let crd = crd_name(&reference.api_group, &reference.kind);
                let resource = ApiResource::erase::<CustomResourceDefinition>(&());
                gone.push((resource, ObjectKey::new("", &crd)));
            }
            Referenced::Missing { reference, resource } => {
                gone.push((resource.clone(), ObjectKey::new(&namespace, &reference.name)));
            }
            Referenced::Unresolved { reference, reason, .. } => {
                let message = format!("Cannot delete {} {}: {reason}", reference.kind, reference.name);
                draft.findings.deletion = Some((UNREADABLE, message));
                return;
            }
            // What another Cluster owns is not ours to delete.
            Referenced::Found(found) if other_owner(draft.cluster, metadata(found)).is_some() => {}
            Referenced::Found(found) => {
                let (kind, name) = (&found.reference.kind, &found.reference.name);
                let holders = metadata(found).finalizers.clone().unwrap_or_default();
                let message = if holders.is_empty() {
                    format!("Waiting for {kind} {name} to be deleted")
                } else {
                    format!(
                        "Waiting for {kind} {name} to be deleted; held by its finalizers {}",
                        holders.join(", ")
                    )
                };
                if !is_deleting(found) {
                    draft.plan.only_if_childless = true;
                    let deletion = ObjectDeletion {
                        resource: found.resource.clone(),
                        key: draft.key_of(found),
                        uid: metadata(found).uid.clone().unwrap_or_default(),
                    };
                    draft.plan.deletions.push(deletion);
                }
                draft.findings.deletion = Some((waiting, message));
                return;
            }
        }
    }
    draft.plan.only_if_childless = true;
    draft.plan.release = Some(Release { gone, patch: draft.finalizer_removal() });
    draft.findings.deletion = Some(("DeletionCompleted", "Deletion completed".to_owned()));
    let message = format!("Cluster {} has been deleted", draft.cluster.name());
    draft.event(Severity::Normal, "Deleted", message);
}

/// Asks for the Machines to go, and says whether there are any to wait for.
fn wait_for_descendants(draft: &mut Draft<'_>) -> bool {
    const WAITING: &str = "WaitingForWorkersDeletion";
    let descendants = &draft.snapshot.descendants;
    if let Some(trouble) = &descendants.trouble {
        draft.findings.deletion = Some((UNREADABLE, trouble.clone()));
        return true;
    }
    // The control plane's provider deletes its own Machines.
    let is_left_to_provider = |it: &&Member| {
        it.kind == Kind::Machine
            && it.object.is_control_plane()
            && draft.cluster.spec.control_plane_ref.is_some()
    };
    let mut waiting: Vec<_> = descendants.members.iter().filter(|it| !is_left_to_provider(it)).collect();
    if waiting.is_empty() {
        return false;
    }
    let mut message = enumerate(&waiting);
    if let Some(refusal) = &descendants.refusal {
        message = format!("{message}\n* {refusal}");
    }
    draft.findings.deletion = Some((WAITING, message));
    // Control plane Machines go last.
    waiting.sort_by_key(|it| (it.object.is_control_plane(), it.kind));
    for child in waiting {
        let metadata = child.object.metadata();
        let resource = child.kind.core().resource(child.version);
        if child.object.is_child_of(draft.cluster) && !child.object.is_deleting() {
            let key = draft.key_beside(child.object.name());
            let uid = metadata.uid.clone().unwrap_or_default();
            draft.plan.deletions.push(ObjectDeletion { resource, key, uid });
        }
    }
    true
}
