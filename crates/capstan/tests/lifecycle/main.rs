//! The life of a management cluster, by running the binary on control planes of its own: init, upgrade, delete.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

mod catalog;
mod delete;
mod estate;
mod init;
mod instances;
mod killed;
mod kinds;
mod operator;
mod preview;
mod real_operator;
mod upgrade;
#[expect(dead_code, reason = "stories about manifests need more of it")]
#[path = "../stories/user.rs"]
mod user;
