//! The configuration: a file, the environment, and what commands set.

pub(crate) mod built_in;
mod cert_manager;
mod dotenv;
mod fields;
mod file;
mod images;
mod providers;
pub(crate) mod value;
mod variables;
mod yaml;

use std::{fmt, path::PathBuf};

use capstan_api::provider::ProviderType;
use capstan_manifest::{envsubst::expand, images::Overrides as ImageOverrides};

pub use cert_manager::CertManager;
pub use file::Format;
pub use images::{NotImageOverrides, read_image_overrides};

use crate::{
    FetchError, config::value::Value, environment::Environment, overrides::Overrides, provider::Provider,
    remote::Http,
};
use variables::Variables;
pub use variables::environment_name;

const OVERRIDES_FOLDER: &str = "overridesFolder";

/// What the configuration file, the environment and flags say.
#[derive(Clone, Default)]
pub struct Config {
    variables: Variables,
    origin: Option<String>,
    warnings: Vec<String>,
}

/// Values may be secrets and must not reach a log.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("origin", &self.origin)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was asked for is not there.
    #[error("the configuration file {path} does not exist")]
    Missing {
        /// The path.
        path: String,
    },
    /// A file of another format.
    #[error(
        "the configuration file {origin} cannot be read: {extension} is not a format that is understood; use yaml, json, toml or env"
    )]
    Format {
        /// The path.
        origin: String,
        /// Its extension.
        extension: String,
    },
    /// The file exists but cannot be read.
    #[error("the configuration file {origin} cannot be read: {problem}")]
    Unreadable {
        /// The path or address.
        origin: String,
        /// What is wrong.
        problem: String,
    },
    /// The file could not be downloaded.
    #[error("the configuration file {origin} cannot be downloaded: {source}")]
    Download {
        /// The address.
        origin: String,
        /// The error of the download.
        source: Box<FetchError>,
    },
    /// The network is not to be used, and configurations are not kept.
    #[error("the configuration file {origin} cannot be downloaded: the network is not to be used")]
    Offline {
        /// The address.
        origin: String,
    },
    /// Text that is not of its format.
    #[error("the configuration file {origin} is malformed: {problem}")]
    Malformed {
        /// The path or address.
        origin: String,
        /// What is wrong, with the line where it is known.
        problem: String,
    },
    /// A setting of a wrong type.
    #[error("configuration: {setting} must be {expected}, but is {found}")]
    Setting {
        /// The setting's path.
        setting: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A setting that the environment cannot have.
    #[error(
        "the environment variable {variable} hides the setting {setting} of the configuration file, but cannot hold one: unset it"
    )]
    InEnvironment {
        /// The environment variable.
        variable: String,
        /// The setting.
        setting: &'static str,
    },
    /// A setting whose variables cannot be replaced.
    #[error("configuration: the variables in {setting} cannot be replaced: {problem}")]
    Expansion {
        /// The setting's path.
        setting: String,
        /// What is wrong.
        problem: String,
    },
    /// A provider that cannot be one.
    #[error("configuration: {place}{} is not a provider: {problem}", called(.kind, .name))]
    Provider {
        /// Which of the entries.
        place: String,
        /// The provider's name.
        name: String,
        /// Its type.
        kind: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The provider is neither configured nor built in.
    #[error("there is no {kind} named {name:?}{}", meant(.similar))]
    UnknownProvider {
        /// The type.
        kind: ProviderType,
        /// The name.
        name: String,
        /// Names that may have been meant.
        similar: Vec<String>,
    },
}

/// Type and name, as far as there are any.
fn called(kind: &str, name: &str) -> String {
    match (kind, name) {
        ("", "") => String::new(),
        _ => format!(" ({})", format!("{kind} {name}").trim()),
    }
}

fn meant(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        some => format!("; there is {}", some.join(", ")),
    }
}

impl ConfigError {
    fn setting(setting: &str, expected: &str, found: &Value) -> Self {
        Self::Setting {
            setting: setting.to_owned(),
            expected: expected.to_owned(),
            found: found.kind().to_owned(),
        }
    }
}

impl Config {
    /// Reads the configuration from a path or web address, or from the usual places if none is given; it is
    /// fine if there is no file in them.
    pub async fn load(
        path: Option<&str>,
        environment: &Environment,
        http: &Http,
    ) -> Result<Self, ConfigError> {
        match file::find(path, environment, http).await? {
            Some(file) => Self::decode(&file, environment),
            None => Ok(Self::new(Vec::new(), None, environment)),
        }
    }

    /// Reads the configuration from text; the origin is what to call it in messages.
    pub fn parse(
        text: &str,
        format: Format,
        origin: &str,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let file = file::File { origin: origin.to_owned(), format, text: text.to_owned() };
        Self::decode(&file, environment)
    }

    fn decode(file: &file::File, environment: &Environment) -> Result<Self, ConfigError> {
        let entries = file::decode(file, environment)?;
        Ok(Self::new(entries, Some(file.origin.clone()), environment))
    }

    fn new(entries: value::Map, origin: Option<String>, environment: &Environment) -> Self {
        let (variables, mut warnings) = Variables::new(entries, environment.clone());
        let settings = [providers::KEY, images::KEY, cert_manager::KEY];
        warnings.extend(variables.composite_keys(&settings));
        // Errors are reported where the setting is used.
        warnings.extend(providers::read(&variables).map(|it| it.1).unwrap_or_default());
        warnings.extend(images::read(&variables).map(|it| it.1).unwrap_or_default());
        warnings.extend(cert_manager::read(&variables).map(|it| it.1).unwrap_or_default());
        Self { variables, origin, warnings }
    }

    /// The file that was read.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// What is most likely not meant as it is written.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The surroundings that were handed in.
    pub fn environment(&self) -> &Environment {
        &self.variables.environment
    }

    /// All providers, by type and name.
    pub fn providers(&self) -> Result<Vec<Provider>, ConfigError> {
        providers::read(&self.variables).map(|it| it.0)
    }

    /// One provider.
    pub fn provider(&self, kind: ProviderType, name: &str) -> Result<Provider, ConfigError> {
        let providers = self.providers()?;
        let similar = providers::similar(&providers, kind, name);
        providers
            .into_iter()
            .find(|it| it.kind == kind && it.name == name)
            .ok_or_else(|| ConfigError::UnknownProvider { kind, name: name.to_owned(), similar })
    }

    /// What replaces parts of images' names: by `all`, component, or `component/image`.
    pub fn images(&self) -> Result<ImageOverrides, ConfigError> {
        images::read(&self.variables).map(|it| it.0)
    }

    /// Which cert-manager to install.
    pub fn cert_manager(&self) -> Result<CertManager, ConfigError> {
        cert_manager::read(&self.variables).map(|it| it.0)
    }

    /// The value of a variable: what a command has set, else the environment's, else the file's.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name)
    }

    /// Why a variable that has no value may have been thought to have one.
    pub fn why_unset(&self, name: &str) -> Option<String> {
        self.variables.overlooked(name)
    }

    /// Sets a variable, before all other sources.
    pub fn set(&mut self, name: &str, value: String) {
        self.variables.set(name, value);
    }

    /// The token for GitHub, under either of the names that people use; an empty one is none.
    pub fn github_token(&self) -> Option<String> {
        self.token(["github-token", "GITHUB_TOKEN"])
    }

    /// The token for GitLab; an empty one is none.
    pub fn gitlab_token(&self) -> Option<String> {
        self.token(["gitlab-access-token", "GITLAB_ACCESS_TOKEN"])
    }

    fn token(&self, names: [&str; 2]) -> Option<String> {
        names.iter().find_map(|it| self.variable(it).filter(|it| !it.trim().is_empty()))
    }

    /// The folder that was configured for files that replace those of repositories, if one was.
    pub fn overrides_folder(&self) -> Result<Option<PathBuf>, ConfigError> {
        match self.variable(OVERRIDES_FOLDER).filter(|it| !it.trim().is_empty()) {
            None => Ok(None),
            Some(text) => {
                let folder = expand_setting(&text, OVERRIDES_FOLDER, &self.variables)?;
                Ok(Some(self.environment().expand_home(&folder)))
            }
        }
    }

    /// The files that replace those of repositories.
    pub fn overrides(&self) -> Result<Overrides, ConfigError> {
        Ok(match self.overrides_folder()? {
            Some(folder) => Overrides::in_folder(folder),
            None => Overrides::in_first_of(
                self.environment().config_folders().into_iter().map(|it| it.join("overrides")).collect(),
            ),
        })
    }
}

/// Replaces the variables of an address, and a leading `~/` by the home folder.
fn expand_address(text: &str, setting: &str, variables: &Variables) -> Result<String, ConfigError> {
    let text = expand_setting(text, setting, variables)?;
    Ok(match (text.strip_prefix("~/"), &variables.environment.home) {
        // In addresses, `%` begins an escape.
        (Some(rest), Some(home)) => format!("{}/{rest}", home.to_string_lossy().replace('%', "%25")),
        _ => text,
    })
}

/// Replaces the variables of a setting by those of the environment; what is not set there is empty.
fn expand_setting(text: &str, setting: &str, variables: &Variables) -> Result<String, ConfigError> {
    expand(text, &|name| variables.environment.get(name).map(str::to_owned))
        .map_err(|error| ConfigError::Expansion { setting: setting.to_owned(), problem: error.to_string() })
}

/// Settings with fields cannot come from the environment, but a variable of their name would hide them. One that
/// hides nothing is only warned of: it most likely belongs to another program.
fn check_environment(variables: &Variables, setting: &'static str) -> Result<Option<String>, ConfigError> {
    let variable = environment_name(setting);
    let is_in_file = variables.in_file(setting).is_some_and(|it| !it.is_empty());
    match variables.environment.get(&variable) {
        Some(_) if is_in_file => Err(ConfigError::InEnvironment { variable, setting }),
        None | Some("") => Ok(None),
        Some(_) => Ok(Some(format!(
            "the environment variable {variable} is not read: {setting} can be set in the configuration file only"
        ))),
    }
}

#[cfg(test)]
mod tests;
