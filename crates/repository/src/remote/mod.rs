//! Releases on the network: GitHub, GitLab, any https server, OCI registries.
//!
//! All of them go through one [`Http`], which keeps the manners: limits, retries, redirects, tokens that
//! never leave the host they are for, checksums, and the cache on disk.

mod access;
mod cache;
mod cached;
mod checksum;
mod environment;
mod get;
mod github;
mod gitlab;
mod http;
mod https;
mod link;
mod oci;
mod options;
mod redirect;
mod refusal;
mod retry;
mod shown;
mod source;
mod sums;
mod template;
mod token;

pub use access::Access;
pub use cached::Fetched;
pub use checksum::Sha256;
pub(crate) use get::{Get, looks_like_web_page};
pub use github::GitHub;
pub use gitlab::GitLab;
pub use http::Http;
pub use https::HttpsRelease;
pub use oci::{Credentials, Oci};
pub use options::{DockerConfig, HttpOptions, Limits, Progress, Retry, Timeouts};
pub use shown::shown_address;
pub use source::Remote;
pub use template::fetch_url;
