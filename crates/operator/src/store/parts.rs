//! A release in Secrets: compressed, and cut where it is too large for one.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use capstan_api::{
    admission::rules::{is_dns_subdomain, label_value},
    operator::annotation::PART,
};
use capstan_repository::remote::Sha256;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{ResourceExt, api::ObjectMeta};

use super::{StoreError, StoredRelease};

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "management.cluster.x-k8s.io/release";
/// The provider's label, as far as it can be a label's value.
pub const PROVIDER_LABEL: &str = "management.cluster.x-k8s.io/provider";
/// The version, as far as it can be a label's value.
pub const VERSION_LABEL: &str = "management.cluster.x-k8s.io/version";
/// The SHA-256 of all parts together. Parts of different writes do not belong together.
const DIGEST: &str = "management.cluster.x-k8s.io/sha256";
const KEY: &str = "release";

/// The most bytes of a part. A Secret may have 1 MiB, and its labels and managed fields need some of it.
const PART_SIZE: usize = 896 << 10;
/// What cannot be a release, whatever it claims.
const LARGEST: u64 = 128 << 20;

/// The longest label value.
const LONGEST_LABEL: usize = 63;
/// The longest name, without the number of the part.
const LONGEST_STEM: usize = 240;
/// The letters of a digest that tell apart what would otherwise get the same name.
const SUFFIX: usize = 8;

impl StoredRelease {
    /// The Secrets that keep the release beside the provider object, their owner. `label` is the provider's, e.g.
    /// `infrastructure-aws`.
    pub fn to_secrets(
        &self,
        namespace: &str,
        label: &str,
        owner: &OwnerReference,
    ) -> Result<Vec<Secret>, StoreError> {
        let bytes = compress(self)
            .map_err(|problem| StoreError::Encode { version: self.version.clone(), problem })?;
        let digest = Sha256::of(&bytes).to_string();
        let stem = name_stem(label, &self.version);
        let total = bytes.len().div_ceil(PART_SIZE);
        let part = |(at, part): (usize, &[u8])| Secret {
            metadata: ObjectMeta {
                name: Some(format!("{stem}-{}", at + 1)),
                namespace: Some(namespace.to_owned()),
                labels: Some(labels(label, &self.version)),
                annotations: Some(
                    [(PART.to_owned(), format!("{}/{total}", at + 1)), (DIGEST.to_owned(), digest.clone())]
                        .into(),
                ),
                owner_references: Some(vec![owner.clone()]),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some([(KEY.to_owned(), ByteString(part.to_vec()))].into()),
            ..Secret::default()
        };
        Ok(bytes.chunks(PART_SIZE).enumerate().map(part).collect())
    }

    /// The release that Secrets of one version keep, in whatever order they are; nothing unless every part is there.
    pub fn from_secrets(secrets: &[Secret]) -> Result<Option<Self>, StoreError> {
        let mut by_digest: BTreeMap<&str, Vec<Part<'_>>> = BTreeMap::new();
        for part in secrets.iter().filter_map(Part::read) {
            by_digest.entry(part.digest).or_default().push(part);
        }
        for (digest, mut parts) in by_digest {
            parts.sort_by_key(|it| it.number);
            parts.dedup_by_key(|it| it.number);
            if parts.iter().any(|it| it.total != parts.len()) {
                continue;
            }
            let bytes: Vec<u8> = parts.iter().flat_map(|it| it.bytes).copied().collect();
            let decoded = if Sha256::of(&bytes).to_string() == digest {
                decompress(&bytes)
            } else {
                Err("its digest is another one".to_owned())
            };
            let names = || parts.iter().map(|it| it.name.clone()).collect();
            return decoded.map(Some).map_err(|problem| StoreError::Damaged { names: names(), problem });
        }
        Ok(None)
    }
}

/// A part of a release in a Secret.
struct Part<'a> {
    /// Namespace and name of the Secret.
    name: String,
    digest: &'a str,
    /// From 1.
    number: usize,
    total: usize,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn read(secret: &'a Secret) -> Option<Self> {
        let annotation = |name: &str| secret.metadata.annotations.as_ref()?.get(name);
        let (number, total) = annotation(PART)?.split_once('/')?;
        let (number, total) = (number.parse().ok()?, total.parse().ok()?);
        let is_ours = secret.type_.as_deref() == Some(SECRET_TYPE) && (1..=total).contains(&number);
        is_ours.then_some(())?;
        let name = format!("{}/{}", secret.namespace().unwrap_or_default(), secret.name_any());
        Some(Self {
            name,
            digest: annotation(DIGEST)?,
            number,
            total,
            bytes: &secret.data.as_ref()?.get(KEY)?.0,
        })
    }
}

/// The labels of the Secrets of a version. They are none of a provider's components.
pub(super) fn labels(label: &str, version: &str) -> BTreeMap<String, String> {
    [(PROVIDER_LABEL.to_owned(), label_of(label)), (VERSION_LABEL.to_owned(), label_of(version))].into()
}

/// A text as a label's value: as it is where that is allowed.
pub(super) fn label_of(text: &str) -> String {
    allowed(text, |it| label_value(it).is_ok(), LONGEST_LABEL)
}

/// What the names of a version's Secrets begin with.
pub(super) fn name_stem(label: &str, version: &str) -> String {
    allowed(&format!("{label}-release-{version}"), is_dns_subdomain, LONGEST_STEM)
}

/// A text as it is, or what is allowed of it with some of its digest.
fn allowed(text: &str, is_allowed: impl Fn(&str) -> bool, longest: usize) -> String {
    if text.len() <= longest && is_allowed(text) {
        return text.to_owned();
    }
    let plain = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let start: String = text.chars().map(plain).take(longest - SUFFIX - 1).collect();
    let digest = Sha256::of(text.as_bytes()).to_string();
    let suffix: String = digest.chars().take(SUFFIX).collect();
    format!("{}-{suffix}", start.trim_matches('-')).trim_start_matches('-').to_owned()
}

fn compress(release: &StoredRelease) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let json = serde_json::to_vec(release).map_err(|error| error.to_string())?;
    encoder.write_all(&json).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

fn decompress(bytes: &[u8]) -> Result<StoredRelease, String> {
    let mut json = Vec::new();
    GzDecoder::new(bytes).take(LARGEST + 1).read_to_end(&mut json).map_err(|error| error.to_string())?;
    if json.len() as u64 > LARGEST {
        return Err(format!("it is larger than {} MiB", LARGEST >> 20));
    }
    // The error's own text quotes what it stumbles over.
    serde_json::from_slice(&json)
        .map_err(|error| format!("line {}, column {} is not as expected", error.line(), error.column()))
}
