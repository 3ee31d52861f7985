//! Releases in ConfigMaps, for clusters that reach nothing else.
//!
//! A ConfigMap holds a release, or a part of one that is too large for it.

mod parts;
mod piece;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::ListParams, core::Selector};

pub use parts::PartsProblem;

use crate::{latest::Skipped, version::Version};
use piece::{COMPONENTS_KEY, METADATA_KEY, Piece, full_name};

/// The version of the release in a ConfigMap; without it the ConfigMap's name is the version.
pub const VERSION_LABEL: &str = "provider.cluster.x-k8s.io/version";
/// `true` where the components are compressed.
pub const COMPRESSED_ANNOTATION: &str = "provider.cluster.x-k8s.io/compressed";

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
    /// The ConfigMap, or all of them if each has a part.
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
    /// The parts of a release do not fit together.
    #[error(
        "the ConfigMaps {} do not make up version {version}: {problem}{}", .names.join(", "), and_reasons(.skipped)
    )]
    Parts {
        /// The ConfigMaps with its parts.
        names: Vec<String>,
        /// The version.
        version: String,
        /// What is wrong with them.
        problem: Box<PartsProblem>,
        /// What is wrong with other ConfigMaps: one of them may be the part that is missing.
        skipped: Vec<Skipped>,
    },
}

fn reasons(skipped: &[Skipped]) -> String {
    skipped.iter().map(|it| format!("{} {}", it.version, it.reason)).collect::<Vec<_>>().join("; ")
}

fn and_reasons(skipped: &[Skipped]) -> String {
    if skipped.is_empty() { String::new() } else { format!("; {}", reasons(skipped)) }
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
        let (mut pieces, mut skipped): (Vec<Piece>, Vec<Skipped>) = (Vec::new(), Vec::new());
        for config_map in config_maps {
            match Piece::read(config_map) {
                Ok(piece) => pieces.push(piece),
                Err(reason) => skipped.push(Skipped { version: full_name(config_map), reason }),
            }
        }
        pieces.sort_by(|a, b| a.version().cmp(b.version()).then_with(|| a.name().cmp(b.name())));
        skipped.sort_by(|a, b| a.version.cmp(&b.version));
        let mut releases = Vec::new();
        for (version, pieces) in by_version(pieces) {
            releases.push(parts::join(&version, pieces, &skipped)?);
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

/// What holds the same version, together.
fn by_version(pieces: Vec<Piece>) -> Vec<(Version, Vec<Piece>)> {
    let mut groups: Vec<(Version, Vec<Piece>)> = Vec::new();
    for piece in pieces {
        match groups.iter_mut().find(|(version, _)| version.is_same_release(piece.version())) {
            Some((_, group)) => group.push(piece),
            None => groups.push((piece.version().clone(), vec![piece])),
        }
    }
    groups
}

impl Release {
    fn origin(&self, key: &str) -> String {
        let several = if self.name.contains(", ") { "s" } else { "" };
        format!("the {key} in ConfigMap{several} {}", self.name)
    }
}

#[cfg(test)]
mod tests;
