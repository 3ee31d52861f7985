//! The client that all parts of a process share.

use std::{
    path::PathBuf,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioExecutor};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt},
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::{ClientConfig, client::Resumption};
use tokio::sync::Semaphore;
use tower::{BoxError, Layer, Service, ServiceBuilder};

use crate::{metrics::Metrics, throttle::Throttle};

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
}

/// No client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file named by a flag is not a kubeconfig.
    #[error("cannot use kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: kube::config::KubeconfigError,
    },
    /// Nothing says where the API server is.
    #[error(
        "cannot tell where the API server is: set --kubeconfig or $KUBECONFIG, or run in a Pod with a service account"
    )]
    Infer(#[source] kube::config::InferConfigError),
    /// The configuration cannot be used.
    #[error("cannot make a client for {url}")]
    Build {
        /// The API server.
        url: String,
        /// Why not.
        source: kube::Error,
    },
}

/// Finds the API server's address and credentials.
pub async fn find_config(options: &ClientOptions) -> Result<Config, ClientError> {
    let context = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    match &options.kubeconfig {
        Some(path) => {
            let wrap = |source| ClientError::Kubeconfig { path: path.clone(), source };
            let kubeconfig = Kubeconfig::read_from(path).map_err(wrap)?;
            Config::from_custom_kubeconfig(kubeconfig, &context).await.map_err(wrap)
        }
        None if options.context.is_some() => {
            let path = || PathBuf::from("$KUBECONFIG");
            Config::from_kubeconfig(&context)
                .await
                .map_err(|source| ClientError::Kubeconfig { path: path(), source })
        }
        None => Config::infer().await.map_err(ClientError::Infer),
    }
}

/// Makes a client that counts its requests and keeps to the given rate.
pub fn connect(
    mut config: Config,
    options: &ClientOptions,
    metrics: &Metrics,
) -> Result<Client, ClientError> {
    // A failed request is planned anew from fresh state, never sent again blindly.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_LIMIT);
    config.read_timeout = Some(SILENCE_LIMIT);
    let url = config.cluster_url.to_string();
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let layer = Meter::new(Some((metrics.clone(), host.into())), options);
    let wrap = |source| ClientError::Build { url, source };
    if config.proxy_url.is_some() {
        return Ok(ClientBuilder::try_from(config).map_err(wrap)?.with_layer(&layer).build());
    }
    config.rustls_client_config().and_then(|tls| build(&config, tls, usize::MAX, &layer)).map_err(wrap)
}

/// Makes a client for a workload cluster. There may be thousands: it keeps one connection and as little else as it can,
/// and its requests are not counted by host.
pub fn connect_workload(config: &Config, options: &ClientOptions) -> Result<Client, ClientError> {
    let wrap = |source| ClientError::Build { url: config.cluster_url.to_string(), source };
    let mut tls = config.rustls_client_config().map_err(wrap)?;
    // One connection stays open: room to resume hundreds would be most of what a client weighs.
    tls.resumption = Resumption::disabled();
    let layer = Meter::new(None, options);
    build(config, tls, 1, &layer).map_err(wrap)
}

/// Makes a client that keeps so many connections when they are idle. kube's own leaves it to the operating system to
/// send small pieces when it sees fit, which holds the first request of every connection back for 40 ms.
fn build(config: &Config, tls: ClientConfig, most_idle: usize, layer: &Meter) -> kube::Result<Client> {
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let mut connector = TimeoutConnector::new(https.enable_http1().wrap_connector(http));
    connector.set_connect_timeout(Some(CONNECT_LIMIT));
    connector.set_read_timeout(Some(SILENCE_LIMIT));
    connector.set_write_timeout(Some(SILENCE_LIMIT));
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

/// Counts requests and holds them back where a rate or a number is set.
#[derive(Clone, Debug)]
struct Meter {
    counted: Option<(Metrics, Arc<str>)>,
    throttle: Option<Arc<Throttle>>,
    places: Option<Arc<Semaphore>>,
}

impl Meter {
    fn new(counted: Option<(Metrics, Arc<str>)>, options: &ClientOptions) -> Self {
        let throttle = (options.qps > 0.0).then(|| Arc::new(Throttle::new(options.qps, options.burst)));
        let places = (options.at_once > 0).then(|| Arc::new(Semaphore::new(options.at_once)));
        Self { counted, throttle, places }
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
    S::Error: Send,
    B: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().to_string();
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
            let response = response.await;
            drop(place);
            if let Some((metrics, host)) = &meter.counted {
                let code = response.as_ref().map(|response| response.status().as_str().to_owned());
                metrics.request(&method, host, &code.unwrap_or_else(|_| "<error>".to_owned()));
            }
            response
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use futures::future::join_all;

    use super::*;

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
}
