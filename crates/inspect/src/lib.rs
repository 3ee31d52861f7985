//! What can be seen of workload clusters: describe, explain, kubeconfig, and the rollout of their controllers.

mod age;
pub mod clusters;
pub mod describe;
pub mod explain;
mod fields;
pub mod kubeconfig;
pub mod rollout;
pub mod snapshot;

pub use age::human_duration;
