//! What a command that reads releases works with: the environment, the configuration, and the way to the network.

use std::{env, path::PathBuf, sync::Arc};

use capstan_api::provider::ProviderType;
use capstan_lifecycle::release::{Oddity, ReleaseError, Releases};
use capstan_manifest::images;
use capstan_repository::{
    Chosen, Config, Environment, File, Os, Provider, ProviderArgument, Repository,
    remote::{DockerConfig, Http, HttpOptions, Progress},
};

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

/// One release of a provider.
pub(crate) struct Release {
    pub(crate) provider: Provider,
    pub(crate) repository: Repository,
    pub(crate) version: String,
}

impl Session {
    /// Reads the configuration and says what is odd about it.
    pub(crate) async fn open(globals: &Globals, printer: Printer) -> Result<Self, CommandError> {
        let environment = capture();
        // The configuration may come over the network, and has tokens for what comes after it.
        let docker = docker_config(&environment, printer);
        let http = connect(&environment, docker.clone(), None, 0, printer);
        let named = globals.config.as_deref().filter(|it| !it.is_empty());
        let named = named.map(|it| environment.expand_home(it).to_string_lossy().into_owned());
        let config = Config::load(named.as_deref(), &environment, &http).await?;
        for warning in config.warnings() {
            printer.warn(warning);
        }
        let verbosity = verbosity(globals, &config)?;
        let http = connect(&environment, docker, Some(&config), verbosity, printer);
        Ok(Self { environment, config, http, printer })
    }

    /// A path; shells expand `~` in `--flag ~/file`, but not in `--flag=~/file`.
    pub(crate) fn expand_home(&self, path: &str) -> PathBuf {
        self.environment.expand_home(path)
    }

    /// Where the releases of a provider are.
    pub(crate) fn repository(&self, provider: &Provider) -> Result<Repository, CommandError> {
        Ok(Repository::open(provider, &self.config, &self.http)?)
    }

    /// The version that is asked for, or the latest; what was passed over on the way is told.
    pub(crate) async fn choose(
        &self,
        repository: &Repository,
        wanted: Option<&str>,
    ) -> Result<String, CommandError> {
        let Chosen { version, skipped } = repository.version(wanted).await?;
        for skipped in &skipped {
            self.tell(Oddity::Skipped { label: repository.label(), skipped });
        }
        Ok(version)
    }

    /// The release that `name[:version]` means, which must speak a contract that we speak.
    pub(crate) async fn release(&self, kind: ProviderType, argument: &str) -> Result<Release, CommandError> {
        let argument = ProviderArgument::parse(argument)?;
        let provider = self.config.provider(kind, &argument.name)?;
        let repository = self.repository(&provider)?;
        let version = self.choose(&repository, argument.version.as_deref()).await?;
        repository.metadata(&version).await?.usable_contract_of(&version)?;
        Ok(Release { provider, repository, version })
    }

    /// The components of a release.
    pub(crate) async fn components(&self, release: &Release) -> Result<File, CommandError> {
        let file = release.repository.components(&release.version).await?;
        if file.is_override {
            self.tell(Oddity::Overridden(&file));
        }
        Ok(file)
    }

    /// The manifest of cert-manager.
    pub(crate) async fn cert_manager(&self) -> Result<File, CommandError> {
        let cert_manager = self.config.cert_manager()?;
        let repository = Repository::open_cert_manager(&cert_manager, &self.config, &self.http)?;
        Ok(repository.components(&cert_manager.version).await?)
    }

    /// Where releases come from. What is odd about them is for [`Self::tell`].
    pub(crate) fn releases<'a>(&'a self, tell: &'a (dyn Fn(Oddity<'_>) + Sync)) -> Releases<'a> {
        Releases { config: &self.config, http: &self.http, tell }
    }

    /// Says what is odd about a release.
    pub(crate) fn tell(&self, oddity: Oddity<'_>) {
        match oddity {
            Oddity::Skipped { label, skipped } => {
                self.printer.warn(&format!("{label} {} is passed over: {}", skipped.version, skipped.reason));
            }
            Oddity::Overridden(file) => {
                self.printer.step(&format!("using {} in place of the released file", file.origin));
            }
        }
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
        }
    }

    /// What is replaced in the images of components.
    pub(crate) fn image_overrides(&self) -> Result<images::Overrides, CommandError> {
        Ok(self.config.images()?)
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
) -> Http {
    let options = HttpOptions {
        user_agent: format!("{}/{VERSION} ({}/{})", program::name(), env::consts::OS, env::consts::ARCH),
        docker_config,
        progress: Some(Arc::new(move |progress| tell(&progress, verbosity, printer))),
        ..HttpOptions::from_environment(environment)
    };
    Http::new(match config {
        Some(config) => options.with_tokens(config),
        None => options,
    })
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
