//! What is done to a management cluster, and what can be seen of it.
//!
//! The commands and the operator call the same functions. Nothing here looks at the terminal, the environment or the
//! clock by itself: callers hand in a client, the configuration, and somebody to tell about progress.

pub mod adoption;
pub mod apply;
pub mod cert_manager;
pub mod clusters;
pub mod delete;
pub mod describe;
pub mod diff;
pub mod dry_run;
mod error;
pub mod explain;
pub mod install;
pub mod inventory;
mod kinds;
pub mod kubeconfig;
mod management;
mod object;
pub mod release;
pub mod rollout;
mod served;
pub mod server_version;
pub mod sweep;
pub mod upgrade;

pub use error::ServerError;
pub use kinds::{Kind, Kinds};
pub use management::ManagementCluster;
pub use object::ObjectRef;
