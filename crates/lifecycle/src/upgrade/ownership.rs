//! Fields that upstream's clusterctl wrote become ours: else what a new release drops would stay for ever, since
//! server-side apply takes away only what its own manager put there.

use capstan_api::names::FIELD_MANAGER;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::{
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};

use crate::{ManagementCluster, ServerError, error, sweep::Component};

/// How many requests are under way at a time.
const AT_ONCE: usize = 16;
/// How often an object may change under our hands.
const MOST_TRIES: usize = 5;
/// The manager's name in what clusterctl writes.
const CLUSTERCTL: &str = "clusterctl";
const APPLY: &str = "Apply";
const UPDATE: &str = "Update";

/// Makes clusterctl's fields of these objects ours.
pub(super) async fn take_over(
    cluster: &ManagementCluster,
    components: &[&Component],
) -> Result<(), ServerError> {
    let objects = components.iter().filter(|it| owners_after(&it.metadata).is_some());
    let each = objects.map(|component| take_over_one(cluster, component));
    stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
}

async fn take_over_one(cluster: &ManagementCluster, component: &Component) -> Result<(), ServerError> {
    let api = cluster.objects(&component.kind, component.id.namespace.as_deref());
    let mut metadata = component.metadata.clone();
    for tries in 1.. {
        let Some(owners) = owners_after(&metadata) else { break };
        // A list is replaced as a whole, and the version makes sure that it is the one that was looked at.
        let patch = json!({"metadata": {
            "managedFields": owners,
            "resourceVersion": metadata.resource_version,
        }});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match api.patch_metadata(&component.id.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => break,
            // It is made anew by what comes next.
            Err(error) if error::is_not_found(&error) => break,
            Err(error) if error::is_passing(&error) && tries < MOST_TRIES => {}
            Err(error) => return Err(cluster.failed(format!("take over {}", component.id), error)),
        }
        let found = api.get_metadata_opt(&component.id.name).await;
        let found = found.map_err(|error| cluster.failed(format!("look at {}", component.id), error))?;
        let Some(found) = found else { break };
        metadata = found.metadata;
    }
    Ok(())
}

/// Who owns what once clusterctl's fields are ours; nothing where it has none.
fn owners_after(metadata: &ObjectMeta) -> Option<Vec<ManagedFieldsEntry>> {
    let owners = metadata.managed_fields.as_ref()?;
    let is_theirs = |it: &ManagedFieldsEntry| {
        it.manager.as_deref() == Some(CLUSTERCTL)
            && it.operation.as_deref() == Some(UPDATE)
            && it.subresource.is_none()
    };
    let is_ours = |it: &ManagedFieldsEntry| {
        it.manager.as_deref() == Some(FIELD_MANAGER)
            && it.operation.as_deref() == Some(APPLY)
            && it.subresource.is_none()
    };
    let theirs: Vec<&ManagedFieldsEntry> = owners.iter().filter(|it| is_theirs(it)).collect();
    let first = owners.iter().find(|it| is_ours(it)).or(theirs.first().copied()).filter(|_| !theirs.is_empty())?;
    let fields = owners.iter().filter(|it| is_ours(it) || is_theirs(it)).filter_map(|it| it.fields_v1.as_ref());
    let fields = fields.fold(json!({}), |all, it| union(all, &it.0));
    let ours = ManagedFieldsEntry {
        manager: Some(FIELD_MANAGER.to_owned()),
        operation: Some(APPLY.to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..first.clone()
    };
    let others = owners.iter().filter(|it| !is_ours(it) && !is_theirs(it)).cloned();
    Some(std::iter::once(ours).chain(others).collect())
}

/// All fields of both sets.
fn union(all: Value, more: &Value) -> Value {
    let (Value::Object(mut all), Value::Object(more)) = (all, more) else { return more.clone() };
    for (field, below) in more {
        let merged = union(all.remove(field).unwrap_or_else(|| json!({})), below);
        all.insert(field.clone(), merged);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            subresource: subresource.map(str::to_owned),
            api_version: Some("apps/v1".to_owned()),
            fields_type: Some("FieldsV1".to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            time: None,
        }
    }

    fn after(owners: &[ManagedFieldsEntry]) -> Option<Vec<(String, String, Value)>> {
        let metadata = ObjectMeta { managed_fields: Some(owners.to_vec()), ..ObjectMeta::default() };
        let text = |it: Option<String>| it.unwrap_or_default();
        let row = |it: ManagedFieldsEntry| (text(it.manager), text(it.operation), it.fields_v1.unwrap().0);
        Some(owners_after(&metadata)?.into_iter().map(row).collect())
    }

    #[test]
    fn what_clusterctl_wrote_becomes_ours_and_nothing_else() {
        let theirs = entry("clusterctl", "Update", None, json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}));
        let ours = entry("capstan", "Apply", None, json!({"f:spec": {".": {}, "f:replicas": {}, "f:selector": {}}}));
        let status = entry("clusterctl", "Update", Some("status"), json!({"f:status": {}}));
        let manager = entry("kube-controller-manager", "Update", Some("status"), json!({"f:status": {}}));
        let row = |it: &ManagedFieldsEntry| {
            let it = it.clone();
            (it.manager.unwrap(), it.operation.unwrap(), it.fields_v1.unwrap().0)
        };
        let own = |fields: Value| ("capstan".to_owned(), "Apply".to_owned(), fields);
        assert_eq!(
            after(&[manager.clone(), theirs.clone()]),
            Some(vec![own(json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})), row(&manager)])
        );
        assert_eq!(
            after(&[ours.clone(), theirs, status.clone()]),
            Some(vec![
                own(json!({"f:spec": {".": {}, "f:replicas": {}, "f:selector": {}, "f:paused": {}}})),
                row(&status)
            ])
        );
        assert_eq!(after(&[ours, manager, status]), None);
        assert_eq!(after(&[]), None);
    }
}
