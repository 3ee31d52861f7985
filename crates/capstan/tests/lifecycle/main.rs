//! The life of a management cluster, told through the binary on control planes of its own: init, upgrade, delete.

mod estate;
mod upgrade;
#[path = "../stories/user.rs"]
mod user;
