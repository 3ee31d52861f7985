//! A proxy on loopback that resolves names which only it knows.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::authority;

/// The protocol that a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKind {
    /// HTTP CONNECT.
    Http,
    /// HTTP CONNECT over TLS.
    Https,
    /// SOCKS5.
    Socks5,
    /// Accepts connections and never answers.
    Silent,
}

/// A proxy. It closes when it is dropped.
#[derive(Debug)]
pub struct FakeProxy {
    kind: ProxyKind,
    address: SocketAddr,
    ca_pem: String,
    credentials: Option<(String, String)>,
    seen: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Rules {
    kind: ProxyKind,
    routes: Arc<BTreeMap<String, SocketAddr>>,
    credentials: Option<(String, String)>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl FakeProxy {
    /// Starts a proxy for everybody. `routes` maps `host:port` to where it really is; all else is refused.
    pub async fn start(kind: ProxyKind, routes: &[(&str, SocketAddr)]) -> Self {
        Self::start_for(kind, routes, None).await
    }

    /// Starts a proxy that asks for a user and a password.
    pub async fn start_guarded(
        kind: ProxyKind,
        routes: &[(&str, SocketAddr)],
        user: &str,
        password: &str,
    ) -> Self {
        Self::start_for(kind, routes, Some((user.to_owned(), password.to_owned()))).await
    }

    async fn start_for(
        kind: ProxyKind,
        routes: &[(&str, SocketAddr)],
        credentials: Option<(String, String)>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ca_pem, acceptor) = authority::make();
        let seen = Arc::default();
        let routes = routes.iter().map(|(name, to)| ((*name).to_owned(), *to)).collect();
        let rules = Rules {
            kind,
            routes: Arc::new(routes),
            credentials: credentials.clone(),
            seen: Arc::clone(&seen),
        };
        let server = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (rules, acceptor) = (rules.clone(), acceptor.clone());
                tokio::spawn(async move {
                    // Clients close connections at any time.
                    let _ = match rules.kind {
                        ProxyKind::Http => connect(connection, &rules).await,
                        ProxyKind::Socks5 => socks5(connection, &rules).await,
                        ProxyKind::Silent => std::future::pending().await,
                        ProxyKind::Https => match acceptor.accept(connection).await {
                            Ok(connection) => connect(connection, &rules).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { kind, address, ca_pem, credentials, seen, server }
    }

    /// Its address, with the credentials that it asks for.
    pub fn url(&self) -> String {
        match &self.credentials {
            Some((user, password)) => self.url_as(&format!("{user}:{password}@")),
            None => self.url_as(""),
        }
    }

    /// Its address with other credentials, such as `user:password@`.
    pub fn url_as(&self, credentials: &str) -> String {
        let scheme = match self.kind {
            ProxyKind::Http | ProxyKind::Silent => "http",
            ProxyKind::Https => "https",
            ProxyKind::Socks5 => "socks5",
        };
        format!("{scheme}://{credentials}{}", self.address)
    }

    /// The authority that signed its certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Every `host:port` that it was asked for so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Rules {
    async fn open(&self, target: String) -> Option<TcpStream> {
        let route = self.routes.get(&target).copied();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(target);
        TcpStream::connect(route?).await.ok()
    }
}

async fn connect(mut client: impl AsyncRead + AsyncWrite + Unpin, rules: &Rules) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let target = lines.next().and_then(|line| line.strip_prefix("CONNECT ")?.split(' ').next());
    let Some(target) = target else {
        return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n").await;
    };
    if let Some((user, password)) = &rules.credentials {
        let expected = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("proxy-authorization").then(|| value.to_owned())
        };
        if lines.find_map(header) != Some(expected) {
            return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
        }
    }
    let Some(mut server) = rules.open(target.to_owned()).await else {
        return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// As RFC 1928 and RFC 1929 say, for the CONNECT command.
async fn socks5(mut client: TcpStream, rules: &Rules) -> io::Result<()> {
    const NO_AUTHENTICATION: u8 = 0;
    const USER_AND_PASSWORD: u8 = 2;
    assert_eq!(client.read_u8().await?, 5, "the version");
    let methods = read_string(&mut client).await?;
    let wanted = if rules.credentials.is_some() { USER_AND_PASSWORD } else { NO_AUTHENTICATION };
    if !methods.contains(&wanted) {
        return client.write_all(&[5, 0xff]).await;
    }
    client.write_all(&[5, wanted]).await?;
    if let Some((user, password)) = &rules.credentials {
        assert_eq!(client.read_u8().await?, 1, "the version of the credentials");
        let given = (read_string(&mut client).await?, read_string(&mut client).await?);
        if given != (user.clone().into_bytes(), password.clone().into_bytes()) {
            return client.write_all(&[1, 1]).await;
        }
        client.write_all(&[1, 0]).await?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request {
        [5, 1, 0, 3] => String::from_utf8(read_string(&mut client).await?).unwrap(),
        [5, 1, 0, 1] => std::net::Ipv4Addr::from_bits(client.read_u32().await?).to_string(),
        other => panic!("a SOCKS request that this proxy does not know: {other:?}"),
    };
    let port = client.read_u16().await?;
    let server = rules.open(format!("{host}:{port}")).await;
    let code = if server.is_some() { 0 } else { 4 };
    client.write_all(&[5, code, 0, 1, 127, 0, 0, 1, 0, 0]).await?;
    match server {
        Some(mut server) => copy_bidirectional(&mut client, &mut server).await.map(drop),
        None => Ok(()),
    }
}

/// A length and as many bytes.
async fn read_string(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut text = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut text).await?;
    Ok(text)
}
