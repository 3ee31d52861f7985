//! Releases are found where the configuration says, and errors say what is wrong with them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod addresses;
mod config_file;
mod config_maps;
mod files;
mod folder;
mod server;
mod versions;
