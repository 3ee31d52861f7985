//! Stories of fetching releases from servers that do not always behave.

mod cache;
mod checksums;
mod downloads;
mod github;
mod gitlab;
mod https;
mod oci;
mod templates;
mod world;
