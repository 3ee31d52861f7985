//! HTTP servers: health, diagnostics, webhooks.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

/// A client that is slower than this at shaking hands is let go.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may go without a request. The API server closes its own after 90 s: whoever did so before it
/// could cut off a request that is just being sent.
const SILENCE_LIMIT: Duration = Duration::from_mins(2);
/// How long a request may take, from its head to the answer. The API server waits 30 s at most.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Connections at once; further ones wait until they are accepted.
const CONNECTIONS: usize = 1024;
/// What the bodies of requests to webhooks may hold at once, in KiB. Any single one fits; further ones wait.
const BUDGET: u32 = 128 << 10;
/// A body that does not say how long it is may be as long as any.
const UNKNOWN_LENGTH: u32 = 64 << 10;
/// How long open requests may take once the server is told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The flag's value is not an address.
    #[error("{flag} {value:?} is not an address: use host:port or :port")]
    Malformed {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
    },
    /// The address is taken or not local.
    #[error("cannot listen on {address} (from {flag}): {source}")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: String,
        /// The reason.
        source: std::io::Error,
    },
}

/// Listens on an address as Go writes it: `:9440` is every interface.
pub async fn listen(flag: &'static str, value: &str) -> Result<TcpListener, ListenError> {
    let malformed = || ListenError::Malformed { flag, value: value.to_owned() };
    let (host, port) = value.rsplit_once(':').ok_or_else(malformed)?;
    let port: u16 = port.parse().map_err(|_| malformed())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let bind = |source| ListenError::Bind { flag, address: value.to_owned(), source };
    if !host.is_empty() {
        return TcpListener::bind((host, port)).await.map_err(bind);
    }
    match TcpListener::bind(("::", port)).await {
        Ok(listener) => Ok(listener),
        // A machine without IPv6.
        Err(_) => TcpListener::bind(("0.0.0.0", port)).await.map_err(bind),
    }
}

/// Serves plainly, or over TLS where a configuration is given, until told to stop.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ServerConfig>>,
    stop: CancellationToken,
) {
    serve_within(listener, router, tls, stop, REQUEST_LIMIT).await;
}

async fn serve_within(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ServerConfig>>,
    stop: CancellationToken,
    limit: Duration,
) {
    let router = router.layer(middleware::from_fn(move |request, next| answer_within(limit, request, next)));
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let acceptor = tls.map(TlsAcceptor::from);
    let connections = TaskTracker::new();
    loop {
        let accept = async {
            let place = Arc::clone(&room).acquire_owned().await;
            listener.accept().await.map(|accepted| (place, accepted))
        };
        let (place, (stream, peer)) = tokio::select! {
            accepted = accept => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, say: let the others finish first.
                    debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = stop.cancelled() => break,
        };
        let conversation = handle(stream, peer, router.clone(), acceptor.clone(), stop.clone());
        connections.spawn(async move {
            conversation.await;
            drop(place);
        });
    }
    connections.close();
    // Whoever is slower than this has been told to stop long ago.
    let _ = tokio::time::timeout(DRAIN_LIMIT, connections.wait()).await;
}

async fn answer_within(limit: Duration, request: Request, next: Next) -> Response {
    if let Ok(response) = tokio::time::timeout(limit, next.run(request)).await {
        return response;
    }
    let words = format!("the request was not complete within {limit:?}\n");
    (StatusCode::REQUEST_TIMEOUT, [(header::CONNECTION, "close")], words).into_response()
}

/// Bounds the memory that requests take: a body is read only once there is room for all of it.
pub fn within_budget(router: Router) -> Router {
    let budget = Arc::new(Semaphore::new(BUDGET as usize));
    router.layer(middleware::from_fn_with_state(budget, read_within_budget))
}

async fn read_within_budget(State(budget): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    // Nothing is read of what is longer than any route allows.
    let needed = length
        .map_or(UNKNOWN_LENGTH, |bytes: u64| u32::try_from(bytes / 1024 + 1).unwrap_or(BUDGET).min(BUDGET));
    let _room = budget.acquire_many(needed).await;
    next.run(request).await
}

async fn handle(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    acceptor: Option<TlsAcceptor>,
    stop: CancellationToken,
) {
    let result = match acceptor {
        None => converse(TokioIo::new(stream), router, stop).await,
        Some(acceptor) => match tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => converse(TokioIo::new(stream), router, stop).await,
            Ok(Err(error)) => return debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => return debug!(%peer, "TLS handshake took too long"),
        },
    };
    if let Err(error) = result {
        debug!(%peer, %error, "connection broken");
    }
}

async fn converse<I>(io: I, router: Router, stop: CancellationToken) -> Result<(), hyper::Error>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(SILENCE_LIMIT);
    let mut connection = std::pin::pin!(builder.serve_connection(io, TowerToHyperService::new(router)));
    tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{
        body::{Body, Bytes},
        extract::DefaultBodyLimit,
        routing::post,
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_never_complete_is_let_go() {
        let listener = listen("--flag", "127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", post(|_: Bytes| async {}));
        let stop = CancellationToken::new();
        let limit = Duration::from_millis(100);
        let server = tokio::spawn(serve_within(listener, router, None, stop.clone(), limit));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("not complete"), "{answer}");
        stop.cancel();
        server.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_is_let_go_later_than_the_api_server_would_leave() {
        let (client, server) = tokio::io::duplex(64);
        let began = tokio::time::Instant::now();
        let result = converse(TokioIo::new(server), Router::new(), CancellationToken::new()).await;
        assert!(result.unwrap_err().is_timeout());
        assert!(began.elapsed() > Duration::from_secs(90), "{:?}", began.elapsed());
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_wait_until_there_is_room() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&now), Arc::clone(&most));
        let work = move |body: Bytes| async move {
            let busy = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
            counters.1.fetch_max(busy, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            counters.0.fetch_sub(1, Ordering::SeqCst);
            body.len().to_string()
        };
        let router = within_budget(Router::new().route("/", post(work))).layer(DefaultBodyLimit::disable());
        let send = |length: Option<&'static str>| {
            let mut request = Request::post("/");
            if let Some(length) = length {
                request = request.header(header::CONTENT_LENGTH, length);
            }
            router.clone().oneshot(request.body(Body::from("body")).unwrap())
        };
        // Small ones do not wait for each other.
        let all = futures::future::join_all((0..100).map(|_| send(Some("4")))).await;
        assert!(all.iter().all(|it| it.as_ref().unwrap().status() == StatusCode::OK));
        assert_eq!(most.swap(0, Ordering::SeqCst), 100);
        // Of large ones and of those that do not say, two fit; no length is too long to be answered.
        let large = [Some("67000000"), None, Some("66000000"), None, Some("18446744073709551615"), Some("x")];
        let all = futures::future::join_all(large.map(send)).await;
        assert!(all.iter().all(|it| it.as_ref().unwrap().status() == StatusCode::OK));
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    }
}
