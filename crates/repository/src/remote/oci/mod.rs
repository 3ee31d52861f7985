//! Releases as OCI artifacts: a manifest whose layers are files, named by their title annotation.

mod challenge;
mod digest;
mod docker;
mod manifest;
mod reference;
mod session;

use std::fmt;

use reqwest::Url;
use serde::Deserialize;

use self::digest::is_digest;
use self::manifest::{Artifact, Descriptor, MANIFEST_TYPES, Manifest};
use self::reference::{Reference, is_tag};
use super::cache::Key;
use super::cached::{Answer, Download, Fetched, Listing, next_request};
use super::get::{Get, read_json};
use super::http::Http;
use crate::FetchError;

/// More tags than that in pages are not read.
const MOST_PAGES: usize = 200;

/// A user of a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The artifacts of one repository in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oci {
    reference: Reference,
}

#[derive(Debug, Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

impl Oci {
    /// Reads `oci://{host}/{repository}[:{tag}|@{digest}]`, with or without the scheme.
    ///
    /// `http://` instead asks for an unencrypted connection; one to this very machine may be unencrypted anyway,
    /// if the registry speaks no TLS.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        Reference::parse(url).map(|reference| Self { reference })
    }

    /// The tag or digest that the address names; it wins over any version that is asked for.
    pub fn version(&self) -> Option<&str> {
        self.reference.fixed()
    }

    /// The tags, in no order.
    pub async fn versions(&self, http: &Http) -> Result<Vec<String>, FetchError> {
        if let Some(fixed) = self.reference.fixed() {
            return Ok(vec![fixed.to_owned()]);
        }
        let mut tags = Vec::new();
        let mut path = "tags/list?n=100".to_owned();
        for _ in 0..MOST_PAGES {
            let (url, page) = self.tag_page(http, &path).await?;
            tags.extend(read_json::<Tags>(&url, &page.bytes)?.tags.into_iter().flatten());
            let next = next_request(&Get::new(url, ""), &page)?;
            match next.as_ref().and_then(|next| next.url.query()) {
                Some(query) => path = format!("tags/list?{query}"),
                None => return Ok(tags),
            }
        }
        Err(FetchError::Malformed {
            url: self.reference.to_string(),
            reason: "its list of tags has no end".to_owned(),
        })
    }

    /// The titles of an artifact's layers.
    pub async fn files(&self, http: &Http, version: &str) -> Result<Option<Vec<String>>, FetchError> {
        Ok(Some(self.artifact(http, version).await?.into_titles()))
    }

    /// The content of a file.
    pub async fn file(&self, http: &Http, version: &str, name: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(http, version, name).await.map(|fetched| fetched.bytes)
    }

    /// A file, and what is known about it.
    pub async fn fetch(&self, http: &Http, version: &str, name: &str) -> Result<Fetched, FetchError> {
        let artifact = self.artifact(http, version).await?;
        match artifact.find(name) {
            Some(layer) => self.blob(http, layer, name).await,
            None => Err(FetchError::NotFound {
                what: format!("{name} in {}", self.at(version)),
                available: artifact.into_titles(),
            }),
        }
    }

    async fn artifact(&self, http: &Http, version: &str) -> Result<Artifact, FetchError> {
        let wanted = self.reference.fixed().unwrap_or(version);
        if !is_tag(wanted) && !is_digest(wanted) {
            let what = format!("{wanted:?} in {}, which cannot be a tag", self.reference);
            return Err(FetchError::NotFound { what, available: Vec::new() });
        }
        let mut artifact = Artifact::new(self.at(version));
        match self.manifest(http, wanted).await? {
            Manifest::Image(layers) => artifact.add(layers)?,
            Manifest::Index(children) => {
                for child in children {
                    match self.manifest(http, &child.digest).await? {
                        Manifest::Image(layers) => artifact.add(layers)?,
                        Manifest::Index(_) => {
                            return Err(FetchError::Malformed {
                                url: self.at(version),
                                reason: "it is an index of indexes".to_owned(),
                            });
                        }
                    }
                }
            }
        }
        Ok(artifact)
    }

    async fn manifest(&self, http: &Http, wanted: &str) -> Result<Manifest, FetchError> {
        let path = format!("manifests/{wanted}");
        let what = format!("{} at {wanted}", self.reference);
        let once = http.once(&what, async {
            let key = Key::new(self.reference.to_string(), wanted, "manifest");
            let fetched = http.file_through_cache(&key, None, |validators| async {
                let get = self.request(http, &path, what.clone()).await?.accept(MANIFEST_TYPES);
                let get = get.validators(validators).limit(http.options.limits.listing);
                let reply = self.get(http, get.clone()).await?;
                if reply.is_unchanged() {
                    return Ok(Answer::Unchanged);
                }
                digest::check_manifest(&what, wanted, &reply)?;
                Ok(Answer::Fresh(Download::from_reply(&get.url, reply)))
            });
            Ok(Some(Listing { bytes: fetched.await?.bytes, next: None }))
        });
        let text = once.await?.ok_or(FetchError::NotFound { what: what.clone(), available: Vec::new() })?;
        manifest::read(&what, &text.bytes)
    }

    async fn blob(&self, http: &Http, layer: &Descriptor, name: &str) -> Result<Fetched, FetchError> {
        let what = format!("{name} in {}", self.reference);
        let limit = http.options.limits.file;
        if layer.size > limit {
            return Err(FetchError::TooLarge { url: what, limit });
        }
        let key = Key::new(self.reference.to_string(), &layer.digest, name);
        let ask = |_| async {
            let get = self.request(http, &format!("blobs/{}", layer.digest), what.clone()).await?;
            let reply = self.get(http, get.clone()).await?;
            digest::check(&what, &layer.digest, &reply.body)?;
            let mut download = Download::from_reply(&get.url, reply);
            download.vouched_by = Some("the artifact's manifest".to_owned());
            Ok(Answer::Fresh(download))
        };
        http.file_through_cache(&key, None, ask).await
    }

    async fn tag_page(&self, http: &Http, path: &str) -> Result<(Url, std::sync::Arc<Listing>), FetchError> {
        let what = format!("the tags of {}", self.reference);
        let key = Key::new(self.reference.to_string(), "", path);
        let url = self.reference.endpoint(path)?;
        let page = http.listing(&key, |validators| async {
            let get = self.request(http, path, what.clone()).await?.validators(validators);
            let reply = self.get(http, get.clone().limit(http.options.limits.listing)).await?;
            if reply.is_unchanged() {
                return Ok(Answer::Unchanged);
            }
            Ok(Answer::Fresh(Download::from_reply(&get.url, reply)))
        });
        Ok((url, page.await?))
    }

    fn at(&self, version: &str) -> String {
        let wanted = self.reference.fixed().unwrap_or(version);
        let separator = if wanted.contains(':') { '@' } else { ':' };
        format!("{}{separator}{wanted}", self.reference)
    }
}
