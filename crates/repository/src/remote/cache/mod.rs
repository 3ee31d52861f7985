//! What was fetched, on disk.
//!
//! `blobs/<sha256>` holds content, `index/<sha256 of the key>.json` says what it is. Blobs come before the
//! entries that name them, and both appear by a rename, so that other processes see all of a file or nothing.
//! Whatever is read is checked against its sum: a spoilt blob is as good as none.
//!
//! Files carry the time of their last use. When a file comes that would go beyond the limit, those go that were used
//! least recently, but none that any command has used within the last hour. Commands do not wait for each other: who
//! finds that an entry's blob is gone fetches it again.

mod files;
mod room;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::checksum::Sha256;
use room::{Indexed, Inventory};

/// What a cached file is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The repository, project, registry or address.
    pub source: String,
    /// The version; empty for listings.
    pub version: String,
    /// The file's name.
    pub file: String,
    /// The sum of the address's query, which tells files apart but may be a secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

impl Key {
    pub(crate) fn new(source: impl Into<String>, version: &str, file: &str) -> Self {
        Self {
            source: source.into(),
            version: version.to_owned(),
            file: file.to_owned(),
            query: String::new(),
        }
    }

    /// The same, at an address whose query counts.
    pub(crate) fn with_query_of(self, url: &Url) -> Self {
        let query = url.query().map(|query| Sha256::of(query.as_bytes()).to_string()).unwrap_or_default();
        Self { query, ..self }
    }

    /// For those who read messages.
    pub(crate) fn shown(&self) -> String {
        let parts = [&self.file, &self.version, &self.source];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        parts.join(" of ")
    }

    fn index_name(&self) -> String {
        // Unlike a plain join, this cannot confuse "a/b" + "c" with "a" + "b/c".
        let text = match self.query.as_str() {
            "" => format!("{:?}", (&self.source, &self.version, &self.file)),
            query => format!("{:?}", (&self.source, &self.version, &self.file, query)),
        };
        format!("{}.json", Sha256::of(text.as_bytes()))
    }
}

/// What is known about a cached file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub key: Key,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// The next page, if this is a page of a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Who promised the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vouched_by: Option<String>,
    pub sha256: String,
    pub size: u64,
    pub fetched: Timestamp,
}

/// A cached file that is whole.
#[derive(Debug)]
pub(crate) struct Hit {
    pub entry: Entry,
    pub sha256: Sha256,
    pub bytes: Vec<u8>,
}

/// Why the cache could not give what it has.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("the cache's copy of {what} was spoilt and has been dropped")]
    Spoilt { what: String },
    #[error(
        "the cache at {} is full: {what} is not kept, for what was used within the last hour leaves no room within its \
         limit of {limit} bytes",
        .path.display()
    )]
    Full { path: PathBuf, what: String, limit: u64 },
    #[error("the cache at {} does not work: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A folder of fetched files, shared by any number of processes.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    root: Arc<PathBuf>,
    /// The most bytes that its files may have together.
    limit: u64,
    /// Whether it was reported that the cache is full: once is enough.
    full: Arc<AtomicBool>,
}

impl Cache {
    pub(crate) fn new(root: PathBuf, limit: u64) -> Self {
        Self { root: Arc::new(root), limit, full: Arc::default() }
    }

    /// Reads without blocking the runtime.
    pub(crate) async fn read(&self, key: &Key, now: Timestamp) -> Result<Option<Hit>, CacheError> {
        let (cache, key) = (self.clone(), key.clone());
        self.blocking(move || cache.read_blocking(&key, now)).await
    }

    /// Writes without blocking the runtime.
    pub(crate) async fn write(&self, entry: Entry, bytes: Vec<u8>) -> Result<(), CacheError> {
        let cache = self.clone();
        self.blocking(move || cache.write_blocking(&entry, &bytes)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, CacheError> + Send + 'static,
    ) -> Result<T, CacheError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome,
            Err(error) => Err(self.failure(io::Error::other(error))),
        }
    }

    fn read_blocking(&self, key: &Key, now: Timestamp) -> Result<Option<Hit>, CacheError> {
        let index = self.index_path(key);
        let Some(text) = self.found(files::read_and_note(&index, now))? else { return Ok(None) };
        let spoilt = || CacheError::Spoilt { what: key.shown() };
        let entry = serde_json::from_slice::<Entry>(&text).ok().filter(|entry| &entry.key == key);
        let Some((entry, sha256)) =
            entry.and_then(|entry| Sha256::parse(&entry.sha256).map(|sum| (entry, sum)))
        else {
            self.found(files::remove(&index))?;
            return Err(spoilt());
        };
        let blob = self.blob_path(sha256);
        match self.found(files::read(&blob))? {
            Some(bytes) if Sha256::of(&bytes) == sha256 => Ok(Some(Hit { entry, sha256, bytes })),
            Some(_) => {
                self.found(files::remove(&index))?;
                self.found(files::remove(&blob))?;
                Err(spoilt())
            }
            // Another command has made room.
            None => Ok(None),
        }
    }

    fn write_blocking(&self, entry: &Entry, bytes: &[u8]) -> Result<(), CacheError> {
        let now = entry.fetched;
        let blob = self.blob_path(Sha256::of(bytes));
        let text = serde_json::to_vec_pretty(entry).map_err(|error| self.failure(error.into()))?;
        let size = (bytes.len() as u64).saturating_add(text.len() as u64);
        if !self.make_room(size, now).map_err(|error| self.failure(error))? {
            let was_told = self.full.swap(true, Ordering::Relaxed);
            let (path, what, limit) = (self.root.to_path_buf(), entry.key.shown(), self.limit);
            return if was_told { Ok(()) } else { Err(CacheError::Full { path, what, limit }) };
        }
        let scratch = self.root.join("tmp");
        files::make_private_folders(&self.root, &["blobs", "index", "tmp"])
            .and_then(|()| files::replace(&scratch, &blob, bytes, now))
            .and_then(|()| files::replace(&scratch, &self.index_path(&entry.key), &text, now))
            .map_err(|error| self.failure(error))
    }

    /// Removes what was used least recently, if there is not enough room. Says whether there is enough now.
    fn make_room(&self, incoming: u64, now: Timestamp) -> io::Result<bool> {
        let entries = files::list(&self.root.join("index"))?;
        let entries = entries.into_iter().map(|file| Indexed { file, blob: None }).collect();
        let mut others = files::list(&self.root.join("blobs"))?;
        others.extend(files::list(&self.root.join("tmp"))?);
        let mut inventory = Inventory { entries, others };
        if inventory.size().saturating_add(incoming) <= self.limit {
            return Ok(true);
        }
        for entry in &mut inventory.entries {
            entry.blob = self.blob_of(&entry.file.path);
        }
        let Some(removed) = inventory.make_room(incoming, self.limit, now) else { return Ok(false) };
        removed.iter().try_for_each(files::remove_unused)?;
        Ok(true)
    }

    /// The blob that an entry names; none if the entry is gone or spoilt.
    fn blob_of(&self, index: &Path) -> Option<PathBuf> {
        let entry: Entry = serde_json::from_slice(&files::read(index).ok()?).ok()?;
        Sha256::parse(&entry.sha256).map(|sha256| self.blob_path(sha256))
    }

    fn index_path(&self, key: &Key) -> PathBuf {
        self.root.join("index").join(key.index_name())
    }

    fn blob_path(&self, sha256: Sha256) -> PathBuf {
        self.root.join("blobs").join(sha256.to_string())
    }

    fn found<T>(&self, outcome: io::Result<T>) -> Result<Option<T>, CacheError> {
        match outcome {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn failure(&self, source: io::Error) -> CacheError {
        CacheError::Io { path: self.root.to_path_buf(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_run_into_each_other() {
        let names = [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), ("a\", \"b", "c", "d")]
            .map(|(source, version, file)| Key::new(source, version, file).index_name());
        for (n, name) in names.iter().enumerate() {
            assert!(!names[..n].contains(name), "{names:?}");
        }
    }

    #[test]
    fn queries_tell_keys_apart_and_are_not_kept() {
        let key = |url: &str| Key::new("s", "v", "f").with_query_of(&Url::parse(url).unwrap());
        assert_eq!(key("https://h/f"), Key::new("s", "v", "f"));
        let (one, two) = (key("https://h/f?token=one"), key("https://h/f?token=two"));
        assert_ne!(one.index_name(), two.index_name());
        assert_ne!(one.index_name(), key("https://h/f").index_name());
        assert_eq!(one.shown(), "f of v of s");
        assert!(!serde_json::to_string(&one).unwrap().contains("one"));
    }

    #[test]
    fn keys_read_well() {
        assert_eq!(Key::new("github.com/o/r", "v1.0.0", "f").shown(), "f of v1.0.0 of github.com/o/r");
        assert_eq!(Key::new("https://h/list", "", "").shown(), "https://h/list");
    }
}
