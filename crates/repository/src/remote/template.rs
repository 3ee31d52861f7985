//! A single file by its address: templates, configurations.

use reqwest::Url;

use super::GitHub;
use super::cache::Key;
use super::cached::{Answer, Download, Fetched};
use super::checksum::Sha256;
use super::get::{Get, Validators, shown};
use super::github::{Blob, api, is_release_address};
use super::http::Http;
use super::https::split_promise;
use super::sums::{refuse_web_page, vouch};
use crate::FetchError;

/// Fetches `https://github.com/{owner}/{repo}/blob/{ref}/{path}` from the repository, a release's download from
/// the release, and any other https address as it is.
///
/// `#sha256=<hex>` or `?sha256=<hex>` promises the content.
pub async fn fetch_url(http: &Http, url: &str) -> Result<Fetched, FetchError> {
    let (parsed, promised) = split_promise(url)?;
    if let Some(release) = as_download(&parsed)
        && let Some(file) = release.file_name()
    {
        let fetched = release.fetch(http, release.version(), file).await?;
        return check(fetched, promised, &parsed);
    }
    // The query may tell files apart, but may also be a secret: only its sum is kept.
    let query = parsed.query().map(|query| Sha256::of(query.as_bytes()).to_string()).unwrap_or_default();
    let key = Key::new(shown(&parsed), "", &query);
    let ask = |validators| async {
        let answer = match Blob::parse(&parsed) {
            Some(blob) => from_repository(http, &blob, validators).await?,
            None => {
                from_server(http, Get::new(parsed.clone(), shown(&parsed)).validators(validators)).await?
            }
        };
        match (answer, promised) {
            (Answer::Fresh(mut download), Some(sum)) => {
                vouch(&mut download, &shown(&parsed), sum, "the address")?;
                Ok(Answer::Fresh(download))
            }
            (answer, _) => Ok(answer),
        }
    };
    http.file_through_cache(&key, promised, ask).await
}

fn as_download(url: &Url) -> Option<GitHub> {
    let is_download = is_release_address(url) && url.path_segments()?.nth(3) == Some("download");
    GitHub::parse(url.as_str()).ok().filter(|_| is_download)
}

fn check(fetched: Fetched, promised: Option<Sha256>, url: &Url) -> Result<Fetched, FetchError> {
    match promised {
        Some(sum) if sum != fetched.sha256 => Err(FetchError::Checksum {
            what: format!("{} (promised by the address)", shown(url)),
            expected: sum.to_string(),
            found: fetched.sha256.to_string(),
        }),
        _ => Ok(fetched),
    }
}

/// Branches may have slashes, so that every way to read the address is tried, the likeliest first.
async fn from_repository(http: &Http, blob: &Blob, validators: Validators) -> Result<Answer, FetchError> {
    let mut first_error = None;
    for (reference, path) in blob.readings() {
        let get = api::contents(&blob.repository, http, &reference, &path, validators.clone());
        match from_server(http, get).await {
            Err(error) if error.is_not_found() => {
                first_error.get_or_insert(error);
            }
            outcome => return outcome,
        }
    }
    let what = blob.segments.join("/");
    Err(first_error.unwrap_or(FetchError::NotFound { what, available: Vec::new() }))
}

async fn from_server(http: &Http, get: Get) -> Result<Answer, FetchError> {
    let reply = http.get(&get).await?;
    if reply.is_unchanged() {
        return Ok(Answer::Unchanged);
    }
    refuse_web_page(&get, get.url.path(), &reply.body)?;
    Ok(Answer::Fresh(Download::from_reply(&get.url, reply)))
}
