//! GitHub: pages, API, storage of assets; and the Go module proxy.

use std::collections::BTreeMap;

use axum::http::header;
use serde_json::{Value, json};

use super::answer::{Answer, Question, page};
use super::registry::digest_of;

/// As many as fit on a page here, so that few are enough for several pages.
const PER_PAGE: usize = 3;

/// A repository with its releases.
#[derive(Debug, Default)]
pub struct FakeRepository {
    releases: Vec<Release>,
    tags: Vec<String>,
    /// Only this token may see it.
    token: Option<String>,
    contents: BTreeMap<(String, String), Vec<u8>>,
    without_digests: bool,
}

#[derive(Debug, Default)]
struct Release {
    tag: String,
    draft: bool,
    assets: Vec<(String, Vec<u8>)>,
}

impl FakeRepository {
    /// A release with files.
    pub fn release(&mut self, tag: &str, assets: &[(&str, &str)]) -> &mut Self {
        let assets = assets.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()));
        self.releases.push(Release { tag: tag.to_owned(), draft: false, assets: assets.collect() });
        self
    }

    /// A release that is not published.
    pub fn draft(&mut self, tag: &str) -> &mut Self {
        self.releases.push(Release { tag: tag.to_owned(), draft: true, assets: Vec::new() });
        self
    }

    /// A tag without a release.
    pub fn tag(&mut self, tag: &str) -> &mut Self {
        self.tags.push(tag.to_owned());
        self
    }

    /// A file in the repository.
    pub fn content(&mut self, reference: &str, path: &str, content: &str) -> &mut Self {
        self.contents.insert((reference.to_owned(), path.to_owned()), content.as_bytes().to_vec());
        self
    }

    /// Hides the repository from all but this token.
    pub fn private(&mut self, token: &str) -> &mut Self {
        self.token = Some(token.to_owned());
        self
    }

    /// As for assets from before GitHub computed digests.
    pub fn without_digests(&mut self) -> &mut Self {
        self.without_digests = true;
        self
    }

    fn asset(&self, tag: &str, name: &str) -> Option<&[u8]> {
        let release = self.releases.iter().find(|release| release.tag == tag && !release.draft)?;
        release.assets.iter().find(|(other, _)| other == name).map(|(_, content)| content.as_slice())
    }

    /// Numbers that lead back to an asset.
    fn asset_by_id(&self, id: usize) -> Option<&(String, Vec<u8>)> {
        self.releases.get(id / 1000)?.assets.get(id % 1000)
    }

    fn describe(&self, index: usize, release: &Release) -> Value {
        let assets = release.assets.iter().enumerate().map(|(n, (name, content))| {
            let digest = (!self.without_digests).then(|| digest_of(content));
            json!({"id": index * 1000 + n, "name": name, "size": content.len(), "digest": digest})
        });
        json!({"tag_name": release.tag, "draft": release.draft, "assets": assets.collect::<Vec<_>>()})
    }
}

#[derive(Default)]
pub(super) struct GitHubState {
    pub repositories: BTreeMap<String, FakeRepository>,
    pub modules: BTreeMap<String, String>,
}

impl GitHubState {
    pub(super) fn answer(&self, question: &Question) -> Option<Answer> {
        if let Some((module, "list")) = question.path.split_once("/@v/") {
            let versions = self.modules.get(module.trim_start_matches('/'))?;
            return Some(Answer::file(versions.as_bytes()));
        }
        let segments = question.segments();
        let segments: Vec<_> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["storage", owner, repo, tag, name] => Some(self.storage(question, owner, repo, tag, name)),
            ["repos", owner, repo, rest @ ..] | ["api", "v3", "repos", owner, repo, rest @ ..] => {
                self.api(question, owner, repo, rest)
            }
            [owner, repo, "releases", "download", tag, name] => {
                let repository = self.repositories.get(&format!("{owner}/{repo}"))?;
                // The pages of a private repository are for browsers only: a token does not open them.
                repository.asset(tag, name).filter(|_| repository.token.is_none())?;
                Some(to_storage(question, owner, repo, tag, name))
            }
            _ => None,
        }
    }

    fn storage(&self, question: &Question, owner: &str, repo: &str, tag: &str, name: &str) -> Answer {
        // The real one refuses requests that are signed twice.
        if question.headers.contains_key(header::AUTHORIZATION) {
            return Answer::new(400, "only one way to authenticate is allowed");
        }
        let repository = self.repositories.get(&format!("{owner}/{repo}"));
        match repository.and_then(|repository| repository.asset(tag, name)) {
            Some(content) => Answer::file(content),
            None => Answer::missing(),
        }
    }

    fn api(&self, question: &Question, owner: &str, repo: &str, rest: &[&str]) -> Option<Answer> {
        let authorization = question.header(header::AUTHORIZATION);
        if authorization.is_some_and(|text| text.trim() == "Bearer" || text.ends_with("expired")) {
            return Some(Answer::new(401, r#"{"message":"Bad credentials"}"#));
        }
        let repository = self.repositories.get(&format!("{owner}/{repo}"))?;
        if let Some(token) = &repository.token
            && authorization != Some(&format!("Bearer {token}"))
        {
            return None;
        }
        let releases = repository.releases.iter().enumerate();
        match rest {
            ["releases"] => {
                let listed: Vec<_> = releases.map(|(n, release)| repository.describe(n, release)).collect();
                Some(page(question, &listed, PER_PAGE))
            }
            ["releases", "tags", tag] => {
                let (n, release) = releases.into_iter().find(|(_, r)| r.tag == *tag && !r.draft)?;
                Some(Answer::json(&repository.describe(n, release)))
            }
            ["releases", "assets", id] => {
                let id: usize = id.parse().ok()?;
                let (name, _) = repository.asset_by_id(id)?;
                assert_eq!(question.header(header::ACCEPT), Some("application/octet-stream"));
                Some(to_storage(question, owner, repo, &repository.releases[id / 1000].tag, name))
            }
            ["git", "ref", "tags", tag] => {
                let tags = repository.releases.iter().map(|release| &release.tag).chain(&repository.tags);
                tags.into_iter().any(|other| other == tag).then(|| Answer::json(&json!({"ref": tag})))
            }
            ["contents", path @ ..] => {
                let key = (question.parameter("ref")?, path.join("/"));
                repository.contents.get(&key).map(|content| Answer::file(content))
            }
            _ => None,
        }
    }
}

/// Assets are on another host than the pages that lead to them.
fn to_storage(question: &Question, owner: &str, repo: &str, tag: &str, name: &str) -> Answer {
    let host = match question.host.rsplit_once(':') {
        Some((_, port)) => format!("localhost:{port}"),
        None => "objects.githubusercontent.com".to_owned(),
    };
    let tag = tag.replace('/', "%2F");
    Answer::redirect(&format!("https://{host}/storage/{owner}/{repo}/{tag}/{name}?signature=secret"))
}
