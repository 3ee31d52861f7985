//! Stand-in until the remote sources are there.

use crate::FetchError;

/// The shared HTTP client.
#[derive(Clone, Debug, Default)]
pub struct Http;

/// A file, and what is known about it.
#[derive(Debug)]
pub struct Fetched {
    /// The content.
    pub bytes: Vec<u8>,
    /// Where it came from.
    pub url: String,
}

/// Any source on the network.
#[derive(Debug)]
pub struct Remote {
    url: String,
}

fn absent<T>(what: &str) -> Result<T, FetchError> {
    Err(FetchError::NotFound { what: what.to_owned(), available: Vec::new() })
}

/// Downloads a file.
pub async fn fetch_url(_http: &Http, url: &str) -> Result<Vec<u8>, FetchError> {
    std::future::ready(absent(url)).await
}

impl Remote {
    /// Reads an address.
    pub fn parse(url: &str) -> Result<Self, FetchError> {
        match url.starts_with("https://") {
            true => Ok(Self { url: url.to_owned() }),
            false => Err(FetchError::InvalidUrl { url: url.to_owned(), reason: "no such source".to_owned() }),
        }
    }
    /// The version that the address names.
    pub fn version(&self) -> &str {
        self.url.rsplit('/').nth(1).unwrap_or("latest")
    }
    /// The file that the address names.
    pub fn file_name(&self) -> Option<&str> {
        self.url.rsplit('/').next().filter(|it| it.contains('.'))
    }
    /// The versions.
    pub async fn versions(&self, _http: &Http) -> Result<Vec<String>, FetchError> {
        std::future::ready(absent(&self.url)).await
    }
    /// The names of files.
    pub async fn files(&self, _http: &Http, _version: &str) -> Result<Option<Vec<String>>, FetchError> {
        std::future::ready(Ok(None)).await
    }
    /// A file.
    pub async fn fetch(&self, _http: &Http, _version: &str, name: &str) -> Result<Fetched, FetchError> {
        std::future::ready(absent(name)).await
    }
}
