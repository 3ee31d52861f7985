//! The end of a Cluster: control plane first, then infrastructure, then the Cluster itself.

use capstan_api::contract::crd_name;
use capstan_runtime::{ObjectKey, events::Severity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;

use crate::{
    ownership::other_owner,
    plan::{Draft, ObjectDeletion, Release, is_deleting, metadata},
    snapshot::Referenced,
};

/// Plans the next step, and says what the Cluster waits for.
pub(crate) fn plan(draft: &mut Draft<'_>) {
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
