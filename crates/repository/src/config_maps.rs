//! Releases in ConfigMaps, for clusters that reach nothing else.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::ListParams, core::Selector};

use crate::{latest::Skipped, version::Version};

/// The version of the release in a ConfigMap; without it the ConfigMap's name is the version.
pub const VERSION_LABEL: &str = "provider.cluster.x-k8s.io/version";
/// `true` where the components are compressed.
pub const COMPRESSED_ANNOTATION: &str = "provider.cluster.x-k8s.io/compressed";

const METADATA_KEY: &str = "metadata";
const COMPONENTS_KEY: &str = "components";
/// What fits into a ConfigMap cannot honestly become more than this.
const LARGEST: u64 = 32 << 20;

/// The releases that were found in ConfigMaps.
#[derive(Clone, Debug, Default)]
pub struct ConfigMaps {
    releases: Vec<Release>,
    skipped: Vec<Skipped>,
    place: String,
}

#[derive(Clone, Debug)]
struct Release {
    version: Version,
    metadata: String,
    components: Vec<u8>,
    name: String,
}

/// ConfigMaps that hold no releases.
#[derive(Debug, thiserror::Error)]
pub enum ConfigMapsError {
    /// They could not be listed.
    #[error("the {place} cannot be listed: {source}")]
    List {
        /// Namespace and selector.
        place: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// There are none.
    #[error("there are no {place}")]
    None {
        /// Namespace and selector.
        place: String,
    },
    /// None of them can be used.
    #[error("none of the {place} holds a release: {}", reasons(.skipped))]
    Unusable {
        /// Namespace and selector.
        place: String,
        /// What is wrong with each.
        skipped: Vec<Skipped>,
    },
    /// It is ambiguous which of the two is meant.
    #[error(
        "the ConfigMaps {first} and {second} both hold version {version}: delete one, or change its label {VERSION_LABEL}"
    )]
    Duplicate {
        /// The first ConfigMap.
        first: String,
        /// The other.
        second: String,
        /// The version of both.
        version: String,
    },
}

fn reasons(skipped: &[Skipped]) -> String {
    skipped.iter().map(|it| format!("{} {}", it.version, it.reason)).collect::<Vec<_>>().join("; ")
}

impl ConfigMaps {
    /// Lists the ConfigMaps of a namespace that match a selector.
    pub async fn list(client: Client, namespace: &str, selector: &Selector) -> Result<Self, ConfigMapsError> {
        let place = format!("ConfigMaps in namespace {namespace} that match {selector}");
        let api = Api::<ConfigMap>::namespaced(client, namespace);
        match api.list(&ListParams::default().labels_from(selector)).await {
            Ok(list) => Self::judge(&list.items, &place),
            Err(source) => Err(ConfigMapsError::List { place, source: Box::new(source) }),
        }
    }

    /// Finds the releases among ConfigMaps; the place is what to call all of them in messages.
    ///
    /// One that is no release does not keep the others from being used.
    pub fn judge(config_maps: &[ConfigMap], place: &str) -> Result<Self, ConfigMapsError> {
        let place = place.to_owned();
        if config_maps.is_empty() {
            return Err(ConfigMapsError::None { place });
        }
        let (mut releases, mut skipped): (Vec<Release>, Vec<Skipped>) = (Vec::new(), Vec::new());
        for config_map in config_maps {
            match Release::read(config_map) {
                Ok(release) => releases.push(release),
                Err(reason) => skipped.push(Skipped { version: full_name(config_map), reason }),
            }
        }
        releases.sort_by(|a, b| a.version.cmp(&b.version).then_with(|| a.name.cmp(&b.name)));
        skipped.sort_by(|a, b| a.version.cmp(&b.version));
        for (at, release) in releases.iter().enumerate() {
            let others = releases.iter().skip(at + 1);
            if let Some(other) = others.into_iter().find(|it| it.version.is_same_release(&release.version)) {
                return Err(ConfigMapsError::Duplicate {
                    first: release.name.clone(),
                    second: other.name.clone(),
                    version: release.version.to_string(),
                });
            }
        }
        if releases.is_empty() {
            return Err(ConfigMapsError::Unusable { place, skipped });
        }
        Ok(Self { releases, skipped, place })
    }

    /// The existing versions.
    pub fn versions(&self) -> Vec<String> {
        self.releases.iter().map(|it| it.version.to_string()).collect()
    }

    /// The ConfigMaps that are no releases, and why.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// What to call all of them in messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The metadata of a version, and where it was found.
    pub(crate) fn metadata(&self, version: &str) -> Option<(Vec<u8>, String)> {
        let release = self.release(version)?;
        Some((release.metadata.clone().into_bytes(), release.origin(METADATA_KEY)))
    }

    /// The components of a version, and where they were found.
    pub(crate) fn components(&self, version: &str) -> Option<(Vec<u8>, String)> {
        let release = self.release(version)?;
        Some((release.components.clone(), release.origin(COMPONENTS_KEY)))
    }

    fn release(&self, version: &str) -> Option<&Release> {
        let version = Version::parse(version).ok()?;
        self.releases.iter().find(|it| it.version.is_same_release(&version))
    }
}

fn full_name(config_map: &ConfigMap) -> String {
    let metadata = &config_map.metadata;
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

impl Release {
    fn origin(&self, key: &str) -> String {
        format!("the {key} in ConfigMap {}", self.name)
    }

    fn read(config_map: &ConfigMap) -> Result<Self, String> {
        let data = |key: &str| config_map.data.as_ref().and_then(|it| it.get(key)).cloned();
        Ok(Self {
            version: read_version(config_map)?,
            metadata: data(METADATA_KEY).ok_or_else(|| missing(&format!("data.{METADATA_KEY}")))?,
            components: read_components(config_map)?,
            name: full_name(config_map),
        })
    }
}

fn missing(what: &str) -> String {
    format!("has no {what}")
}

fn read_version(config_map: &ConfigMap) -> Result<Version, String> {
    let metadata = &config_map.metadata;
    match metadata.labels.as_ref().and_then(|it| it.get(VERSION_LABEL)) {
        Some(label) => Version::parse(label)
            .map_err(|it| format!("has a label {VERSION_LABEL} that is no version: {it}")),
        None => Version::parse(metadata.name.as_deref().unwrap_or_default())
            .map_err(|it| format!("has no label {VERSION_LABEL}, and its name is no version: {it}")),
    }
}

fn read_components(config_map: &ConfigMap) -> Result<Vec<u8>, String> {
    let annotations = config_map.metadata.annotations.as_ref();
    let compressed = annotations.and_then(|it| it.get(COMPRESSED_ANNOTATION)).is_some_and(|it| it == "true");
    let binary = config_map.binary_data.as_ref().and_then(|it| it.get(COMPONENTS_KEY));
    let plain = config_map.data.as_ref().and_then(|it| it.get(COMPONENTS_KEY));
    match (compressed, binary, plain) {
        (true, Some(bytes), _) => inflate(&bytes.0),
        (true, None, _) => Err(format!(
            "has no binaryData.{COMPONENTS_KEY}, although its annotation {COMPRESSED_ANNOTATION} is true"
        )),
        (false, _, Some(text)) => Ok(text.clone().into_bytes()),
        (false, Some(_), None) => Err(format!(
            "has binaryData.{COMPONENTS_KEY}, but not the annotation {COMPRESSED_ANNOTATION}: \"true\""
        )),
        (false, None, None) => Err(missing(&format!("data.{COMPONENTS_KEY}"))),
    }
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut inflated = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(LARGEST + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| format!("has binaryData.{COMPONENTS_KEY} that is not gzip: {error}"))?;
    if inflated.len() as u64 > LARGEST {
        return Err(format!(
            "has binaryData.{COMPONENTS_KEY} that would inflate to more than {} MiB",
            LARGEST >> 20
        ));
    }
    Ok(inflated)
}

#[cfg(test)]
mod tests;
