//! Everything that a decision about a provider object is made from.

use std::sync::Arc;

use capstan_api::{
    conditions,
    operator::{ProviderSpec, condition},
    provider::ProviderType,
};
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
    /// The contract of the version in the spec, if that was fetched lately.
    pub wanted_contract: Option<String>,
    /// The spec that was carried out last, if this process did it.
    pub applied: Option<Arc<ProviderSpec>>,
    /// Whether installed objects may differ from the release: they were not compared since the process started, or
    /// something changed.
    pub is_unverified: bool,
}

/// How much of a provider is scaled to 0 because it is, or was, paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nothing.
    Up,
    /// Some of its Deployments: a pause, or its end, was cut off.
    Partly,
    /// Everything.
    Down,
}

impl Snapshot {
    /// How much of the object's provider is scaled to 0. Its Deployments say so; where there are none, its status.
    pub fn scale(&self) -> Scale {
        let all = self.deployments_of(&self.provider).count();
        let down = self.deployments_of(&self.provider).filter(|it| it.is_scaled_down()).count();
        match (all, down) {
            (0, _) if self.provider.is_scaled_down() => Scale::Down,
            (_, 0) => Scale::Up,
            (all, down) if all == down => Scale::Down,
            _ => Scale::Partly,
        }
    }

    /// Whether nothing of a provider runs because it is paused. What its spec asks for is not enough, nor is what its
    /// status says while its Deployments are being scaled.
    pub fn is_stopped(&self, provider: &ProviderRecord) -> bool {
        provider.is_scaled_down() && self.deployments_of(provider).all(DeploymentRecord::is_scaled_down)
    }

    /// Whether the status of a provider object describes what is installed: no upgrade is under way, and none ended
    /// without having been reported.
    pub fn is_settled(&self, provider: &ProviderRecord) -> bool {
        self.installed_for(provider).is_none_or(|it| {
            it.upgrading_to.is_none() && provider.status.installed_version.as_deref() == Some(&it.version)
        })
    }

    /// The contract that an installed provider implements. One that does not say so has no CRDs of its own that another
    /// contract could concern, and goes along with core.
    pub fn contract_of<'a>(&'a self, provider: &'a ProviderRecord) -> Option<&'a str> {
        provider.status.contract.as_deref().or_else(|| self.core()?.status.contract.as_deref())
    }

    /// The object of the installed core provider.
    pub fn core(&self) -> Option<&ProviderRecord> {
        let all = [&self.provider].into_iter().chain(&self.others);
        all.map(|it| &**it).find(|it| it.kind == ProviderType::Core && self.installed_for(it).is_some())
    }

    /// The entries of the inventory that no object stands for.
    pub fn without_object(&self) -> impl Iterator<Item = &Installed> {
        let has_object =
            |entry: &Installed| [&self.provider].into_iter().chain(&self.others).any(|it| is_of(entry, it));
        self.inventory.iter().filter(move |it| !has_object(it))
    }

    /// What the inventory says is installed for the object.
    pub fn installed(&self) -> Option<&Installed> {
        self.installed_for(&self.provider)
    }

    /// What the inventory says is installed for a provider object.
    pub fn installed_for(&self, provider: &ProviderRecord) -> Option<&Installed> {
        self.inventory.iter().find(|it| is_of(it, provider))
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
        if found.is_empty() && self.expected_deployments.is_none() {
            return vec!["No Deployment of the provider exists".to_owned()];
        }
        let expected = self.expected_deployments.iter().flatten();
        let missing = expected.filter(|name| !found.iter().any(|it| it.name() == name.as_str()));
        let unavailable = found.iter().filter_map(|it| {
            let reason = it.availability.as_ref().err()?;
            Some(format!("Deployment {} {reason}", it.name()))
        });
        unavailable.chain(missing.map(|it| format!("Deployment {it} does not exist"))).collect()
    }

    /// Whether another provider object is ready, and nothing has changed that since.
    pub fn serves(&self, other: &ProviderRecord) -> bool {
        self.installed_for(other).is_some()
            && conditions::is_true(&other.status.conditions, condition::READY)
            && !other.is_paused()
            && !other.is_deleting()
            && self.deployments_of(other).all(|it| it.availability.is_ok())
    }
}

/// Whether an entry of the inventory is that of a provider object.
fn is_of(entry: &Installed, provider: &ProviderRecord) -> bool {
    entry.kind == provider.kind
        && *entry.name == *provider.key.name
        && *entry.namespace == *provider.key.namespace
}
