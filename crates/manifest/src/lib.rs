//! Manifests as text: YAML as Go reads and writes it.
//!
//! Everything here is a function over values and text; nothing is read from or written to anywhere.

pub mod envsubst;
mod place;
pub mod yaml;

pub use place::Place;
