//! Reading what is described.

use capstan_management::ManagementCluster;

use super::DescribeOptions;
use crate::{
    clusters::ClusterError,
    snapshot::{CrdDetail, Reader, Wanted, Watched, WorkloadSnapshot},
};

/// What was read, and what to watch to know when that changes.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeReading {
    /// What was read.
    pub snapshot: WorkloadSnapshot,
    /// What to watch.
    pub watched: Vec<Watched>,
}

/// Reads a Cluster and all that belongs to it.
pub async fn read(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
    options: &DescribeOptions,
) -> Result<DescribeReading, ClusterError> {
    let reader = Reader::new(cluster, namespace, name, CrdDetail::Labels).await?;
    let wanted = Wanted {
        health_checks: true,
        resource_sets: options.show_resource_sets,
        templates: options.show_templates,
    };
    let reading = reader.read(wanted).await?;
    if let Some(error) = reading.unconvertible {
        return Err(error.into());
    }
    let snapshot = WorkloadSnapshot { unreadable: reader.notes(), ..reading.snapshot };
    Ok(DescribeReading { snapshot, watched: reading.watched })
}
