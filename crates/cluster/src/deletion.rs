//! The end of a Cluster: Machines first, then control plane, then infrastructure, then the Cluster itself.

use std::time::Duration;

use capstan_api::contract::crd_name;
use capstan_runtime::{ObjectKey, events::Severity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;

use crate::{
    descendants::{Descendant, enumerate},
    ownership::other_owner,
    plan::{Draft, ObjectDeletion, Release, is_deleting, metadata},
    snapshot::Referenced,
};

/// How often Machines are looked for while they go.
const DESCENDANTS_PERIOD: Duration = Duration::from_secs(5);

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
            Referenced::Nothing => {}
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
                draft.findings.deletion = Some((waiting, message));
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
    draft.plan.release = Some(Release { gone, patch: draft.finalizer_removal() });
    draft.findings.deletion = Some(("DeletionCompleted", "Deletion completed".to_owned()));
    let message = format!("Cluster {} has been deleted", draft.cluster.name());
    draft.event(Severity::Normal, "Deleted", message);
}

/// Asks for the Machines to go, and says whether there are any to wait for.
fn wait_for_descendants(draft: &mut Draft<'_>) -> bool {
    // The control plane's provider deletes its own Machines.
    let is_left_to_provider =
        |it: &Descendant| it.is_control_plane() && draft.cluster.spec.control_plane_ref.is_some();
    let waiting: Vec<_> = draft.snapshot.descendants.iter().filter(|it| !is_left_to_provider(it)).collect();
    if waiting.is_empty() {
        return false;
    }
    let namespace = draft.cluster.metadata.namespace.clone().unwrap_or_default();
    for child in &waiting {
        if child.is_child_of(draft.cluster) && child.metadata.deletion_timestamp.is_none() {
            draft.plan.deletions.push(ObjectDeletion {
                resource: child.resource.clone(),
                key: ObjectKey::new(&namespace, child.name()),
                uid: child.metadata.uid.clone().unwrap_or_default(),
            });
        }
    }
    draft.findings.deletion = Some(("WaitingForWorkersDeletion", enumerate(&waiting)));
    draft.plan.again = Some(DESCENDANTS_PERIOD);
    true
}
