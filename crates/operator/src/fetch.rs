//! How the operator finds the releases of a provider.
//!
//! Where they are says the provider's `fetchConfig`, else its name. What they are rendered with comes from the provider's
//! Secret, then from the environment of the process. Nothing is kept longer than [`LISTINGS_MAX_AGE`]: what was fetched for
//! an installation is kept by [`crate::store`].

mod error;
mod inputs;
mod selector;

use std::{fmt, sync::Arc, time::Duration};

use capstan_api::{operator::FetchConfiguration, provider::ProviderType};
use capstan_manifest::envsubst::Template;
use capstan_repository::{
    Chosen, Config, ConfigError, ConfigMaps, Environment, File, LATEST, Metadata, Provider, Repository,
    RepositoryError, Skipped, Version,
    remote::{Access, DockerConfig, Http, HttpOptions, Progress, Retry, Timeouts},
};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::Client;

use crate::store::StoredRelease;
pub use error::FetchError;
use inputs::Inputs;

/// How long a list of versions is used before its source is asked again. Providers of one repository share it.
pub const LISTINGS_MAX_AGE: Duration = Duration::from_mins(1);

/// The controller comes back to what fails, and a condition should not wait long for it.
const RETRY: Retry =
    Retry { attempts: 2, first_pause: Duration::from_millis(250), longest_pause: Duration::from_millis(250) };
/// For one file, with all its retries. Other providers may wait behind it.
const TOTAL: Duration = Duration::from_mins(2);

/// What is fetched: the release of a provider object.
#[derive(Clone, Copy)]
pub struct FetchRequest<'a> {
    /// The provider's type.
    pub kind: ProviderType,
    /// Its name.
    pub name: &'a str,
    /// The namespace of the provider object.
    pub namespace: &'a str,
    /// Where its releases are; without it, the name decides.
    pub config: Option<&'a FetchConfiguration>,
    /// The version that is wanted; without it, the latest.
    pub version: Option<&'a str>,
    /// Its variables, image overrides and credentials.
    pub secret: Option<&'a Secret>,
}

// The Secret must never reach a log, and the address may hold a password.
impl fmt::Debug for FetchRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl FetchRequest<'_> {
    fn wanted(&self) -> Option<&str> {
        self.version.filter(|it| !it.is_empty() && *it != LATEST)
    }
}

/// Finds and fetches releases. There is one in a process.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    environment: Environment,
    access: Access,
    http: Http,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("http", &self.http).finish_non_exhaustive()
    }
}

/// The releases of a provider.
struct Opened {
    repository: Repository,
    /// The ConfigMaps among those that were selected that hold no release; nothing for releases on a network.
    config_maps: Option<Vec<Skipped>>,
}

/// The files of a release.
struct Files {
    metadata: File,
    components: File,
}

/// The network as the environment describes it to commands as well: tokens and their hosts, docker's credentials, the Go
/// module proxy, the cache left out. Proxies and `SSL_CERT_FILE` are those of the process.
pub fn network_options(environment: &Environment) -> Result<HttpOptions, capstan_repository::FetchError> {
    let docker_config = DockerConfig::read(environment).unwrap_or_else(|error| {
        tracing::warn!(%error, "docker's credentials are not used");
        None
    });
    let (github_token, gitlab_token) = inputs::tokens(environment);
    Ok(HttpOptions {
        docker_config,
        github_token,
        gitlab_token,
        cache_dir: None,
        retry: RETRY,
        timeouts: Timeouts { total: TOTAL, ..Timeouts::default() },
        progress: Some(Arc::new(|progress| log(&progress))),
        ..HttpOptions::from_environment(environment)?
    })
}

fn log(progress: &Progress<'_>) {
    match progress {
        Progress::Warning { text } => tracing::warn!("{text}"),
        Progress::Retrying { reason, .. } => tracing::info!("{reason}; trying again"),
        Progress::Requested { url } => tracing::debug!("fetching {url}"),
        _ => {}
    }
}

impl Fetcher {
    /// Fetches over a network, and from ConfigMaps of a management cluster. The environment has values of variables that
    /// a provider's Secret does not have.
    pub fn new(client: Client, environment: Environment, network: HttpOptions) -> Self {
        let access = network.access();
        let http = Http::new(HttpOptions {
            cache_dir: None,
            listings_max_age: Some(
                network.listings_max_age.map_or(LISTINGS_MAX_AGE, |it| it.min(LISTINGS_MAX_AGE)),
            ),
            ..network
        });
        Self { client, environment, access, http }
    }

    /// The version that is wanted: the given one, or the latest as `vX.Y.Z`. Stable releases come before pre-releases.
    pub async fn latest(&self, request: &FetchRequest<'_>) -> Result<String, FetchError> {
        if let Some(version) = request.wanted() {
            return Ok(version.to_owned());
        }
        let inputs = Inputs::read(request.secret, &self.environment)?;
        self.open(request, &inputs).await?.latest().await
    }

    /// Fetches a release with everything that it is rendered with.
    pub async fn fetch(&self, request: &FetchRequest<'_>) -> Result<StoredRelease, FetchError> {
        let inputs = Inputs::read(request.secret, &self.environment)?;
        let images = inputs.images()?.to_owned();
        let opened = self.open(request, &inputs).await?;
        let version = match request.wanted() {
            Some(version) => version.to_owned(),
            None => opened.latest().await?,
        };
        let Files { metadata, components } = opened.files(&version).await?;
        let contract = Metadata::parse(&metadata.text, &metadata.origin)
            .and_then(|it| it.usable_contract_of(&version))
            .map_err(|error| opened.explain(error.into()))?;
        let template = Template::parse(&components.text).map_err(|source| FetchError::Template {
            origin: components.origin.clone(),
            source: Box::new(source),
        })?;
        let names = template.variables().keys().chain(template.nested_variables().keys());
        let variables = names.filter_map(|it| Some((it.clone(), inputs.variable(it)?))).collect();
        Ok(StoredRelease {
            version,
            contract: contract.as_str().to_owned(),
            metadata: metadata.text,
            components: components.text,
            variables,
            images,
            origin: components.origin,
            url: opened.repository.shown_url().to_owned(),
        })
    }

    async fn open(&self, request: &FetchRequest<'_>, inputs: &Inputs<'_>) -> Result<Opened, FetchError> {
        let source = match request.config {
            None => return self.open_address(&built_in(request)?, inputs),
            Some(FetchConfiguration { url, selector }) => (url.as_deref(), selector.as_ref()),
        };
        match source {
            (Some(url), None) if !url.trim().is_empty() => {
                let url = url.trim().to_owned();
                let provider = Provider { name: request.name.to_owned(), kind: request.kind, url };
                self.open_address(&provider, inputs)
            }
            (None, Some(selector)) => self.open_config_maps(request, selector).await,
            (Some(_), Some(_)) => Err(FetchError::Sources { found: "both" }),
            (Some(_), None) => Err(FetchError::Sources { found: "an empty url" }),
            (None, None) => Err(FetchError::Sources { found: "neither" }),
        }
    }

    fn open_address(&self, provider: &Provider, inputs: &Inputs<'_>) -> Result<Opened, FetchError> {
        let access = inputs.access(&self.access);
        // What was fetched with one Secret's token is not for providers that have another or none.
        let own = (access != self.access).then(|| self.http.with_access(access));
        let opened = Repository::on_network(provider, own.as_ref().unwrap_or(&self.http));
        match opened {
            Ok(repository) => Ok(Opened { repository, config_maps: None }),
            Err(RepositoryError::Fetch {
                source: capstan_repository::FetchError::InvalidUrl { url, reason },
                ..
            }) => Err(FetchError::Url { url, reason }),
            Err(error) => Err(FetchError::of_release(error, None)),
        }
    }

    async fn open_config_maps(
        &self,
        request: &FetchRequest<'_>,
        selector: &LabelSelector,
    ) -> Result<Opened, FetchError> {
        let selector = selector::read(selector).map_err(|problem| FetchError::Selector { problem })?;
        let found = ConfigMaps::list(self.client.clone(), request.namespace, &selector).await;
        let found = found.map_err(|source| FetchError::ConfigMaps { source: Box::new(source) })?;
        let provider = Provider { name: request.name.to_owned(), kind: request.kind, url: String::new() };
        let config_maps = Some(found.skipped().to_vec());
        Ok(Opened { repository: Repository::in_config_maps(&provider, found), config_maps })
    }
}

/// The provider of this type and name that needs no address.
fn built_in(request: &FetchRequest<'_>) -> Result<Provider, FetchError> {
    Config::default().provider(request.kind, request.name).map_err(|error| {
        let similar = match error {
            ConfigError::UnknownProvider { similar, .. } => similar,
            _ => Vec::new(),
        };
        FetchError::UnknownProvider { kind: request.kind, name: request.name.to_owned(), similar }
    })
}

impl Opened {
    async fn latest(&self) -> Result<String, FetchError> {
        let Chosen { version, skipped } =
            self.repository.version(None).await.map_err(|error| self.explain_latest(error))?;
        for Skipped { version, reason } in &skipped {
            tracing::info!(provider = self.repository.label(), version, reason, "a release is skipped");
        }
        match Version::parse(&version) {
            // Both spellings are found.
            Ok(_) if !version.starts_with('v') => Ok(format!("v{version}")),
            Ok(_) => Ok(version),
            Err(_) => Err(FetchError::Url {
                url: self.repository.shown_url().to_owned(),
                reason: format!("it names the release {version}, which is not a version such as v1.2.3"),
            }),
        }
    }

    /// The files of a version, which the source may call by its name without the `v`.
    async fn files(&self, version: &str) -> Result<Files, FetchError> {
        self.repository.version(Some(version)).await.map_err(|error| self.explain(error))?;
        let error = match self.files_called(version).await {
            Err(error) if error.is_not_found() => error,
            outcome => return outcome.map_err(|error| self.explain(error)),
        };
        let found = match version.strip_prefix('v') {
            Some(bare) => self.files_called(bare).await.ok(),
            None => None,
        };
        found.ok_or_else(|| self.explain(error))
    }

    async fn files_called(&self, version: &str) -> Result<Files, RepositoryError> {
        let metadata = self.repository.metadata_file(version).await?;
        Ok(Files { metadata, components: self.repository.components(version).await? })
    }

    fn explain(&self, error: RepositoryError) -> FetchError {
        FetchError::of_release(error, self.config_maps.as_deref())
    }

    fn explain_latest(&self, error: RepositoryError) -> FetchError {
        FetchError::of_latest(error, self.config_maps.as_deref())
    }
}
