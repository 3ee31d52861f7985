//! Everything that a decision about a provider object is made from.

use std::sync::Arc;

use capstan_management::inventory::Installed;

use crate::record::{DeploymentRecord, ProviderRecord};

/// A provider object and what matters to it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The object.
    pub provider: Arc<ProviderRecord>,
    /// All other provider objects, of all kinds.
    pub others: Vec<Arc<ProviderRecord>>,
    /// The inventory of installed providers.
    pub inventory: Vec<Installed>,
    /// The Deployments of all providers.
    pub deployments: Vec<Arc<DeploymentRecord>>,
    /// The Deployments that the provider's release has, once it was rendered.
    pub expected_deployments: Option<Vec<String>>,
    /// Whether its Deployments were scaled to 0. The status says so a moment later than the Deployments do.
    pub is_scaled_down: bool,
    /// Whether installed objects may differ from the release: they were not compared since the process started, or
    /// something changed.
    pub is_unverified: bool,
}

impl Snapshot {
    /// What the inventory says is installed for the object.
    pub fn installed(&self) -> Option<&Installed> {
        self.installed_for(&self.provider)
    }

    /// What the inventory says is installed for a provider object.
    pub fn installed_for(&self, provider: &ProviderRecord) -> Option<&Installed> {
        self.inventory.iter().find(|it| {
            it.kind == provider.kind
                && *it.name == *provider.key.name
                && *it.namespace == *provider.key.namespace
        })
    }

    /// The Deployments of a provider object.
    pub fn deployments_of<'a>(
        &'a self,
        provider: &'a ProviderRecord,
    ) -> impl Iterator<Item = &'a DeploymentRecord> {
        let label = provider.label();
        let is_its = move |it: &&Arc<DeploymentRecord>| {
            it.provider == label && it.metadata.namespace.as_deref() == Some(&*provider.key.namespace)
        };
        self.deployments.iter().filter(is_its).map(|it| &**it)
    }

    /// Why Deployments of the object are not available.
    pub fn unavailable(&self) -> Vec<String> {
        let found: Vec<_> = self.deployments_of(&self.provider).collect();
        let expected = self.expected_deployments.iter().flatten();
        let missing = expected.filter(|name| !found.iter().any(|it| it.name() == name.as_str()));
        let unavailable = found.iter().filter_map(|it| {
            let reason = it.availability.as_ref().err()?;
            Some(format!("Deployment {} {reason}", it.name()))
        });
        unavailable.chain(missing.map(|it| format!("Deployment {it} does not exist"))).collect()
    }

    /// Whether the Deployments of another provider object are available.
    pub fn serves(&self, other: &ProviderRecord) -> bool {
        self.installed_for(other).is_some()
            && !other.is_paused()
            && !other.is_deleting()
            && self.deployments_of(other).all(|it| it.availability.is_ok())
    }
}
