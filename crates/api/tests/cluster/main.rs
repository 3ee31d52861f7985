//! The `Cluster` kind: its types, its definition, and conversion between its versions.

// What helps a test may fail as a test may.
#![allow(clippy::unwrap_used)]

mod conversion;
mod crd;
mod properties;
mod types;
