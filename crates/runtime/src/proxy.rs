//! Proxies between a client and an API server: which one is used, and how a connection is made through it.
//!
//! The rules are those of kubectl: a kubeconfig's `proxy-url` always wins; without one, `HTTPS_PROXY` or `HTTP_PROXY`
//! is used by the scheme of the server's address, unless `NO_PROXY` names the server or it is on loopback. Credentials
//! in a proxy's address are sent to the proxy and never printed.

use std::{
    error::Error,
    fmt, io,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{
            HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use rustls::{ClientConfig, pki_types::CertificateDer};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tower::{Service, service_fn};

/// The address of a proxy cannot be used. Neither this error nor [`ProxyFailed`] quotes the address as it was written,
/// since it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the proxy that is set by {setting}: {reason}")]
pub struct InvalidProxy {
    /// Where the address was set.
    pub setting: String,
    /// What is wrong with it.
    pub reason: String,
}

/// No connection could be made through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {server} through proxy {proxy}, which is set by {setting}: {reason}")]
pub struct ProxyFailed {
    /// The host and port behind the proxy.
    pub server: String,
    /// The proxy's address without credentials.
    pub proxy: String,
    /// Where the proxy's address was set.
    pub setting: String,
    /// What went wrong. It is the same from try to try.
    pub reason: String,
}

/// The environment variables that choose a proxy. The default has none of them set.
#[derive(Clone, Default)]
pub struct ProxyVariables {
    https: Option<Variable>,
    http: Option<Variable>,
    no_proxy: String,
}

#[derive(Clone)]
struct Variable {
    name: &'static str,
    value: String,
}

impl fmt::Debug for ProxyVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |variable: &Option<Variable>| variable.as_ref().map(|it| it.name);
        let (https, http) = (name(&self.https), name(&self.http));
        f.debug_struct("ProxyVariables").field("https", &https).field("http", &http).finish_non_exhaustive()
    }
}

impl ProxyVariables {
    /// Takes the variables from an environment. Upper case comes before lower case, and an empty value counts as unset.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| {
                let value = get(name).filter(|value| !value.trim().is_empty())?;
                Some(Variable { name, value: value.trim().to_owned() })
            })
        };
        Self {
            https: first(["HTTPS_PROXY", "https_proxy"]),
            http: first(["HTTP_PROXY", "http_proxy"]),
            no_proxy: first(["NO_PROXY", "no_proxy"]).map(|it| it.value).unwrap_or_default(),
        }
    }

    /// Takes the variables from the environment of this process.
    pub fn of_process() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The proxy that they choose for a server.
    pub fn proxy_for(&self, server: &Uri) -> Result<Option<Proxy>, InvalidProxy> {
        let variable = match server.scheme_str() {
            Some("https") => &self.https,
            Some("http") => &self.http,
            _ => &None,
        };
        let Some(variable) = variable.as_ref().filter(|_| !is_local(server) && !self.excludes(server)) else {
            return Ok(None);
        };
        // Curl and Go read an address without a scheme as one of an HTTP proxy.
        let is_bare = !variable.value.contains("://");
        let url = if is_bare { format!("http://{}", variable.value) } else { variable.value.clone() };
        Proxy::parse(&url, &format!("${}", variable.name)).map(Some)
    }

    fn excludes(&self, server: &Uri) -> bool {
        let entries: Option<Vec<_>> = self
            .no_proxy
            .split(',')
            .map(str::trim)
            .filter_map(|entry| match entry {
                "*" => Some(None),
                entry => host_for_port(entry, port_of(server)).and_then(|it| domain_of(it, server)).map(Some),
            })
            .collect();
        // An entry of `*` leaves no list.
        let Some(entries) = entries else {
            return true;
        };
        let any = "http://proxy";
        Matcher::builder().all(any).no(entries.join(",")).build().intercept(server).is_none()
    }
}

/// The host of an entry of `NO_PROXY` that may name a port; nothing if it names another port.
fn host_for_port(entry: &str, port: u16) -> Option<&str> {
    match entry.rsplit_once(':') {
        // An IPv6 address without brackets has colons and no port.
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => Some(entry),
        Some((host, named)) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            (named.parse() == Ok(port)).then_some(host)
        }
        None => Some(entry),
    }
}

/// What the library takes for an entry: `*.a.test` means `.a.test`, and neither means `a.test`.
fn domain_of<'a>(entry: &'a str, server: &Uri) -> Option<&'a str> {
    let entry = entry.strip_prefix('*').filter(|it| it.starts_with('.')).unwrap_or(entry);
    let bare = entry.strip_prefix('.').zip(server.host());
    bare.is_none_or(|(domain, host)| !domain.eq_ignore_ascii_case(host)).then_some(entry)
}

fn is_local(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn port_of(server: &Uri) -> u16 {
    server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 })
}

/// A proxy that a client connects through.
#[derive(Clone)]
pub struct Proxy {
    intercept: Intercept,
    kind: Kind,
    /// Scheme, host and port.
    address: Uri,
    setting: Arc<str>,
}

impl fmt::Debug for Proxy {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .field("setting", &self.setting)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Http,
    Https,
    Socks5,
}

impl Proxy {
    /// Reads the address of a proxy, such as `http://user:password@proxy.example.com:3128`. `setting` says in errors
    /// where the address was set.
    pub fn parse(url: &str, setting: &str) -> Result<Self, InvalidProxy> {
        let invalid = |reason: &str| InvalidProxy { setting: setting.to_owned(), reason: reason.to_owned() };
        let form = || invalid("it must be a URL like http://proxy.example.com:3128");
        let encoded = || invalid("special characters in its user and password must be percent-encoded");
        let (scheme, rest) = url.split_once("://").ok_or_else(form)?;
        let (kind, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Kind::Http, 80),
            "https" => (Kind::Https, 443),
            "socks5" | "socks5h" => (Kind::Socks5, 1080),
            _ => return Err(invalid("its scheme must be http, https or socks5")),
        };
        // Such characters would make another host of a part of the password.
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.matches('@').count() > 1 || path.contains('@') || rest.contains(['#', '?']) {
            return Err(encoded());
        }
        let url = format!("{}://{authority}", scheme.to_ascii_lowercase());
        let any = Uri::from_static("https://server");
        let intercept = Matcher::builder().all(url).build().intercept(&any).ok_or_else(form)?;
        let host = intercept.uri().host().filter(|host| !host.is_empty()).ok_or_else(form)?;
        // The library takes any text for a port.
        let after_host =
            authority.rsplit('@').next().and_then(|it| it.strip_prefix(host)).ok_or_else(form)?;
        let port: u16 = match after_host.strip_prefix(':') {
            Some(named) => named.parse().ok().filter(|port| *port > 0).ok_or_else(form)?,
            None => port,
        };
        let scheme = match kind {
            Kind::Http => "http",
            Kind::Https => "https",
            Kind::Socks5 => "socks5",
        };
        let address = format!("{scheme}://{host}:{port}").parse().map_err(|_| form())?;
        Ok(Self { intercept, kind, address, setting: setting.into() })
    }

    /// Scheme, host and port, without credentials.
    pub fn address(&self) -> String {
        self.address.to_string().trim_end_matches('/').to_owned()
    }
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connects to servers through a proxy.
#[derive(Clone)]
pub(crate) struct ProxyConnector {
    proxy: Arc<Proxy>,
    to_proxy: ToProxy,
    limit: Duration,
}

#[derive(Clone)]
enum ToProxy {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl ProxyConnector {
    /// A proxy with an https address must be trusted by the machine or by one of `authorities`. It has `limit` to
    /// make a connection.
    pub(crate) fn new(
        proxy: Proxy,
        http: HttpConnector,
        authorities: &[Vec<u8>],
        limit: Duration,
    ) -> Result<Self, InvalidProxy> {
        let to_proxy = match proxy.kind {
            Kind::Http | Kind::Socks5 => ToProxy::Plain(http),
            Kind::Https => {
                let tls = trust(authorities).map_err(|error| InvalidProxy {
                    setting: proxy.setting.to_string(),
                    reason: format!("cannot set up TLS for {}: {error}", proxy.address()),
                })?;
                let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
                ToProxy::Tls(https.enable_http1().wrap_connector(http))
            }
        };
        Ok(Self { proxy: Arc::new(proxy), to_proxy, limit })
    }
}

fn trust(authorities: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = authorities.iter().map(|der| CertificateDer::from(der.clone()));
    let verifier = Verifier::new_with_extra_roots(authorities, Arc::clone(&provider))?;
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(tls.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

impl Service<Uri> for ProxyConnector {
    type Response = Stream;
    type Error = ProxyFailed;
    type Future = BoxFuture<'static, Result<Stream, ProxyFailed>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Self { proxy, to_proxy, limit } = self.clone();
        let host = server.host().unwrap_or_default();
        // Tunnels take 443 for a port that is not named.
        let server = format!("{host}:{}", port_of(&server));
        async move {
            let failed = |reason: String| ProxyFailed {
                server: server.clone(),
                proxy: proxy.address(),
                setting: proxy.setting.to_string(),
                reason,
            };
            match tokio::time::timeout(limit, dial(&proxy, to_proxy, &server)).await {
                Ok(result) => result.map_err(failed),
                Err(_) => Err(failed(format!("it does not answer within {limit:?}"))),
            }
        }
        .boxed()
    }
}

async fn dial(proxy: &Proxy, to_proxy: ToProxy, server: &str) -> Result<Stream, String> {
    let address = proxy.address.clone();
    let connection = match to_proxy {
        ToProxy::Plain(mut http) => {
            http.call(address).await.map(MaybeHttpsStream::Http).map_err(|error| cause(&error))
        }
        ToProxy::Tls(mut https) => https.call(address).await.map_err(|error| cause(&*error)),
    };
    let connection = connection.map_err(|reason| format!("cannot reach the proxy: {reason}"))?;
    let mut connection = Some(connection);
    let given = service_fn(move |_: Uri| {
        let connection = connection.take().ok_or_else(|| io::Error::other("the connection is in use"));
        std::future::ready(connection)
    });
    let refused = |error: &(dyn Error + 'static)| {
        let (words, cause) = (error.to_string(), cause(error));
        // The libraries begin with a name that says no more than this sentence.
        let words = words.split_once(" error: ").map_or(words.as_str(), |(_, words)| words);
        let cause = if cause.ends_with(words) { String::new() } else { format!(": {cause}") };
        format!("the proxy does not make the connection: {words}{cause}")
    };
    let server: Uri =
        format!("https://{server}").parse().map_err(|_| "the server's address is not valid".to_owned())?;
    match proxy.kind {
        Kind::Http | Kind::Https => {
            let mut tunnel = Tunnel::new(proxy.address.clone(), given);
            if let Some(credentials) = proxy.intercept.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            tunnel.call(server).await.map_err(|error| refused(&error))
        }
        Kind::Socks5 => {
            let mut socks = SocksV5::new(proxy.address.clone(), given);
            if let Some((user, password)) = proxy.intercept.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            socks.call(server).await.map_err(|error| refused(&error))
        }
    }
}

/// The innermost cause. What is around it says only that something failed.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    loop {
        let wrapped = innermost.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let next = wrapped.map(|it| it as &(dyn Error + 'static)).or_else(|| innermost.source());
        match next {
            Some(next) => innermost = next,
            None => return innermost.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(list: &[(&str, &str)]) -> ProxyVariables {
        ProxyVariables::read(|name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_proxy_is_chosen_as_kubectl_does() {
        const P: &str = "http://p:1";
        let all = |no: &'static str| {
            vec![("HTTPS_PROXY", "http://https:1"), ("HTTP_PROXY", "http://http:1"), ("NO_PROXY", no)]
        };
        let https = Some("http://https:1");
        for (variables_set, server, expected) in [
            (vec![], "https://a.test", None),
            (vec![("HTTPS_PROXY", P)], "https://a.test:6443", Some(P)),
            (vec![("https_proxy", P)], "https://a.test:6443", Some(P)),
            (vec![("HTTPS_PROXY", ""), ("https_proxy", P)], "https://a.test", Some(P)),
            (vec![("HTTPS_PROXY", P), ("https_proxy", "http://q")], "https://a.test", Some(P)),
            (vec![("HTTPS_PROXY", P)], "http://a.test", None),
            (vec![("HTTP_PROXY", P)], "https://a.test", None),
            (vec![("http_proxy", P)], "http://a.test", Some(P)),
            (vec![("HTTPS_PROXY", "p:1")], "https://a.test", Some(P)),
            (vec![("HTTPS_PROXY", " http://u:secret@p:1/ ")], "https://a.test", Some(P)),
            (vec![("HTTPS_PROXY", "HTTPS://p")], "https://a.test", Some("https://p:443")),
            (vec![("HTTPS_PROXY", "socks5h://p")], "https://a.test", Some("socks5://p:1080")),
            (vec![("HTTPS_PROXY", "http://[::1]:1")], "https://a.test", Some("http://[::1]:1")),
            // What is on this machine is reached directly.
            (all(""), "https://127.0.0.1:6443", None),
            (all(""), "https://127.9.9.9:6443", None),
            (all(""), "https://[::1]:6443", None),
            (all(""), "https://localhost:6443", None),
            (all(""), "https://10.0.0.1:6443", https),
            (all(""), "http://10.0.0.1:6443", Some("http://http:1")),
            (all("b.test, a.test"), "https://a.test:6443", None),
            (all("a.test"), "https://x.a.test", None),
            (all("a.test"), "https://xa.test", https),
            (all(".a.test"), "https://x.a.test", None),
            (all(".a.test"), "https://a.test", https),
            (all("*.a.test"), "https://x.y.a.test", None),
            (all("*.A.test:6443"), "https://x.a.test:6443", None),
            (all("*.a.test"), "https://a.test", https),
            (all("*a.test"), "https://xa.test", https),
            (all("10.0.0.0/8"), "https://10.0.0.1:6443", None),
            (all("10.0.0.0/8"), "https://11.0.0.1:6443", https),
            (all("fd00::/8"), "https://[fd00::1]:6443", None),
            (all("fd00::1"), "https://[fd00::1]:6443", None),
            (all("[fd00::1]:6443"), "https://[fd00::1]:6443", None),
            (all("a.test:6443"), "https://a.test:6443", None),
            (all("a.test:443"), "https://a.test", None),
            (all("a.test:6443"), "https://a.test", https),
            (all("*"), "https://a.test", None),
            (all("b.test,*"), "https://10.0.0.1", None),
        ] {
            let chosen = variables(&variables_set).proxy_for(&server.parse().unwrap()).unwrap();
            let chosen = chosen.map(|proxy| proxy.address());
            assert_eq!(chosen.as_deref(), expected, "{variables_set:?}, {server}");
        }
    }

    #[test]
    fn an_address_that_is_no_proxys_is_explained_without_its_secrets() {
        for (url, expected) in [
            ("", "must be a URL like"),
            ("proxy:3128", "must be a URL like"),
            ("http://", "must be a URL like"),
            ("http://:3128", "must be a URL like"),
            ("http://u:secret@", "must be a URL like"),
            ("http://p:port", "must be a URL like"),
            ("http://p:", "must be a URL like"),
            ("http://p with space", "must be a URL like"),
            ("ftp://u:secret@p", "scheme must be http, https or socks5"),
            ("socks4://p", "scheme must be http, https or socks5"),
            ("http://u:sec@ret@p", "must be percent-encoded"),
            ("http://u:1/secret@p", "must be percent-encoded"),
            ("http://u:1#secret@p", "must be percent-encoded"),
            ("http://u:1?secret@p", "must be percent-encoded"),
        ] {
            let error = Proxy::parse(url, "cluster.proxy-url").expect_err(url).to_string();
            assert!(error.starts_with("cannot use the proxy that is set by cluster.proxy-url: "), "{error}");
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("secret") && !error.contains("ret@"), "{url}: {error}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_never_printed() {
        let proxy = Proxy::parse("http://user:p%40ss%23word@p:1", "x").unwrap();
        assert_eq!(proxy.intercept.basic_auth().unwrap(), "Basic dXNlcjpwQHNzI3dvcmQ=");
        let socks = Proxy::parse("socks5://user:p%40ss%23word@p:1", "x").unwrap();
        assert_eq!(socks.intercept.raw_auth(), Some(("user", "p@ss#word")));
        let variables = variables(&[("HTTPS_PROXY", "http://user:p%40ss@p:1")]);
        let shown = format!("{proxy:?} {} {socks:?} {} {variables:?}", proxy.address(), socks.address());
        assert!(!shown.contains("ss") || !shown.contains("word"), "{shown}");
        assert!(!shown.contains("p%40ss") && !shown.contains("p@ss") && !shown.contains("user"), "{shown}");
    }
}
