//! Releases as generic packages on GitLab.

use std::fmt;

use reqwest::Url;
use serde::Deserialize;

use super::cache::Key;
use super::cached::Fetched;
use super::checksum::Sha256;
use super::get::Get;
use super::http::Http;
use super::https::{decode, invalid, is_named, split_promise};
use super::shown::shown;
use super::sums::fetch_with_sums;
use super::token::{TokenRule, is_listed};
use crate::FetchError;

const TOKEN: TokenRule = TokenRule { variable: "GITLAB_ACCESS_TOKEN", hosts_variable: "GITLAB_HOSTS" };

/// The generic packages of one project, by one name.
#[derive(Clone, PartialEq, Eq)]
pub struct GitLab {
    /// `https://host/.../api/v4/projects/{slug}`, the slug still escaped.
    project: Url,
    package: String,
    version: String,
    file: String,
    promised: Option<Sha256>,
}

// The address may hold a password.
impl fmt::Debug for GitLab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitLab")
            .field("project", &shown(&self.project))
            .field("package", &self.package)
            .field("version", &self.version)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
struct Package {
    id: u64,
    name: String,
    version: String,
}

#[derive(Debug, Deserialize)]
struct PackageFile {
    file_name: String,
}

impl GitLab {
    /// Reads `https://{host}/api/v4/projects/{slug}/packages/generic/{package}/{version}/{file}`, on any host
    /// and below any path. `#sha256=<hex>` promises the sum of that file.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        let (parsed, promised) = split_promise(url)?;
        Self::from_url(&parsed, promised).ok_or_else(|| {
            invalid(
                url,
                "it must be https://{host}/api/v4/projects/{slug}/packages/generic/{package}/{version}/{file}",
            )
        })
    }

    /// Reads an address, if its path is that of a generic package.
    pub(crate) fn from_url(url: &Url, promised: Option<Sha256>) -> Option<Self> {
        let segments: Vec<_> = url.path_segments()?.collect();
        let api = segments.windows(3).position(|three| three == ["api", "v4", "projects"])?;
        let (prefix, rest) = segments.split_at_checked(api + 3)?;
        let [slug, "packages", "generic", package, version, file] = rest else { return None };
        if url.scheme() != "https" || [slug, package, version, file].iter().any(|part| part.is_empty()) {
            return None;
        }
        let mut project = url.clone();
        project.set_query(None);
        project.set_fragment(None);
        project.set_path(&format!("{}/{slug}", prefix.join("/")));
        Some(Self {
            project,
            package: decode(package),
            version: decode(version),
            file: decode(file),
            promised,
        })
    }

    /// The version that the address names.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file that the address names.
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// The versions of the package, in no order.
    pub async fn versions(&self, http: &Http) -> Result<Vec<String>, FetchError> {
        Ok(self.packages(http).await?.into_iter().map(|package| package.version).collect())
    }

    /// The names of a version's files.
    pub async fn files(&self, http: &Http, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        let packages = self.packages(http).await?;
        let Some(package) = packages.iter().find(|package| package.version == version) else {
            return Err(FetchError::NotFound {
                what: format!("version {version} of {}", self.shown()),
                available: packages.into_iter().map(|package| package.version).collect(),
            });
        };
        let id = package.id.to_string();
        let mut get =
            self.request(http, &["packages", &id, "package_files"], self.describe(version, "the files"));
        get.url.set_query(Some("per_page=100"));
        let files: Vec<PackageFile> = http.pages(get).await?;
        Ok(Some(files.into_iter().map(|file| file.file_name).collect()))
    }

    /// The content of a file.
    pub async fn file(&self, http: &Http, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(http, version, name).await.map(|fetched| fetched.bytes)
    }

    /// A file, and what is known about it.
    pub async fn fetch(&self, http: &Http, version: &str, name: &str) -> Result<Fetched, FetchError> {
        let sibling = |file: &str| {
            let path = ["packages", "generic", &self.package, version, file];
            self.request(http, &path, self.describe(version, name))
        };
        let key = Key::new(self.shown(), version, name);
        let promised = self.promised.filter(|_| is_named(&self.version, Some(&self.file), version, name));
        let ask = |validators| fetch_with_sums(http, sibling, name, validators);
        http.file_through_cache(&key, promised, ask).await
    }

    async fn packages(&self, http: &Http) -> Result<Vec<Package>, FetchError> {
        let mut get = self.request(http, &["packages"], format!("the packages of {}", self.shown()));
        get.url
            .query_pairs_mut()
            .append_pair("package_type", "generic")
            .append_pair("package_name", &self.package)
            .append_pair("per_page", "100");
        let packages: Vec<Package> = http.pages(get).await?;
        // GitLab searches by similarity.
        Ok(packages.into_iter().filter(|package| package.name == self.package).collect())
    }

    fn request(&self, http: &Http, segments: &[&str], what: String) -> Get {
        let mut url = self.project.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        let trusted = is_public(&url) || is_listed(&http.options.gitlab_hosts, &url);
        let token = TOKEN.token(http.options.gitlab_token.as_deref(), trusted);
        TOKEN.sign(Get::new(url, what), token)
    }

    fn shown(&self) -> String {
        format!("{} ({})", self.package, shown(&self.project))
    }

    fn describe(&self, version: &str, name: &str) -> String {
        format!("{name} of version {version} of {}", self.shown())
    }
}

/// Whether this is GitLab's own server. Any other may have any owner, whatever it is called.
fn is_public(url: &Url) -> bool {
    url.host_str() == Some("gitlab.com") && url.port().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_recognised_on_any_host() {
        for (url, project) in [
            (
                "https://gitlab.example.com/api/v4/projects/g%2Fp/packages/generic/capi/v1.0.0/f.yaml",
                "https://gitlab.example.com/api/v4/projects/g%2Fp",
            ),
            (
                "https://code.corp:8443/git/api/v4/projects/42/packages/generic/capi/v1.0.0/f.yaml?x#y",
                "https://code.corp:8443/git/api/v4/projects/42",
            ),
        ] {
            let found = GitLab::parse(url).unwrap();
            assert_eq!(found.project.as_str(), project);
            assert_eq!(
                (found.package.as_str(), found.version(), found.file_name()),
                ("capi", "v1.0.0", "f.yaml")
            );
        }
    }

    #[test]
    fn only_gitlabs_own_server_needs_no_naming() {
        for (url, expected) in [
            ("https://gitlab.com/x", true),
            ("https://gitlab.com:443/x", true),
            ("https://gitlab.com:8443/x", false),
            ("https://gitlab.evil.example/x", false),
            ("https://gitlab.com.evil.example/x", false),
            ("https://my.gitlab.com/x", false),
        ] {
            assert_eq!(is_public(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for url in [
            "https://gitlab.example.com/g/p/-/releases",
            "https://gitlab.example.com/api/v4/projects/g/packages/generic/capi/v1.0.0",
            "https://gitlab.example.com/api/v4/projects/g/packages/generic/capi/v1.0.0/",
            "https://gitlab.example.com/api/v4/projects/g/packages/generic/capi/v1.0.0/a/b",
            "http://gitlab.example.com/api/v4/projects/g/packages/generic/capi/v1.0.0/f",
            "nonsense",
        ] {
            assert!(matches!(GitLab::parse(url), Err(FetchError::InvalidUrl { .. })), "{url}");
        }
    }
}
