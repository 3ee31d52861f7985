//! YAML for Kubernetes, the only place that knows it.
//!
//! Users compare our files with those of the Go tools, byte by byte, so what is written here is what
//! `sigs.k8s.io/yaml` v1.6.0 (on `go.yaml.in/yaml/v2` v2.4.3) writes.

mod emit;
mod keys;
mod number;
mod plain;

pub use emit::{to_multi_document, to_string};
