//! What a command that reads releases works with: the environment, the configuration, and the way to the network.

use std::{env, path::PathBuf, sync::Arc};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::{
    catalog::{Catalog, CertManagerPolicy, CertManagerSource, Source},
    release::{ReleaseError, ReleaseNotice, Releases, labelled},
};
use capstan_repository::{
    CertManager, Config, Environment, FetchError, Os, Repository,
    remote::{DockerConfig, Http, HttpOptions, Progress},
};

use futures::future::{self, BoxFuture};

use crate::{
    cli::Globals,
    commands::{
        generate::{Asked, unusable},
        version::VERSION,
    },
    error::CommandError,
    hints::Hint,
    printer::Printer,
    program,
};

/// The environment, the configuration, and the way to the network.
pub(crate) struct Session {
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) http: Http,
    pub(crate) printer: Printer,
}

impl Session {
    /// Reads the configuration and says what is odd about it.
    pub(crate) async fn open(globals: &Globals, printer: Printer) -> Result<Self, CommandError> {
        let environment = capture();
        // The configuration may come over the network, and has tokens for what comes after it.
        let docker = docker_config(&environment, printer);
        let http = connect(&environment, docker.clone(), None, 0, printer)?;
        let named = globals.config.as_deref().filter(|it| !it.is_empty());
        let named = named.map(|it| environment.expand_home(it).to_string_lossy().into_owned());
        let config = Config::load(named.as_deref(), &environment, &http).await?;
        for warning in config.warnings() {
            printer.warn(warning);
        }
        let verbosity = verbosity(globals, &config)?;
        let http = connect(&environment, docker, Some(&config), verbosity, printer)?;
        Ok(Self { environment, config, http, printer })
    }

    /// A path; shells expand `~` in `--flag ~/file`, but not in `--flag=~/file`.
    pub(crate) fn expand_home(&self, path: &str) -> PathBuf {
        self.environment.expand_home(path)
    }

    /// The releases of all providers. What is unusual about them goes to [`Self::report`].
    pub(crate) fn releases<'a>(&'a self, report: &'a (dyn Fn(ReleaseNotice<'_>) + Sync)) -> Releases<'a> {
        Releases { catalog: self, report }
    }

    /// Reports what is unusual about a release.
    pub(crate) fn report(&self, notice: ReleaseNotice<'_>) {
        match notice {
            ReleaseNotice::Skipped { label, skipped } => {
                self.printer.warn(&format!("{label} {} is skipped: {}", skipped.version, skipped.reason));
            }
            ReleaseNotice::Overridden(file) => {
                self.printer.step(&format!("using {} in place of the released file", file.origin));
            }
        }
    }

    /// Who looks after cert-manager, as the configuration file says.
    pub(crate) fn cert_manager(&self) -> Result<CertManagerPolicy, CommandError> {
        let config = self.config.cert_manager()?;
        if config.externally_provisioned {
            return Ok(CertManagerPolicy::LeaveAlone { limit: config.timeout });
        }
        let repository = Repository::open_cert_manager(&config, &self.config, &self.http)?;
        let images = self.config.images()?;
        let CertManager { version, timeout: limit, .. } = config;
        Ok(CertManagerPolicy::Manage(Box::new(CertManagerSource { version, repository, images, limit })))
    }

    /// Why a release cannot be used, with what to do about it.
    pub(crate) fn unusable_release(&self, error: ReleaseError) -> CommandError {
        match error {
            ReleaseError::Config(error) => error.into(),
            ReleaseError::Repository(error) => error.into(),
            ReleaseError::Metadata(error) => error.into(),
            ReleaseError::Text { origin, source } => unusable(&origin, &source, Asked::Provider, self),
            ReleaseError::Components { origin, source } => {
                CommandError::plain(format!("cannot use {origin}: {source}")).hint_if(source.hint())
            }
            error @ (ReleaseError::Catalog(_) | ReleaseError::Alter { .. }) => {
                CommandError::plain(error.to_string())
            }
        }
    }

    /// The same, after the provider that it is about.
    pub(crate) fn unusable_release_of(&self, label: &str, error: ReleaseError) -> CommandError {
        let CommandError { message, causes, hint } = self.unusable_release(error);
        CommandError { message: labelled(label, &message), causes, hint }
    }
}

/// The configuration file names where releases come from, and what they are rendered with.
impl Catalog for Session {
    fn source<'a>(
        &'a self,
        kind: ProviderType,
        name: &str,
    ) -> BoxFuture<'a, Result<Source<'a>, ReleaseError>> {
        let source = || {
            let provider = self.config.provider(kind, name)?;
            let repository = Repository::open(&provider, &self.config, &self.http)?;
            let variables = Box::new(|name: &str| self.config.variable(name));
            Ok(Source { provider, repository, variables, images: self.config.images()?, alter: None })
        };
        Box::pin(future::ready(source()))
    }
}

/// The surroundings of this process. Variables that are no text cannot be meant for us.
pub(crate) fn capture() -> Environment {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Environment {
        variables: env::vars_os().filter_map(text).collect(),
        home: env::home_dir(),
        os: Os::built_for(),
    }
}

fn verbosity(globals: &Globals, config: &Config) -> Result<u8, CommandError> {
    const VARIABLE: &str = "CLUSTERCTL_LOG_LEVEL";
    match (globals.verbosity, config.variable(VARIABLE)) {
        (Some(level), _) => Ok(level),
        (None, None) => Ok(0),
        (None, Some(text)) if text.is_empty() => Ok(0),
        (None, Some(text)) => text.parse().map_err(|_| {
            CommandError::plain(format!("{VARIABLE} is {text:?}, which is not a number"))
                .hint("set it to a number from 0 to 9, or unset it")
        }),
    }
}

fn connect(
    environment: &Environment,
    docker_config: Option<DockerConfig>,
    config: Option<&Config>,
    verbosity: u8,
    printer: Printer,
) -> Result<Http, FetchError> {
    let options = HttpOptions {
        user_agent: format!("{}/{VERSION} ({}/{})", program::name(), env::consts::OS, env::consts::ARCH),
        docker_config,
        progress: Some(Arc::new(move |progress| tell(&progress, verbosity, printer))),
        ..HttpOptions::from_environment(environment)?
    };
    Ok(Http::new(match config {
        Some(config) => options.with_tokens(config),
        None => options,
    }))
}

/// Docker's credentials for registries. Most releases need none, so that a file that cannot be read is no error.
fn docker_config(environment: &Environment, printer: Printer) -> Option<DockerConfig> {
    DockerConfig::read(environment).unwrap_or_else(|error| {
        printer.warn(&format!("docker's credentials are not used: {error}"));
        None
    })
}

fn tell(progress: &Progress<'_>, verbosity: u8, printer: Printer) {
    match progress {
        Progress::Warning { text } => printer.warn(text),
        Progress::Retrying { reason, .. } => printer.warn(&format!("{reason}; trying again")),
        Progress::Stale { what, fetched, .. } => {
            printer
                .warn(&format!("using {what} as it was fetched at {fetched}: its source cannot be reached"));
        }
        Progress::Received { url, bytes, total } if printer.is_interactive() => {
            if total.is_some_and(|total| total <= *bytes) {
                printer.progress_done();
            } else {
                printer.progress(&format!("{url}: {} KiB", bytes >> 10));
            }
        }
        Progress::Requested { url } if verbosity > 0 => printer.step(&format!("fetching {url}")),
        Progress::Cached { what } if verbosity > 0 => printer.step(&format!("{what} is in the cache")),
        _ => {}
    }
}
