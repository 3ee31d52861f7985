//! What a repository reads from: a folder, ConfigMaps, or the network.

use crate::{
    FetchError,
    config_maps::ConfigMaps,
    local::{LATEST, Local},
    metadata::METADATA_FILE,
    remote::{Http, Remote},
};

/// The source of a provider's releases.
pub(crate) enum Source {
    Local(Local),
    ConfigMaps(ConfigMaps),
    Remote { remote: Remote, http: Http },
}

/// A file's content, and what to call it in messages.
pub(crate) struct Found {
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: String,
}

impl Source {
    /// Reads the address of a provider; nothing is asked for yet.
    pub(crate) fn parse(url: &str, label: &str, http: &Http) -> Result<Self, FetchError> {
        match Local::parse(url, label)? {
            Some(local) => Ok(Self::Local(local)),
            None => Ok(Self::Remote { remote: Remote::parse(url)?, http: http.clone() }),
        }
    }

    /// The version that the address names, if it names one.
    pub(crate) fn fixed_version(&self) -> Option<&str> {
        let version = match self {
            Self::Local(it) => it.version(),
            Self::ConfigMaps(_) => return None,
            Self::Remote { remote, .. } => remote.version(),
        };
        Some(version).filter(|it| *it != LATEST)
    }

    /// The components file that the address names.
    pub(crate) fn components_file(&self) -> Option<&str> {
        match self {
            Self::Local(it) => Some(it.file_name()),
            Self::ConfigMaps(_) => None,
            Self::Remote { remote, .. } => remote.file_name(),
        }
    }

    /// What may be versions, in no order.
    pub(crate) async fn versions(&self) -> Result<Vec<String>, FetchError> {
        match self {
            Self::Local(it) => it.versions().await,
            Self::ConfigMaps(it) => Ok(it.versions()),
            Self::Remote { remote, http } => remote.versions(http).await,
        }
    }

    /// The names of a version's files, where they can be had.
    pub(crate) async fn files(&self, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        match self {
            Self::Local(it) => it.files(version).await.map(Some),
            Self::ConfigMaps(_) => Ok(None),
            Self::Remote { remote, http } => remote.files(http, version).await,
        }
    }

    /// A file of a version.
    pub(crate) async fn file(
        &self,
        version: &str,
        name: &str,
        components: &str,
    ) -> Result<Found, FetchError> {
        match self {
            Self::Local(it) => {
                let bytes = it.file(version, name).await?;
                Ok(Found { bytes, origin: it.path(version, name).display().to_string() })
            }
            Self::ConfigMaps(it) => {
                let found = match name {
                    METADATA_FILE => it.metadata(version),
                    _ if name == components => it.components(version),
                    _ => None,
                };
                found.map(|(bytes, origin)| Found { bytes, origin }).ok_or_else(|| FetchError::NotFound {
                    what: format!("{name} of {version} in the {}", it.place()),
                    available: it.versions(),
                })
            }
            Self::Remote { remote, http } => {
                let fetched = remote.fetch(http, version, name).await?;
                Ok(Found { bytes: fetched.bytes, origin: fetched.url })
            }
        }
    }
}
