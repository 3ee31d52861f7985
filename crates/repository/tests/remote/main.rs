//! Stories of fetching releases from servers that do not always behave.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cache;
mod checksums;
mod config_file;
mod credentials;
mod downloads;
mod github;
mod gitlab;
mod https;
mod oci;
mod templates;
mod world;
