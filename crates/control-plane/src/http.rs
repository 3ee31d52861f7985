//! Just enough HTTPS to ask the control plane how it is: one request per connection, blocking.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::error::Error;

/// For each step of a request: the other end is on this machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests to one port of 127.0.0.1 with a client certificate.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

/// The answer to a request, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for `https://127.0.0.1:<port>`, with certificates and key in PEM.
    pub fn new(port: u16, authority: &str, certificate: &str, key: &str) -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let refuse = |reason: &dyn fmt::Display| Error::Credentials {
            address: address.to_string(),
            reason: reason.to_string(),
        };
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(root.map_err(|error| refuse(&error))?).map_err(|error| refuse(&error))?;
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| refuse(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| refuse(&error))?;
        // The provider is named, so that nothing depends on what the process as a whole has chosen.
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| refuse(&error))?;
        Ok(Self { address, tls: Arc::new(tls) })
    }

    /// Asks for a path.
    pub fn get(&self, path: &str) -> Result<Response, Error> {
        self.request("GET", path, "application/json", "")
    }

    /// Sends a body of the given type to a path.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<Response, Error> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        self.exchange(&(head + body)).map_err(|source| Error::Request {
            method: method.to_owned(),
            url: format!("https://{}{path}", self.address),
            source,
        })
    }

    fn exchange(&self, request: &str) -> io::Result<Response> {
        let socket = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let server = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(Arc::clone(&self.tls), server).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // A server may close without saying so in TLS; whether something is missing shows in what came.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        parse(&answer).ok_or_else(|| {
            let start: String = String::from_utf8_lossy(&answer).chars().take(200).collect();
            let problem = format!("not a whole HTTP response, {} bytes: {start:?}", answer.len());
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })
    }
}

fn parse(answer: &[u8]) -> Option<Response> {
    let end = find(answer, b"\r\n\r\n")?;
    let head = str::from_utf8(&answer[..end]).ok()?;
    let rest = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let header = |name: &str| {
        let found = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(found.1.trim())
    };
    let body = if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunk(rest)?
    } else if let Some(length) = header("content-length") {
        rest.get(..length.parse().ok()?)?.to_vec()
    } else {
        rest.to_vec()
    };
    Some(Response { status, body: String::from_utf8_lossy(&body).into_owned() })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n")?;
        let size = str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
}

fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes.windows(sought.len()).position(|window| window == sought)
}

#[cfg(test)]
mod tests {
    use super::{Response, parse};

    #[track_caller]
    fn assert_parsed(answer: &[u8], status: u16, body: &str) {
        let body = body.to_owned();
        assert_eq!(parse(answer), Some(Response { status, body }));
    }

    #[test]
    fn a_body_of_given_length() {
        assert_parsed(b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\nok", 200, "ok");
        assert_parsed(b"HTTP/1.0 503 Not Yet\r\nContent-Length: 0\r\n\r\n", 503, "");
    }

    #[test]
    fn a_body_in_chunks() {
        let head = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = format!("{head}4\r\nca\r\n\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n");
        assert_parsed(answer.as_bytes(), 201, "ca\r\n0123456789");
    }

    #[test]
    fn a_body_until_the_end() {
        assert_parsed(b"HTTP/1.1 404 Not Found\r\n\r\nnone", 404, "none");
    }

    #[test]
    fn what_is_cut_off_is_no_response() {
        for answer in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nca",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n",
            b"HTTP/1.1 two OK\r\n\r\n",
        ] {
            assert_eq!(parse(answer), None, "{:?}", String::from_utf8_lossy(answer));
        }
    }
}
