//! HTTP servers: health, diagnostics, webhooks.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

/// A client that is slower than this at shaking hands is let go.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
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
    /// The address is not to be had.
    #[error("cannot listen on {address} (from {flag}): {source}")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// The address.
        address: String,
        /// Why not.
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
    let acceptor = tls.map(TlsAcceptor::from);
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
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
        connections.spawn(handle(stream, peer, router.clone(), acceptor.clone(), stop.clone()));
    }
    connections.close();
    // Whoever is slower than this has been told to stop long ago.
    let _ = tokio::time::timeout(DRAIN_LIMIT, connections.wait()).await;
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
    let mut connection =
        std::pin::pin!(http1::Builder::new().serve_connection(io, TowerToHyperService::new(router)));
    tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}
