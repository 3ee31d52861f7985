//! What is kept of the Secrets of Clusters: a mark of each kubeconfig and of each certificate authority.
//!
//! Tenants decide how many Secrets there are and how large. So nothing of their contents is kept: a
//! kubeconfig is read when it is tried, and only for a Cluster that exists.

use std::hash::{DefaultHasher, Hash, Hasher};

use capstan_api::names::{CORE_GROUP, secret};
use capstan_runtime::{ObjectKey, ObservedSecret, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// A larger kubeconfig is not read.
const LARGEST_KUBECONFIG: usize = 512 << 10;
/// A Secret is owned by one Cluster, and for a while by an earlier one of the same name. More owners are not kept.
const MOST_OWNERS: usize = 4;

/// A Secret of a Cluster, reduced to what is read of it.
#[derive(Clone, Debug)]
pub(crate) struct SecretRecord {
    metadata: ObjectMeta,
    pub(crate) content: Content,
}

/// What a Secret holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A kubeconfig by its mark, or why there is none.
    Kubeconfig(Result<Mark, String>),
    /// A certificate authority by its mark; nothing if it is not readable.
    Authority(Option<Mark>),
}

/// Tells one text or certificate from another, in a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark of a text or a certificate.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
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
        let kubeconfig_of = cluster_of(name, secret::KUBECONFIG).map(str::to_owned);
        let content = if kubeconfig_of.is_some() {
            Content::Kubeconfig(kubeconfig_in(&secret).map(Mark::of))
        } else if cluster_of(name, secret::CA).is_some() {
            let certificate = secret.data.get(secret::CERTIFICATE_KEY);
            Content::Authority(certificate.and_then(|pem| Mark::of_pem(&pem.0)))
        } else {
            return None;
        };
        let is_owner = |owner: &OwnerReference| {
            let group = owner.api_version.split('/').next();
            owner.kind == "Cluster"
                && group == Some(CORE_GROUP)
                && Some(&owner.name) == kubeconfig_of.as_ref()
        };
        let owners = secret.metadata.owner_references.into_iter().flatten().filter(is_owner);
        let metadata = ObjectMeta {
            uid: secret.metadata.uid,
            resource_version: secret.metadata.resource_version,
            owner_references: Some(owners.take(MOST_OWNERS).collect()),
            ..ObjectMeta::default()
        };
        Some(Self { metadata, content })
    }

    /// Whether the Cluster of this uid owns the Secret, as it does kubeconfigs that are made here.
    pub(crate) fn is_owned_by(&self, cluster_uid: &str) -> bool {
        self.metadata.owner_references.iter().flatten().any(|owner| owner.uid == cluster_uid)
    }
}

/// The kubeconfig in a Secret, or why there is none.
pub(crate) fn kubeconfig_in(secret: &ObservedSecret) -> Result<&[u8], String> {
    match secret.data.get(secret::VALUE_KEY) {
        None => Err(format!("key {} is missing", secret::VALUE_KEY)),
        Some(value) if value.0.len() > LARGEST_KUBECONFIG => {
            Err(format!("key {} is larger than 512 KiB, as no kubeconfig is", secret::VALUE_KEY))
        }
        Some(value) => Ok(&value.0),
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
        assert_eq!(kubeconfig, Some(Content::Kubeconfig(Ok(Mark::of(b"x")))));
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

    #[test]
    fn of_its_owners_only_the_cluster_is_kept() {
        let owner = |group: &str, kind: &str, name: &str, uid: &str| json!({"apiVersion": format!("{group}/v1beta2"), "kind": kind, "name": name, "uid": uid});
        let mut owners = vec![
            owner("example.com", "Cluster", "c", "other-group"),
            owner(CORE_GROUP, "MachinePool", "c", "other-kind"),
            owner(CORE_GROUP, "Cluster", "d", "other-name"),
            owner(CORE_GROUP, "Cluster", "c", "former"),
            owner(CORE_GROUP, "Cluster", "c", "now"),
        ];
        owners.extend((0..10_000).map(|number| owner(CORE_GROUP, "Cluster", "c", &number.to_string())));
        let secret = json!({"metadata": {"name": "c-kubeconfig", "ownerReferences": owners}});
        let record = SecretRecord::new(serde_json::from_value(secret).unwrap()).unwrap();
        assert!(record.is_owned_by("former") && record.is_owned_by("now"));
        assert!(!["other-group", "other-kind", "other-name"].iter().any(|uid| record.is_owned_by(uid)));
        assert_eq!(record.metadata.owner_references.unwrap().len(), MOST_OWNERS);
    }
}
