//! Authentication at a registry.
//!
//! Credentials are for the registry's own origin, and for the token service that it names itself, over https and in an
//! answer that no redirect to another origin led to, if that service is of the registry's site or named by the user.
//! No other server gets any, whatever it asks for. Without TLS they must have been written for that.

use std::sync::PoisonError;

use reqwest::header::{HeaderValue, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use serde::Deserialize;

use super::super::cached::Listing;
use super::super::get::{Get, Reply, basic, bearer, read_json};
use super::super::http::Http;
use super::super::https::invalid;
use super::super::options::non_empty;
use super::super::shown::authority;
use super::super::token::is_listed;
use super::challenge::{self, Challenge};
use super::docker::Wire;
use super::reference::PlainHttp;
use super::{Credentials, Oci, docker};
use crate::error::speaks_of_certificates;
use crate::{FetchError, Withheld};

/// The variable that names the one registry that the given credentials are for.
const HOST_VARIABLE: &str = "OCI_HOST";
/// The variable that names token services on other sites than their registries.
const TOKEN_HOSTS_VARIABLE: &str = "OCI_TOKEN_HOSTS";

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl Oci {
    /// A request within the repository.
    pub(super) async fn request(&self, http: &Http, path: &str, what: String) -> Result<Get, FetchError> {
        let mut url = self.reference.endpoint(path)?;
        let plain = self.is_plain(http).await?;
        if plain {
            // Fails for no address that has a host.
            let _ = url.set_scheme("http");
        }
        let withheld = self.are_withheld(http, self.wire(&url)).then_some(HOST_VARIABLE);
        Ok(Get::new(url, what).plain_http(plain).withheld(withheld))
    }

    /// Sends a request, and once more with credentials if the registry asks for them.
    pub(super) async fn get(&self, http: &Http, get: Get) -> Result<Reply, FetchError> {
        // What was got over TLS is not for a registry of the same name without it.
        let session = format!("{}/{}", get.url.origin().ascii_serialization(), self.reference.repository);
        let remembered = http.sessions().get(&session).cloned();
        let get = get.authorization(remembered);
        let reply = http.exchange(&get).await?;
        if reply.status != StatusCode::UNAUTHORIZED || !reply.direct {
            return http.settle(&get, reply);
        }
        let Some(challenge) = read_challenge(&reply) else { return http.settle(&get, reply) };
        let Some(authorization) = self.answer(http, &challenge, &get.url).await? else {
            return http.settle(&get, reply);
        };
        http.sessions().insert(session, authorization.clone());
        http.get(&get.authorization(Some(authorization))).await
    }

    async fn answer(
        &self,
        http: &Http,
        challenge: &Challenge,
        registry: &Url,
    ) -> Result<Option<HeaderValue>, FetchError> {
        let wire = self.wire(registry);
        let credentials = self.credentials(http, wire).await?;
        match challenge {
            Challenge::Basic => Ok(credentials.as_ref().and_then(basic)),
            Challenge::Bearer { realm, service, scope } => {
                let plain_http = registry.scheme() == "http";
                let pull = format!("repository:{}:pull", self.reference.repository);
                let scope = scope.as_deref().unwrap_or(&pull);
                let url = challenge::token_url(realm, service.as_deref(), scope, plain_http)
                    .map_err(|reason| invalid(realm, &reason))?;
                if credentials.is_some() {
                    check_realm(registry, &url, &http.options.oci_token_hosts)?;
                }
                let what = format!("a token for {}", self.reference);
                let get = Get::new(url, what)
                    .authorization(credentials.as_ref().and_then(basic))
                    .limit(http.options.limits.listing)
                    .plain_http(plain_http);
                let reply =
                    http.get(&get).await.map_err(|error| self.explain_withheld(http, registry, error))?;
                Ok(bearer(&read_json::<Token>(&get.url, &reply.body)?.token))
            }
        }
    }

    async fn credentials(&self, http: &Http, wire: Wire) -> Result<Option<Credentials>, FetchError> {
        if let Some(given) = http.options.oci_credentials.as_ref().filter(|_| self.is_for_us(http, wire)) {
            return Ok(Some(given.clone()));
        }
        match &http.options.docker_config {
            Some(config) => {
                let found = docker::find(config, &self.reference.registry, wire).await?;
                if found.is_none() && docker::find_withheld(config, &self.reference.registry, wire) {
                    let host = &self.reference.registry;
                    http.warn(&format!(
                        "the credentials for {host} are not sent without TLS: they must be stored for http://{host}"
                    ));
                }
                Ok(found)
            }
            None => Ok(None),
        }
    }

    fn wire(&self, registry: &Url) -> Wire {
        match (registry.scheme(), self.reference.is_loopback()) {
            ("https", _) => Wire::Encrypted,
            (_, true) => Wire::Loopback,
            (_, false) => Wire::Plain,
        }
    }

    /// Whether the given credentials are those of this registry.
    fn is_for_us(&self, http: &Http, wire: Wire) -> bool {
        let origin =
            |host: &str| Some(Url::parse(&format!("https://{}/", docker::host_of(host))).ok()?.origin());
        let named = non_empty(http.options.oci_host.as_deref()).filter(|named| wire.carries(named));
        let named = named.and_then(origin);
        named.is_some() && named == origin(&self.reference.registry)
    }

    fn are_withheld(&self, http: &Http, wire: Wire) -> bool {
        http.options.oci_credentials.is_some() && !self.is_for_us(http, wire)
    }

    /// A token service that refuses an anonymous request may know the user of the withheld credentials.
    fn explain_withheld(&self, http: &Http, registry: &Url, mut error: FetchError) -> FetchError {
        let wire = self.wire(registry);
        if let FetchError::Unauthorized { withheld, .. } = &mut error
            && self.are_withheld(http, wire)
        {
            let host = match wire {
                Wire::Plain => format!("http://{}", self.reference.registry),
                _ => self.reference.registry.clone(),
            };
            *withheld = Some(Box::new(Withheld { host, variable: HOST_VARIABLE.to_owned() }));
        }
        error
    }

    async fn is_plain(&self, http: &Http) -> Result<bool, FetchError> {
        match self.reference.plain {
            PlainHttp::Never => Ok(false),
            PlainHttp::Always => Ok(true),
            PlainHttp::IfNoTls => self.lacks_tls(http).await,
        }
    }

    /// Asks a registry on this machine once whether it speaks TLS.
    async fn lacks_tls(&self, http: &Http) -> Result<bool, FetchError> {
        let api = self.reference.api()?;
        let probe = Get::new(api.clone(), format!("the registry {}", self.reference.registry)).once();
        let question = format!("TLS of {api}");
        let found = http.once(&question, async {
            match http.exchange(&probe).await {
                Err(FetchError::Unreachable { source, .. }) if !speaks_of_certificates(source.as_ref()) => {
                    Ok(None)
                }
                Err(FetchError::Status { .. }) | Ok(_) => Ok(Some(Listing { bytes: Vec::new(), next: None })),
                Err(error) => Err(error),
            }
        });
        Ok(found.await?.is_none())
    }
}

impl Http {
    fn sessions(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<String, HeaderValue>> {
        self.registry_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a token service that may not see the credentials for the registry that names it.
fn check_realm(registry: &Url, realm: &Url, named: &[String]) -> Result<(), FetchError> {
    if challenge::may_see_credentials(registry, realm, is_listed(named, realm)) {
        return Ok(());
    }
    if registry.scheme() != "https" {
        let reason = "a registry without encryption wants the password sent there";
        return Err(invalid(realm.as_str(), reason));
    }
    let withheld = Withheld { host: authority(realm), variable: TOKEN_HOSTS_VARIABLE.to_owned() };
    let reason = format!("{} wants the password sent to another site; {withheld}", authority(registry));
    Err(invalid(realm.as_str(), &reason))
}

fn read_challenge(reply: &Reply) -> Option<Challenge> {
    let headers = reply.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    challenge::read(&headers.collect::<Vec<_>>().join(", "))
}
