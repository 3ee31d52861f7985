//! A mark on the inventory's entry of a provider while it is being upgraded: whoever comes after a run that was killed
//! finds it, whatever became of the provider's own objects.

use capstan_api::names::annotation::UPGRADING_TO;
use serde_json::json;

use capstan_management::{
    ManagementCluster, ServerError,
    inventory::{self, Installed},
};

/// An upgrade that was begun and not finished: the provider's controllers may be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The provider, as the inventory has it.
    pub provider: Installed,
    /// Where it was to go.
    pub version: String,
}

impl Unfinished {
    /// The flag by which `upgrade apply` goes on with it.
    pub fn flag(&self) -> String {
        let Installed { kind, name, .. } = &self.provider;
        format!("--{} {name}:{}", kind.prefix(), self.version)
    }
}

/// All upgrades that were begun and not finished.
pub async fn unfinished(cluster: &ManagementCluster) -> Result<Vec<Unfinished>, ServerError> {
    let entries = cluster.list(&inventory::kind(), None, "").await?;
    let marked = entries.iter().filter_map(|it| {
        let provider = inventory::installed(it)?;
        Some(Unfinished { version: provider.upgrading_to.clone()?, provider })
    });
    let mut marked: Vec<_> = marked.collect();
    marked.sort_by(|a, b| (a.provider.kind, &a.provider.name).cmp(&(b.provider.kind, &b.provider.name)));
    Ok(marked)
}

/// Marks a provider. The mark goes with the next entry that is recorded.
pub(super) async fn set(
    cluster: &ManagementCluster,
    provider: &Installed,
    version: &str,
) -> Result<(), ServerError> {
    let mut entry = inventory::entry(provider);
    entry["metadata"]["annotations"] = json!({UPGRADING_TO: version});
    inventory::write(cluster, &entry).await
}
