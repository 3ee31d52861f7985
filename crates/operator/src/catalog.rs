//! Where `lifecycle` finds releases: the one that is at work, and of all others only their contracts.

use std::{collections::HashMap, sync::Mutex};

use capstan_api::{names::CLUSTERCTL_GROUP, provider::ProviderType};
use capstan_lifecycle::{
    catalog::{Alter, Catalog, Source},
    release::ReleaseError,
};
use capstan_manifest::images::Overrides;
use capstan_repository::{ConfigMaps, Provider, Repository, Version};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::{
    customize::{customize, customized},
    pause::{self, Paused},
    record::ProviderRecord,
    snapshot::Snapshot,
    store::StoredRelease,
};

/// The catalog for a change of one provider.
pub struct OperatorCatalog<'a> {
    snapshot: &'a Snapshot,
    release: &'a StoredRelease,
    /// The Deployments that stay at 0; none for a provider that runs.
    paused: Option<Paused>,
    /// The Deployments of the release, once it was rendered.
    deployments: Mutex<Option<Vec<String>>>,
}

/// The release of a provider is not known to the operator.
#[derive(Debug, thiserror::Error)]
#[error("no object of kind {kind} with name {name} says which contract it implements")]
struct NotManaged {
    kind: ProviderType,
    name: String,
}

impl<'a> OperatorCatalog<'a> {
    /// A catalog with one release; a paused provider's Deployments stay at 0.
    pub fn new(snapshot: &'a Snapshot, release: &'a StoredRelease) -> Self {
        Self { snapshot, release, paused: Paused::of(snapshot), deployments: Mutex::default() }
    }

    /// The Deployments of the release, if it was rendered.
    pub fn deployments(self) -> Option<Vec<String>> {
        self.deployments.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn alter(&self) -> Alter<'_> {
        Box::new(|objects: &mut Vec<Value>| {
            let spec = &self.snapshot.provider.spec;
            customize(objects, spec).map_err(|error| error.to_string())?;
            if let Some(paused) = &self.paused {
                let replicas = spec.deployment.as_ref().and_then(|it| it.replicas);
                let from_spec: HashMap<String, i64> = replicas
                    .map(|replicas| customized(objects).into_iter().map(|name| (name, replicas)).collect())
                    .unwrap_or_default();
                paused.keep_down(objects, &from_spec);
            }
            let mut deployments = self.deployments.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *deployments = Some(pause::deployments(objects));
            Ok(())
        })
    }
}

impl Catalog for OperatorCatalog<'_> {
    fn source<'s>(
        &'s self,
        kind: ProviderType,
        name: &str,
    ) -> BoxFuture<'s, Result<Source<'s>, ReleaseError>> {
        let own = &self.snapshot.provider;
        let source = if kind == own.kind && name == &*own.key.name {
            self.release
                .source(kind, name, Some(self.alter()))
                .map_err(|error| ReleaseError::Catalog(Box::new(error)))
        } else {
            let is_meant = |it: &&std::sync::Arc<ProviderRecord>| it.kind == kind && *it.key.name == *name;
            self.snapshot
                .others
                .iter()
                .find(is_meant)
                .and_then(|it| contract_only(it, self.snapshot))
                .ok_or_else(|| ReleaseError::Catalog(Box::new(NotManaged { kind, name: name.to_owned() })))
        };
        Box::pin(async move { source })
    }
}

/// A release that only says which contract an installed provider implements.
fn contract_only(provider: &ProviderRecord, snapshot: &Snapshot) -> Option<Source<'static>> {
    let (version, contract) =
        (provider.status.installed_version.as_deref()?, snapshot.contract_of(provider)?);
    let parsed = Version::parse(version).ok()?;
    let metadata = json!({
        "apiVersion": format!("{CLUSTERCTL_GROUP}/v1alpha3"),
        "kind": "Metadata",
        "releaseSeries": [{"major": parsed.major(), "minor": parsed.minor(), "contract": contract}],
    });
    let config_map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": version, "namespace": &*provider.key.namespace},
        "data": {"metadata": metadata.to_string(), "components": ""},
    }))
    .ok()?;
    let place = format!("status of {}", provider.full_name());
    let releases = ConfigMaps::judge(&[config_map], &place).ok()?;
    let provider = Provider { name: provider.key.name.to_string(), kind: provider.kind, url: String::new() };
    Some(Source {
        repository: Repository::in_config_maps(&provider, releases),
        provider,
        variables: Box::new(|_| None),
        images: Overrides::default(),
        alter: None,
    })
}
