//! What is kept of the Secrets of Clusters: kubeconfigs, and a mark of each certificate authority.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use capstan_api::names::secret;
use capstan_runtime::{ObjectKey, ObservedSecret, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// A larger kubeconfig is not read.
const LARGEST_KUBECONFIG: usize = 512 << 10;

/// A Secret of a Cluster, reduced to what is read of it.
#[derive(Clone, Debug)]
pub(crate) struct SecretRecord {
    metadata: ObjectMeta,
    pub(crate) content: Content,
}

/// What a Secret holds.
#[derive(Clone, PartialEq)]
pub(crate) enum Content {
    /// A kubeconfig, or why there is none in it.
    Kubeconfig(Result<Arc<[u8]>, String>),
    /// A certificate authority by its mark; nothing if it is not readable.
    Authority(Option<AuthorityMark>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kubeconfig(_) => "Kubeconfig",
            Self::Authority(_) => "Authority",
        })
    }
}

/// Tells one authority's certificate from another, in a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuthorityMark(u64);

impl AuthorityMark {
    /// The mark of a certificate.
    pub(crate) fn of(certificate: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        certificate.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The mark of the first certificate in PEM.
    pub(crate) fn of_pem(pem: &[u8]) -> Option<Self> {
        CertificateDer::from_pem_slice(pem).ok().map(|certificate| Self::of(&certificate))
    }
}

impl SecretRecord {
    /// Reduces a Secret; nothing if it is of no use here.
    pub(crate) fn new(secret: ObservedSecret) -> Option<Self> {
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let content = if cluster_of(name, secret::KUBECONFIG).is_some() {
            Content::Kubeconfig(match secret.data.get(secret::VALUE_KEY) {
                None => Err(format!("key {} is missing", secret::VALUE_KEY)),
                Some(value) if value.0.len() > LARGEST_KUBECONFIG => {
                    Err(format!("key {} is larger than 512 KiB, as no kubeconfig is", secret::VALUE_KEY))
                }
                Some(value) => Ok(value.0.as_slice().into()),
            })
        } else if cluster_of(name, secret::CA).is_some() {
            let certificate = secret.data.get(secret::CERTIFICATE_KEY);
            Content::Authority(certificate.and_then(|pem| AuthorityMark::of_pem(&pem.0)))
        } else {
            return None;
        };
        let metadata = ObjectMeta {
            uid: secret.metadata.uid,
            resource_version: secret.metadata.resource_version,
            owner_references: secret.metadata.owner_references,
            ..ObjectMeta::default()
        };
        Some(Self { metadata, content })
    }
}

impl Cached for SecretRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// The Cluster that a Secret of this name is for.
pub(crate) fn cluster_of<'a>(name: &'a str, purpose: &str) -> Option<&'a str> {
    name.strip_suffix(purpose)?.strip_suffix('-').filter(|cluster| !cluster.is_empty())
}

/// The Cluster's Secret for a purpose.
pub(crate) fn secret_of(cluster: &ObjectKey, purpose: &str) -> ObjectKey {
    cluster.beside(&format!("{}-{purpose}", cluster.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_read_is_kept() {
        let record = |name: &str, data: serde_json::Value| {
            let secret = json!({"metadata": {"name": name, "annotations": {"big": "one"}}, "data": data});
            SecretRecord::new(serde_json::from_value(secret).unwrap())
        };
        let content = |name: &str, data: serde_json::Value| record(name, data).map(|record| record.content);
        assert_eq!(content("c-sa", json!({"value": "eA=="})), None);
        assert_eq!(content("kubeconfig", json!({"value": "eA=="})), None);
        assert_eq!(content("-kubeconfig", json!({"value": "eA=="})), None);
        let kubeconfig = content("a-b-kubeconfig", json!({"value": "eA==", "other": "eA=="}));
        assert_eq!(kubeconfig, Some(Content::Kubeconfig(Ok(b"x".as_slice().into()))));
        let Some(Content::Kubeconfig(Err(words))) = content("c-kubeconfig", json!({"other": "eA=="})) else {
            panic!("a kubeconfig without its key")
        };
        assert_eq!(words, "key value is missing");
        let huge = json!(k8s_openapi::ByteString(vec![b'x'; LARGEST_KUBECONFIG + 1]));
        let huge = content("c-kubeconfig", json!({"value": huge}));
        assert!(matches!(huge, Some(Content::Kubeconfig(Err(words))) if words.contains("larger than")));
        assert_eq!(content("c-ca", json!({"tls.crt": "eA=="})), Some(Content::Authority(None)));
        assert_eq!(record("c-kubeconfig", json!({})).unwrap().metadata.annotations, None);
    }
}
