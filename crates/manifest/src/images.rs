//! Container images: references, and what a user's configuration replaces in them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// An image reference in its canonical form, `registry/path/name[:tag][@digest]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Everything before the last `/`: the registry and the path.
    pub repository: String,
    /// The last part of the path.
    pub name: String,
    /// The tag, if any.
    pub tag: Option<String>,
    /// The digest, if any.
    pub digest: Option<String>,
}

/// Why a text is no image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// There is no text at all.
    #[error("it is empty")]
    Empty,
    /// The registry, or a part that Docker would add, is missing.
    #[error("it must name its registry; write {canonical}")]
    NotCanonical {
        /// The same image in canonical form.
        canonical: String,
    },
    /// A name with capital letters.
    #[error("the name {name:?} must be lower case")]
    UpperCase {
        /// The name.
        name: String,
    },
    /// A part is not what it can be.
    #[error("{text:?} is no {part}")]
    Invalid {
        /// Which part.
        part: &'static str,
        /// Its text.
        text: String,
    },
    /// The path is longer than registries allow.
    #[error("its path is longer than 255 letters")]
    TooLong,
}

const DOCKER: &str = "docker.io";
const LONGEST_PATH: usize = 255;

impl Reference {
    /// Reads a reference that is in canonical form.
    ///
    /// ```
    /// use capstan_manifest::images::Reference;
    /// let image = Reference::parse("registry.k8s.io/cluster-api/controller:v1.14.2").unwrap();
    /// assert_eq!((image.repository.as_str(), image.name.as_str()), ("registry.k8s.io/cluster-api", "controller"));
    /// assert!(Reference::parse("nginx:1.0").unwrap_err().to_string().contains("docker.io/library/nginx:1.0"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        let canonical = canonical(text);
        let (domain, rest) = canonical.split_once('/').unwrap_or(("", &canonical));
        let (named, digest) =
            rest.split_once('@').map_or((rest, None), |(rest, digest)| (rest, Some(digest)));
        let (path, tag) = named.split_once(':').map_or((named, None), |(path, tag)| (path, Some(tag)));
        if path.chars().any(char::is_uppercase) {
            return Err(ReferenceError::UpperCase { name: path.to_owned() });
        }
        // A registry with an underscore is none, but can be the first part of a path.
        check(is_domain(domain) || is_path_part(domain), "registry", domain)?;
        check(path.split('/').all(is_path_part), "image name", path)?;
        check(tag.is_none_or(is_tag), "tag", tag.unwrap_or_default())?;
        check(digest.is_none_or(is_digest), "digest", digest.unwrap_or_default())?;
        if path.len() > LONGEST_PATH {
            return Err(ReferenceError::TooLong);
        }
        if canonical != text {
            return Err(ReferenceError::NotCanonical { canonical });
        }
        let (inner, name) = path.rsplit_once('/').map_or(("", path), |(inner, name)| (inner, name));
        let separator = if inner.is_empty() { "" } else { "/" };
        Ok(Self {
            repository: format!("{domain}{separator}{inner}"),
            name: name.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.repository, self.name)?;
        self.tag.iter().try_for_each(|tag| write!(out, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(out, "@{digest}"))
    }
}

fn check(holds: bool, part: &'static str, text: &str) -> Result<(), ReferenceError> {
    if holds { Ok(()) } else { Err(ReferenceError::Invalid { part, text: text.to_owned() }) }
}

/// A reference with what Docker adds to a short one.
fn canonical(text: &str) -> String {
    let is_domain = |first: &str| {
        first == "localhost" || first.contains(['.', ':']) || first.chars().any(char::is_uppercase)
    };
    let (domain, rest) = match text.split_once('/') {
        Some(("index.docker.io", rest)) => (DOCKER, rest),
        Some((first, rest)) if is_domain(first) => (first, rest),
        _ => (DOCKER, text),
    };
    let official = if domain == DOCKER && !rest.contains('/') { "library/" } else { "" };
    format!("{domain}/{official}{rest}")
}

fn is_domain(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(is_allowed)
    };
    let is_address = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        inner.is_some_and(|it| {
            !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        })
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (host.split('.').all(is_label) || is_address(host)) && port.is_none_or(is_port)
}

/// Letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_path_part(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_separator = |it: &str| matches!(it, "." | "_" | "__") || it.bytes().all(|byte| byte == b'-');
    let mut separators =
        text.split(|letter: char| letter.is_ascii() && is_word(letter as u8)).filter(|it| !it.is_empty());
    let has_word_ends = text.bytes().next().is_some_and(is_word) && text.bytes().last().is_some_and(is_word);
    has_word_ends && separators.all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    let (hash, length) = match text.split_once(':') {
        Some(("sha256", hash)) => (hash, 64),
        Some(("sha384", hash)) => (hash, 96),
        Some(("sha512", hash)) => (hash, 128),
        _ => return false,
    };
    let is_hash = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    hash.len() == length && hash.bytes().all(is_hash)
}

/// The JSON pointer to the Pod spec in objects of a kind that runs containers.
///
/// clusterctl looks at Deployments and DaemonSets only. An image that it leaves alone is still pulled, so that a mirror
/// needs it, too.
pub fn pod_spec_pointer(group: &str, kind: &str) -> Option<&'static str> {
    match (group, kind) {
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet") | ("batch", "Job") => {
            Some("/spec/template/spec")
        }
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template/spec"),
        ("", "Pod") => Some("/spec"),
        _ => None,
    }
}

/// What is replaced in an image; empty parts replace nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// Comes in place of everything before the last `/`.
    pub repository: String,
    /// Comes in place of the last part of the path.
    pub name: String,
    /// Comes in place of the tag.
    pub tag: String,
}

/// Image overrides of a configuration file, by what they are for: `all`, a component (`infrastructure-aws`,
/// `cert-manager`) or one image of a component (`cert-manager/cert-manager-cainjector`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    by_key: HashMap<String, Override>,
}

impl FromIterator<(String, Override)> for Overrides {
    /// Keys are read without regard to case.
    fn from_iter<I: IntoIterator<Item = (String, Override)>>(entries: I) -> Self {
        Self { by_key: entries.into_iter().map(|(key, value)| (key.to_lowercase(), value)).collect() }
    }
}

impl Overrides {
    /// An image of a component with everything replaced that is to be replaced, part by part: what is for one image
    /// wins over what is for its component, and that over what is for all. A digest stays.
    pub fn apply(&self, component: &str, image: &str) -> Result<String, ReferenceError> {
        let mut reference = Reference::parse(image)?;
        let component = component.to_lowercase();
        let image_key = format!("{component}/{}", reference.name);
        for key in ["all", &component, &image_key] {
            if let Some(found) = self.by_key.get(key) {
                found.apply(&mut reference);
            }
        }
        Ok(reference.to_string())
    }

    /// What concerns a component, by key: what is for all, for the component, and for one of its images.
    pub fn of_component(&self, component: &str) -> BTreeMap<&str, &Override> {
        let component = component.to_lowercase();
        let is_meant = |key: &str| {
            let image = key.strip_prefix(component.as_str());
            key == "all" || image.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        let entries =
            self.by_key.iter().filter(|(key, value)| is_meant(key) && **value != Override::default());
        entries.map(|(key, value)| (key.as_str(), value)).collect()
    }

    /// Like [`Self::apply`], for images in kinds that clusterctl does not look at. What it lets pass, passes here: a
    /// short name that no override is for stays as it is, and so does a text that is no reference. A text that is no
    /// reference is an error where an override is for all images of the component.
    pub fn apply_leniently(&self, component: &str, image: &str) -> Result<String, ReferenceError> {
        match self.apply(component, image) {
            Err(ReferenceError::NotCanonical { canonical }) => {
                let replaced = self.apply(component, &canonical)?;
                Ok(if replaced == canonical { image.to_owned() } else { replaced })
            }
            Err(_) if !self.has_any_for(component) => Ok(image.to_owned()),
            outcome => outcome,
        }
    }

    /// Whether something is replaced in every image of a component.
    fn has_any_for(&self, component: &str) -> bool {
        let replaces = |key: &str| self.by_key.get(key).is_some_and(|it| *it != Override::default());
        replaces("all") || replaces(&component.to_lowercase())
    }
}

impl Override {
    fn apply(&self, reference: &mut Reference) {
        if !self.repository.is_empty() {
            let repository = self.repository.strip_suffix('/').unwrap_or(&self.repository);
            repository.clone_into(&mut reference.repository);
        }
        if !self.name.is_empty() {
            reference.name.clone_from(&self.name);
        }
        if !self.tag.is_empty() {
            reference.tag = Some(self.tag.clone());
        }
    }
}
