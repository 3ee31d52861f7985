//! The operator finds releases where provider objects say, and keeps what it found.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod addresses;
mod config_maps;
mod credentials;
mod kept;
mod world;
