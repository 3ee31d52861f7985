//! The input of an explanation.

use std::collections::{BTreeMap, BTreeSet};

use capstan_management::inventory::Inventory;
use serde_json::Value;

use crate::snapshot::WorkloadSnapshot;

/// A workload cluster, and the providers that act on it.
#[derive(Clone, Debug, Default)]
pub struct ExplainSnapshot {
    /// The workload cluster, the CRDs of core's kinds among its CRDs, and its ClusterClass.
    pub workload: WorkloadSnapshot,
    /// Names of the Secrets that exist, of those that the workload cluster needs.
    pub secrets: BTreeSet<String>,
    /// The Deployments of all providers, unless they cannot be read.
    pub deployments: Option<Vec<Value>>,
    /// The Leases in their namespaces.
    pub leases: Vec<Value>,
    /// Configurations of webhooks.
    pub webhooks: Vec<Value>,
    /// How many endpoints of a Service are ready, by its namespace and name; none if the Service does not exist.
    pub services: BTreeMap<(String, String), Option<usize>>,
    /// The labels of the Cluster's namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// The providers that are installed.
    pub inventory: Inventory,
}
