//! Where releases come from, as the caller decides: a configuration file, or objects of the management cluster.

use std::time::Duration;

use capstan_api::provider::ProviderType;
use capstan_manifest::images::Overrides;
use capstan_repository::{Provider, Repository};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::release::ReleaseError;

/// Finds the source of a provider's releases.
pub trait Catalog: Sync {
    /// The source of a provider.
    fn source<'a>(
        &'a self,
        kind: ProviderType,
        name: &str,
    ) -> BoxFuture<'a, Result<Source<'a>, ReleaseError>>;
}

/// The value of a variable, if it has one.
pub type Variables<'a> = Box<dyn Fn(&str) -> Option<String> + Send + Sync + 'a>;
/// Changes rendered objects before they are checked and applied; an error says why it cannot.
pub type Alter<'a> = Box<dyn Fn(&mut Vec<Value>) -> Result<(), String> + Send + Sync + 'a>;

/// A provider's releases, and what they are rendered with.
pub struct Source<'a> {
    /// The provider.
    pub provider: Provider,
    /// Its releases.
    pub repository: Repository,
    /// The variables of its components.
    pub variables: Variables<'a>,
    /// Replacements of images.
    pub images: Overrides,
    /// A last change to the rendered objects.
    pub alter: Option<Alter<'a>>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Source").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Who looks after cert-manager.
#[derive(Debug)]
pub enum CertManagerPolicy {
    /// Install and upgrade it together with the providers.
    Manage(Box<CertManagerSource>),
    /// Leave it alone; where an object needs it, it must answer.
    LeaveAlone {
        /// How long it may take to answer.
        limit: Duration,
    },
}

impl CertManagerPolicy {
    /// How long cert-manager may take to answer.
    pub fn limit(&self) -> Duration {
        match self {
            Self::Manage(source) => source.limit,
            Self::LeaveAlone { limit } => *limit,
        }
    }
}

/// A release of cert-manager.
pub struct CertManagerSource {
    /// The version.
    pub version: String,
    /// Its releases.
    pub repository: Repository,
    /// Replacements of images.
    pub images: Overrides,
    /// How long it may take to answer once it is installed.
    pub limit: Duration,
}

impl std::fmt::Debug for CertManagerSource {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CertManagerSource").field("version", &self.version).finish_non_exhaustive()
    }
}
