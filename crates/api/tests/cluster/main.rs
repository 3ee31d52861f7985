//! The `Cluster` kind: its types, its CRD, and conversion between its versions.

// What helps a test may fail as a test may.
#![allow(clippy::unwrap_used)]

mod conversion;
mod crd;
mod properties;
mod types;
