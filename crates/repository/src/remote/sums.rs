//! Files that are vouched for by others beside them.

use super::cached::{Answer, Download, Listing};
use super::checksum::{Sha256, find_own_sum, find_sum};
use super::get::{Get, looks_like_web_page};
use super::http::Http;
use crate::FetchError;

const SUMS: &str = "SHA256SUMS";

/// Fetches a file together with the sums beside it, if there are any. `sibling` asks for a file of the release.
pub(crate) async fn fetch_with_sums(
    http: &Http,
    sibling: impl Fn(&str) -> Get,
    name: &str,
    validators: super::get::Validators,
) -> Result<Answer, FetchError> {
    let get = sibling(name).validators(validators);
    let own = format!("{name}.sha256");
    let limit = http.options.limits.listing;
    let (all_sums, own_sum) = (sibling(SUMS).limit(limit), sibling(&own).limit(limit));
    let (reply, all, alone) = if is_about_sums(name) {
        (http.get(&get).await, Ok(None), Ok(None))
    } else {
        futures::join!(http.get(&get), http.optional(&all_sums), http.optional(&own_sum))
    };
    let reply = reply?;
    if reply.is_unchanged() {
        return Ok(Answer::Unchanged);
    }
    refuse_web_page(&get, name, &reply.body)?;
    let mut download = Download::from_reply(&get.url, reply);
    let by_all = all?.and_then(|file| find_sum(text_of(&file), name)).map(|sum| (sum, SUMS.to_owned()));
    let by_own = match alone? {
        Some(file) if !looks_like_web_page(&file.bytes) => Some((read_own_sum(&own_sum, &file, name)?, own)),
        _ => None,
    };
    for (sum, by) in by_all.into_iter().chain(by_own) {
        vouch(&mut download, &get.what, sum, &by)?;
    }
    Ok(Answer::Fresh(download))
}

/// Checks a download against a promised sum.
pub(crate) fn vouch(
    download: &mut Download,
    what: &str,
    expected: Sha256,
    by: &str,
) -> Result<(), FetchError> {
    let found = Sha256::of(&download.bytes);
    if found != expected {
        return Err(FetchError::Checksum {
            what: format!("{what} (promised by {by})"),
            expected: expected.to_string(),
            found: found.to_string(),
        });
    }
    download.vouched_by = Some(by.to_owned());
    Ok(())
}

/// Servers that want a login often answer with a page and "200 OK".
pub(crate) fn refuse_web_page(get: &Get, name: &str, body: &[u8]) -> Result<(), FetchError> {
    let wanted = [".html", ".htm"].iter().any(|end| name.ends_with(end));
    if !wanted && looks_like_web_page(body) {
        return Err(FetchError::WebPage { url: get.shown() });
    }
    Ok(())
}

fn is_about_sums(name: &str) -> bool {
    name == SUMS || name.ends_with(".sha256")
}

fn text_of(file: &Listing) -> &str {
    std::str::from_utf8(&file.bytes).unwrap_or_default()
}

fn read_own_sum(get: &Get, file: &Listing, name: &str) -> Result<Sha256, FetchError> {
    find_own_sum(text_of(file), name).ok_or_else(|| FetchError::Malformed {
        url: get.shown(),
        reason: format!("it has no SHA-256 of {name}"),
    })
}
