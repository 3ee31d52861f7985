//! Releases in ConfigMaps: for releases that only this machine can read.

use std::{collections::BTreeMap, io, io::Write};

use capstan_api::operator::annotation::PART;
use capstan_lifecycle::{catalog::Source, release::Fetched};
use capstan_repository::{COMPRESSED_ANNOTATION, RepositoryError, VERSION_LABEL};
use flate2::{Compression, write::GzEncoder};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::OperatorProblem;
use crate::error::CommandError;

/// The most bytes of a ConfigMap's data. API servers refuse more than 1 MiB.
const MOST: usize = 1_000_000;

/// The metadata of a release if the operator could not read the same files as this machine: those of a folder, those of
/// the overrides folder, and those whose address is a secret.
pub(crate) async fn metadata_to_upload(fetched: &Fetched<'_>) -> Result<Option<String>, RepositoryError> {
    let Source { repository, provider, .. } = &fetched.source;
    let metadata = repository.metadata_file(&fetched.version).await?;
    let is_ours = repository.is_local() || fetched.file.is_override || metadata.is_override;
    let is_secret = provider.shown_url() != provider.url;
    Ok((is_ours || is_secret).then_some(metadata.text))
}

/// The files of a release, and where its ConfigMaps go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseFiles<'a> {
    /// The provider's label.
    pub(crate) label: &'a str,
    pub(crate) version: &'a str,
    pub(crate) namespace: &'a str,
    /// The labels that a provider object selects them by.
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) metadata: &'a str,
    pub(crate) components: &'a str,
}

impl ReleaseFiles<'_> {
    /// The ConfigMaps: one, compressed if it has to be, or several parts.
    pub(crate) fn config_maps(&self) -> Result<Vec<Value>, CommandError> {
        let (label, version) = (self.label.to_owned(), self.version.to_owned());
        if version.contains('+') {
            return Err(OperatorProblem::VersionLabel { label, version }.into());
        }
        let failed = |error| CommandError::new(format!("cannot compress {label} {version}"), error);
        self.within(MOST).map_err(failed)
    }

    /// Each part is a gzip file of its own, so that it does not matter whether parts are joined before or after they are
    /// inflated.
    fn within(&self, most: usize) -> io::Result<Vec<Value>> {
        if self.metadata.len() + self.components.len() <= most {
            let mut whole = self.config_map(None);
            whole["data"]["components"] = json!(self.components);
            return Ok(vec![whole]);
        }
        let room = most.saturating_sub(self.metadata.len()).max(1);
        let mut count = 1;
        loop {
            let parts = split(self.components, count);
            let parts = parts.into_iter().map(gzip).collect::<io::Result<Vec<_>>>()?;
            // What cannot be split any further is for the server to judge.
            if parts.iter().all(|it| it.len() <= room) || count >= self.components.len() {
                let all = parts.len();
                let numbered = parts.into_iter().enumerate();
                let part = |(at, bytes)| self.part(bytes, Some((at + 1, all)).filter(|_| all > 1));
                return Ok(numbered.map(part).collect());
            }
            count += 1;
        }
    }

    fn part(&self, bytes: Vec<u8>, part: Option<(usize, usize)>) -> Value {
        let mut config_map = self.config_map(part);
        config_map["metadata"]["annotations"][COMPRESSED_ANNOTATION] = json!("true");
        if let Some((number, all)) = part {
            config_map["metadata"]["annotations"][PART] = json!(format!("{number}/{all}"));
        }
        config_map["binaryData"] = json!({"components": ByteString(bytes)});
        config_map
    }

    fn config_map(&self, part: Option<(usize, usize)>) -> Value {
        let part = part.map(|(number, _)| format!("-part-{number}")).unwrap_or_default();
        let name = format!("{}-{}{part}", self.label, self.version.to_lowercase());
        let mut labels = self.labels.clone();
        labels.insert(VERSION_LABEL.to_owned(), self.version.to_owned());
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "data": {"metadata": self.metadata},
        })
    }
}

/// A text in about so many parts of about the same size, at the ends of lines where it has such.
fn split(text: &str, count: usize) -> Vec<&str> {
    let size = text.len().div_ceil(count).max(1);
    let (mut parts, mut rest) = (Vec::new(), text);
    while rest.len() > size {
        let mut end = (1..=size).rev().find(|it| rest.is_char_boundary(*it)).unwrap_or(rest.len());
        if let Some(line) = rest[..end].rfind('\n') {
            end = line + 1;
        }
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn gzip(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn files<'a>(labels: &'a BTreeMap<String, String>, components: &'a str) -> ReleaseFiles<'a> {
        ReleaseFiles {
            label: "infrastructure-acme",
            version: "v1.0.0-RC.1",
            namespace: "acme-system",
            labels,
            metadata: "metadata",
            components,
        }
    }

    fn bytes(config_map: &Value) -> Vec<u8> {
        let bytes: ByteString =
            serde_json::from_value(config_map["binaryData"]["components"].clone()).unwrap();
        bytes.0
    }

    fn inflate(bytes: &[u8]) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_fits_is_left_readable_and_what_does_not_is_compressed() {
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let found = files(&labels, "components").within(100).unwrap();
        let expected = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "infrastructure-acme-v1.0.0-rc.1",
                "namespace": "acme-system",
                "labels": {"a": "b", "provider.cluster.x-k8s.io/version": "v1.0.0-RC.1"},
            },
            "data": {"metadata": "metadata", "components": "components"},
        });
        assert_eq!(found, [expected]);
        let long = "line\n".repeat(100);
        let [found] = files(&labels, &long).within(100).unwrap().try_into().unwrap();
        let annotations = json!({"provider.cluster.x-k8s.io/compressed": "true"});
        assert_eq!(
            (&found["metadata"]["annotations"], &found["data"]),
            (&annotations, &json!({"metadata": "metadata"}))
        );
        assert_eq!(inflate(&bytes(&found)), long);
    }

    #[test]
    fn what_is_too_large_even_so_comes_in_parts() {
        let labels = BTreeMap::new();
        let number = |it: u32| it.wrapping_mul(2_654_435_761);
        let noise = (0..4000).fold(String::new(), |text, it| format!("{text}{:x}\n", number(it)));
        let found = files(&labels, &noise).within(5000).unwrap();
        assert!(found.len() > 2, "{}", found.len());
        let all = found.len();
        for (at, config_map) in found.iter().enumerate() {
            let number = at + 1;
            let metadata = &config_map["metadata"];
            assert_eq!(metadata["name"], format!("infrastructure-acme-v1.0.0-rc.1-part-{number}"));
            assert_eq!(metadata["annotations"][PART], format!("{number}/{all}"));
            assert!(bytes(config_map).len() + "metadata".len() <= 5000);
        }
        let joined: Vec<u8> = found.iter().flat_map(bytes).collect();
        assert_eq!(inflate(&joined), noise, "joined before they are inflated");
        let inflated: String = found.iter().map(|it| inflate(&bytes(it))).collect();
        assert_eq!(inflated, noise, "joined after they are inflated");
    }

    proptest! {
        #[test]
        fn parts_are_the_whole(text in "[a-zäß\n]{0,200}", count in 1_usize..50) {
            let parts = split(&text, count);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|it| !it.is_empty()));
        }
    }
}
