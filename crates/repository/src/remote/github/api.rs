//! GitHub's REST API, as much of it as releases need.

use serde::Deserialize;

use super::super::cached::Download;
use super::super::checksum::Sha256;
use super::super::get::{Get, Validators, read_json};
use super::super::http::Http;
use super::super::sums::{refuse_web_page, vouch};
use super::{GitHub, TOKEN, extend};
use crate::FetchError;

/// Who vouches for an asset.
pub(super) const DIGEST: &str = "GitHub's digest";

const JSON: &str = "application/vnd.github+json";
const RAW: &str = "application/vnd.github.raw+json";
const BYTES: &str = "application/octet-stream";

#[derive(Debug, Deserialize)]
struct ListedRelease {
    tag_name: String,
    #[serde(default)]
    draft: bool,
}

/// A release with its files.
#[derive(Debug, Deserialize)]
pub(super) struct Release {
    #[serde(default)]
    pub assets: Vec<Asset>,
}

/// A file of a release.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Asset {
    id: u64,
    pub name: String,
    /// `sha256:<hex>`; older assets have none.
    digest: Option<String>,
}

impl Asset {
    fn sum(&self) -> Option<Sha256> {
        Sha256::parse(self.digest.as_deref()?)
    }
}

impl Release {
    pub(super) fn digest_of(&self, name: &str) -> Option<Sha256> {
        self.assets.iter().find(|asset| asset.name == name)?.sum()
    }
}

/// The tags of all published releases.
pub(super) async fn release_tags(github: &GitHub, http: &Http) -> Result<Vec<String>, FetchError> {
    let mut get = request(github, http, &["releases"], format!("the releases of {}", github.shown()));
    get.url.set_query(Some("per_page=100"));
    let releases: Vec<ListedRelease> = http.pages(get).await?;
    Ok(releases.into_iter().filter(|release| !release.draft).map(|release| release.tag_name).collect())
}

/// The release of a tag.
pub(super) async fn release(github: &GitHub, http: &Http, tag: &str) -> Result<Release, FetchError> {
    let what = format!("release {tag} of {}", github.shown());
    let get = request(github, http, &["releases", "tags", tag], what.clone());
    let url = get.url.clone();
    match http.page(get).await {
        Ok(page) => read_json(&url, &page.bytes),
        Err(error) if error.is_not_found() && is_tag(github, http, tag).await => Err(FetchError::NotFound {
            what: format!("{what}: the tag is there, but no release has been published for it"),
            available: Vec::new(),
        }),
        Err(error) => Err(error),
    }
}

/// Whether the tag is known to be there. The answer only explains an error that is certain already, so that
/// failing to get it changes nothing.
async fn is_tag(github: &GitHub, http: &Http, tag: &str) -> bool {
    let get = request(github, http, &["git", "ref", "tags", tag], format!("tag {tag} of {}", github.shown()));
    http.page(get).await.is_ok()
}

/// A file of a release by its number, which works for private repositories as well.
pub(super) async fn download(
    github: &GitHub,
    http: &Http,
    tag: &str,
    name: &str,
) -> Result<Download, FetchError> {
    let release = release(github, http, tag).await?;
    let what = github.describe(tag, name);
    let Some(asset) = release.assets.iter().find(|asset| asset.name == name) else {
        let available = release.assets.into_iter().map(|asset| asset.name).collect();
        return Err(FetchError::NotFound { what, available });
    };
    let id = asset.id.to_string();
    let get = request(github, http, &["releases", "assets", &id], what.clone()).accept(BYTES);
    let reply = http.get(&get).await?;
    refuse_web_page(&get, name, &reply.body)?;
    let mut download = Download::from_reply(&get.url, reply);
    if let Some(sum) = asset.sum() {
        vouch(&mut download, &what, sum, DIGEST)?;
    }
    Ok(download)
}

/// A file in the repository itself.
pub(crate) fn contents(
    github: &GitHub,
    http: &Http,
    reference: &str,
    path: &[&str],
    validators: Validators,
) -> Get {
    let what = format!("{} at {reference} of {}", path.join("/"), github.shown());
    let mut get =
        request(github, http, &[&["contents"], path].concat(), what).accept(RAW).validators(validators);
    get.url.query_pairs_mut().append_pair("ref", reference);
    get
}

fn request(github: &GitHub, http: &Http, segments: &[&str], what: String) -> Get {
    let url = extend(&github.api, &[&["repos", github.owner.as_str(), &github.repo], segments].concat());
    TOKEN.sign(Get::new(url, what).accept(JSON), github.token(http))
}
