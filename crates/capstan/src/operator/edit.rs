//! Writes to provider objects. Each is guarded by the version that was read: what a user changes meanwhile is looked at
//! again.

use std::time::Duration;

use capstan_api::{names::FIELD_MANAGER, operator::annotation::FORCE_DELETE};
use capstan_management::{
    ManagementCluster, ServerError, error,
    retry::{Backoff, retry},
};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::{
    ProviderObject,
    state::{PAUSED_FOR_UPGRADE, kind_of},
};

/// How long to retry transient failures.
const RETRY_LIMIT: Duration = Duration::from_mins(1);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));

/// A change of a provider object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another version is asked for.
    Version(String),
    /// It is paused for an upgrade to a contract.
    Pause {
        /// The contract.
        contract: String,
    },
    /// A pause of ours ends.
    Unpause,
    /// Its deletion does not wait for those who use the provider.
    ForceDelete,
}

impl Change {
    /// The change as a merge patch.
    fn patch(&self) -> Value {
        match self {
            Self::Version(version) => json!({"spec": {"version": version}}),
            Self::Pause { contract } => {
                json!({"metadata": {"annotations": {PAUSED_FOR_UPGRADE: contract}}, "spec": {"paused": true}})
            }
            Self::Unpause => {
                json!({"metadata": {"annotations": {PAUSED_FOR_UPGRADE: null}}, "spec": {"paused": null}})
            }
            Self::ForceDelete => json!({"metadata": {"annotations": {FORCE_DELETE: "true"}}}),
        }
    }
}

/// Changes an object; `false` if it is not any more what was read.
pub(crate) async fn edit(
    cluster: &ManagementCluster,
    object: &ProviderObject,
    change: &Change,
) -> Result<bool, ServerError> {
    let api = cluster.objects(&kind_of(object.kind), Some(&object.namespace));
    let mut patch = change.patch();
    patch["metadata"]["resourceVersion"] = json!(object.resource_version);
    let patch = Patch::Merge(patch);
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let request = || api.patch_metadata(&object.name, &params, &patch);
    match retry(BACKOFF, request, is_transient, |_| {}).await {
        Ok(_) => Ok(true),
        Err(error) if error::is_conflict(&error) || error::is_not_found(&error) => Ok(false),
        Err(error) => Err(cluster.failed(format!("change {}", object.id()), error)),
    }
}

/// Deletes an object, unless another one has its name.
pub(crate) async fn delete(cluster: &ManagementCluster, object: &ProviderObject) -> Result<(), ServerError> {
    let api = cluster.objects(&kind_of(object.kind), Some(&object.namespace));
    let preconditions = Preconditions { uid: object.uid.clone(), resource_version: None };
    let params = DeleteParams::background().preconditions(preconditions);
    let request = || api.delete(&object.name, &params);
    match retry(BACKOFF, request, is_transient, |_| {}).await {
        Err(error) if !error::is_not_found(&error) && !error::is_about_uid(&error) => {
            Err(cluster.failed(format!("delete {}", object.id()), error))
        }
        _ => Ok(()),
    }
}

fn is_transient(error: &kube::Error, elapsed: Duration) -> bool {
    error::is_transient(error) && !error::is_conflict(error) && elapsed < RETRY_LIMIT
}
