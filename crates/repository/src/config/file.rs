//! The configuration file: where it is, and the formats that it may have.

use std::{fs, io, path::Path};

use url::Url;

use super::{ConfigError, dotenv};
use crate::{
    FetchError,
    config::value::{Map, Value},
    config::yaml,
    environment::Environment,
    remote::{Get, Http, looks_like_web_page, shown_address},
};

const NAME: &str = "clusterctl";
/// In the order in which they are looked for.
const EXTENSIONS: [&str; 12] =
    ["json", "toml", "yaml", "yml", "properties", "props", "prop", "hcl", "tfvars", "dotenv", "env", "ini"];

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
    /// TOML.
    Toml,
    /// `NAME=value` lines.
    Dotenv,
}

impl Format {
    fn from_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            "env" | "dotenv" => Some(Self::Dotenv),
            _ => None,
        }
    }

    /// The format of a path; without extension it is YAML, as it is for pipes.
    fn of(path: &str) -> Result<Self, ConfigError> {
        match Path::new(path).extension().and_then(|it| it.to_str()) {
            None => Ok(Self::Yaml),
            Some(extension) => Self::from_extension(extension).ok_or_else(|| ConfigError::Format {
                origin: path.to_owned(),
                extension: extension.to_owned(),
            }),
        }
    }
}

/// A configuration file as text.
pub(super) struct File {
    pub(super) origin: String,
    pub(super) format: Format,
    pub(super) text: String,
}

/// Reads the file that was asked for, or the first that is in one of the usual places.
pub(super) async fn find(
    asked_for: Option<&str>,
    environment: &Environment,
    http: &Http,
) -> Result<Option<File>, ConfigError> {
    match asked_for {
        Some(address) if is_web_address(address) => download(address, http).await.map(Some),
        Some(path) => match open(path)? {
            Some(file) => Ok(Some(file)),
            None => Err(ConfigError::Missing { path: path.to_owned() }),
        },
        None => {
            for folder in environment.config_folders() {
                for extension in EXTENSIONS {
                    let path = folder.join(format!("{NAME}.{extension}"));
                    if let Some(file) = open(&path.to_string_lossy())? {
                        return Ok(Some(file));
                    }
                }
            }
            Ok(None)
        }
    }
}

fn is_web_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

fn open(path: &str) -> Result<Option<File>, ConfigError> {
    let unreadable = |problem: String| ConfigError::Unreadable { origin: path.to_owned(), problem };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let format = Format::of(path)?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(File { origin: path.to_owned(), format, text }))
}

/// Configurations may hold secrets, so that they are not kept in the cache.
async fn download(address: &str, http: &Http) -> Result<File, ConfigError> {
    let origin = shown_address(address);
    let unreadable = |problem: String| ConfigError::Unreadable { origin: origin.clone(), problem };
    let url = Url::parse(address).map_err(|error| unreadable(error.to_string()))?;
    let path = url.path().to_owned();
    let asked_for_plain = url.scheme() == "http";
    let get = Get::new(url, "the configuration file").plain_http(asked_for_plain);
    let reply = http.get(&get).await.map_err(|source| match source {
        FetchError::Offline { .. } => ConfigError::Offline { origin: origin.clone() },
        source => ConfigError::Download { origin: origin.clone(), source: Box::new(source) },
    })?;
    if looks_like_web_page(&reply.body) {
        return Err(unreadable("it is a web page, most likely to log in".to_owned()));
    }
    let text = String::from_utf8(reply.body).map_err(|error| unreadable(error.to_string()))?;
    let extension = Path::new(&path).extension().and_then(|it| it.to_str());
    let format = extension.and_then(Format::from_extension).unwrap_or(Format::Yaml);
    Ok(File { origin, format, text })
}

/// The error's own text quotes the line, and with it what may be a secret.
fn describe_toml(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}

/// The top-level entries of a file.
pub(super) fn decode(file: &File, environment: &Environment) -> Result<Map, ConfigError> {
    let File { origin, format, text } = file;
    let malformed = |problem: String| ConfigError::Malformed { origin: origin.clone(), problem };
    let value = match format {
        Format::Yaml => yaml::read(text).map_err(|it| malformed(it.to_string()))?,
        // Files with a byte order mark come from Windows.
        Format::Json => serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}'))
            .map_err(|it| malformed(it.to_string()))?
            .into(),
        Format::Toml => {
            toml::Value::Table(toml::from_str(text).map_err(|it| malformed(describe_toml(&it, text)))?).into()
        }
        Format::Dotenv => Value::Map(dotenv::read(text, &environment.variables).map_err(malformed)?),
    };
    match value {
        Value::Null => Ok(Map::new()),
        Value::Map(entries) => Ok(entries),
        other => Err(malformed(format!("expected a map of variables and settings, found {}", other.kind()))),
    }
}
