//! A workload cluster's certificate authority, as its Secret holds it.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use capstan_api::names::secret;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use x509_parser::{parse_x509_certificate, x509::SubjectPublicKeyInfo};

use crate::connection::secrets::Mark;

/// Signature schemes for keys of any kind that we can sign with, and rcgen's names for them.
static SCHEMES: [(SignatureScheme, &rcgen::SignatureAlgorithm); 4] = [
    (SignatureScheme::RSA_PKCS1_SHA256, &rcgen::PKCS_RSA_SHA256),
    (SignatureScheme::ECDSA_NISTP256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &rcgen::PKCS_ECDSA_P384_SHA384),
    (SignatureScheme::ED25519, &rcgen::PKCS_ED25519),
];

/// A certificate authority that can sign.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    not_after: Timestamp,
    key: SigningKey,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("mark", &self.mark()).finish_non_exhaustive()
    }
}

/// A client's certificate and key in PEM.
pub(crate) struct Identity {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
    pub(crate) not_after: Timestamp,
}

impl Authority {
    /// Reads `tls.crt` and `tls.key`.
    pub(crate) fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, String> {
        let get = |key: &str| data.get(key).ok_or_else(|| format!("key {key} is missing"));
        let (certificate, key) = (get(secret::CERTIFICATE_KEY)?, get(secret::PRIVATE_KEY_KEY)?);
        let certificate = CertificateDer::from_pem_slice(&certificate.0)
            .map_err(|_| format!("key {} holds no certificate in PEM", secret::CERTIFICATE_KEY))?;
        let (_, parsed) = parse_x509_certificate(&certificate)
            .map_err(|_| format!("key {} holds no X.509 certificate", secret::CERTIFICATE_KEY))?;
        if !parsed.is_ca() {
            return Err(format!("the certificate in {} is not one of an authority", secret::CERTIFICATE_KEY));
        }
        let not_after = Timestamp::from_second(parsed.validity().not_after.timestamp())
            .map_err(|_| format!("the certificate in {} has no usable end", secret::CERTIFICATE_KEY))?;
        let key = SigningKey::read(&key.0, parsed.public_key())?;
        Ok(Self { certificate, not_after, key })
    }

    /// Identifies it.
    pub(crate) fn mark(&self) -> Mark {
        Mark::of(&self.certificate)
    }

    /// Its certificate, in DER.
    pub(crate) fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// Until when it can be trusted.
    pub(crate) fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Makes a key, and signs a client certificate for it.
    pub(crate) fn issue(
        self,
        name: &str,
        organisation: &str,
        not_before: Timestamp,
        not_after: Timestamp,
    ) -> Result<Identity, String> {
        // The library's words may quote the certificate.
        let failed = |_: rcgen::Error| "no certificate can be signed with it".to_owned();
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organisation);
        params.distinguished_name.push(DnType::CommonName, name);
        let date = |time: Timestamp| rcgen::date_time_ymd(1970, 1, 1) + seconds_of(time);
        params.not_before = date(not_before);
        params.not_after = date(not_after);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.certificate, self.key).map_err(failed)?;
        let signed = params.signed_by(&key, &issuer).map_err(failed)?;
        // Names are compared byte by byte by those who verify, and rarely used forms do not survive a copy.
        let issuer_name =
            parse_x509_certificate(&self.certificate).map(|(_, it)| it.subject().as_raw().to_vec());
        let copied_name = parse_x509_certificate(signed.der()).map(|(_, it)| it.issuer().as_raw().to_vec());
        match (issuer_name, copied_name) {
            (Ok(name), Ok(copy)) if name == copy => {}
            _ => return Err("the subject of its certificate is of a form that cannot be copied: use an authority whose subject has each attribute once".to_owned()),
        }
        Ok(Identity { certificate_pem: signed.pem(), key_pem: key.serialize_pem(), not_after })
    }
}

fn seconds_of(time: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
}

/// An authority's key, in whatever form it came: rcgen by itself reads PKCS#8 only.
struct SigningKey {
    signer: Arc<dyn rustls::sign::SigningKey>,
    scheme: SignatureScheme,
    algorithm: &'static rcgen::SignatureAlgorithm,
    public: Vec<u8>,
}

impl SigningKey {
    fn read(pem: &[u8], expected: &SubjectPublicKeyInfo<'_>) -> Result<Self, String> {
        let field = secret::PRIVATE_KEY_KEY;
        let key = PrivateKeyDer::from_pem_slice(pem)
            .map_err(|_| format!("key {field} holds no private key in PEM (PKCS#1, PKCS#8 or SEC1)"))?;
        let signer = any_supported_type(&key).map_err(|_| {
            format!(
                "the private key in {field} is none of RSA from 2048 bits, ECDSA P-256 or P-384, and Ed25519"
            )
        })?;
        if signer.public_key().is_none_or(|public| *public != *expected.raw) {
            return Err(format!(
                "the private key in {field} does not belong to the certificate in {}",
                secret::CERTIFICATE_KEY
            ));
        }
        let fits = |scheme: SignatureScheme| signer.choose_scheme(&[scheme]).is_some();
        let (scheme, algorithm) = SCHEMES
            .into_iter()
            .find(|(scheme, _)| fits(*scheme))
            .ok_or_else(|| format!("the private key in {field} cannot sign certificates"))?;
        let public = expected.subject_public_key.data.to_vec();
        Ok(Self { signer, scheme, algorithm, public })
    }
}

impl PublicKeyData for SigningKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.algorithm
    }
}

impl rcgen::SigningKey for SigningKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signer = self.signer.choose_scheme(&[self.scheme]).ok_or(rcgen::Error::RemoteKeyError)?;
        signer.sign(message).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}
