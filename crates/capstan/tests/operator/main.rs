//! The provider operator, on a real control plane.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod api;
