//! The `Cluster` kind: its types, its definition, and conversion between its versions.

mod conversion;
mod crd;
mod properties;
mod types;
