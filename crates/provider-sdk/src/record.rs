//! An object as the controller keeps it.

use std::sync::Arc;

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ClusterSpec},
    contract::is_externally_managed,
};
use capstan_runtime::{Observed, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::provider::Owner;

/// An InfraCluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record<S> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: S,
    /// `spec.controlPlaneEndpoint`, where it is complete.
    pub(crate) endpoint: Option<ApiEndpoint>,
    /// As it is: what the contract does not know is the author's.
    pub(crate) status: Value,
    /// What is wrong with the object if it cannot be read.
    pub(crate) malformed: Option<String>,
}

impl<S: DeserializeOwned + Default> Record<S> {
    pub(crate) fn new(object: Observed) -> Self {
        let endpoint = endpoint(&object.spec.value());
        let status = object.status.value();
        match object.spec.read() {
            Ok(spec) => Self { metadata: object.metadata, spec, endpoint, status, malformed: None },
            Err(error) => Self {
                metadata: object.metadata,
                endpoint,
                status,
                malformed: Some(format!("spec: {error}")),
                spec: S::default(),
            },
        }
    }
}

impl<S> Record<S> {
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata.finalizers.iter().flatten().any(|name| name == finalizer)
    }

    pub(crate) fn is_externally_managed(&self) -> bool {
        is_externally_managed(&self.metadata)
    }
}

impl<S: Send + Sync + 'static> Cached for Record<S> {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// `controlPlaneEndpoint` of a spec, where it is complete.
fn endpoint(spec: &Value) -> Option<ApiEndpoint> {
    let endpoint = serde_json::from_value(spec.get("controlPlaneEndpoint")?.clone());
    endpoint.ok().filter(ApiEndpoint::is_valid)
}

/// The Cluster behind an object. If it cannot be read, whether it is paused is unknown.
pub(crate) fn owner(object: Observed) -> Owner {
    let (spec, unreadable) = match object.spec.read() {
        Ok(spec) => (spec, None),
        Err(error) => (ClusterSpec::default(), Some(error.to_string())),
    };
    Owner { spec, unreadable, metadata: object.metadata }
}

impl Cached for Owner {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// The Cluster that an owner reference means, and not another one of the same name.
pub(crate) fn same_owner(owner: Option<Arc<Owner>>, uid: &str) -> Option<Arc<Owner>> {
    owner.filter(|owner| owner.metadata.uid.as_deref() == Some(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_kept_with_the_reason() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let text = format!(r#"{{"metadata": {{"name": "n"}}, "spec": {{"a": {deep}}}}}"#);
        let object: Observed = serde_json::from_str(&text).unwrap();
        let record = Record::<std::collections::BTreeMap<String, Value>>::new(object);
        assert!(record.malformed.unwrap().contains("recursion limit"));
        assert_eq!(record.endpoint, None);
        let cluster = serde_json::json!({"metadata": {}, "spec": {"paused": "perhaps"}});
        let owner = owner(serde_json::from_value(cluster).unwrap());
        assert!(crate::step::owner_pauses(&owner).unwrap().contains("cannot be read"));
    }
}
