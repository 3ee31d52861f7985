//! What is in an artifact.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Deserialize;

use super::digest::is_digest;
use crate::FetchError;

/// All kinds of manifests that can be read.
pub(super) const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

const TITLE: &str = "org.opencontainers.image.title";
/// On entries of an index that only tell how the others were built.
const ATTESTATION: &str = "vnd.docker.reference.type";

/// Something that a manifest refers to.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Descriptor {
    pub digest: String,
    pub size: u64,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Document {
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// One artifact, or several.
#[derive(Debug)]
pub(super) enum Manifest {
    Image(Vec<Descriptor>),
    Index(Vec<Descriptor>),
}

/// Reads a manifest; nothing in it may have a digest that cannot be checked.
pub(super) fn read(what: &str, text: &[u8]) -> Result<Manifest, FetchError> {
    let malformed = |reason: String| FetchError::Malformed { url: what.to_owned(), reason };
    let document: Document = serde_json::from_slice(text).map_err(|error| malformed(error.to_string()))?;
    let manifest = match document {
        Document { manifests: Some(children), .. } => {
            let is_artifact = |child: &Descriptor| child.annotation(ATTESTATION).is_none();
            Manifest::Index(children.into_iter().filter(is_artifact).collect())
        }
        Document { layers: Some(layers), .. } => Manifest::Image(layers),
        _ => return Err(malformed("it has neither layers nor manifests".to_owned())),
    };
    let (Manifest::Image(all) | Manifest::Index(all)) = &manifest;
    match all.iter().find(|descriptor| !is_digest(&descriptor.digest)) {
        Some(bad) => Err(malformed(format!("the digest {:?} cannot be checked", bad.digest))),
        None => Ok(manifest),
    }
}

impl Descriptor {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

/// The files of an artifact.
#[derive(Debug)]
pub(super) struct Artifact {
    name: String,
    files: BTreeMap<String, Descriptor>,
}

impl Artifact {
    pub(super) fn new(name: String) -> Self {
        Self { name, files: BTreeMap::new() }
    }

    /// Adds the layers that are files. One bad title spoils the artifact: its author is not to be trusted.
    pub(super) fn add(&mut self, layers: Vec<Descriptor>) -> Result<(), FetchError> {
        for layer in layers {
            let Some(title) = layer.annotation(TITLE).map(str::to_owned) else { continue };
            if let Some(reason) = objection(&title) {
                return Err(self.refuse(title, reason));
            }
            match self.files.entry(title) {
                Entry::Vacant(place) => {
                    place.insert(layer);
                }
                Entry::Occupied(other) if other.get().digest == layer.digest => {}
                Entry::Occupied(other) => {
                    let title = other.key().clone();
                    return Err(self.refuse(title, "another file has the same name and different content"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, title: &str) -> Option<&Descriptor> {
        self.files.get(title)
    }

    pub(super) fn into_titles(self) -> Vec<String> {
        self.files.into_keys().collect()
    }

    fn refuse(&self, title: String, reason: &'static str) -> FetchError {
        FetchError::HostileName { artifact: self.name.clone(), title, reason }
    }
}

/// What is wrong with a file's name: titles are written by strangers, and end up as paths.
fn objection(title: &str) -> Option<&'static str> {
    if title.is_empty() {
        return Some("it is empty");
    }
    if title.chars().any(char::is_control) {
        return Some("it has control characters");
    }
    if title.contains('\\') || title.contains(':') {
        return Some("it has characters that some systems read as parts of a path");
    }
    if title.starts_with('/') {
        return Some("it is an absolute path");
    }
    if title.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("it leads out of its folder");
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layer(title: &str, digit: char) -> Descriptor {
        Descriptor {
            digest: format!("sha256:{}", digit.to_string().repeat(64)),
            size: 1,
            annotations: Some([(TITLE.to_owned(), title.to_owned())].into()),
        }
    }

    #[test]
    fn hostile_titles_are_refused() {
        for title in [
            "",
            "../../x",
            "/etc/passwd",
            "a/../../b",
            "a\0b",
            "a\nb",
            "..",
            "a//b",
            "C:\\x",
            "a\\..\\b",
            "./a",
        ] {
            assert!(objection(title).is_some(), "{title:?}");
        }
        for title in
            ["metadata.yaml", "templates/a.yaml", "a..b", "..a", "infrastructure-x-v1.0.0-metadata.yaml"]
        {
            assert_eq!(objection(title), None, "{title:?}");
        }
    }

    #[test]
    fn one_name_is_one_content() {
        let mut artifact = Artifact::new("x".to_owned());
        artifact.add(vec![layer("a", '0'), layer("b", '0'), layer("a", '0')]).unwrap();
        assert!(artifact.find("b").is_some());
        let error = artifact.add(vec![layer("a", '1')]).unwrap_err();
        assert!(error.to_string().contains("same name and different content"), "{error}");
    }

    #[test]
    fn manifests_are_told_from_indexes() {
        let digest = "sha256:".to_owned() + &"0".repeat(64);
        let entry = format!(r#"{{"digest":"{digest}","size":1}}"#);
        let attestation = entry.replace("1}", r#"1,"annotations":{"vnd.docker.reference.type":"x"}}"#);
        let index = format!(r#"{{"manifests":[{entry},{attestation}]}}"#);
        assert!(matches!(read("x", index.as_bytes()).unwrap(), Manifest::Index(all) if all.len() == 1));
        let image = format!(r#"{{"layers":[{entry}]}}"#);
        assert!(matches!(read("x", image.as_bytes()).unwrap(), Manifest::Image(all) if all.len() == 1));
        for bad in
            ["{}", "[]", "<html>", &image.replace(&digest, "md5:00"), &image.replace(&digest, "../../x")]
        {
            assert!(matches!(read("x", bad.as_bytes()), Err(FetchError::Malformed { .. })), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_title_stays_in_its_folder(title in "[a./\\\\:\u{0}]{0,12}") {
            if objection(&title).is_none() {
                let path = std::path::Path::new(&title);
                prop_assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }
}
