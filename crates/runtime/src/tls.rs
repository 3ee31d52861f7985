//! Serving certificates: read from a folder and followed when they change, or made for this process. Those that
//! replicas share an authority for are in [`certificates`](crate::certificates).

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tracing::{info, warn};

/// How often the files are looked at.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);

/// No usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error(
        "cannot read {path}: put the certificate and key there, name another folder with --webhook-cert-dir, or serve no webhooks with --webhook-port 0"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{what} is not usable: {reason}")]
    Malformed {
        /// The file.
        what: String,
        /// The reason.
        reason: String,
    },
    /// None could be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

/// The certificate that a server shows; it can be swapped while the server runs.
pub struct ServingCertificate {
    /// Nothing before there is one: handshakes fail until then.
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServingCertificate {
    /// Uses a certificate chain and key in PEM form.
    pub fn from_pem(what: &str, chain: &[u8], key: &[u8]) -> Result<Arc<Self>, CertificateError> {
        let serving = Self::awaited();
        serving.replace(what, chain, key)?;
        Ok(serving)
    }

    /// A certificate that is yet to come.
    pub fn awaited() -> Arc<Self> {
        Arc::new(Self { current: RwLock::new(None) })
    }

    /// Shows another certificate from now on.
    pub fn replace(&self, what: &str, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let key = certified_key(what, chain, key)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        Ok(())
    }

    /// The TLS configuration of a server that shows this certificate.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CertificateError::Malformed {
                what: "TLS set-up".into(),
                reason: error.to_string(),
            })?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certified_key(what: &str, chain: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
    let malformed = |reason: String| CertificateError::Malformed { what: what.to_owned(), reason };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        // The library's words would quote the file.
        .map_err(|_| malformed("it is not PEM".to_owned()))?;
    if chain.is_empty() {
        return Err(malformed("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| malformed("the key beside it is no private key in PEM".to_owned()))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| malformed(error.to_string()))
}

/// A certificate in a folder: `tls.crt` and `tls.key`.
pub struct CertificateFolder {
    certificate: PathBuf,
    key: PathBuf,
    loaded: (Vec<u8>, Vec<u8>),
    serving: Arc<ServingCertificate>,
}

impl fmt::Debug for CertificateFolder {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateFolder").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl CertificateFolder {
    /// Reads the certificate for the first time.
    pub async fn open(folder: &Path) -> Result<Self, CertificateError> {
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        let loaded = (read(&certificate).await?, read(&key).await?);
        let what = certificate.display().to_string();
        let serving = ServingCertificate::from_pem(&what, &loaded.0, &loaded.1)?;
        Ok(Self { certificate, key, loaded, serving })
    }

    /// What a server shows.
    pub fn serving(&self) -> Arc<ServingCertificate> {
        Arc::clone(&self.serving)
    }

    /// Follows the files, for ever.
    pub async fn follow(mut self) {
        let mut ticks = tokio::time::interval(RELOAD_PERIOD);
        loop {
            ticks.tick().await;
            if let Err(error) = self.reload().await {
                // The two files are replaced one after the other: the next look may find them whole.
                warn!(%error, "keeping the certificate that was loaded before");
            }
        }
    }

    async fn reload(&mut self) -> Result<(), CertificateError> {
        let found = (read(&self.certificate).await?, read(&self.key).await?);
        if found != self.loaded {
            let what = self.certificate.display().to_string();
            self.serving.replace(&what, &found.0, &found.1)?;
            self.loaded = found;
            info!(file = %what, "serving certificate replaced");
        }
        Ok(())
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    tokio::fs::read(path).await.map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

/// A certificate made for this process, and the authority that clients must trust.
#[derive(Debug)]
pub struct OwnCertificate {
    /// What a server shows.
    pub serving: Arc<ServingCertificate>,
    /// The authority's certificate in PEM form.
    pub ca_pem: String,
}

impl OwnCertificate {
    /// Makes a certificate for these DNS names and IP addresses.
    pub fn make(names: &[&str]) -> Result<Self, CertificateError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "capstan serving CA");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate()?;
        let mut leaf =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        leaf.distinguished_name.push(DnType::CommonName, "capstan");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let chain = leaf.signed_by(&key, &issuer)?.pem();
        let serving = ServingCertificate::from_pem(
            "the certificate just made",
            chain.as_bytes(),
            key.serialize_pem().as_bytes(),
        )?;
        Ok(Self { serving, ca_pem })
    }
}
