//! Adoption: fields that clusterctl wrote become ours, so that the next apply removes those that a new release drops.
//!
//! clusterctl updates objects; Capstan applies them. Apply removes only fields that its own manager has applied before.

use capstan_api::names::{CLUSTERCTL_FIELD_MANAGER as CLUSTERCTL, FIELD_MANAGER};
use futures::TryStreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::{
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};

use crate::{ManagementCluster, ServerError, at_once, error, sweep::Component};

const APPLY: &str = "Apply";
const UPDATE: &str = "Update";
/// How often to try while others change the object.
const MOST_TRIES: usize = 5;

/// Makes Capstan the manager of clusterctl's fields of objects.
pub async fn adopt(cluster: &ManagementCluster, objects: &[Component]) -> Result<(), ServerError> {
    let theirs = objects.iter().filter(|it| is_needed(it));
    at_once(theirs.map(|object| adopt_one(cluster, object))).try_collect().await
}

/// Whether clusterctl manages fields of an object.
pub fn is_needed(object: &Component) -> bool {
    changed(&object.metadata).is_some()
}

async fn adopt_one(cluster: &ManagementCluster, object: &Component) -> Result<(), ServerError> {
    let Component { kind, id, metadata, .. } = object;
    let api = cluster.objects(kind, id.namespace.as_deref());
    let mut metadata = metadata.clone();
    for tries in 1.. {
        let Some(fields) = changed(&metadata) else { break };
        // A merge patch replaces the whole list; resourceVersion guards against a change since it was read.
        let patch = json!({"resourceVersion": metadata.resource_version, "managedFields": fields});
        let patch = Patch::Merge(json!({"metadata": patch}));
        match api.patch_metadata(&id.name, &PatchParams::default(), &patch).await {
            Ok(_) => break,
            Err(error) if error::is_not_found(&error) => break,
            // Controllers write the status of workloads all the time.
            Err(error) if error::is_transient(&error) && tries < MOST_TRIES => {}
            Err(error) => return Err(cluster.failed(format!("take over {id}"), error)),
        }
        let found = api.get_metadata_opt(&id.name).await;
        let found = found.map_err(|error| cluster.failed(format!("read {id}"), error))?;
        let Some(found) = found else { break };
        metadata = found.metadata;
    }
    Ok(())
}

fn changed(metadata: &ObjectMeta) -> Option<Vec<ManagedFieldsEntry>> {
    adopted(metadata.managed_fields.as_deref()?)
}

/// The managedFields after adoption; none if nothing changes.
fn adopted(fields: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
    let is_theirs = |it: &&ManagedFieldsEntry| {
        it.manager.as_deref() == Some(CLUSTERCTL)
            && it.operation.as_deref() == Some(UPDATE)
            && it.subresource.as_deref().unwrap_or_default().is_empty()
    };
    let is_ours = |it: &&ManagedFieldsEntry| {
        it.manager.as_deref() == Some(FIELD_MANAGER) && it.operation.as_deref() == Some(APPLY)
    };
    let mut merged = fields.iter().find(is_theirs)?.clone();
    let mut owned = json!({});
    for entry in fields.iter().filter(|it| is_theirs(it) || is_ours(it)) {
        unite(&mut owned, entry.fields_v1.as_ref().map_or(&Value::Null, |it| &it.0));
    }
    merged.manager = Some(FIELD_MANAGER.to_owned());
    merged.operation = Some(APPLY.to_owned());
    merged.fields_v1 = Some(FieldsV1(owned));
    let others = fields.iter().filter(|it| !is_theirs(it) && !is_ours(it)).cloned();
    Some([merged].into_iter().chain(others).collect())
}

/// Adds the fields of one set to another.
fn unite(into: &mut Value, more: &Value) {
    let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) else { return };
    for (name, fields) in more {
        unite(into.entry(name).or_insert_with(|| json!({})), fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> ManagedFieldsEntry {
        let optional = |text: &str| Some(text.to_owned()).filter(|it| !it.is_empty());
        ManagedFieldsEntry {
            manager: optional(manager),
            operation: optional(operation),
            subresource: optional(subresource),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn what_clusterctl_wrote_becomes_ours_and_nothing_else() {
        let kubelet = entry("kubelet", UPDATE, "", json!({"f:x": {}}));
        let status = entry(CLUSTERCTL, UPDATE, "status", json!({"f:status": {}}));
        let theirs = entry(CLUSTERCTL, UPDATE, "", json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}));
        let ours = entry(FIELD_MANAGER, APPLY, "", json!({"f:spec": {"f:b": {"f:d": {}}}}));
        let both = json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}});
        assert_eq!(
            adopted(&[kubelet.clone(), ours.clone(), theirs, status.clone()]),
            Some(vec![entry(FIELD_MANAGER, APPLY, "", both), kubelet.clone(), status.clone()])
        );
        assert_eq!(adopted(&[kubelet, ours, status]), None, "nothing to write");
    }
}
