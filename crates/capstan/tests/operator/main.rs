//! The provider operator on control planes of its own: its kinds, and providers from releases in ConfigMaps, with a test
//! that plays kubelet.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod air_gap;
mod api;
mod deletion;
mod drift;
mod faults;
mod install;
mod migration;
mod random;
mod upgrade;
mod world;
