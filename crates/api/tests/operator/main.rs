//! The provider operator's kinds: their types, and the specification's examples of them.

// What helps a test may fail as a test may.
#![allow(clippy::unwrap_used)]

mod crd;
mod examples;
