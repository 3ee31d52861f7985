//! Fetching through the cache.

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::LINK;

use super::cache::{Entry, Hit, Key};
use super::checksum::Sha256;
use super::get::{Get, Reply, Validators, read_json};
use super::http::Http;
use super::link::{next_in_link, next_page};
use super::options::Progress;
use super::retry::is_absence;
use super::shown::{shown, shown_address};
use super::sums::vouch;
use crate::FetchError;

/// A listing with more pages than this is of no use.
const MOST_PAGES: usize = 200;

/// A file, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The content.
    pub bytes: Vec<u8>,
    /// Its sum.
    pub sha256: Sha256,
    /// Where it came from.
    pub url: String,
    /// Who promised that sum (`SHA256SUMS`, GitHub, the user), if there is one.
    pub vouched_by: Option<String>,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// What a source gives when it is asked.
pub(crate) enum Answer {
    /// Still what the validators stand for.
    Unchanged,
    /// This.
    Fresh(Download),
}

/// A file straight from the network, checked.
#[derive(Debug, Default)]
pub(crate) struct Download {
    pub bytes: Vec<u8>,
    pub url: String,
    pub validators: Validators,
    pub vouched_by: Option<String>,
    pub next: Option<String>,
}

impl Download {
    pub(crate) fn from_reply(url: &Url, reply: Reply) -> Self {
        let validators = reply.validators();
        let next = reply.header(LINK).and_then(next_in_link).map(str::to_owned);
        Self { bytes: reply.body, url: shown(url), validators, next, vouched_by: None }
    }
}

/// A page of a listing.
#[derive(Debug)]
pub(crate) struct Listing {
    pub bytes: Vec<u8>,
    pub next: Option<String>,
}

/// Whether a version stays what it is, so that its files need not be asked for again.
pub(crate) fn is_pinned(version: &str) -> bool {
    let is_digest = version.starts_with("sha256:") || version.starts_with("sha512:");
    is_digest || semver::Version::parse(version.strip_prefix('v').unwrap_or(version)).is_ok()
}

impl Http {
    /// A file of a release: from the cache if the version is pinned, else after asking its source. `promised` is
    /// the sum that its address promises.
    pub(crate) async fn file_through_cache<F>(
        &self,
        key: &Key,
        promised: Option<Sha256>,
        ask: impl FnOnce(Validators) -> F,
    ) -> Result<Fetched, FetchError>
    where
        F: Future<Output = Result<Answer, FetchError>>,
    {
        let hit = self.look_up(key).await.filter(|hit| promised.is_none_or(|sum| sum == hit.sha256));
        let ask = |validators| async {
            let mut answer = ask(validators).await?;
            if let (Answer::Fresh(download), Some(sum)) = (&mut answer, promised) {
                vouch(download, &key.shown(), sum, "the address")?;
            }
            Ok(answer)
        };
        match hit {
            Some(hit) if is_pinned(&key.version) => {
                self.report(Progress::Cached { what: &key.shown() });
                Ok(from_hit(hit))
            }
            hit => self.revalidate(key, hit, ask).await.map(|(fetched, _)| fetched),
        }
    }

    /// A page of a listing: once a process, and from the cache if the source cannot be asked.
    pub(crate) async fn page(&self, get: Get) -> Result<Arc<Listing>, FetchError> {
        let key = Key::new(shown_with_query(&get.url), "", "");
        let get = get.limit(self.options.limits.listing);
        let ask = |validators| async move {
            let get = get.validators(validators);
            let reply = self.get(&get).await?;
            if reply.is_unchanged() {
                return Ok(Answer::Unchanged);
            }
            Ok(Answer::Fresh(Download::from_reply(&get.url, reply)))
        };
        self.listing(&key, ask).await
    }

    /// Like [`page`](Self::page), for those who ask in their own way.
    pub(crate) async fn listing<F>(
        &self,
        key: &Key,
        ask: impl FnOnce(Validators) -> F,
    ) -> Result<Arc<Listing>, FetchError>
    where
        F: Future<Output = Result<Answer, FetchError>>,
    {
        let what = key.shown();
        let found = self.once(&what, async {
            let hit = self.look_up(key).await;
            let (fetched, next) = self.revalidate(key, hit, ask).await?;
            Ok(Some(Listing { bytes: fetched.bytes, next }))
        });
        found.await?.ok_or(FetchError::NotFound { what: what.clone(), available: Vec::new() })
    }

    /// Fetches something once a process, or learns once that it is missing.
    pub(crate) async fn once(
        &self,
        key: &str,
        fetch: impl Future<Output = Result<Option<Listing>, FetchError>>,
    ) -> Result<Option<Arc<Listing>>, FetchError> {
        let cell = self.remembered(key);
        let fetch = Box::pin(fetch);
        cell.get_or_try_init(|| async { Ok(fetch.await?.map(Arc::new)) }).await.cloned()
    }

    /// Keeps a listing that was put together from several answers.
    pub(crate) async fn keep_listing(&self, key: &Key, bytes: Vec<u8>) {
        self.keep(key, Download { bytes, ..Download::default() }).await;
    }

    /// A listing from the cache; reports that it may be outdated.
    pub(crate) async fn kept_listing(&self, key: &Key) -> Option<Vec<u8>> {
        let hit = self.look_up(key).await?;
        Some(self.use_stale(key, hit, None).0.bytes)
    }

    /// All entries of a listing that comes in pages.
    pub(crate) async fn pages<T: serde::de::DeserializeOwned>(
        &self,
        first: Get,
    ) -> Result<Vec<T>, FetchError> {
        let mut items = Vec::new();
        let mut get = first;
        for _ in 0..MOST_PAGES {
            let page = self.page(get.clone()).await?;
            items.extend(read_json::<Vec<T>>(&get.url, &page.bytes)?);
            match next_request(&get, &page)? {
                Some(next) => get = next,
                None => return Ok(items),
            }
        }
        Err(FetchError::Malformed { url: get.shown(), reason: format!("more than {MOST_PAGES} pages") })
    }

    /// A small file that may be missing, once a process.
    pub(crate) async fn optional(&self, get: &Get) -> Result<Option<Arc<Listing>>, FetchError> {
        let fetch = async {
            match self.get(get).await {
                Ok(reply) => Ok(Some(Listing { bytes: reply.body, next: None })),
                Err(
                    FetchError::NotFound { .. }
                    | FetchError::Unauthorized { .. }
                    | FetchError::RefusedElsewhere { .. },
                ) => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.once(get.url.as_str(), fetch).await
    }

    async fn revalidate<F>(
        &self,
        key: &Key,
        hit: Option<Hit>,
        ask: impl FnOnce(Validators) -> F,
    ) -> Result<(Fetched, Option<String>), FetchError>
    where
        F: Future<Output = Result<Answer, FetchError>>,
    {
        if self.options.offline {
            let hit = hit.ok_or_else(|| FetchError::Offline { what: key.shown() })?;
            return Ok(self.use_stale(key, hit, None));
        }
        let validators = hit.as_ref().map(|hit| validators_of(&hit.entry)).unwrap_or_default();
        match (Box::pin(ask(validators)).await, hit) {
            (Ok(Answer::Fresh(download)), _) => Ok(self.keep(key, download).await),
            (Ok(Answer::Unchanged), Some(hit)) => {
                self.report(Progress::Cached { what: &key.shown() });
                let next = hit.entry.next.clone();
                Ok((from_hit(hit), next))
            }
            (Ok(Answer::Unchanged), None) => Err(FetchError::Malformed {
                url: key.shown(),
                reason: "it is said to be unchanged, but nothing was fetched before".to_owned(),
            }),
            (Err(error), Some(hit)) if is_absence(&error) => Ok(self.use_stale(key, hit, Some(&error))),
            (Err(error), _) => Err(error),
        }
    }

    fn use_stale(&self, key: &Key, hit: Hit, reason: Option<&FetchError>) -> (Fetched, Option<String>) {
        let fetched = hit.entry.fetched;
        self.report(Progress::Stale { what: &key.shown(), fetched, reason });
        let next = hit.entry.next.clone();
        (from_hit(hit), next)
    }

    async fn look_up(&self, key: &Key) -> Option<Hit> {
        let outcome = self.cache.as_ref()?.read(key, (self.options.clock)()).await;
        outcome.unwrap_or_else(|error| {
            self.warn(&error.to_string());
            None
        })
    }

    /// A cache that cannot be written to is no reason to do without the file.
    async fn keep(&self, key: &Key, download: Download) -> (Fetched, Option<String>) {
        let sha256 = Sha256::of(&download.bytes);
        if let Some(cache) = &self.cache {
            let entry = Entry {
                key: key.clone(),
                url: download.url.clone(),
                etag: download.validators.etag,
                last_modified: download.validators.last_modified,
                next: download.next.clone(),
                vouched_by: download.vouched_by.clone(),
                sha256: sha256.to_string(),
                size: download.bytes.len() as u64,
                fetched: (self.options.clock)(),
            };
            if let Err(error) = cache.write(entry, download.bytes.clone()).await {
                self.warn(&error.to_string());
            }
        }
        let Download { bytes, url, vouched_by, next, .. } = download;
        (Fetched { bytes, sha256, url, vouched_by, cached: false }, next)
    }
}

/// The request for the page after this one.
pub(crate) fn next_request(get: &Get, page: &Listing) -> Result<Option<Get>, FetchError> {
    let Some(target) = &page.next else { return Ok(None) };
    let url = next_page(&get.url, target).ok_or_else(|| FetchError::Malformed {
        url: get.shown(),
        reason: format!("its next page is on another server: {}", shown_address(target)),
    })?;
    Ok(Some(Get { url, ..get.clone() }))
}

fn from_hit(hit: Hit) -> Fetched {
    let Hit { entry, sha256, bytes } = hit;
    Fetched { bytes, sha256, url: entry.url, vouched_by: entry.vouched_by, cached: true }
}

fn validators_of(entry: &Entry) -> Validators {
    Validators { etag: entry.etag.clone(), last_modified: entry.last_modified.clone() }
}

/// Pages differ only by their query, which holds no secrets: tokens travel in headers.
fn shown_with_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", shown(url)),
        None => shown(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_are_pinned() {
        for version in ["v1.2.3", "1.2.3", "v1.0.0-rc.1", "v1.0.0+k3s1"] {
            assert!(is_pinned(version), "{version}");
        }
        for version in ["latest", "v1", "main", "", "v1.2", "vv1.2.3"] {
            assert!(!is_pinned(version), "{version}");
        }
    }
}
