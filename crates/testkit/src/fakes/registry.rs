//! An OCI registry, for pulling.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::http::header;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::answer::{Answer, Question};

/// As many tags as fit on a page here.
const PER_PAGE: usize = 2;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The digest of some content, as GitHub and registries write it.
pub fn digest_of(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    digest.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Whom a registry lets in.
#[derive(Debug, Clone, Default)]
pub enum RegistryAuth {
    /// Anybody.
    #[default]
    None,
    /// This user and password.
    Basic(String, String),
    /// Those with a token, which anybody gets.
    AnonymousToken,
    /// Those with a token, which this user and password get.
    Token(String, String),
    /// Those with any token: this address, which the fake knows nothing of, gives them out.
    TokenFrom(String),
}

/// What is pushed under a tag.
#[derive(Debug, Clone)]
pub enum FakeArtifact {
    /// Layers with titles and content.
    Files(Vec<(String, String)>),
    /// One manifest for each list of layers, under an index.
    Index(Vec<Vec<(String, String)>>),
}

impl FakeArtifact {
    /// Layers with titles and content.
    pub fn files(files: &[(&str, &str)]) -> Self {
        Self::Files(
            files.iter().map(|(title, content)| ((*title).to_owned(), (*content).to_owned())).collect(),
        )
    }
}

#[derive(Default)]
pub(super) struct RegistryState {
    pub auth: RegistryAuth,
    /// By `repository:tag`, in order: digests.
    tags: BTreeMap<String, BTreeMap<String, String>>,
    /// By digest: media type and content.
    blobs: BTreeMap<String, (String, Vec<u8>)>,
    tokens: usize,
    valid_from: usize,
}

impl RegistryState {
    pub(super) fn add(&mut self, repository: &str, tag: &str, artifact: FakeArtifact) {
        let digest = match artifact {
            FakeArtifact::Files(files) => self.push_manifest(&files),
            FakeArtifact::Index(all) => {
                let entries: Vec<_> = all
                    .iter()
                    .map(|files| {
                        let digest = self.push_manifest(files);
                        json!({"mediaType": MANIFEST, "size": self.blobs[&digest].1.len(), "digest": digest})
                    })
                    .collect();
                self.push(
                    INDEX,
                    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string(),
                )
            }
        };
        self.tags.entry(repository.to_owned()).or_default().insert(tag.to_owned(), digest);
    }

    fn push_manifest(&mut self, files: &[(String, String)]) -> String {
        let layers: Vec<Value> = files
            .iter()
            .map(|(title, content)| {
                let digest = self.push("application/octet-stream", content.clone());
                json!({
                    "mediaType": "application/octet-stream",
                    "digest": digest,
                    "size": content.len(),
                    "annotations": {"org.opencontainers.image.title": title},
                })
            })
            .collect();
        let config = self.push("application/vnd.oci.empty.v1+json", "{}".to_owned());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
            "layers": layers,
        });
        self.push(MANIFEST, manifest.to_string())
    }

    fn push(&mut self, media_type: &str, content: String) -> String {
        let digest = digest_of(content.as_bytes());
        self.blobs.insert(digest.clone(), (media_type.to_owned(), content.into_bytes()));
        digest
    }

    pub(super) fn expire_tokens(&mut self) {
        self.valid_from = self.tokens;
    }

    pub(super) fn answer(&mut self, question: &Question) -> Option<Answer> {
        if question.path == "/token" {
            return Some(self.token(question));
        }
        let path = question.path.strip_prefix("/v2/")?;
        if let Some(refusal) = self.refuse(question) {
            return Some(refusal);
        }
        if path.is_empty() {
            return Some(Answer::json(&json!({})));
        }
        let (repository, kind, reference) = split(path)?;
        let tags = self.tags.get(repository)?;
        if kind == "tags" {
            return Some(list_tags(question, repository, tags));
        }
        let digest = tags.get(reference).map_or(reference, String::as_str);
        let (media_type, content) = self.blobs.get(digest)?;
        let answer = Answer::file(content).with("content-type", media_type);
        Some(answer.with("docker-content-digest", digest))
    }

    fn token(&mut self, question: &Question) -> Answer {
        let scope = question.parameter("scope").unwrap_or_default();
        if !scope.starts_with("repository:") || !scope.ends_with(":pull") {
            return Answer::new(400, "no scope");
        }
        if let RegistryAuth::Token(user, password) = &self.auth
            && question.header(header::AUTHORIZATION) != Some(&basic(user, password))
        {
            return Answer::new(401, r#"{"errors":[{"message":"who are you?"}]}"#);
        }
        self.tokens += 1;
        Answer::json(&json!({"token": format!("token-{}", self.tokens)}))
    }

    fn refuse(&self, question: &Question) -> Option<Answer> {
        let shown = question.header(header::AUTHORIZATION);
        let origin = question.origin();
        let realm = match &self.auth {
            RegistryAuth::None => return None,
            RegistryAuth::Basic(user, password) => {
                let refusal = Answer::new(401, "").with("www-authenticate", r#"Basic realm="fake""#);
                return (shown != Some(&basic(user, password))).then_some(refusal);
            }
            RegistryAuth::AnonymousToken | RegistryAuth::Token(..) => format!("{origin}/token"),
            RegistryAuth::TokenFrom(realm) => realm.clone(),
        };
        let number = shown.and_then(|shown| shown.strip_prefix("Bearer token-")?.parse::<usize>().ok());
        let is_ours = |number| number > self.valid_from && number <= self.tokens;
        if number.is_some_and(|number| is_ours(number) || matches!(self.auth, RegistryAuth::TokenFrom(_))) {
            return None;
        }
        let (repository, ..) = split(question.path.strip_prefix("/v2/")?).unwrap_or_default();
        let challenge =
            format!(r#"Bearer realm="{realm}",service="fake",scope="repository:{repository}:pull""#);
        Some(Answer::new(401, "").with("www-authenticate", &challenge))
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

/// Repository, kind and reference: `a/b/manifests/v1`.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    ["manifests", "blobs", "tags"].into_iter().find_map(|kind| {
        let (repository, reference) = path.split_once(&format!("/{kind}/"))?;
        Some((repository, kind, reference))
    })
}

fn list_tags(question: &Question, repository: &str, tags: &BTreeMap<String, String>) -> Answer {
    let last = question.parameter("last").unwrap_or_default();
    let rest: Vec<_> = tags.keys().filter(|tag| **tag > last).collect();
    let shown = &rest[..rest.len().min(PER_PAGE)];
    let answer = Answer::json(&json!({"name": repository, "tags": shown}));
    match shown.last() {
        Some(last) if rest.len() > shown.len() => {
            answer.with("link", &format!("</v2/{repository}/tags/list?n=2&last={last}>; rel=\"next\""))
        }
        _ => answer,
    }
}
