//! The one client that everything is fetched with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION};
use reqwest::{Certificate, Client, Response, Url};
use tokio::sync::OnceCell;

use super::cache::Cache;
use super::cached::Listing;
use super::get::{Get, Reply};
use super::options::{HttpOptions, Progress};
use super::redirect::{self, LONGEST_CHAIN};
use super::{refusal, retry};
use crate::FetchError;

/// A refusal says why in a few words; more of it is not read.
const LONGEST_REFUSAL: usize = 64 << 10;

type Remembered = Arc<OnceCell<Option<Arc<Listing>>>>;

/// What was listed, by what was asked, with the time of the question.
type Listings = HashMap<String, (Timestamp, Remembered)>;

/// Fetches over the network, with good manners. Cheap to clone; clones share connections and listings.
#[derive(Clone)]
pub struct Http {
    /// Made when it is needed: the system's authorities are many, and most commands send no request.
    pub(super) client: Arc<OnceLock<Client>>,
    pub(super) options: Arc<HttpOptions>,
    pub(super) cache: Option<Cache>,
    /// What was listed: a source is not asked twice within [`HttpOptions::listings_max_age`].
    listings: Arc<Mutex<Listings>>,
    pub(super) registry_sessions: Arc<Mutex<HashMap<String, HeaderValue>>>,
}

impl Http {
    /// Sets the manners up; nothing is connected to yet. The process must have installed a rustls provider.
    pub fn new(options: HttpOptions) -> Self {
        let root = options.cache_dir.clone().filter(|_| options.cache_limit > 0);
        let cache = root.map(|root| Cache::new(root, options.cache_limit));
        Self {
            client: Arc::default(),
            cache,
            options: Arc::new(options),
            listings: Arc::default(),
            registry_sessions: Arc::default(),
        }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = build_client(&self.options)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Sends a request until it succeeds or cannot; every answer but success and "unchanged" is an error.
    pub(crate) async fn get(&self, get: &Get) -> Result<Reply, FetchError> {
        let reply = self.exchange(get).await?;
        self.settle(get, reply)
    }

    /// Tells success from refusal.
    pub(crate) fn settle(&self, get: &Get, reply: Reply) -> Result<Reply, FetchError> {
        if reply.status.is_success() || reply.is_unchanged() {
            return Ok(reply);
        }
        Err(refusal::explain(get, &reply, (self.options.clock)()))
    }

    /// Sends a request until there is an answer, of whatever kind below 500.
    pub(crate) async fn exchange(&self, get: &Get) -> Result<Reply, FetchError> {
        if self.options.offline {
            return Err(FetchError::Offline { what: get.what.clone() });
        }
        let total = self.options.timeouts.total;
        match tokio::time::timeout(total, Box::pin(self.attempt_until_final(get))).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::TimedOut { url: get.shown(), after: total }),
        }
    }

    async fn attempt_until_final(&self, get: &Get) -> Result<Reply, FetchError> {
        let attempts = if get.once { 1 } else { self.options.retry.attempts };
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(get).await;
            match outcome {
                Err(reason) if attempt < attempts && retry::is_transient(&reason) => {
                    self.report(Progress::Retrying { url: &get.shown(), attempt, reason: &reason });
                    tokio::time::sleep(retry::pause(&self.options.retry, attempt)).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, get: &Get) -> Result<Reply, FetchError> {
        self.report(Progress::Requested { url: &get.shown() });
        let mut url = get.url.clone();
        let mut authorization = get.authorization.clone();
        let mut direct = true;
        for _ in 0..=LONGEST_CHAIN {
            let response = self.send(get, &url, authorization.as_ref()).await?;
            let Some(location) = read_redirect(&response) else {
                return self.receive(get, response, url, direct).await;
            };
            let hop = redirect::follow(&url, &location, get.plain_http)
                .map_err(|reason| FetchError::Redirect { url: get.shown(), reason })?;
            direct &= hop.same_origin;
            authorization = authorization.filter(|_| direct);
            url = hop.url;
        }
        Err(FetchError::Redirect { url: get.shown(), reason: format!("more than {LONGEST_CHAIN} times") })
    }

    async fn send(
        &self,
        get: &Get,
        url: &Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, FetchError> {
        let mut request = self.client()?.get(url.clone());
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(accept) = get.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(etag) = &get.validators.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(date) = &get.validators.last_modified {
            request = request.header(IF_MODIFIED_SINCE, date);
        }
        request.send().await.map_err(|error| self.explain_failure(get, error))
    }

    fn explain_failure(&self, get: &Get, error: reqwest::Error) -> FetchError {
        let url = get.shown();
        if error.is_timeout() && !error.is_connect() {
            return FetchError::TimedOut { url, after: self.options.timeouts.idle };
        }
        FetchError::Unreachable { url, source: Box::new(error.without_url()) }
    }

    async fn receive(
        &self,
        get: &Get,
        response: Response,
        url: Url,
        direct: bool,
    ) -> Result<Reply, FetchError> {
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            let body = self.receive_body(get, response).await?;
            return Ok(Reply { url, direct, status, headers, body });
        }
        let body = receive_refusal(response).await;
        let reply = Reply { url, direct, status, headers, body };
        if status.is_server_error() {
            return Err(refusal::explain(get, &reply, (self.options.clock)()));
        }
        Ok(reply)
    }

    async fn receive_body(&self, get: &Get, mut response: Response) -> Result<Vec<u8>, FetchError> {
        let url = get.shown();
        let limit = get.limit.unwrap_or(self.options.limits.file);
        let total = response.content_length();
        if total.is_some_and(|total| total > limit) {
            return Err(FetchError::TooLarge { url, limit });
        }
        let mut body = Vec::new();
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) if error.is_timeout() => return Err(self.explain_failure(get, error)),
                Err(_) => return Err(FetchError::Truncated { url, expected: total, found: length(&body) }),
            };
            body.extend_from_slice(&chunk);
            if length(&body) > limit {
                return Err(FetchError::TooLarge { url, limit });
            }
            self.report(Progress::Received { url: &url, bytes: length(&body), total });
        }
        match total {
            Some(expected) if expected != length(&body) => {
                Err(FetchError::Truncated { url, expected: total, found: length(&body) })
            }
            _ => Ok(body),
        }
    }

    /// Forgets what was listed, so that new versions are seen at once. [`HttpOptions::listings_max_age`] has them
    /// seen in time without a call.
    pub fn forget_listings(&self) {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn report(&self, progress: Progress<'_>) {
        if let Some(listener) = &self.options.progress {
            listener(progress);
        }
    }

    pub(crate) fn warn(&self, text: &str) {
        self.report(Progress::Warning { text });
    }

    pub(super) fn remembered(&self, key: &str) -> Remembered {
        let now = (self.options.clock)();
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(max_age) = self.options.listings_max_age {
            listings.retain(|_, (asked, _)| is_within(*asked, now, max_age));
        }
        listings.entry(key.to_owned()).or_insert_with(|| (now, Remembered::default())).1.clone()
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Whether something of a time is younger than a limit. A clock that was set back says nothing about it.
fn is_within(asked: Timestamp, now: Timestamp, max_age: Duration) -> bool {
    Duration::try_from(now.duration_since(asked)).is_ok_and(|age| age < max_age)
}

fn build_client(options: &HttpOptions) -> Result<Client, FetchError> {
    let mut builder = Client::builder()
        .user_agent(&options.user_agent)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        // Retries are ours: reqwest's would hide them from the limits above.
        .retry(reqwest::retry::never())
        .connect_timeout(options.timeouts.connect)
        .read_timeout(options.timeouts.idle);
    if !options.system_proxies {
        builder = builder.no_proxy();
    }
    for (host, address) in &options.resolve {
        builder = builder.resolve(host, *address);
    }
    let mut roots = Vec::new();
    for pem in &options.extra_roots {
        roots.extend(Certificate::from_pem_bundle(pem.as_bytes()).map_err(|error| setup_failure(&error))?);
    }
    let builder =
        if options.system_roots { builder.tls_certs_merge(roots) } else { builder.tls_certs_only(roots) };
    builder.build().map_err(|error| setup_failure(&error))
}

fn setup_failure(error: &reqwest::Error) -> FetchError {
    use std::error::Error;
    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    FetchError::Client { reason }
}

fn read_redirect(response: &Response) -> Option<String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    Some(response.headers().get(LOCATION)?.to_str().ok()?.to_owned())
}

/// As much of a refusal as can be had: it only decorates an error that is already known.
async fn receive_refusal(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST_REFUSAL {
            break;
        }
    }
    body
}

fn length(body: &[u8]) -> u64 {
    body.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_grows_old() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let limit = Duration::from_mins(1);
        for (asked, now, expected) in
            [(100, 100, true), (100, 159, true), (100, 160, false), (100, 500, false), (100, 99, false)]
        {
            assert_eq!(is_within(at(asked), at(now), limit), expected, "{asked} {now}");
        }
    }
}
