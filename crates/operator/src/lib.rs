//! The provider operator: providers as declarative objects.
//!
//! A provider object is read with everything that matters to it as a snapshot, a pure function decides the next step,
//! and a thin executor carries it out by the functions that the commands call.

pub mod customize;
pub mod fetch;
pub mod store;
