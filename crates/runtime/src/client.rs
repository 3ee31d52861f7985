//! The client that all parts of a process share.

use std::{
    fmt, io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::connect::{Connection, HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use rustls::{ClientConfig, client::Resumption};
use tokio::{
    sync::Semaphore,
    time::{Instant, Sleep, error::Elapsed},
};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use crate::{
    fence::{LeaderOnly, NotLeading},
    metrics::Metrics,
    proxy::{InvalidProxy, Proxy, ProxyConnector, ProxyVariables},
    throttle::Throttle,
};

/// How long it may take until a server is connected to.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Longer than any watch is silent: bookmarks come every minute.
const SILENCE_LIMIT: Duration = Duration::from_mins(5);

/// Where the API server is and how fast it may be asked.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// A kubeconfig file; otherwise `$KUBECONFIG`, `~/.kube/config`, or the service account of the Pod.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    pub context: Option<String>,
    /// Requests a second on average; 0 leaves it to the server's priority and fairness.
    pub qps: f64,
    /// Requests at once beyond that average.
    pub burst: u32,
    /// Requests that wait for their answers at the same time; 0 for any number. Each of them may take a connection.
    pub at_once: usize,
    /// The environment variables that may name a proxy to the API server.
    pub proxies: ProxyVariables,
    /// How long a server may take to begin its answer, and then to send the next part of it; none for no limit. Watches
    /// are not limited.
    pub answer_limit: Option<Duration>,
}

/// An API server and the way to it.
#[derive(Clone)]
pub struct ApiServer {
    /// Its address, the credentials and the namespace of the context. Its own `proxy_url` is not used.
    pub config: Config,
    /// The `proxy-url` that the kubeconfig has for it.
    proxy_url: Option<ProxyUrl>,
}

impl fmt::Debug for ApiServer {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("url", &self.url())
            .field("proxy_url", &self.proxy_url)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct ProxyUrl {
    /// May hold a password.
    text: String,
    cluster: String,
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyUrl").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// The address of the API server, without a user and password that may be in it.
    pub fn url(&self) -> String {
        without_user(&self.config.cluster_url)
    }

    fn proxy(&self, variables: &ProxyVariables) -> Result<Option<Proxy>, InvalidProxy> {
        match &self.proxy_url {
            Some(ProxyUrl { text, cluster }) => {
                Proxy::parse(text, &format!("proxy-url of cluster {cluster} in the kubeconfig")).map(Some)
            }
            None => variables.proxy_for(&self.config.cluster_url),
        }
    }
}

/// No client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file named by a flag is not a kubeconfig.
    #[error("cannot use kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: KubeconfigError,
    },
    /// No API server is configured.
    #[error(
        "no API server is configured: set --kubeconfig or $KUBECONFIG, or run in a Pod with a service account"
    )]
    Infer(#[source] KubeconfigError),
    /// The proxy to the API server cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// The configuration cannot be used.
    #[error("cannot create a client for {url}")]
    Build {
        /// The API server.
        url: String,
        /// The reason.
        source: kube::Error,
    },
}

/// Finds the API server's address and credentials. Nothing is asked of the server, and a proxy is not looked at before
/// [`connect`].
pub async fn find_config(options: &ClientOptions) -> Result<ApiServer, ClientError> {
    let context = options.context.as_deref();
    match &options.kubeconfig {
        Some(path) => {
            let found = load(Kubeconfig::read_from(path), context).await;
            found.map_err(|source| ClientError::Kubeconfig { path: path.clone(), source })
        }
        None if context.is_some() => load(Kubeconfig::read(), context)
            .await
            .map_err(|source| ClientError::Kubeconfig { path: PathBuf::from("$KUBECONFIG"), source }),
        None => {
            let mut found = match load(Kubeconfig::read(), None).await {
                Ok(found) => found,
                Err(error) => {
                    let config = Config::incluster().map_err(|_| ClientError::Infer(error))?;
                    ApiServer { config, proxy_url: None }
                }
            };
            found.config.apply_debug_overrides();
            Ok(found)
        }
    }
}

/// Takes an API server from a kubeconfig.
async fn load(
    kubeconfig: Result<Kubeconfig, KubeconfigError>,
    context: Option<&str>,
) -> Result<ApiServer, KubeconfigError> {
    let mut kubeconfig = kubeconfig?;
    let proxy_url = take_proxy_url(&mut kubeconfig, context);
    drop_empty_authorities(&mut kubeconfig);
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.proxy_url = None;
    Ok(ApiServer { config, proxy_url })
}

/// Takes the `proxy-url` of a context out of its kubeconfig. kube would read `HTTPS_PROXY` where there is none, without
/// `NO_PROXY`, and fail where it is not a URL: a word in its place keeps it from that.
fn take_proxy_url(kubeconfig: &mut Kubeconfig, context: Option<&str>) -> Option<ProxyUrl> {
    let name = context.or(kubeconfig.current_context.as_deref());
    let found = kubeconfig.contexts.iter().find(|it| Some(it.name.as_str()) == name);
    let used = found.and_then(|it| it.context.as_ref()).map(|it| it.cluster.clone());
    let mut taken = None;
    for named in &mut kubeconfig.clusters {
        let Some(cluster) = &mut named.cluster else {
            continue;
        };
        let text = cluster.proxy_url.replace("http://unused".to_owned());
        if used.as_ref() == Some(&named.name) && taken.is_none() {
            taken = Some((text, named.name.clone()));
        }
    }
    let (text, cluster) = taken?;
    Some(ProxyUrl { text: text.filter(|text| !text.is_empty())?, cluster })
}

/// Go reads empty text as if nothing was there. kube would trust no certificate at all.
fn drop_empty_authorities(kubeconfig: &mut Kubeconfig) {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        for field in [&mut cluster.certificate_authority, &mut cluster.certificate_authority_data] {
            field.take_if(|text| text.is_empty());
        }
    }
}

fn without_user(url: &Uri) -> String {
    let text = url.to_string();
    match url.authority().and_then(|it| it.as_str().rsplit_once('@')) {
        Some((user, _)) => text.replacen(&format!("{user}@"), "", 1),
        None => text,
    }
}

/// Makes a client that counts its requests and keeps to the given rate.
pub fn connect(server: ApiServer, options: &ClientOptions, metrics: &Metrics) -> Result<Client, ClientError> {
    let proxy = server.proxy(&options.proxies)?;
    let config = server.config;
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let layer = Meter::new(Some((metrics.clone(), host.into())), options);
    let wrap = |source| ClientError::Build { url: without_user(&config.cluster_url), source };
    let tls = config.rustls_client_config().map_err(wrap)?;
    build(&config, tls, usize::MAX, proxy, &layer)
}

/// Makes a client for a workload cluster. There may be thousands: it keeps one connection and as little else as it can,
/// and its requests are not counted by host. A proxy comes from `config.proxy_url` alone.
pub fn connect_workload(config: &Config, options: &ClientOptions) -> Result<Client, ClientError> {
    let wrap = |source| ClientError::Build { url: without_user(&config.cluster_url), source };
    let mut tls = config.rustls_client_config().map_err(wrap)?;
    // One connection stays open: room to resume hundreds would be most of what a client weighs.
    tls.resumption = Resumption::disabled();
    let layer = Meter::new(None, options);
    let proxy = config.proxy_url.as_ref().map(|url| Proxy::parse(&url.to_string(), "cluster.proxy-url"));
    build(config, tls, 1, proxy.transpose()?, &layer)
}

/// Makes a client that keeps so many connections when they are idle. kube's own leaves it to the operating system to
/// send small pieces when it sees fit, which holds the first request of every connection back for 40 ms.
fn build(
    config: &Config,
    tls: ClientConfig,
    most_idle: usize,
    proxy: Option<Proxy>,
    layer: &Meter,
) -> Result<Client, ClientError> {
    let wrap = |source| ClientError::Build { url: without_user(&config.cluster_url), source };
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    match proxy {
        None => build_on(http, config, tls, most_idle, CONNECT_LIMIT, layer).map_err(wrap),
        Some(proxy) => {
            let authorities = config.root_cert.as_deref().unwrap_or_default();
            let through = ProxyConnector::new(proxy, http, authorities, CONNECT_LIMIT)?;
            // The proxy has its own limit, whose error names it; the server has as long again.
            build_on(through, config, tls, most_idle, 2 * CONNECT_LIMIT, layer).map_err(wrap)
        }
    }
}

fn build_on<C>(
    connector: C,
    config: &Config,
    tls: ClientConfig,
    most_idle: usize,
    connect_limit: Duration,
    layer: &Meter,
) -> kube::Result<Client>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(https.enable_http1().wrap_connector(connector));
    connector.set_connect_timeout(Some(connect_limit));
    connector.set_read_timeout(Some(SILENCE_LIMIT));
    connector.set_write_timeout(Some(SILENCE_LIMIT));
    let connector = connector.map_err(move |error| explain_timeout(error, connect_limit));
    let client: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(most_idle)
            .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).with_layer(layer).build())
}

/// No connection was made in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no connection within {limit:?}: the server does not accept connections, or does not answer the TLS handshake"
)]
pub struct NoConnection {
    limit: Duration,
}

/// The connector's own words are no more than "deadline has elapsed".
fn explain_timeout(error: BoxError, limit: Duration) -> BoxError {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) if inner.is::<Elapsed>() => NoConnection { limit }.into(),
        _ => error,
    }
}

/// The server accepted a request and sent nothing for too long. Callers see it as an [`io::Error`] that says `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server did not answer within {limit:?}")]
pub struct NoAnswer {
    limit: Duration,
}

impl NoAnswer {
    fn within(limit: Duration) -> BoxError {
        io::Error::new(io::ErrorKind::TimedOut, Self { limit }).into()
    }
}

/// Counts requests, holds them back where a rate or a number is set, and gives up on servers that do not answer.
#[derive(Clone, Debug)]
struct Meter {
    counted: Option<(Metrics, Arc<str>)>,
    throttle: Option<Arc<Throttle>>,
    places: Option<Arc<Semaphore>>,
    answer_limit: Option<Duration>,
}

impl Meter {
    fn new(counted: Option<(Metrics, Arc<str>)>, options: &ClientOptions) -> Self {
        let throttle = (options.qps > 0.0).then(|| Arc::new(Throttle::new(options.qps, options.burst)));
        let places = (options.at_once > 0).then(|| Arc::new(Semaphore::new(options.at_once)));
        Self { counted, throttle, places, answer_limit: options.answer_limit }
    }
}

impl<S> Layer<S> for Meter {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Metered { meter: self.clone(), inner }
    }
}

#[derive(Clone, Debug)]
struct Metered<S> {
    meter: Meter,
    inner: S,
}

impl<S, B> Service<Request<Body>> for Metered<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: Send,
{
    type Response = Response<Paced<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().to_string();
        let limit = self.meter.answer_limit.filter(|_| !is_watch(request.uri()));
        let fence = request.extensions().get::<LeaderOnly>().cloned();
        // Nothing is sent before the future is polled.
        let response = self.inner.call(request);
        let meter = self.meter.clone();
        async move {
            if let Some(throttle) = &meter.throttle {
                throttle.pass().await;
            }
            let place = match &meter.places {
                Some(places) => places.acquire().await.ok(),
                None => None,
            };
            // Leadership may have been lost while the request was held back.
            if fence.is_some_and(|fence| !fence.admits()) {
                return Err(NotLeading.into());
            }
            let response = match limit {
                None => response.await.map_err(Into::into),
                Some(limit) => match tokio::time::timeout(limit, response).await {
                    Ok(response) => response.map_err(Into::into),
                    Err(_) => Err(NoAnswer::within(limit)),
                },
            };
            drop(place);
            if let Some((metrics, host)) = &meter.counted {
                let code = response.as_ref().map(|response| response.status().as_str().to_owned());
                metrics.request(&method, host, &code.unwrap_or_else(|_| "<error>".to_owned()));
            }
            response.map(|response| response.map(|body| Paced::new(body, limit)))
        }
        .boxed()
    }
}

pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|it| matches!(it, "watch=true" | "watch=1")))
}

/// A body whose next part must come within a limit.
#[derive(Debug)]
struct Paced<B> {
    body: B,
    limit: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl<B> Paced<B> {
    fn new(body: B, limit: Option<Duration>) -> Self {
        Self { body, limit: limit.map(|limit| (limit, Box::pin(tokio::time::sleep(limit)))) }
    }
}

impl<B> HttpBody for Paced<B>
where
    B: HttpBody + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Some((limit, sleep)) = &mut self.limit else {
            return polled.map_err(Into::into);
        };
        if polled.is_ready() {
            sleep.as_mut().reset(Instant::now() + *limit);
            return polled.map_err(Into::into);
        }
        sleep.as_mut().poll(cx).map(|()| Some(Err(NoAnswer::within(*limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use futures::{StreamExt, future::join_all};
    use http_body_util::{BodyExt, StreamBody};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api,
        api::{DeleteParams, WatchParams},
    };

    use super::*;
    use crate::{controller::with_causes, fence::fenced, leadership::Leadership};

    #[test]
    fn an_api_servers_credentials_are_not_shown() {
        let mut config = Config::new("https://u:canary@h:6443/canaries".parse().unwrap());
        config.auth_info.username = Some("u".to_owned());
        config.auth_info.client_certificate_data = Some("canary".to_owned());
        config.headers.push((http::header::COOKIE, "canary".parse().unwrap()));
        let proxy_url = Some(ProxyUrl { text: "http://u:canary@p".to_owned(), cluster: "c".to_owned() });
        let server = ApiServer { config, proxy_url };
        assert_eq!(server.url(), "https://h:6443/canaries");
        let shown = format!("{server:?}");
        assert!(
            shown.contains("https://h:6443") && !shown.replace("canaries", "").contains("canary"),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn empty_authorities_are_those_of_the_machine() {
        let cluster = serde_json::json!({
            "server": "https://h:6443", "certificate-authority": "", "certificate-authority-data": "",
        });
        let kubeconfig = serde_json::json!({
            "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
        });
        let found = load(Ok(serde_json::from_value(kubeconfig).unwrap()), None).await.unwrap();
        assert_eq!(found.config.root_cert, None);
    }

    #[tokio::test]
    async fn no_more_requests_are_under_way_than_allowed() {
        for (at_once, expected) in [(2, 2), (0, 10)] {
            let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let seen = Arc::clone(&most);
            let server = tower::service_fn(move |_: Request<Body>| {
                let (under_way, seen) = (Arc::clone(&under_way), Arc::clone(&seen));
                async move {
                    seen.fetch_max(under_way.fetch_add(1, Relaxed) + 1, Relaxed);
                    tokio::task::yield_now().await;
                    under_way.fetch_sub(1, Relaxed);
                    Ok::<_, BoxError>(Response::new(()))
                }
            });
            let options = ClientOptions { at_once, ..ClientOptions::default() };
            let mut client = Meter::new(None, &options).layer(server);
            let answers = join_all((0..10).map(|_| client.call(Request::new(Body::empty())))).await;
            assert!(answers.iter().all(Result::is_ok));
            assert_eq!(most.load(Relaxed), expected);
        }
    }

    /// A server that answers with a part of a body, or with nothing at all.
    fn stalled(answers: bool) -> Client {
        let server = tower::service_fn(move |_: Request<Body>| async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            let parts = futures::stream::once(async { Ok::<_, BoxError>(Frame::data("{".into())) });
            let body = StreamBody::new(parts.chain(futures::stream::pending()));
            Ok::<_, BoxError>(Response::new(body.boxed_unsync()))
        });
        let options =
            ClientOptions { answer_limit: Some(Duration::from_secs(30)), ..ClientOptions::default() };
        Client::new(Meter::new(None, &options).layer(server), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_given_up() {
        for answers in [false, true] {
            let api: Api<ConfigMap> = Api::default_namespaced(stalled(answers));
            let started = Instant::now();
            let error = api.get("a").await.unwrap_err();
            let words = with_causes(&error);
            assert!(words.contains("the server did not answer within 30s"), "{words}");
            assert_eq!(started.elapsed().as_secs(), 30);
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |it| it.source());
            let mut kinds = causes.filter_map(|it| it.downcast_ref::<io::Error>()).map(io::Error::kind);
            assert!(
                kinds.any(|it| it == io::ErrorKind::TimedOut),
                "callers must see that it timed out: {error:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_the_tls_handshake_is_given_up() {
        // Another test may have been faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The kernel accepts connections; no answer ever comes.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("https://{}", listener.local_addr().unwrap())}}],
        });
        let server = load(Kubeconfig::from_yaml(&kubeconfig.to_string()), None).await.unwrap();
        let client = connect(server, &ClientOptions::default(), &Metrics::default()).unwrap();
        let started = Instant::now();
        let error = with_causes(&Api::<ConfigMap>::default_namespaced(client).get("a").await.unwrap_err());
        assert!(error.contains("no connection within 5s: the server does not"), "{error}");
        assert!(!error.contains("deadline has elapsed"), "{error}");
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_may_be_silent() {
        let api: Api<ConfigMap> = Api::default_namespaced(stalled(true));
        let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        let next = tokio::time::timeout(Duration::from_hours(1), events.next()).await;
        assert!(next.is_err(), "{next:?}");
    }

    #[tokio::test]
    async fn a_write_that_was_held_back_is_not_sent_after_leadership_was_lost() {
        let sent = Arc::new(AtomicUsize::new(0));
        let (count, (release, released)) = (Arc::clone(&sent), tokio::sync::watch::channel(false));
        let server = tower::service_fn(move |_: Request<Body>| {
            let (count, mut released) = (Arc::clone(&count), released.clone());
            async move {
                count.fetch_add(1, Relaxed);
                released.wait_for(|released| *released).await?;
                Ok::<_, BoxError>(Response::new(Body::from(b"{\"metadata\":{}}".to_vec())))
            }
        });
        let options = ClientOptions { at_once: 1, ..ClientOptions::default() };
        let client = Client::new(Meter::new(None, &options).layer(server), "default");
        let (lead, leads) = tokio::sync::watch::channel(true);
        let api: Api<ConfigMap> = Api::default_namespaced(fenced(&client, &Leadership::following(leads)));
        let params = DeleteParams::default();
        let delete = || api.delete("a", &params);
        let (first, second, ()) = tokio::join!(delete(), delete(), async {
            while sent.load(Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            lead.send_replace(false);
            release.send_replace(true);
        });
        let failed = [first.err(), second.err()];
        let refused = failed.iter().flatten().filter(|error| NotLeading::is_cause_of(error)).count();
        assert_eq!((refused, sent.load(Relaxed)), (1, 1), "{failed:?}");
    }
}
