//! The life of a management cluster, told through the binary on control planes of its own: init, upgrade, delete.

mod delete;
mod estate;
mod killed;
mod preview;
#[path = "../stories/user.rs"]
mod user;
