//! A release of a provider, from its repository to objects that can be applied.

use capstan_api::{contract::ContractVersion, provider::ProviderType};
use capstan_management::inventory::Installed;
use capstan_manifest::{
    components::{self, Components, ComponentsError, Options},
    text::{self, TextError},
    yaml::Document,
};
use capstan_repository::{
    Chosen, ConfigError, File, Metadata, MetadataError, Provider, RepositoryError, Skipped,
};
use futures::future::BoxFuture;

use crate::{
    catalog::{Catalog, Source},
    goal::VersionGoal,
};

/// Fetches and renders releases.
#[derive(Clone, Copy)]
pub struct Releases<'a> {
    /// Where they come from.
    pub catalog: &'a dyn Catalog,
    /// Receives what is unusual about them.
    pub report: &'a (dyn Fn(ReleaseNotice<'_>) + Sync),
}

impl std::fmt::Debug for Releases<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Releases").finish_non_exhaustive()
    }
}

/// Something unusual about a release that stops nothing.
#[derive(Clone, Copy, Debug)]
pub enum ReleaseNotice<'a> {
    /// A version was passed over.
    Skipped {
        /// The provider's label.
        label: &'a str,
        /// Which and why.
        skipped: &'a Skipped,
    },
    /// A file of the overrides folder took a released one's place.
    Overridden(&'a File),
}

/// How a release is rendered for its place in a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placement<'a> {
    /// The namespace of its components; without one, the release names it.
    pub target_namespace: Option<&'a str>,
    /// The only namespace that its manager watches; without one, all.
    pub watching_namespace: Option<&'a str>,
    /// Whether ClusterRoles and ClusterRoleBindings get the target namespace as a prefix.
    pub rbac_prefix: bool,
}

/// A release whose components are fetched but not read.
#[derive(Debug)]
pub struct Fetched<'a> {
    /// Where it came from.
    pub source: Source<'a>,
    /// Its version.
    pub version: String,
    /// The contract that it speaks.
    pub contract: ContractVersion,
    /// Its components.
    pub file: File,
}

/// A release whose components are read and can be rendered.
#[derive(Debug)]
pub struct Parsed<'a> {
    source: Source<'a>,
    version: String,
    contract: ContractVersion,
    documents: Vec<Document>,
    origin: String,
}

/// A release that is fetched and rendered: nothing is missing to apply it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The provider.
    pub provider: Provider,
    /// Its version.
    pub version: String,
    /// The contract that it speaks.
    pub contract: ContractVersion,
    /// Its objects.
    pub components: Components,
    /// The only namespace that it looks at.
    pub watching_namespace: Option<String>,
    /// Where the components were read from.
    pub origin: String,
}

impl Prepared {
    /// The inventory's entry for it.
    pub fn entry(&self) -> Installed {
        Installed {
            namespace: self.components.target_namespace.clone(),
            name: self.provider.name.clone(),
            kind: self.provider.kind,
            version: self.version.clone(),
            watched_namespace: self.watching_namespace.clone(),
            upgrading_to: None,
        }
    }
}

/// A release cannot be had or used.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The catalog cannot tell where the provider's releases are.
    #[error(transparent)]
    Catalog(Box<dyn std::error::Error + Send + Sync>),
    /// The rendered objects cannot be customized.
    #[error("cannot customize {origin}: {reason}")]
    Alter {
        /// Where the components were read from.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// The configuration is wrong, or does not know the provider.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The repository has no such release.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The release's metadata are wrong, or name a contract that we do not speak.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The text of its components cannot be read.
    #[error("cannot use {origin}: {source}")]
    Text {
        /// Where they were read from.
        origin: String,
        /// What is wrong with it.
        source: Box<TextError>,
    },
    /// Its components cannot be used.
    #[error("cannot use {origin}: {source}")]
    Components {
        /// Where they were read from.
        origin: String,
        /// What is wrong with it.
        source: Box<ComponentsError>,
    },
}

/// An error after the provider that it is about, unless it names that itself.
pub fn labelled(label: &str, error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    if text.starts_with(&format!("{label}: ")) { text } else { format!("{label}: {text}") }
}

/// An error without the provider that it is about, for a list that names it already.
pub(crate) fn unlabelled(label: &str, error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{label}: ")).map_or(text.clone(), str::to_owned)
}

impl<'a> Releases<'a> {
    /// The source of a provider.
    pub fn source(&self, kind: ProviderType, name: &str) -> BoxFuture<'a, Result<Source<'a>, ReleaseError>> {
        self.catalog.source(kind, name)
    }

    /// Finds a release, fetches it and renders its components.
    pub async fn prepare(
        &self,
        kind: ProviderType,
        name: &str,
        version: &VersionGoal,
        placement: &Placement<'_>,
    ) -> Result<Prepared, ReleaseError> {
        self.parse(kind, name, version).await?.render(placement)
    }

    /// Finds a release and fetches its components.
    pub async fn fetch(
        &self,
        kind: ProviderType,
        name: &str,
        version: &VersionGoal,
    ) -> Result<Fetched<'a>, ReleaseError> {
        let source = self.source(kind, name).await?;
        let version = self.version(&source, version).await?;
        let metadata: Metadata = source.repository.metadata(&version).await?;
        let contract = metadata.usable_contract_of(&version)?;
        let file = source.repository.components(&version).await?;
        if file.is_override {
            (self.report)(ReleaseNotice::Overridden(&file));
        }
        Ok(Fetched { source, version, contract, file })
    }

    /// Finds a release, fetches it, replaces its variables and reads its components.
    pub async fn parse(
        &self,
        kind: ProviderType,
        name: &str,
        version: &VersionGoal,
    ) -> Result<Parsed<'a>, ReleaseError> {
        self.fetch(kind, name, version).await?.parse().await
    }

    /// The version that is wanted. Releases that cannot be used are reported.
    pub async fn version(&self, source: &Source<'_>, wanted: &VersionGoal) -> Result<String, ReleaseError> {
        let Chosen { version, skipped } = source.repository.version(wanted.exact()).await?;
        for skipped in &skipped {
            (self.report)(ReleaseNotice::Skipped { label: source.repository.label(), skipped });
        }
        Ok(version)
    }
}

impl<'a> Fetched<'a> {
    /// Replaces the variables and reads the components.
    pub async fn parse(self) -> Result<Parsed<'a>, ReleaseError> {
        let Self { source, version, contract, file: File { text, origin, .. } } = self;
        let unreadable = |source| ReleaseError::Text { origin: origin.clone(), source: Box::new(source) };
        let text = text::render(text.into(), Some(&|name: &str| (source.variables)(name)))
            .map_err(unreadable)?
            .into_owned();
        let documents = aside(move || text::read(&text)).await.map_err(unreadable)?;
        Ok(Parsed { source, version, contract, documents, origin })
    }

    /// The images of its workloads. A variable without a value counts as empty: an image may not need it.
    pub fn images(&self) -> Result<Vec<String>, ReleaseError> {
        let Self { source, file: File { text, origin, .. }, .. } = self;
        let lookup = |name: &str| Some((source.variables)(name).unwrap_or_default());
        let documents = text::objects(text.as_str(), Some(&lookup))
            .map_err(|source| ReleaseError::Text { origin: origin.clone(), source: Box::new(source) })?;
        let values: Vec<_> = documents.into_iter().map(|it| it.value).collect();
        components::images(&values, &source.images, &source.provider.label())
            .map_err(|source| ReleaseError::Components { origin: origin.clone(), source: Box::new(source) })
    }

    /// Reads the components and leaves their variables as they are.
    pub fn parse_raw(&self) -> Result<Vec<Document>, ReleaseError> {
        text::objects(self.file.text.as_str(), None).map_err(|source| ReleaseError::Text {
            origin: self.file.origin.clone(),
            source: Box::new(source),
        })
    }
}

impl Parsed<'_> {
    /// Renders the components.
    pub fn render(self, placement: &Placement<'_>) -> Result<Prepared, ReleaseError> {
        let Self { source, version, contract, documents, origin } = self;
        let components = render(&source, documents, &origin, placement)?;
        let watching_namespace = placement.watching_namespace.map(str::to_owned);
        let provider = source.provider;
        Ok(Prepared { provider, version, contract, components, watching_namespace, origin })
    }
}

/// Renders documents as the components of a provider.
pub fn render(
    source: &Source<'_>,
    documents: Vec<Document>,
    origin: &str,
    placement: &Placement<'_>,
) -> Result<Components, ReleaseError> {
    let options = Options {
        label: &source.provider.label(),
        target_namespace: placement.target_namespace,
        watching_namespace: placement.watching_namespace,
        rbac_prefix: placement.rbac_prefix,
        images: &source.images,
    };
    let values = documents.into_iter().map(|it| it.value).collect();
    let components = components::render(values, &options)
        .map_err(|source| ReleaseError::Components { origin: origin.to_owned(), source: Box::new(source) })?;
    match &source.alter {
        None => Ok(components),
        Some(alter) => components
            .alter(|objects| alter(objects))
            .map_err(|reason| ReleaseError::Alter { origin: origin.to_owned(), reason }),
    }
}

/// Does work that takes a while beside everything else, so that others can talk to servers meanwhile.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
