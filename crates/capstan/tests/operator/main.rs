//! The provider operator on control planes of its own, with releases in ConfigMaps and a test that plays kubelet.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod deletion;
mod drift;
mod install;
mod migration;
mod upgrade;
mod world;
