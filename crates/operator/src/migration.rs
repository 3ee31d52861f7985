//! Providers that clusterctl or the commands installed get provider objects.

use std::sync::Arc;

use capstan_api::operator::{GROUP, VERSION, resource};
use capstan_management::{
    ManagementCluster, ServerError,
    inventory::{Installed, Inventory},
};
use capstan_runtime::{
    ObjectKey,
    controller::{Next, Reconciler},
    events::{Recorder, Severity},
    writer::{WriteError, Writer},
};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use tracing::info;

use crate::{controller::Providers, record::ProviderRecord};

/// Creates provider objects for entries of the inventory.
pub(crate) struct Migration {
    pub(crate) cluster: ManagementCluster,
    pub(crate) providers: Arc<Providers>,
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
}

/// An entry could not be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The inventory cannot be read.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The provider object cannot be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Not all provider objects are known yet.
    #[error("the provider objects are not listed yet")]
    NotListed,
}

impl Reconciler for Migration {
    type Error = MigrationError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, MigrationError> {
        if !self.providers.are_listed() {
            return Err(MigrationError::NotListed);
        }
        let inventory = Inventory::read(&self.cluster).await?;
        let is_meant = |it: &&Installed| *it.namespace == *key.namespace && *it.label() == *key.name;
        let Some(entry) = inventory.providers.iter().find(is_meant) else { return Ok(Next::Settled) };
        let Some(object) = object_for(entry, &self.providers.all()) else { return Ok(Next::Settled) };
        let place = ObjectKey::new(&entry.namespace, &entry.name);
        match self.writer.create(&resource(entry.kind), &place, &object).await {
            Ok(()) => {
                info!(provider = entry.label(), namespace = entry.namespace, "provider object created");
                let message =
                    format!("Created for {} {}, which another tool installed", entry.label(), entry.version);
                self.recorder.record(&target(entry), Severity::Normal, "Migrated", message);
            }
            Err(error) if error.is_already_there() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Next::Settled)
    }

    fn is_noteworthy(&self, error: &MigrationError) -> bool {
        match error {
            MigrationError::Server(_) => true,
            MigrationError::Write(error) => !error.is_ordinary(),
            MigrationError::NotListed => false,
        }
    }
}

fn target(entry: &Installed) -> ObjectReference {
    let resource = resource(entry.kind);
    ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: Some(entry.namespace.clone()),
        name: Some(entry.name.clone()),
        ..ObjectReference::default()
    }
}

/// The provider object that an entry lacks. One of the same name in another namespace asks for another instance: its
/// conditions say so.
fn object_for(entry: &Installed, objects: &[Arc<ProviderRecord>]) -> Option<Value> {
    let is_its = |it: &Arc<ProviderRecord>| it.kind == entry.kind && *it.key.name == *entry.name;
    if objects.iter().any(is_its) {
        return None;
    }
    Some(json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": entry.kind.as_str(),
        "metadata": {"namespace": entry.namespace, "name": entry.name},
        "spec": {"version": entry.version},
    }))
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType;

    use super::*;

    #[test]
    fn an_entry_gets_an_object_of_the_same_kind_name_and_namespace_once() {
        let entry = Installed {
            namespace: "capa-system".to_owned(),
            name: "aws".to_owned(),
            kind: ProviderType::Infrastructure,
            version: "v2.1.0".to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        };
        let object = object_for(&entry, &[]).unwrap();
        assert_eq!(object["kind"], "InfrastructureProvider");
        assert_eq!(object["metadata"], json!({"namespace": "capa-system", "name": "aws"}));
        assert_eq!(object["spec"], json!({"version": "v2.1.0"}));
        for (kind, namespace, name, lacks_one) in [
            (ProviderType::Infrastructure, "capa-system", "aws", false),
            (ProviderType::Infrastructure, "elsewhere", "aws", false),
            (ProviderType::Infrastructure, "capa-system", "azure", true),
            (ProviderType::Bootstrap, "capa-system", "aws", true),
        ] {
            let found = json!({"metadata": {"namespace": namespace, "name": name}});
            let found = ProviderRecord::new(kind, serde_json::from_value(found).unwrap());
            assert_eq!(
                object_for(&entry, &[Arc::new(found)]).is_some(),
                lacks_one,
                "{kind} {namespace}/{name}"
            );
        }
    }
}
