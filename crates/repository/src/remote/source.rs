//! Any of the sources, by its address.

use super::cached::Fetched;
use super::github::is_release_address;
use super::https::split_promise;
use super::{GitHub, GitLab, Http, HttpsRelease, Oci};
use crate::FetchError;

/// Releases on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// GitHub or GitHub Enterprise.
    GitHub(GitHub),
    /// Generic packages on a GitLab.
    GitLab(GitLab),
    /// Any https server.
    Https(HttpsRelease),
    /// An OCI registry.
    Oci(Oci),
}

impl Remote {
    /// Tells by the address's shape what it is: `oci://`, GitLab's API, `/{owner}/{repo}/releases`, or else a
    /// plain server.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        if url.starts_with("oci://") {
            return Oci::parse(url).map(Self::Oci);
        }
        let (parsed, promised) = split_promise(url)?;
        if let Some(gitlab) = GitLab::from_url(&parsed, promised) {
            return Ok(Self::GitLab(gitlab));
        }
        if is_release_address(&parsed) || parsed.host_str() == Some("github.com") {
            return GitHub::parse(url).map(Self::GitHub);
        }
        HttpsRelease::parse(url).map(Self::Https)
    }

    /// The version that the address names; nothing if it leaves it open.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::GitHub(source) => Some(source.version()),
            Self::GitLab(source) => Some(source.version()),
            Self::Https(source) => Some(source.version()),
            Self::Oci(source) => source.version(),
        }
    }

    /// The file that the address names.
    pub fn file_name(&self) -> Option<&str> {
        match self {
            Self::GitHub(source) => source.file_name(),
            Self::GitLab(source) => Some(source.file_name()),
            Self::Https(source) => Some(source.file_name()),
            Self::Oci(_) => None,
        }
    }

    /// The versions that can be had, in no order; a plain server knows only the one in the address.
    pub async fn versions(&self, http: &Http) -> Result<Vec<String>, FetchError> {
        match self {
            Self::GitHub(source) => source.versions(http).await,
            Self::GitLab(source) => source.versions(http).await,
            Self::Https(source) => source.versions(http).await,
            Self::Oci(source) => source.versions(http).await,
        }
    }

    /// The names of a version's files, where the source can be asked.
    pub async fn files(&self, http: &Http, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        match self {
            Self::GitHub(source) => source.files(http, version).await,
            Self::GitLab(source) => source.files(http, version).await,
            Self::Https(source) => source.files(http, version).await,
            Self::Oci(source) => source.files(http, version).await,
        }
    }

    /// The content of a file.
    pub async fn file(&self, http: &Http, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(http, version, name).await.map(|fetched| fetched.bytes)
    }

    /// A file, and what is known about it.
    pub async fn fetch(&self, http: &Http, version: &str, name: &str) -> Result<Fetched, FetchError> {
        match self {
            Self::GitHub(source) => source.fetch(http, version, name).await,
            Self::GitLab(source) => source.fetch(http, version, name).await,
            Self::Https(source) => source.fetch(http, version, name).await,
            Self::Oci(source) => source.fetch(http, version, name).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart_by_their_shape() {
        for (url, kind) in [
            ("https://github.com/o/r/releases/latest/f.yaml", "GitHub"),
            ("https://git.corp:8443/o/r/releases/v1.0.0/f.yaml", "GitHub"),
            ("https://gitlab.com/api/v4/projects/p/packages/generic/n/v1.0.0/f.yaml", "GitLab"),
            ("https://code.corp/api/v4/projects/p/packages/generic/n/v1.0.0/f.yaml", "GitLab"),
            ("https://bucket.corp/releases/v1.0.0/f.yaml", "Https"),
            ("https://bucket.corp/a/b/c/releases/v1.0.0/f.yaml", "Https"),
            ("oci://ghcr.io/o/r", "Oci"),
        ] {
            let found = format!("{:?}", Remote::parse(url).unwrap());
            assert!(found.starts_with(&format!("{kind}(")), "{url}: {found}");
        }
        for url in ["http://h/v1.0.0/f", "ftp://h/v1.0.0/f", "https://github.com/o/r/v1.0.0/f", "x"] {
            assert!(matches!(Remote::parse(url), Err(FetchError::InvalidUrl { .. })), "{url}");
        }
    }
}
