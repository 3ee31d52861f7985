//! Keys and certificates of two authorities, so that access to the API server does not give access to
//! etcd's data.
//!
//! The authorities and the key for service account tokens last as long as the directory; the rest is created
//! at each start, which is quicker than checking whether the old ones still fit.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::Error;
use crate::flags::FIRST_SERVICE_IP;
use crate::state_dir::write_private;

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

/// All credentials of one control plane, and the files its processes read theirs from.
pub(crate) struct Credentials {
    pub(crate) cluster_ca_pem: String,
    pub(crate) admin: Identity,
    pub(crate) controller_manager: Identity,
    pub(crate) etcd_ca_pem: String,
    pub(crate) etcd_client: Identity,
    pub(crate) files: Files,
}

/// Each `.pem` with a key has the certificate in the same file: no two halves of different pairs can meet.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    cluster_ca_pair: PathBuf,
    pub(crate) cluster_ca: PathBuf,
    pub(crate) api_server: PathBuf,
    etcd_ca_pair: PathBuf,
    pub(crate) etcd_ca: PathBuf,
    pub(crate) etcd_server: PathBuf,
    pub(crate) etcd_client: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public: PathBuf,
}

impl Files {
    pub(crate) fn within(dir: &Path) -> Self {
        Self {
            cluster_ca_pair: dir.join("cluster-ca.pem"),
            cluster_ca: dir.join("cluster-ca.crt"),
            api_server: dir.join("api-server.pem"),
            etcd_ca_pair: dir.join("etcd-ca.pem"),
            etcd_ca: dir.join("etcd-ca.crt"),
            etcd_server: dir.join("etcd-server.pem"),
            etcd_client: dir.join("etcd-client.pem"),
            service_account_key: dir.join("service-account.key"),
            service_account_public: dir.join("service-account.pub"),
        }
    }
}

impl Credentials {
    /// Reads what lasts from the directory, or makes it when it is not there or not readable; makes the rest.
    pub(crate) fn prepare(dir: &Path) -> Result<Self, Error> {
        let files = Files::within(dir);

        let cluster = Authority::load_or_make(&files.cluster_ca_pair, "capstan cluster CA")?;
        write_private(&files.cluster_ca, &cluster.certificate_pem)?;
        let api_server_names = [
            "127.0.0.1",
            "::1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            FIRST_SERVICE_IP,
        ];
        let api_server = cluster.issue(
            "kube-apiserver",
            None,
            &api_server_names,
            &[ExtendedKeyUsagePurpose::ServerAuth],
        )?;
        write_private(&files.api_server, &api_server.in_one())?;
        let client = [ExtendedKeyUsagePurpose::ClientAuth];
        let masters = Some("system:masters");
        let admin = cluster.issue("kubernetes-admin", masters, &[], &client)?;
        // Its own role lets it do little but take on one role per controller; here it does all as itself.
        let controller_manager = cluster.issue("system:kube-controller-manager", masters, &[], &client)?;

        let etcd = Authority::load_or_make(&files.etcd_ca_pair, "capstan etcd CA")?;
        write_private(&files.etcd_ca, &etcd.certificate_pem)?;
        // A member of etcd is a server to its peers and a client of them, with the same certificate.
        let member = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let etcd_server = etcd.issue("etcd", None, &["127.0.0.1", "::1", "localhost"], &member)?;
        write_private(&files.etcd_server, &etcd_server.in_one())?;
        let etcd_client = etcd.issue("kube-apiserver", None, &[], &client)?;
        write_private(&files.etcd_client, &etcd_client.in_one())?;

        let service_accounts = service_account_key(&files.service_account_key)?;
        // kube-apiserver reads a private key to sign with, and to verify with a public one only.
        write_private(&files.service_account_public, &service_accounts.public_key_pem())?;

        Ok(Self {
            cluster_ca_pem: cluster.certificate_pem,
            admin,
            controller_manager,
            etcd_ca_pem: etcd.certificate_pem,
            etcd_client,
            files,
        })
    }
}

impl Identity {
    fn in_one(&self) -> String {
        format!("{}{}", self.certificate_pem, self.key_pem)
    }
}

struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn load_or_make(path: &Path, name: &str) -> Result<Self, Error> {
        if let Some(loaded) = Self::load(path, name) {
            return Ok(loaded);
        }
        let key = new_key(name)?;
        let params = Self::params(name);
        let certificate_pem = params.self_signed(&key).map_err(failed(name))?.pem();
        let pair = Identity { certificate_pem, key_pem: key.serialize_pem() };
        write_private(path, &pair.in_one())?;
        Ok(Self { certificate_pem: pair.certificate_pem, issuer: Issuer::new(params, key) })
    }

    /// The issuer is put together from the name and the key: these are all of the certificate that is copied
    /// into those it signs.
    fn load(path: &Path, name: &str) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let (certificate_pem, key_pem) = text.split_at(text.find("-----BEGIN PRIVATE KEY-----")?);
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).ok()?;
        let key = KeyPair::from_pem(key_pem).ok()?;
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return None;
        }
        let issuer = Issuer::new(Self::params(name), key);
        Some(Self { certificate_pem: certificate_pem.to_owned(), issuer })
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = params(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params
    }

    fn issue(
        &self,
        name: &str,
        organisation: Option<&str>,
        hosts: &[&str],
        usages: &[ExtendedKeyUsagePurpose],
    ) -> Result<Identity, Error> {
        let issue = || -> Result<(Certificate, KeyPair), rcgen::Error> {
            let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
            let mut params = params(name, organisation);
            params.subject_alt_names = CertificateParams::new(hosts)?.subject_alt_names;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = usages.to_vec();
            params.use_authority_key_identifier_extension = true;
            let key = KeyPair::generate()?;
            Ok((params.signed_by(&key, &self.issuer)?, key))
        };
        let (certificate, key) = issue().map_err(failed(name))?;
        Ok(Identity { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

fn params(name: &str, organisation: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organisation) = organisation {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    // Fixed dates: nothing here may depend on the clock, and a control plane on loopback outlives no machine.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2099, 12, 31);
    params
}

fn service_account_key(path: &Path) -> Result<KeyPair, Error> {
    let loaded = fs::read_to_string(path).ok().and_then(|text| KeyPair::from_pem(&text).ok());
    if let Some(key) = loaded {
        return Ok(key);
    }
    let key = new_key("service account key")?;
    write_private(path, &key.serialize_pem())?;
    Ok(key)
}

fn new_key(what: &str) -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(failed(what))
}

fn failed(what: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let what = format!("credentials of {what:?}");
    |source| Error::Certificate { what, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn authorities_last_and_the_rest_is_new() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let first = Credentials::prepare(dir).unwrap();
        let account_key = fs::read_to_string(&first.files.service_account_key).unwrap();
        let second = Credentials::prepare(dir).unwrap();
        assert_eq!(first.cluster_ca_pem, second.cluster_ca_pem);
        assert_eq!(first.etcd_ca_pem, second.etcd_ca_pem);
        assert_eq!(account_key, fs::read_to_string(&second.files.service_account_key).unwrap());
        assert_ne!(first.admin.certificate_pem, second.admin.certificate_pem);
    }

    #[test]
    fn an_unreadable_authority_is_made_anew() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let first = Credentials::prepare(dir).unwrap();
        let other_key = KeyPair::generate().unwrap().serialize_pem();
        for damaged in
            ["", "nonsense", &first.cluster_ca_pem, &format!("{}{other_key}", first.cluster_ca_pem)]
        {
            fs::write(&first.files.cluster_ca_pair, damaged).unwrap();
            fs::write(&first.files.service_account_key, damaged.get(..5).unwrap_or("")).unwrap();
            let second = Credentials::prepare(dir).unwrap();
            assert_ne!(first.cluster_ca_pem, second.cluster_ca_pem);
            assert_eq!(first.etcd_ca_pem, second.etcd_ca_pem);
            let written = fs::read_to_string(&second.files.cluster_ca).unwrap();
            assert_eq!(written, second.cluster_ca_pem);
        }
    }

    #[test]
    fn only_the_owner_may_read_and_no_key_is_where_a_certificate_is_published_from() {
        let scratch = Scratch::new();
        let dir = scratch.path();
        let credentials = Credentials::prepare(dir).unwrap();
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
        for file in [&credentials.files.cluster_ca, &credentials.files.etcd_ca] {
            let text = fs::read_to_string(file).unwrap();
            assert!(text.contains("BEGIN CERTIFICATE") && !text.contains("PRIVATE"), "{}", file.display());
        }
    }
}
