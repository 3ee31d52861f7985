//! YAML for Kubernetes, the only place that knows it.
//!
//! Users compare our files with those of the Go tools, byte by byte, so what is written here is what
//! `sigs.k8s.io/yaml` v1.6.0 (on `go.yaml.in/yaml/v2` v2.4.3) writes, and a text means what it means there.

mod compose;
mod emit;
mod error;
mod keys;
mod locate;
mod node;
mod number;
mod plain;
mod read;
mod resolve;
mod source;
mod split;

pub use emit::{to_multi_document, to_string};
pub use error::{Problem, ReadError};
pub use locate::locate;
pub use read::{Document, read, read_one};
