//! The certificate of the fake, and who signed it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Every name that the fake answers to.
pub(super) const NAMES: [&str; 9] = [
    "github.com",
    "api.github.com",
    "objects.githubusercontent.com",
    "proxy.golang.org",
    "gitlab.example.com",
    "files.example.com",
    "other.example.com",
    "registry.example.com",
    "localhost",
];

/// A fresh authority in PEM, and what accepts connections in its name.
pub(super) fn make() -> (String, TlsAcceptor) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "capstan fake authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();

    let mut names: Vec<_> = NAMES.iter().map(ToString::to_string).collect();
    names.push("127.0.0.1".to_owned());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();

    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (authority.pem(), TlsAcceptor::from(Arc::new(config)))
}
