//! One management cluster: its client, kinds and objects, and how they are read and written.
//!
//! Install, upgrade, delete, `describe` and the controllers call the same functions. Nothing here reads the terminal,
//! the environment or the clock of its own accord.

pub mod adoption;
pub mod apply;
mod cluster;
mod concurrent;
pub mod contract;
pub mod crd;
pub mod dry_run;
pub mod error;
pub mod inventory;
mod kinds;
mod object;
pub mod ownership;
pub mod retry;
pub mod served;
pub mod server_version;
pub mod sweep;

pub use cluster::ManagementCluster;
pub use concurrent::{REQUESTS_AT_ONCE, at_once, at_once_in_order};
pub use error::ServerError;
pub use kinds::{Kind, Kinds};
pub use object::{Identity, ObjectRef};
