//! What several fuzz targets share.

pub mod json;
pub mod schema;

/// Stands for a secret in seeds: what quotes it gives a secret away.
pub const CANARY: &str = "hunter2";
