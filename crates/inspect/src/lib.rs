//! What can be seen of workload clusters: describe, explain, kubeconfig, and the rollout of their controllers.

pub mod clusters;
pub mod describe;
pub mod explain;
pub mod kubeconfig;
pub mod rollout;
