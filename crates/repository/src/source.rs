//! What a repository reads from: a folder, ConfigMaps, the network, or what the caller has.

use std::borrow::Cow;

use crate::{
    FetchError,
    config_maps::ConfigMaps,
    local::{LATEST, Local},
    metadata::METADATA_FILE,
    remote::{Fetched, Http, Remote},
    version::Version,
};

/// The source of a provider's releases.
pub(crate) enum Source {
    Local(Local),
    ConfigMaps(ConfigMaps),
    Network(Box<Network>),
    Memory(Box<ReleaseFiles>),
}

/// A release whose files the caller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseFiles {
    /// Its version.
    pub version: String,
    /// The text of its `metadata.yaml`.
    pub metadata: String,
    /// The text of its components.
    pub components: String,
    /// Where the components came from.
    pub origin: String,
}

/// A source that is asked over the network.
pub(crate) struct Network {
    remote: Remote,
    http: Http,
    /// Type and name, which files begin with in artifacts that hold several providers.
    prefix: String,
}

/// A file's content, and what to call it in messages.
pub(crate) struct Found {
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: String,
}

impl Source {
    /// Reads the address of a provider; nothing is asked for yet.
    pub(crate) fn parse(url: &str, label: &str, prefix: String, http: &Http) -> Result<Self, FetchError> {
        if let Some(local) = Local::parse(url, label)? {
            return Ok(Self::Local(local));
        }
        Self::on_network(url, prefix, http)
    }

    /// Reads an address that cannot be a folder of this machine.
    pub(crate) fn on_network(url: &str, prefix: String, http: &Http) -> Result<Self, FetchError> {
        let remote = Remote::parse(url)?;
        Ok(Self::Network(Box::new(Network { remote, http: http.clone(), prefix })))
    }

    /// Whether files in it may be called by their provider and version.
    pub(crate) fn is_registry(&self) -> bool {
        matches!(self, Self::Network(it) if matches!(it.remote, Remote::Oci(_)))
    }

    /// The version that the address names, if it names one.
    pub(crate) fn fixed_version(&self) -> Option<&str> {
        let version = match self {
            Self::Local(it) => Some(it.version()),
            Self::ConfigMaps(_) | Self::Memory(_) => None,
            Self::Network(it) => it.remote.version(),
        };
        version.filter(|it| *it != LATEST)
    }

    /// The version beside which the source has no other.
    pub(crate) fn only_version(&self) -> Option<&str> {
        match self {
            Self::Network(it) => match &it.remote {
                Remote::Oci(oci) => oci.version(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The components file that the address names.
    pub(crate) fn components_file(&self) -> Option<&str> {
        match self {
            Self::Local(it) => Some(it.file_name()),
            Self::ConfigMaps(_) | Self::Memory(_) => None,
            Self::Network(it) => it.remote.file_name(),
        }
    }

    /// What may be versions, in no order.
    pub(crate) async fn versions(&self) -> Result<Vec<String>, FetchError> {
        match self {
            Self::Local(it) => it.versions(),
            Self::ConfigMaps(it) => Ok(it.versions()),
            Self::Network(it) => Box::pin(it.remote.versions(&it.http)).await,
            Self::Memory(it) => Ok(vec![it.version.clone()]),
        }
    }

    /// The names of a version's files, if the source can list them.
    pub(crate) async fn files(&self, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        match self {
            Self::Local(it) => it.files(version).map(Some),
            Self::ConfigMaps(_) | Self::Memory(_) => Ok(None),
            Self::Network(it) => Box::pin(it.remote.files(&it.http, version)).await,
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
                let bytes = it.file(version, name)?;
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
            Self::Network(it) => {
                let fetched = Box::pin(it.fetch(version, name, components)).await?;
                Ok(Found { bytes: fetched.bytes, origin: fetched.url })
            }
            Self::Memory(it) => it.file(version, name, components),
        }
    }
}

impl ReleaseFiles {
    fn file(&self, version: &str, name: &str, components: &str) -> Result<Found, FetchError> {
        let text = match name {
            _ if !self.is_of(version) => None,
            METADATA_FILE => Some((&self.metadata, format!("the {METADATA_FILE} beside {}", self.origin))),
            _ if name == components => Some((&self.components, self.origin.clone())),
            _ => None,
        };
        let found = text.map(|(text, origin)| Found { bytes: text.clone().into_bytes(), origin });
        found.ok_or_else(|| FetchError::NotFound {
            what: format!("{name} of {version}"),
            available: vec![self.version.clone()],
        })
    }

    fn is_of(&self, version: &str) -> bool {
        match (Version::parse(&self.version), Version::parse(version)) {
            (Ok(ours), Ok(wanted)) => ours.is_same_release(&wanted),
            _ => self.version == version,
        }
    }
}

impl Network {
    async fn fetch(&self, version: &str, name: &str, components: &str) -> Result<Fetched, FetchError> {
        match &self.remote {
            Remote::Oci(oci) => {
                let names = titles(&self.prefix, version, name, components);
                first_of(&names, |it| Box::pin(oci.fetch(&self.http, version, it))).await
            }
            remote => Box::pin(remote.fetch(&self.http, version, name)).await,
        }
    }
}

/// What a file may be called in an artifact, which may hold several providers and versions.
fn titles<'a>(prefix: &str, version: &str, name: &'a str, components: &str) -> Vec<Cow<'a, str>> {
    if name == METADATA_FILE {
        vec![format!("{prefix}-{version}-{METADATA_FILE}").into(), name.into()]
    } else if name == components {
        let own = format!("{prefix}-{version}-components.yaml");
        vec![own.into(), name.into(), "components.yaml".into()]
    } else {
        vec![name.into()]
    }
}

/// The file of the first name that exists; if none does, the error is about the last name.
async fn first_of<'a, T, F: Future<Output = Result<T, FetchError>>>(
    names: &'a [Cow<'_, str>],
    fetch: impl Fn(&'a str) -> F,
) -> Result<T, FetchError> {
    let mut missing = FetchError::NotFound { what: String::new(), available: Vec::new() };
    for name in names {
        match fetch(name).await {
            Err(error) if error.is_not_found() => missing = error,
            outcome => return outcome,
        }
    }
    Err(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_may_name_files_by_provider_and_version() {
        let all =
            |name| titles("infrastructure-aws", "v1.2.3", name, "infrastructure-components.yaml").join(" ");
        assert_eq!(all("metadata.yaml"), "infrastructure-aws-v1.2.3-metadata.yaml metadata.yaml");
        assert_eq!(
            all("infrastructure-components.yaml"),
            "infrastructure-aws-v1.2.3-components.yaml infrastructure-components.yaml components.yaml"
        );
        assert_eq!(all("cluster-template.yaml"), "cluster-template.yaml");
    }

    #[tokio::test]
    async fn the_first_name_that_is_there_counts_and_other_failures_are_not_hidden() {
        fn absent<T>(it: &str) -> Result<T, FetchError> {
            Err(FetchError::NotFound { what: it.to_owned(), available: Vec::new() })
        }
        fn offline<T>(it: &str) -> Result<T, FetchError> {
            Err(FetchError::Offline { what: it.to_owned() })
        }
        let names = ["a", "b", "c"].map(Cow::from);
        let found = first_of(&names, async |it| if it == "b" { Ok(it) } else { absent(it) }).await;
        assert_eq!(found.unwrap(), "b");
        let none: Result<(), _> = first_of(&names, async |it| absent(it)).await;
        assert_eq!(none.unwrap_err().to_string(), "not found: c");
        let failed: Result<(), _> =
            first_of(&names, async |it| if it == "a" { absent(it) } else { offline(it) }).await;
        assert!(failed.unwrap_err().to_string().starts_with("b is not in the cache"));
    }
}
