//! What is done to the providers of a management cluster: install, upgrade, delete.
//!
//! The commands and the operator call the same functions. Nothing here looks at the terminal, the environment or the
//! clock by itself: callers hand in a client, where releases come from, and a function that reports progress.

pub mod catalog;
pub mod cert_manager;
pub mod check;
pub mod delete;
pub mod diff;
pub mod goal;
pub mod install;
mod instance;
pub mod release;
pub mod scale;
pub mod upgrade;
