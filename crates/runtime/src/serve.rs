//! HTTP servers: health, diagnostics, webhooks.

mod noted;
mod seats;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, lookup_host},
    sync::Notify,
    time::Instant,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;
use tracing::debug;

use self::{
    noted::{Noted, Progress},
    seats::{Entrance, Id, Limits, Phase, Table},
};
use crate::refusals::{Limit, Refusals};

/// How long a connection may go without a request. The API server closes its own after 90 s; a server that
/// closes earlier could cut off a request that is just being sent.
const SILENCE: Duration = Duration::from_mins(2);
/// How long a request may take, from its head to the answer. The API server waits 30 s at most.
const REQUEST: Duration = Duration::from_secs(30);
/// What a connection may hold of a head, and of an answer on its way out.
const BUFFER: usize = 64 << 10;
/// Connections that may wait to be accepted. In a burst of more, a client tries again only after a second.
const BACKLOG: u32 = 4096;
/// How long open requests may take once the server is told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// The API server speaks HTTP/1.1 to webhooks: a connection for each request that is under way, of which it keeps 25 for
/// each path. It has 600 requests under way at most unless told otherwise, few of them at the same moment here.
pub(crate) const WEBHOOKS: Limits = Limits {
    connections: 1024,
    per_peer: 512,
    first_request: Duration::from_secs(8),
    silence: SILENCE,
    request: REQUEST,
    answer_stall: Duration::from_secs(5),
};
/// The kubelet, and scrapers of metrics: a handful.
pub(crate) const DIAGNOSTICS: Limits =
    Limits { connections: 64, per_peer: 32, first_request: Duration::from_secs(5), ..WEBHOOKS };

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
        source: io::Error,
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
        return listen_at(host, port).await.map_err(bind);
    }
    match listen_at("::", port).await {
        Ok(listener) => Ok(listener),
        // A machine without IPv6.
        Err(_) => listen_at("0.0.0.0", port).await.map_err(bind),
    }
}

async fn listen_at(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address"));
    for address in lookup_host((host, port)).await? {
        result = listen_on(address);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port whose last connections are still closing can be used again.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A server: what it shows, and what it allows its clients.
pub(crate) struct Server {
    pub(crate) router: Router,
    /// Plain without.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) limits: Limits,
    pub(crate) refusals: Refusals,
}

impl Server {
    /// Serves until told to stop.
    pub(crate) async fn run(self, listener: TcpListener, stop: CancellationToken) {
        let (request, refusals) = (self.limits.request, self.refusals.clone());
        let answer = move |asked: Request, next| answer_within(request, refusals.clone(), asked, next);
        let router = self.router.layer(middleware::from_fn(answer));
        let acceptor = self.tls.map(TlsAcceptor::from);
        let table = Arc::new(Mutex::new(Table::new(self.limits)));
        let connections = TaskTracker::new();
        loop {
            let (stream, address) = tokio::select! {
                accepted = listener.accept() => match accepted {
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
            let peer = address.ip().to_canonical();
            let Some(seat) = Seat::take(&table, peer, &self.refusals) else { continue };
            let conversation = handle(stream, seat, router.clone(), acceptor.clone(), stop.clone());
            connections.spawn(conversation);
        }
        connections.close();
        // Connections that are still open then were asked to close long ago.
        let _ = tokio::time::timeout(DRAIN_LIMIT, connections.wait()).await;
    }
}

/// The peer of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A connection's place among the others; free again when dropped.
struct Seat {
    id: Id,
    peer: IpAddr,
    table: Arc<Mutex<Table<CancellationToken>>>,
    /// Cancelled once the connection has to make room.
    closed: CancellationToken,
    /// The next deadline is earlier than the last was.
    hurried: Notify,
    refusals: Refusals,
}

impl Seat {
    fn take(
        table: &Arc<Mutex<Table<CancellationToken>>>,
        peer: IpAddr,
        refusals: &Refusals,
    ) -> Option<Arc<Self>> {
        let closed = CancellationToken::new();
        let entrance = lock(table).enter(peer, Instant::now(), closed.clone());
        let id = match entrance {
            Entrance::Free(id) => id,
            Entrance::InPlaceOf(id, other, of, limit) => {
                other.cancel();
                refusals.report(of, limit);
                id
            }
            Entrance::Refused(limit) => {
                refusals.report(peer, limit);
                return None;
            }
        };
        Some(Arc::new(Self {
            id,
            peer,
            table: Arc::clone(table),
            closed,
            hurried: Notify::new(),
            refusals: refusals.clone(),
        }))
    }

    fn note(&self, phase: Phase) {
        if lock(&self.table).note(self.id, phase, Instant::now()) {
            self.hurried.notify_one();
        }
    }

    /// Notes what becomes of a body.
    fn noting(self: &Arc<Self>, moved: Phase, done: Phase) -> impl Fn(Progress) + use<> {
        let seat = Arc::clone(self);
        move |progress| seat.note(if progress == Progress::Done { done } else { moved })
    }

    fn handshake_failed(&self, error: &io::Error) {
        debug!(peer = %self.peer, %error, "TLS handshake failed");
        // A peer that only leaves was not turned away: load balancers check ports like that.
        if let Some(inner) = error.get_ref()
            && inner.is::<rustls::Error>()
        {
            self.refusals.handshake(self.peer, error);
        }
    }

    fn broken(&self, error: &hyper::Error) {
        debug!(peer = %self.peer, %error, "connection broken");
        // The library has answered these by itself.
        if error.is_parse_too_large() {
            self.refusals.report(self.peer, Limit::HeadLength(BUFFER));
        } else if error.is_parse() {
            self.refusals.malformed(self.peer, &error.to_string());
        }
    }

    /// Ends when the connection has to: it makes room, or its client is too slow.
    async fn ended(&self) {
        let too_slow = async {
            loop {
                let Some((deadline, limit)) = lock(&self.table).deadline(self.id) else { return };
                if deadline <= Instant::now() {
                    if let Some(limit) = limit {
                        self.refusals.report(self.peer, limit);
                    }
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep_until(deadline) => {}
                    () = self.hurried.notified() => {}
                }
            }
        };
        tokio::select! {
            () = too_slow => {}
            () = self.closed.cancelled() => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.table).leave(self.id);
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer_within(limit: Duration, refusals: Refusals, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    if let Ok(response) = tokio::time::timeout(limit, next.run(request)).await {
        if let Some(Peer(peer)) = peer {
            refusals.answered(peer, response.status());
        }
        return response;
    }
    let limit = Limit::RequestTime(limit);
    if let Some(Peer(peer)) = peer {
        refusals.report(peer, limit);
    }
    limit.into_response()
}

async fn handle(
    stream: TcpStream,
    seat: Arc<Seat>,
    router: Router,
    acceptor: Option<TlsAcceptor>,
    stop: CancellationToken,
) {
    let peer = seat.peer;
    let conversation = async {
        match acceptor {
            None => converse(TokioIo::new(stream), &seat, router, stop).await,
            Some(acceptor) => match acceptor.accept(stream).await {
                Ok(stream) => converse(TokioIo::new(stream), &seat, router, stop).await,
                Err(error) => return seat.handshake_failed(&error),
            },
        }
        .unwrap_or_else(|error| seat.broken(&error));
    };
    tokio::select! {
        () = conversation => {}
        () = seat.ended() => debug!(%peer, "connection closed"),
    }
}

async fn converse<I>(
    io: I,
    seat: &Arc<Seat>,
    router: Router,
    stop: CancellationToken,
) -> Result<(), hyper::Error>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (seat, router) = (Arc::clone(seat), router.clone());
        async move {
            seat.note(if request.body().is_end_stream() { Phase::Working } else { Phase::Receiving });
            let of_request = seat.noting(Phase::Receiving, Phase::Working);
            let mut request = request.map(|body| Body::new(Noted::new(body, of_request)));
            request.extensions_mut().insert(Peer(seat.peer));
            let response = router.oneshot(request).await?;
            seat.note(Phase::Answering);
            Ok::<_, Infallible>(
                response.map(|body| Noted::new(body, seat.noting(Phase::Answering, Phase::Idle))),
            )
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
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
    use axum::{
        body::Bytes,
        http::StatusCode,
        routing::{get, post},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        task::JoinHandle,
    };

    use super::*;
    use crate::metrics::Metrics;

    struct Running {
        address: SocketAddr,
        metrics: Metrics,
        stop: CancellationToken,
        task: JoinHandle<()>,
    }

    impl Running {
        async fn start(limits: Limits, router: Router) -> Self {
            Self::start_with(limits, router, None).await
        }

        async fn start_with(limits: Limits, router: Router, tls: Option<Arc<ServerConfig>>) -> Self {
            let listener = listen("--flag", "127.0.0.1:0").await.unwrap();
            let (address, metrics) = (listener.local_addr().unwrap(), Metrics::default());
            let refusals = Refusals::new("webhooks", metrics.clone());
            let stop = CancellationToken::new();
            let server = Server { router, tls, limits, refusals };
            let task = tokio::spawn(server.run(listener, stop.clone()));
            Self { address, metrics, stop, task }
        }

        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }

        /// Asks on a connection that stays open.
        async fn ask(&self, stream: &mut TcpStream) -> String {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
            let mut answer = [0; 15];
            stream.read_exact(&mut answer).await.unwrap();
            let mut rest = [0; 4096];
            assert!(stream.read(&mut rest).await.unwrap() > 0);
            String::from_utf8(answer.to_vec()).unwrap()
        }

        /// All that comes until the connection is closed.
        async fn rest(stream: &mut TcpStream) -> String {
            let mut text = Vec::new();
            // A connection that is cut off has ended as well.
            let _ = stream.read_to_end(&mut text).await;
            String::from_utf8(text).unwrap()
        }

        fn refused(&self, limit: &str) -> bool {
            self.metrics
                .expose()
                .contains(&format!("capstan_requests_refused_total{{server=\"webhooks\",limit=\"{limit}\"}}"))
        }

        async fn until_refused(&self, limit: &str) {
            let refused = async {
                while !self.refused(limit) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), refused).await.expect(limit);
        }

        async fn end(self) {
            self.stop.cancel();
            self.task.await.unwrap();
        }
    }

    fn router() -> Router {
        Router::new().route("/", get(|| async { "here" }).post(|_: Bytes| async {}))
    }

    #[tokio::test]
    async fn a_request_that_is_never_complete_is_let_go() {
        let limits = Limits { request: Duration::from_millis(100), ..WEBHOOKS };
        let server = Running::start(limits, router()).await;
        let mut stream = server.connect().await;
        stream.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf").await.unwrap();
        let answer = Running::rest(&mut stream).await;
        assert!(
            answer.starts_with("HTTP/1.1 408") && answer.contains("not complete within 100ms"),
            "{answer}"
        );
        assert!(server.refused("request_time"));
        server.end().await;
    }

    #[tokio::test]
    async fn whoever_connects_has_to_ask_something() {
        let limits = Limits { first_request: Duration::from_millis(100), ..WEBHOOKS };
        let server = Running::start(limits, router()).await;
        for start in [&b""[..], b"GET / HTTP/1.1\r\nHost: "] {
            let mut stream = server.connect().await;
            stream.write_all(start).await.unwrap();
            assert_eq!(Running::rest(&mut stream).await, "");
        }
        assert!(server.refused("first_request"));
        // Between requests there is more time.
        let mut stream = server.connect().await;
        assert_eq!(server.ask(&mut stream).await, "HTTP/1.1 200 OK");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(server.ask(&mut stream).await, "HTTP/1.1 200 OK");
        server.end().await;
    }

    #[tokio::test]
    async fn a_connection_that_is_used_outlives_any_number_of_idle_ones() {
        let limits = Limits { connections: 20, per_peer: 10, ..WEBHOOKS };
        let server = Running::start(limits, router()).await;
        let mut used = server.connect().await;
        assert_eq!(server.ask(&mut used).await, "HTTP/1.1 200 OK");
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(server.connect().await);
            assert_eq!(server.ask(&mut server.connect().await).await, "HTTP/1.1 200 OK");
        }
        assert_eq!(server.ask(&mut used).await, "HTTP/1.1 200 OK");
        assert_eq!(Running::rest(&mut idle[0]).await, "", "it made room");
        assert!(server.refused("peer_connections"));
        server.end().await;
    }

    #[tokio::test]
    async fn an_answer_that_is_not_taken_is_given_up() {
        let limits = Limits { answer_stall: Duration::from_millis(200), ..WEBHOOKS };
        // More than what lies between two programs on one machine.
        let endless = || async {
            Body::from_stream(futures::stream::repeat_with(|| {
                Ok::<_, Infallible>(Bytes::from(vec![b'x'; 1 << 16]))
            }))
        };
        let server = Running::start(limits, router().route("/endless", post(endless))).await;
        let mut stream = server.connect().await;
        stream.write_all(b"POST /endless HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        let given_up = async {
            while !server.refused("answer_stall") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), given_up).await.unwrap();
        server.end().await;
    }

    #[tokio::test]
    async fn refusals_of_the_library_and_of_the_router_are_counted() {
        let unauthorized = || async { StatusCode::UNAUTHORIZED };
        let forbidden = || async { StatusCode::FORBIDDEN };
        let router = router().route("/401", get(unauthorized)).route("/403", get(forbidden));
        let server = Running::start(WEBHOOKS, router).await;
        let long = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "h".repeat(2 * BUFFER));
        for (request, status, limit) in [
            ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "200", None),
            ("GET /other HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "404", Some("path")),
            ("PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "405", Some("method")),
            ("GET /401 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "401", Some("unauthenticated")),
            ("GET /403 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "403", Some("forbidden")),
            ("no request\r\n\r\n", "400", Some("malformed")),
            (long.as_str(), "431", Some("head_length")),
        ] {
            assert!(limit.is_none_or(|limit| !server.refused(limit)), "{limit:?} was counted before");
            let mut stream = server.connect().await;
            // The rest of a head that is too long may not be taken.
            let _ = stream.write_all(request.as_bytes()).await;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes(), "{limit:?}");
            match limit {
                Some(limit) => server.until_refused(limit).await,
                None => assert!(!server.metrics.expose().contains("capstan_requests_refused_total{")),
            }
        }
        server.end().await;
    }

    #[tokio::test]
    async fn handshakes_that_fail_or_never_end_are_counted() {
        let limits = Limits { first_request: Duration::from_millis(500), ..WEBHOOKS };
        let own = crate::tls::OwnCertificate::make(&["localhost"]).unwrap();
        let tls = own.serving.server_config().unwrap();
        let server = Running::start_with(limits, router(), Some(tls)).await;
        drop(server.connect().await);
        let mut stream = server.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        server.until_refused("handshake").await;
        assert!(server.metrics.expose().contains("limit=\"handshake\"} 1\n"), "to leave is no refusal");
        assert!(!server.refused("first_request"));
        let mut stream = server.connect().await;
        // The first bytes of a handshake's record, and no more.
        stream.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        server.until_refused("first_request").await;
        server.end().await;
    }

    #[test]
    fn the_api_server_closes_its_connections_first() {
        // It keeps those that it has used for 90 s.
        assert!(WEBHOOKS.silence > Duration::from_secs(90));
    }
}
