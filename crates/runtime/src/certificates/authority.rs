//! An authority: a certificate and the key that signs others in its name.

use std::{fmt, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::validity::validity;
use crate::tls::CertificateError;

/// How long an authority is valid.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long a serving certificate is valid at most.
pub(super) const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Certificates are backdated by this: the API server's clock may be behind ours.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);
/// The years within which an authority that was made here may begin and end.
const SENSIBLE_YEARS: std::ops::Range<i16> = 2000..2200;

/// A CA certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate in PEM form.
    pub certificate: String,
    /// The key in PEM form.
    pub key: String,
    /// The last moment at which it is valid.
    pub not_after: Timestamp,
    /// The first moment at which it is valid.
    pub not_before: Timestamp,
}

impl fmt::Debug for Authority {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("certificate", &self.certificate)
            .field("not_after", &self.not_after)
            .field("not_before", &self.not_before)
            .finish_non_exhaustive()
    }
}

/// A serving certificate.
pub(super) struct Leaf {
    pub(super) chain: String,
    pub(super) key: String,
    /// When the next one should be made.
    pub(super) renew_at: Timestamp,
}

impl fmt::Debug for Leaf {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("renew_at", &self.renew_at).finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a self-signed authority.
    pub fn make(now: Timestamp) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let (not_before, not_after) =
            (whole_seconds(before(now, BACKDATE)), whole_seconds(after(now, AUTHORITY_LIFETIME)));
        let certificate = parameters(not_before, not_after).self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), not_after, not_before })
    }

    /// Reads an authority that [`make`](Self::make) created; the error says why it is unusable. It ends up in Events, so it
    /// never quotes the Secret, as the errors of libraries would.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        let der =
            CertificateDer::from_pem_slice(certificate).map_err(|_| "there is no certificate in PEM form")?;
        let (not_before, not_after) =
            validity(&der).ok_or("the certificate does not say how long it is valid")?;
        let is_sensible =
            |moment: Timestamp| SENSIBLE_YEARS.contains(&jiff::tz::Offset::UTC.to_datetime(moment).year());
        if !is_sensible(not_before) || !is_sensible(not_after) || not_after <= not_before {
            return Err(format!("no authority is valid from {not_before} to {not_after}"));
        }
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| "PEM is plain text".to_owned());
        let (certificate, key) = (text(certificate)?, text(key)?);
        KeyPair::from_pem(&key).map_err(|_| "there is no private key in PEM form that can be used")?;
        let authority = Self { certificate, key, not_after, not_before };
        authority
            .prove(&der)
            .map_err(|_| "what it signs cannot be trusted: the key is not that of the certificate, or the certificate is not one of an authority")?;
        Ok(authority)
    }

    /// Signs a test certificate and verifies it, which proves that the key belongs to the certificate and that the
    /// certificate may sign.
    fn prove(&self, der: &CertificateDer<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let host = "proof.invalid";
        let moment = after(self.not_before, BACKDATE);
        let leaf = self.issue(&[host.to_owned()], moment)?;
        let leaf = CertificateDer::from_pem_slice(leaf.chain.as_bytes())?;
        let mut roots = RootCertStore::empty();
        roots.add(der.clone())?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        let moment = UnixTime::since_unix_epoch(since_epoch(moment));
        verifier.verify_server_cert(&leaf, &[], &ServerName::try_from(host)?, &[], moment)?;
        Ok(())
    }

    /// Signs a serving certificate for these names. It ends no later than the authority itself.
    pub(super) fn issue(&self, names: &[String], now: Timestamp) -> Result<Leaf, CertificateError> {
        let issuer = Issuer::new(parameters(self.not_before, self.not_after), KeyPair::from_pem(&self.key)?);
        let key = KeyPair::generate()?;
        let not_after = self.not_after.min(after(now, LEAF_LIFETIME));
        let mut leaf = CertificateParams::new(names.to_vec())?;
        leaf.distinguished_name.push(DnType::CommonName, "capstan webhooks");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        set_validity(&mut leaf, before(now, BACKDATE), not_after);
        let chain = leaf.signed_by(&key, &issuer)?.pem();
        let renew_at = after(now, now.duration_until(not_after) / 2);
        Ok(Leaf { chain, key: key.serialize_pem(), renew_at })
    }
}

/// All of an authority's certificate but its key. The name differs from authority to authority, so that none is
/// taken for another, and follows from what can be read from the certificate.
fn parameters(not_before: Timestamp, not_after: Timestamp) -> CertificateParams {
    let mut ca = CertificateParams::default();
    let name = format!("capstan webhook authority {}", not_before.strftime("%Y%m%d%H%M%S"));
    ca.distinguished_name.push(DnType::CommonName, name);
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut ca, not_before, not_after);
    ca
}

fn set_validity(certificate: &mut CertificateParams, not_before: Timestamp, not_after: Timestamp) {
    let epoch = date_time_ymd(1970, 1, 1);
    certificate.not_before = epoch + since_epoch(not_before);
    certificate.not_after = epoch + since_epoch(not_after);
}

fn since_epoch(moment: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(moment.as_second()).unwrap_or(0))
}

/// A later moment, or the last that there is: what is read may be anything, and `+` would panic.
pub(super) fn after(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    moment.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// An earlier moment, or the first that there is.
pub(super) fn before(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    moment.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

/// Certificates know no fractions of a second.
fn whole_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:00.5Z".parse().unwrap()
    }

    #[test]
    fn an_authority_is_read_as_it_was_made() {
        // The form of dates changes in 2050.
        for now in [now(), "2049-12-31T23:59:59Z".parse().unwrap(), "2061-01-01T00:00:00Z".parse().unwrap()] {
            let made = Authority::make(now).unwrap();
            let read = Authority::read(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
            assert_eq!(read, made);
        }
    }

    #[test]
    fn what_is_no_authority_is_said_to_be_none() {
        let (one, other) = (Authority::make(now()).unwrap(), Authority::make(now()).unwrap());
        let leaf = one.issue(&["a.b.svc".to_owned()], now()).unwrap();
        for (certificate, key, words) in [
            (one.certificate.as_bytes(), other.key.as_bytes(), "cannot be trusted"),
            (leaf.chain.as_bytes(), leaf.key.as_bytes(), "cannot be trusted"),
            (b"", one.key.as_bytes(), "no certificate"),
            (
                b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                one.key.as_bytes(),
                "how long",
            ),
            (one.certificate.as_bytes(), b"\xff", "plain text"),
            (one.certificate.as_bytes(), b"key", "no private key"),
        ] {
            let error = Authority::read(certificate, key).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn neither_words_nor_debug_tell_what_a_secret_holds() {
        let one = Authority::make(now()).unwrap();
        let pem =
            |label: &str, text: &str| format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        // As it is, and as libraries print bytes and base64.
        let numbers = "canary".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
        let tells =
            |words: &str| ["canary", numbers.as_str(), "Y2FuYXJ5"].iter().any(|it| words.contains(it));
        let spoilt = [
            "canary".to_owned(),
            "-----BEGIN canary".to_owned(),
            "-----BEGIN CERTIFICATE-----\ncanary\n".to_owned(),
            "-----BEGIN PRIVATE KEY-----\ncanary\n".to_owned(),
            pem("canary", "canary"),
            pem("CERTIFICATE", "canary"),
            pem("PRIVATE KEY", "canary!"),
            pem("PRIVATE KEY", "Y2FuYXJ5"),
            pem("CERTIFICATE", "Y2FuYXJ5"),
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END canary-----\n".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END canary-----\n".to_owned(),
        ];
        for text in &spoilt {
            for (certificate, key) in [(text, &one.key), (&one.certificate, text), (text, text)] {
                let words = Authority::read(certificate.as_bytes(), key.as_bytes()).unwrap_err();
                assert!(!tells(&words), "{text}: {words}");
                let words =
                    crate::tls::ServingCertificate::from_pem("f", certificate.as_bytes(), key.as_bytes())
                        .unwrap_err();
                assert!(!tells(&crate::controller::with_causes(&words)), "{text}: {words}");
            }
        }
        let leaf = one.issue(&["a.b.svc".to_owned()], now()).unwrap();
        for (shown, key) in [(format!("{one:?}"), &one.key), (format!("{leaf:?}"), &leaf.key)] {
            let secret = key.lines().nth(1).unwrap();
            assert!(!shown.contains(secret) && !shown.contains("PRIVATE"), "{shown}");
        }
    }

    #[test]
    fn no_authority_is_from_another_age() {
        let of = |not_before: &str, not_after: &str| {
            let key = KeyPair::generate().unwrap();
            let (not_before, not_after) = (not_before.parse().unwrap(), not_after.parse().unwrap());
            let certificate = parameters(not_before, not_after).self_signed(&key).unwrap().pem();
            Authority::read(certificate.as_bytes(), key.serialize_pem().as_bytes())
        };
        assert!(of("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z").is_ok());
        for (not_before, not_after) in [
            ("9999-12-30T00:00:00Z", "9999-12-30T21:00:00Z"),
            ("2026-01-01T00:00:00Z", "9999-12-30T21:00:00Z"),
            ("1975-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("2027-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ] {
            let error = of(not_before, not_after).unwrap_err();
            assert!(error.contains("no authority is valid from"), "{error}");
        }
        // Nor does a strange clock bring the process down.
        for moment in [Timestamp::MIN, Timestamp::MAX] {
            let _ = Authority::make(moment);
            let _ = Authority::make(now()).unwrap().issue(&["a.b.svc".to_owned()], moment);
        }
    }

    #[test]
    fn a_serving_certificate_ends_with_its_authority() {
        let authority = Authority::make(now()).unwrap();
        let names = ["s.n.svc".to_owned()];
        let fresh = authority.issue(&names, now()).unwrap();
        assert_eq!(fresh.renew_at, now() + LEAF_LIFETIME / 2);
        let late = authority.issue(&names, authority.not_after - SignedDuration::from_hours(2)).unwrap();
        assert_eq!(late.renew_at, authority.not_after - SignedDuration::from_hours(1));
        let der = CertificateDer::from_pem_slice(late.chain.as_bytes()).unwrap();
        assert_eq!(validity(&der).unwrap().1, authority.not_after);
    }

    #[test]
    fn a_certificate_cut_short_has_no_validity() {
        let made = Authority::make(now()).unwrap();
        let der = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
        let (whole, mut known) = (validity(&der), 0);
        for end in 0..der.len() {
            // The outermost length no longer fits: nothing of it is believed.
            known += usize::from(validity(&der[..end]).is_some());
        }
        assert!(whole.is_some() && known == 0);
    }
}
