//! Releases on any https server.

use std::fmt;

use reqwest::Url;

use super::cache::Key;
use super::cached::{Fetched, is_pinned};
use super::checksum::Sha256;
use super::get::Get;
use super::http::Http;
use super::shown::{shown, shown_address};
use super::sums::fetch_with_sums;
use crate::FetchError;
use crate::local::LATEST;

/// `https://host/.../{latest|version}/{file}`: the other files and versions lie at the same place.
///
/// `#sha256=<hex>` promises the sum of the file that the address names.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpsRelease {
    /// The address of the file, without the promise.
    url: Url,
    version: String,
    file: String,
    promised: Option<Sha256>,
}

// The address may hold a password or a signature.
impl fmt::Debug for HttpsRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsRelease").field("url", &shown(&self.url)).finish_non_exhaustive()
    }
}

impl HttpsRelease {
    /// Reads an address.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        let (parsed, promised) = split_promise(url)?;
        let mut segments = parsed.path_segments().into_iter().flatten().rev();
        let (file, version) = (segments.next().map(decode), segments.next().map(decode));
        match (file, version) {
            (Some(file), Some(version)) if !file.is_empty() && (version == LATEST || is_pinned(&version)) => {
                Ok(Self { url: parsed, version, file, promised })
            }
            _ => Err(invalid(url, "it must end with {latest or a version like v1.2.3}/{file}")),
        }
    }

    /// The version that the address names; `latest` is fetched literally.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file that the address names.
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// The one version that is known: a plain server cannot be asked for others.
    #[expect(clippy::unused_async, reason = "like the other sources")]
    pub async fn versions(&self, _http: &Http) -> Result<Vec<String>, FetchError> {
        Ok(vec![self.version.clone()])
    }

    /// Nothing: a plain server cannot be asked what it has.
    #[expect(clippy::unused_async, reason = "like the other sources")]
    pub async fn files(&self, _http: &Http, _version: &str) -> Result<Option<Vec<String>>, FetchError> {
        Ok(None)
    }

    /// The content of a file.
    pub async fn file(&self, http: &Http, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(http, version, name).await.map(|fetched| fetched.bytes)
    }

    /// A file, and what is known about it.
    pub async fn fetch(&self, http: &Http, version: &str, name: &str) -> Result<Fetched, FetchError> {
        let promised = self.promised.filter(|_| is_named(&self.version, Some(&self.file), version, name));
        let what = format!("{name} of {version} at {}", self.shown_root());
        let sibling = |name: &str| Get::new(self.locate(version, name), what.clone());
        let key = Key::new(self.shown_root(), version, name).with_query_of(&self.url);
        let ask = |validators| fetch_with_sums(http, sibling, name, validators);
        http.file_through_cache(&key, promised, ask).await
    }

    fn locate(&self, version: &str, name: &str) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop().pop().push(version).extend(name.split('/'));
        }
        url
    }

    fn shown_root(&self) -> String {
        let shown = shown(&self.url);
        shown.rsplitn(3, '/').last().unwrap_or_default().to_owned()
    }
}

/// Takes `#sha256=<hex>` or `?sha256=<hex>` off an https address.
pub(crate) fn split_promise(text: &str) -> Result<(Url, Option<Sha256>), FetchError> {
    let mut url = Url::parse(text).map_err(|error| invalid(text, &error.to_string()))?;
    if url.scheme() != "https" || url.host_str().is_none() {
        return Err(invalid(text, "only https addresses can be fetched"));
    }
    let in_query = url.query_pairs().find(|(name, _)| name == "sha256").map(|(_, value)| value.into_owned());
    let in_fragment = url.fragment().and_then(|fragment| fragment.strip_prefix("sha256=")).map(str::to_owned);
    if in_query.is_some() {
        remove_from_query(&mut url, "sha256");
    }
    url.set_fragment(None);
    let promised = in_fragment.or(in_query).map(|hex| {
        Sha256::parse(&hex).ok_or_else(|| invalid(text, "its sha256 must be 64 hexadecimal digits"))
    });
    Ok((url, promised.transpose()?))
}

/// Whether a file is the one that an address names, so that the address's promise is about it. `latest` stands for
/// whichever version is asked for.
pub(crate) fn is_named(version: &str, file: Option<&str>, wanted: &str, name: &str) -> bool {
    file == Some(name) && (version == wanted || version == LATEST)
}

fn remove_from_query(url: &mut Url, name: &str) {
    // The other pairs stay byte for byte: they may be signed.
    let rest: Vec<_> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| pair.split('=').next() != Some(name))
        .map(str::to_owned)
        .collect();
    url.set_query(Some(rest.join("&")).filter(|query| !query.is_empty()).as_deref());
}

pub(crate) fn invalid(url: &str, reason: &str) -> FetchError {
    FetchError::InvalidUrl { url: shown_address(url), reason: reason.to_owned() }
}

pub(crate) fn decode(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn other_files_lie_at_the_same_place() {
        let release = HttpsRelease::parse("https://h:8443/a/v1.0.0/components.yaml?sig=1").unwrap();
        assert_eq!((release.version(), release.file_name()), ("v1.0.0", "components.yaml"));
        assert_eq!(
            release.locate("v2.0.0", "metadata.yaml").as_str(),
            "https://h:8443/a/v2.0.0/metadata.yaml?sig=1"
        );
        // A name never leads out of the release.
        assert_eq!(release.locate("v2.0.0", "../../x").as_str(), "https://h:8443/a/v2.0.0/x?sig=1");
        assert_eq!(release.shown_root(), "https://h:8443/a");
        assert_eq!(HttpsRelease::parse("https://h/latest/f").unwrap().shown_root(), "https://h");
    }

    #[test]
    fn addresses_without_a_version_are_refused() {
        for url in [
            "https://h/f",
            "https://h/a/f",
            "https://h/v1.0.0/",
            "https://h",
            "http://h/v1.0.0/f",
            "h/v1.0.0/f",
            "file:///v1.0.0/f",
            "https://h/v1.0.0/f#sha256=12",
        ] {
            assert!(HttpsRelease::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn promises_are_taken_off() {
        let sum = Sha256::parse(SUM);
        for (url, rest, promised) in [
            (format!("https://h/f#sha256={SUM}"), "https://h/f", sum),
            (format!("https://h/f?sha256={SUM}"), "https://h/f", sum),
            (format!("https://h/f?a=%2f&sha256={SUM}&b"), "https://h/f?a=%2f&b", sum),
            ("https://h/f?a=1#x".to_owned(), "https://h/f?a=1", None),
        ] {
            let (found, sum) = split_promise(&url).unwrap();
            assert_eq!((found.as_str(), sum), (rest, promised), "{url}");
        }
    }
}
