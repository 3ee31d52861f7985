//! References to artifacts.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::super::https::invalid;
use super::digest::is_digest;
use crate::FetchError;

/// Docker's own registry answers under another name than the one it is known by.
const DOCKER: &str = "docker.io";
const DOCKER_API: &str = "registry-1.docker.io";

/// Whether a connection may be unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainHttp {
    Never,
    /// The registry is on this machine: as it likes.
    IfNoTls,
    /// The user said so.
    Always,
}

/// A repository in a registry, and what the user fixed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub registry: String,
    pub repository: String,
    pub plain: PlainHttp,
    fixed: Option<String>,
}

impl Reference {
    pub(super) fn parse(text: &str) -> Result<Self, FetchError> {
        let (explicit_http, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("oci", rest)) => (false, rest),
            Some(("http", rest)) => (true, rest),
            Some((scheme, _)) => {
                return Err(invalid(text, &format!("{scheme}:// is not the scheme of a registry")));
            }
        };
        let (registry, path) =
            rest.split_once('/').ok_or_else(|| invalid(text, "it must be {host}/{repository}"))?;
        let (repository, fixed) = split_fixed(path);
        if !is_registry(registry) {
            return Err(invalid(text, describe_host(registry)));
        }
        if !is_repository(repository) {
            return Err(invalid(
                text,
                "its repository may have lower-case letters, digits, '.', '_', '-' and '/' only",
            ));
        }
        if fixed.is_some_and(|fixed| !is_tag(fixed) && !is_digest(fixed)) {
            return Err(invalid(text, "what follows the repository is neither a tag nor a digest"));
        }
        let repository = match (registry, repository.contains('/')) {
            (DOCKER, false) => format!("library/{repository}"),
            _ => repository.to_owned(),
        };
        let plain = match (explicit_http, is_loopback(registry)) {
            (true, _) => PlainHttp::Always,
            (false, true) => PlainHttp::IfNoTls,
            (false, false) => PlainHttp::Never,
        };
        Ok(Self { registry: registry.to_owned(), repository, plain, fixed: fixed.map(str::to_owned) })
    }

    /// The tag or digest that the user wrote.
    pub(super) fn fixed(&self) -> Option<&str> {
        self.fixed.as_deref()
    }

    /// Whether the registry is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.registry)
    }

    /// The registry's API, encrypted.
    pub(super) fn api(&self) -> Result<Url, FetchError> {
        let host = if self.registry == DOCKER { DOCKER_API } else { &self.registry };
        let text = format!("https://{host}/v2/");
        Url::parse(&text).map_err(|error| invalid(&text, &error.to_string()))
    }

    /// A path of the repository within the registry's API.
    pub(super) fn endpoint(&self, path: &str) -> Result<Url, FetchError> {
        let path = format!("{}/{path}", self.repository);
        self.api()?.join(&path).map_err(|error| invalid(&path, &error.to_string()))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.registry, self.repository)
    }
}

fn split_fixed(path: &str) -> (&str, Option<&str>) {
    if let Some((repository, digest)) = path.split_once('@') {
        // A digest says everything that a tag before it could say.
        let repository = repository.split_once(':').map_or(repository, |(repository, _)| repository);
        return (repository, Some(digest));
    }
    match path.split_once(':') {
        Some((repository, tag)) => (repository, Some(tag)),
        None => (path, None),
    }
}

fn is_registry(text: &str) -> bool {
    let named = text == "localhost" || text.contains(['.', ':']);
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]_".contains(c));
    named && plain && Url::parse(&format!("https://{text}/")).is_ok()
}

/// What is wrong with a host, without the password that may stand in it.
fn describe_host(registry: &str) -> &'static str {
    if registry.contains('@') {
        "credentials for a registry are read from OCI_USERNAME and OCI_PASSWORD, or from docker's config.json"
    } else {
        "it does not begin with the host of a registry"
    }
}

fn is_repository(text: &str) -> bool {
    let is_name = |name: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(inner)
    };
    text.split('/').all(is_name)
}

pub(super) fn is_tag(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.len() <= 128 && text.chars().all(inner) && !text.starts_with(['.', '-']) && !text.is_empty()
}

fn is_loopback(registry: &str) -> bool {
    let Ok(url) = Url::parse(&format!("https://{registry}/")) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_read() {
        let by_digest = format!("oci://h.io/r@{DIGEST}");
        let by_both = format!("oci://h.io/r:v1@{DIGEST}");
        for (text, registry, repository, fixed, plain) in [
            ("oci://ghcr.io/o/r", "ghcr.io", "o/r", None, PlainHttp::Never),
            ("ghcr.io/o/r:v1.0.0", "ghcr.io", "o/r", Some("v1.0.0"), PlainHttp::Never),
            ("h.io:5000/r", "h.io:5000", "r", None, PlainHttp::Never),
            ("h.io:5000/r:v1", "h.io:5000", "r", Some("v1"), PlainHttp::Never),
            ("http://h.io/r", "h.io", "r", None, PlainHttp::Always),
            ("oci://localhost:5000/r", "localhost:5000", "r", None, PlainHttp::IfNoTls),
            ("oci://127.0.0.9/r", "127.0.0.9", "r", None, PlainHttp::IfNoTls),
            ("oci://[::1]:5000/r", "[::1]:5000", "r", None, PlainHttp::IfNoTls),
            ("docker.io/r", "docker.io", "library/r", None, PlainHttp::Never),
            (&by_digest, "h.io", "r", Some(DIGEST), PlainHttp::Never),
            (&by_both, "h.io", "r", Some(DIGEST), PlainHttp::Never),
        ] {
            let found = Reference::parse(text).unwrap();
            let found = (found.registry.as_str(), found.repository.as_str(), found.fixed(), found.plain);
            assert_eq!(found, (registry, repository, fixed, plain), "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "ghcr.io",
            "o/r",
            "oci://ghcr.io/",
            "oci://ghcr.io/O/R",
            "oci://ghcr.io/../r",
            "oci://ghcr.io/a//b",
            "oci://ghcr.io/r:",
            "oci://ghcr.io/r:a:b",
            "oci://ghcr.io/r@sha256:00",
            "oci://user@ghcr.io/r",
            "https://ghcr.io/r",
            "oci://gh cr.io/r",
        ] {
            assert!(matches!(Reference::parse(text), Err(FetchError::InvalidUrl { .. })), "{text}");
        }
        for text in ["oci://user:s3cret@ghcr.io/r", "oci://ghcr.io/r?sig=s3cret", "user:s3cret@ghcr.io/r"] {
            let error = Reference::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn dockers_api_has_another_name() {
        let reference = Reference::parse("docker.io/o/r").unwrap();
        assert_eq!(
            reference.endpoint("tags/list?n=1").unwrap().as_str(),
            "https://registry-1.docker.io/v2/o/r/tags/list?n=1"
        );
    }
}
