//! A single file by its address: templates, configurations.

use reqwest::Url;

use super::GitHub;
use super::cache::Key;
use super::cached::{Answer, Download, Fetched};
use super::get::{Get, Validators};
use super::github::{Blob, api, is_release_address};
use super::http::Http;
use super::https::split_promise;
use super::shown::shown;
use super::sums::refuse_web_page;
use crate::FetchError;

/// Fetches `https://github.com/{owner}/{repo}/blob/{ref}/{path}` from the repository, a release's download from
/// the release, and any other https address as it is.
///
/// `#sha256=<hex>` or `?sha256=<hex>` promises the content.
pub async fn fetch_url(http: &Http, url: &str) -> Result<Fetched, FetchError> {
    let (parsed, promised) = split_promise(url)?;
    if is_download(&parsed)
        && let Ok(release) = GitHub::parse(url)
        && let Some(file) = release.file_name()
    {
        return release.fetch(http, release.version(), file).await;
    }
    let key = Key::new(shown(&parsed), "", "").with_query_of(&parsed);
    let ask = |validators| async {
        match Blob::parse(&parsed) {
            Some(blob) => from_repository(http, &blob, validators).await,
            None => from_server(http, Get::new(parsed.clone(), shown(&parsed)).validators(validators)).await,
        }
    };
    http.file_through_cache(&key, promised, ask).await
}

fn is_download(url: &Url) -> bool {
    is_release_address(url)
        && url.path_segments().and_then(|mut segments| segments.nth(3)) == Some("download")
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
