//! A release of a provider, from its repository to objects that can be applied.

use capstan_api::{contract::ContractVersion, provider::ProviderType};
use capstan_manifest::{
    components::{self, Components, ComponentsError, Options},
    text::{self, TextError},
    yaml::Document,
};
use capstan_repository::{
    Chosen, Config, ConfigError, File, Metadata, MetadataError, Provider, Repository, RepositoryError,
    Skipped, remote::Http,
};

use capstan_management::inventory::Installed;

/// Where releases come from.
#[derive(Clone, Copy)]
pub struct Releases<'a> {
    /// The providers, variables and images.
    pub config: &'a Config,
    /// The way to the network.
    pub http: &'a Http,
    /// Is told of what is odd on the way.
    pub tell: &'a (dyn Fn(Oddity<'_>) + Sync),
}

impl std::fmt::Debug for Releases<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Releases").finish_non_exhaustive()
    }
}

/// What a user should know of, but which stops nothing.
#[derive(Clone, Copy, Debug)]
pub enum Oddity<'a> {
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

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The part that the provider plays.
    pub kind: ProviderType,
    /// Its name.
    pub name: &'a str,
    /// Its version; the latest if there is none.
    pub version: Option<&'a str>,
    /// Where its components go; where the release says if there is none.
    pub target_namespace: Option<&'a str>,
    /// The only namespace that it looks at; all if there is none.
    pub watching_namespace: Option<&'a str>,
    /// Whether ClusterRoles and ClusterRoleBindings get the target namespace as a prefix.
    pub rbac_prefix: bool,
}

/// A release that is fetched and read, and can be rendered.
#[derive(Debug)]
pub struct Fetched {
    provider: Provider,
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
        /// Why not.
        source: Box<TextError>,
    },
    /// Its components cannot be used.
    #[error("cannot use {origin}: {source}")]
    Components {
        /// Where they were read from.
        origin: String,
        /// Why not.
        source: Box<ComponentsError>,
    },
}

impl Releases<'_> {
    /// The repository of a provider.
    pub fn repository(&self, kind: ProviderType, name: &str) -> Result<(Provider, Repository), ReleaseError> {
        let provider = self.config.provider(kind, name)?;
        let repository = Repository::open(&provider, self.config, self.http)?;
        Ok((provider, repository))
    }

    /// Finds a release, fetches it and renders its components.
    pub async fn prepare(&self, wanted: &Wanted<'_>) -> Result<Prepared, ReleaseError> {
        let fetched = self.fetch(wanted.kind, wanted.name, wanted.version).await?;
        self.render(fetched, wanted)
    }

    /// Finds a release, the latest if no version is asked for, fetches it and reads its components.
    pub async fn fetch(
        &self,
        kind: ProviderType,
        name: &str,
        version: Option<&str>,
    ) -> Result<Fetched, ReleaseError> {
        let (provider, repository) = self.repository(kind, name)?;
        let Chosen { version, skipped } = repository.version(version).await?;
        for skipped in &skipped {
            (self.tell)(Oddity::Skipped { label: repository.label(), skipped });
        }
        let metadata: Metadata = repository.metadata(&version).await?;
        let contract = metadata.usable_contract_of(&version)?;
        let file = repository.components(&version).await?;
        if file.is_override {
            (self.tell)(Oddity::Overridden(&file));
        }
        let File { text, origin, .. } = file;
        let unreadable = |source| ReleaseError::Text { origin: origin.clone(), source: Box::new(source) };
        let text = {
            let lookup = |name: &str| self.config.variable(name);
            text::render(text.into(), Some(&lookup)).map_err(unreadable)?.into_owned()
        };
        let documents = aside(move || text::read(&text)).await.map_err(unreadable)?;
        Ok(Fetched { provider, version, contract, documents, origin })
    }

    /// Renders the components of a release.
    pub fn render(&self, fetched: Fetched, wanted: &Wanted<'_>) -> Result<Prepared, ReleaseError> {
        let Fetched { provider, version, contract, documents, origin } = fetched;
        let options = Options {
            label: &provider.label(),
            target_namespace: wanted.target_namespace,
            watching_namespace: wanted.watching_namespace,
            rbac_prefix: wanted.rbac_prefix,
            images: &self.config.images()?,
        };
        let values = documents.into_iter().map(|it| it.value).collect();
        let components = components::render(values, &options).map_err(|source| ReleaseError::Components {
            origin: origin.clone(),
            source: Box::new(source),
        })?;
        let watching_namespace = wanted.watching_namespace.map(str::to_owned);
        Ok(Prepared { provider, version, contract, components, watching_namespace, origin })
    }
}

/// Does work that takes a while beside everything else, so that others can talk to servers meanwhile.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
