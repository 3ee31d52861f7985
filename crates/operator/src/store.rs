//! What is kept of a release that was fetched, so that it can be rendered again.
//!
//! A changed flag, or drift, is applied from exactly what was installed: the same files, variables and image overrides,
//! without network, after a restart as well. What has changed since in the Secret, the ConfigMaps or the repository takes
//! effect with the next upgrade.

mod cluster;
mod parts;

use std::{collections::BTreeMap, fmt};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::catalog::{Alter, Source};
use capstan_management::error as server;
use capstan_manifest::envsubst::Template;
use capstan_repository::{NotImageOverrides, Provider, ReleaseFiles, Repository, read_image_overrides};
use serde::{Deserialize, Serialize};

pub use cluster::{has_any, load, prune, save};
pub use parts::{PROVIDER_LABEL, SECRET_TYPE, VERSION_LABEL};

/// A release with everything that it is rendered with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRelease {
    /// The version, as it is wanted: `vX.Y.Z`.
    pub version: String,
    /// The contract that it speaks, e.g. `v1beta2`.
    pub contract: String,
    /// The text of its `metadata.yaml`.
    pub metadata: String,
    /// The text of its components, variables and all.
    pub components: String,
    /// The values that were found for the variables of the components; other values are not kept.
    pub variables: BTreeMap<String, String>,
    /// Image overrides in YAML, as the provider's Secret had them.
    pub images: String,
    /// Where the components were read from.
    pub origin: String,
    /// Where the repository is, as it may be shown.
    pub url: String,
}

// Values of variables may be credentials, and must never reach a log.
impl fmt::Debug for StoredRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRelease")
            .field("version", &self.version)
            .field("contract", &self.contract)
            .field("variables", &self.variables.keys())
            .field("origin", &self.origin)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A release cannot be kept, or what was kept cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The API server refused.
    #[error("cannot {doing}: {}", server::reason(.source))]
    Server {
        /// What was being done.
        doing: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// What the Secrets hold is not what was written.
    #[error(
        "the release in the Secrets {} is damaged ({problem}): delete them, so that it is fetched again",
        .names.join(", ")
    )]
    Damaged {
        /// The Secrets.
        names: Vec<String>,
        /// What is wrong with them.
        problem: String,
    },
    /// The image overrides that were kept are none.
    #[error("the image overrides of {version} cannot be used: {source}")]
    Images {
        /// The version.
        version: String,
        /// What is wrong with them.
        source: NotImageOverrides,
    },
    /// A release cannot be put into Secrets.
    #[error("cannot encode the release {version}: {problem}")]
    Encode {
        /// The version.
        version: String,
        /// What is wrong.
        problem: String,
    },
}

impl StoreError {
    /// Whether the same may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Server { source, .. } if server::is_transient(source))
    }
}

impl StoredRelease {
    /// The release as the source of its provider: it alone, with the variables and image overrides that were kept.
    pub fn source<'a>(
        &'a self,
        kind: ProviderType,
        name: &str,
        alter: Option<Alter<'a>>,
    ) -> Result<Source<'a>, StoreError> {
        let images = read_image_overrides(&self.images)
            .map_err(|source| StoreError::Images { version: self.version.clone(), source })?;
        let provider = Provider { name: name.to_owned(), kind, url: self.url.clone() };
        let release = ReleaseFiles {
            version: self.version.clone(),
            metadata: self.metadata.clone(),
            components: self.components.clone(),
            origin: self.origin.clone(),
        };
        let repository = Repository::in_memory(&provider, release);
        let variables = Box::new(|name: &str| self.variables.get(name).cloned());
        Ok(Source { provider, repository, variables, images, alter })
    }

    /// The variables that the components need and that have no value, by name. Components whose variables cannot be
    /// understood have none: rendering says what is wrong with them.
    pub fn missing_variables(&self) -> Vec<String> {
        let Ok(template) = Template::parse(&self.components) else { return Vec::new() };
        let variables = template.variables().values();
        let missing = variables.filter(|it| it.is_required() && !self.variables.contains_key(&it.name));
        missing.map(|it| it.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
