//! Manifests: YAML as Go reads and writes it, variables, and what becomes of components and templates.
//!
//! Everything here is a function over values and text; nothing is read from or written to anywhere.

pub mod components;
pub mod envsubst;
pub mod images;
mod namespaces;
pub mod objects;
mod place;
pub mod scope;
pub mod template;
pub mod text;
pub mod typed;
pub mod yaml;

pub use place::Place;
