//! Releases on GitHub, and on GitHub Enterprise servers.
//!
//! Versions come from the Go module proxy where there is one, for it has no quota; files come by the public
//! download address, for the same reason. The API answers for the rest: private repositories, repositories
//! that are no Go modules, and the reasons why something is missing.
//!
//! Any host whose path is `/{owner}/{repo}/releases...` is taken for GitHub Enterprise. A plain server that
//! happens to have that layout works too: its files are found where the address says, only its versions
//! cannot be listed.

mod address;
pub(crate) mod api;
mod go_proxy;

use reqwest::Url;

pub(crate) use self::address::{Blob, is_release_address};
use self::go_proxy::GoProxy;
use super::cache::Key;
use super::cached::{Answer, Download, Fetched};
use super::checksum::Sha256;
use super::get::{Get, Validators};
use super::http::Http;
use super::https::is_named;
use super::options::non_empty;
use super::retry::is_absence;
use super::sums::{fetch_with_sums, vouch};
use super::token::{Token, TokenRule, is_listed};
use crate::FetchError;

const TOKEN: TokenRule = TokenRule { variable: "GITHUB_TOKEN", hosts_variable: "GITHUB_HOSTS" };

const PUBLIC_HOST: &str = "github.com";

/// The releases of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    /// Host, with its port if it has one.
    authority: String,
    owner: String,
    repo: String,
    version: String,
    file: Option<String>,
    promised: Option<Sha256>,
    web: Url,
    api: Url,
}

impl GitHub {
    /// Reads one of
    /// - `https://github.com/{owner}/{repo}/releases`
    /// - `https://github.com/{owner}/{repo}/releases/{latest|tag}/{file}`
    /// - `https://github.com/{owner}/{repo}/releases/download/{tag}/{file}`
    /// - `https://github.com/{owner}/{repo}/releases/latest/download/{file}`
    /// - `https://github.com/{owner}/{repo}/releases/tag/{tag}`
    ///
    /// or the same on another host. `#sha256=<hex>` promises the sum of the file.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        address::parse_release(url)
    }

    /// The version that the address names, `latest` if it names none.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file that the address names.
    pub fn file_name(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The tags that may be versions, in no order.
    pub async fn versions(&self, http: &Http) -> Result<Vec<String>, FetchError> {
        let proxy = self.go_proxy(http);
        if let Some(proxy) = &proxy {
            match proxy.versions(http, &self.module()).await {
                Ok(versions) if !versions.is_empty() => return Ok(versions),
                Ok(_) | Err(FetchError::Offline { .. }) => {}
                Err(error) => http.warn(&format!("the Go module proxy is of no help: {error}")),
            }
        }
        match (api::release_tags(self, http).await, proxy) {
            // No server can be asked: the remembered answer is the best there is.
            (Err(error), Some(proxy)) if is_absence(&error) => {
                proxy.remembered(http, &self.module()).await.ok_or(error)
            }
            (outcome, _) => outcome,
        }
    }

    /// The names of a release's files.
    pub async fn files(&self, http: &Http, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        let release = api::release(self, http, version).await?;
        Ok(Some(release.assets.into_iter().map(|asset| asset.name).collect()))
    }

    /// The content of a file.
    pub async fn file(&self, http: &Http, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(http, version, name).await.map(|fetched| fetched.bytes)
    }

    /// A file, and what is known about it.
    pub async fn fetch(&self, http: &Http, version: &str, name: &str) -> Result<Fetched, FetchError> {
        let key = Key::new(self.shown(), version, name);
        let promised = self.promised.filter(|_| is_named(&self.version, self.file_name(), version, name));
        http.file_through_cache(&key, promised, |_| self.download(http, version, name)).await
    }

    async fn download(&self, http: &Http, version: &str, name: &str) -> Result<Answer, FetchError> {
        let direct = |name: &str| self.direct(http, version, name);
        match fetch_with_sums(http, direct, name, Validators::default()).await {
            Ok(Answer::Fresh(download)) => {
                self.check_digest(http, version, name, download).await.map(Answer::Fresh)
            }
            Err(error) if may_be_private(&error) => self.download_otherwise(http, version, name, error).await,
            outcome => outcome,
        }
    }

    /// When the public address fails: the API, and on hosts that may not be GitHub the address as it is written.
    async fn download_otherwise(
        &self,
        http: &Http,
        version: &str,
        name: &str,
        direct: FetchError,
    ) -> Result<Answer, FetchError> {
        let by_api = match api::download(self, http, version, name).await {
            Ok(download) => return Ok(Answer::Fresh(download)),
            Err(error @ FetchError::Checksum { .. }) => return Err(error),
            Err(error) => error,
        };
        if direct.is_not_found() && self.authority != PUBLIC_HOST {
            let literal =
                |name: &str| Get::new(self.page(&["releases", version, name]), self.describe(version, name));
            if let Ok(answer) = fetch_with_sums(http, literal, name, Validators::default()).await {
                return Ok(answer);
            }
        }
        // Without a token a private repository cannot be read at all, so that "not found" is the whole answer;
        // the API would only have said more about it.
        let is_settled = direct.is_not_found() && !self.has_token(http);
        Err(if is_settled && !by_api.is_not_found() { direct } else { by_api })
    }

    /// GitHub knows the sums of newer assets, but asking for them costs quota, which only tokens have enough of.
    async fn check_digest(
        &self,
        http: &Http,
        version: &str,
        name: &str,
        mut download: Download,
    ) -> Result<Download, FetchError> {
        if download.vouched_by.is_none() && self.has_token(http) {
            match api::release(self, http, version).await {
                Ok(release) => {
                    if let Some(sum) = release.digest_of(name) {
                        vouch(&mut download, &self.describe(version, name), sum, api::DIGEST)?;
                    }
                }
                Err(error) => http.warn(&format!("the checksum of {name} cannot be looked up: {error}")),
            }
        }
        Ok(download)
    }

    /// The public address, which needs no token.
    fn direct(&self, http: &Http, version: &str, name: &str) -> Get {
        let url = self.page(&["releases", "download", version, name]);
        let unsigned = Token { authorization: None, ..self.token(http) };
        TOKEN.sign(Get::new(url, self.describe(version, name)), unsigned)
    }

    fn page(&self, segments: &[&str]) -> Url {
        extend(&self.web, &[&[self.owner.as_str(), &self.repo], segments].concat())
    }

    fn go_proxy(&self, http: &Http) -> Option<GoProxy> {
        let configured = non_empty(http.options.go_proxy.as_deref());
        // The public proxy knows nothing of private hosts, and need not learn of them.
        if configured.is_none() && self.authority != PUBLIC_HOST {
            return None;
        }
        GoProxy::from_variable(configured)
    }

    fn module(&self) -> String {
        let host = self.web.host_str().unwrap_or(PUBLIC_HOST);
        format!("{host}/{}/{}", self.owner, self.repo)
    }

    fn token(&self, http: &Http) -> Token {
        let trusted = self.authority == PUBLIC_HOST || is_listed(&http.options.github_hosts, &self.web);
        TOKEN.token(http.options.github_token.as_deref(), trusted)
    }

    fn has_token(&self, http: &Http) -> bool {
        self.token(http).authorization.is_some()
    }

    fn shown(&self) -> String {
        format!("{}/{}/{}", self.authority, self.owner, self.repo)
    }

    fn describe(&self, version: &str, name: &str) -> String {
        format!("{name} of release {version} of {}", self.shown())
    }
}

/// Whether the API may know better than the public address.
fn may_be_private(error: &FetchError) -> bool {
    !matches!(
        error,
        FetchError::Checksum { .. }
            | FetchError::Malformed { .. }
            | FetchError::Offline { .. }
            | FetchError::Redirect { .. }
            | FetchError::TooLarge { .. }
    )
}

fn extend(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
