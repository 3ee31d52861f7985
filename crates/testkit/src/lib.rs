//! Tools for stories: a control plane, a namespace each, waits with a limit, and faults.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "only tests use this crate, and a panic is how they fail"
)]

mod board;
pub mod canary;
pub mod fakes;
pub mod faults;
pub mod gate;
pub mod generic;
pub mod hostile;
pub mod kubelet;
pub mod matrix;
mod plane;
pub mod requests;
pub mod story;
pub mod terminal;
pub mod wait;

pub use plane::{Plane, shared_plane};
pub use story::{RunningManager, Story, Which};
