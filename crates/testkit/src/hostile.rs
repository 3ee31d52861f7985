//! Callers of a manager's webhooks: one that means well, and others that mean harm.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A caller at an address of loopback, who trusts every certificate.
#[derive(Clone)]
pub struct Caller {
    address: SocketAddr,
    from: IpAddr,
    connector: TlsConnector,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Caller {
    /// Calls a server from 127.0.0.1.
    pub fn new(address: SocketAddr) -> Self {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAll(provider)))
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Self { address, from: Ipv4Addr::LOCALHOST.into(), connector }
    }

    /// The same from another address of loopback: another peer.
    #[must_use]
    pub fn from(&self, address: [u8; 4]) -> Self {
        Self { from: address.into(), ..self.clone() }
    }

    /// Connects without TLS.
    pub async fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        socket.connect(self.address).await
    }

    /// Connects with TLS.
    pub async fn connect_tls(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = self.connect().await?;
        let mut stream = self.connector.connect(ServerName::try_from("webhooks").unwrap(), stream).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// Sends the head of a POST and what follows it, and leaves it at that.
    pub async fn begin(&self, path: &str, header: &str, part: &[u8]) -> io::Result<TlsStream<TcpStream>> {
        let mut stream = self.connect_tls().await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: webhooks\r\nContent-Type: application/json\r\n{header}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(part).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// Posts on a connection of its own; gives the code and body of the answer.
    pub async fn post(&self, path: &str, body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut stream = self.connect_tls().await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: webhooks\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut answer = Vec::new();
        let (mut from, mut to) = tokio::io::split(&mut stream);
        let send = async {
            to.write_all(head.as_bytes()).await?;
            to.write_all(body).await?;
            to.flush().await
        };
        // A request that is refused early may be cut off while it is still being sent.
        let (_, received) = tokio::join!(send, from.read_to_end(&mut answer));
        match received {
            Err(error) if answer.is_empty() => return Err(error),
            _ => {}
        }
        read_answer(&answer)
    }
}

fn read_answer(answer: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let head = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let code = answer.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    match (head, code) {
        (Some(head), Some(code)) => Ok((code, answer[head + 4..].to_vec())),
        _ => Err(io::Error::other(format!("no answer: {:?}", String::from_utf8_lossy(answer)))),
    }
}

/// Gets a path of a plain server, within a limit; gives the code and the body.
pub async fn get(address: SocketAddr, path: &str, limit: Duration) -> io::Result<(u16, String)> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: manager\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let (code, body) = read_answer(&answer)?;
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::time::timeout(limit, ask).await?
}

/// Writes a certificate and its key as `--webhook-cert-dir` wants them.
pub fn write_certificate(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(["webhooks".to_owned()]).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
}

/// A port that is free now.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Lets this process open as many files as it may.
pub fn raise_file_limit() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

/// A review of a Cluster as the API server sends it for an update, which is not to be changed or refused.
pub fn review(uid: &str) -> Value {
    let cluster = |generation: u64| {
        let fields = json!({"f:spec": {"f:controlPlaneEndpoint": {"f:host": {}, "f:port": {}}, "f:infrastructureRef": {}}});
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {
                "name": "c", "namespace": "n", "uid": "00000000-0000-0000-0000-000000000000", "generation": generation,
                "labels": {"environment": "production"}, "finalizers": ["cluster.cluster.x-k8s.io"],
                "managedFields": [{"manager": "capstan-cluster", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}],
            },
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}, "services": {"cidrBlocks": ["10.1.0.0/16"]}},
                "controlPlaneEndpoint": {"host": "c.example.test", "port": 6443},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "LocalCluster", "name": "c"},
            },
            "status": {"phase": "Provisioned", "conditions": [{
                "type": "Available", "status": "True", "reason": "Available", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        })
    };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": uid, "operation": "UPDATE", "object": cluster(2), "oldObject": cluster(1)},
    })
}

/// Whether this is the answer to [`review`].
pub fn is_let_in(uid: &str, code: u16, answer: &[u8]) -> bool {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    code == 200 && answer["response"] == json!({"uid": uid, "allowed": true})
}

#[derive(Debug)]
struct TrustAll(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
