//! Where `lifecycle` finds releases: the one that is at work, and of all others only their contracts.

use std::sync::Mutex;

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
    customize::customize,
    pause::{self, OriginalReplicas},
    record::ProviderRecord,
    snapshot::Snapshot,
    store::StoredRelease,
};

/// The catalog for a change of one provider.
pub struct OperatorCatalog<'a> {
    snapshot: &'a Snapshot,
    release: &'a StoredRelease,
    /// The original replicas of Deployments that stay at 0; none for a provider that runs.
    paused: Option<OriginalReplicas>,
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
    pub fn new(snapshot: &'a Snapshot, release: &'a StoredRelease, paused: Option<OriginalReplicas>) -> Self {
        Self { snapshot, release, paused, deployments: Mutex::default() }
    }

    /// The Deployments of the release, if it was rendered.
    pub fn deployments(self) -> Option<Vec<String>> {
        self.deployments.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn alter(&self) -> Alter<'_> {
        Box::new(|objects: &mut Vec<Value>| {
            customize(objects, &self.snapshot.provider.spec).map_err(|error| error.to_string())?;
            if let Some(original) = &self.paused {
                pause::keep_down(objects, original);
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
        let source =
            if kind == own.kind && name == &*own.key.name {
                self.release
                    .source(kind, name, Some(self.alter()))
                    .map_err(|error| ReleaseError::Catalog(Box::new(error)))
            } else {
                let is_meant =
                    |it: &&std::sync::Arc<ProviderRecord>| it.kind == kind && *it.key.name == *name;
                self.snapshot.others.iter().find(is_meant).and_then(|it| contract_only(it)).ok_or_else(|| {
                    ReleaseError::Catalog(Box::new(NotManaged { kind, name: name.to_owned() }))
                })
            };
        Box::pin(async move { source })
    }
}

/// A release that only says which contract an installed provider implements.
fn contract_only(provider: &ProviderRecord) -> Option<Source<'static>> {
    let (version, contract) =
        (provider.status.installed_version.as_deref()?, provider.status.contract.as_deref()?);
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
