//! A Cluster as it is kept between two looks at it: thousands must fit in a small process.

use capstan_api::{cluster::v1beta2::ClusterStatus, conditions};
use capstan_runtime::{Observed, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{connection, snapshot::ClusterRecord};

/// A Cluster whose status, most of which is conditions that all Clusters have, is packed.
#[derive(Clone, Debug)]
pub(crate) struct KnownCluster {
    /// Of the status only what was reached for good.
    bare: ClusterRecord,
    says_connected: bool,
    status: Box<[u8]>,
}

impl KnownCluster {
    /// Packs an object.
    pub(crate) fn new(object: Observed) -> Self {
        // What cannot be read stays so: the reason is kept beside it.
        let packed = lz4_flex::compress_prepend_size(object.status.as_str().as_bytes()).into_boxed_slice();
        let mut bare = ClusterRecord::new(object);
        // Of the annotations only their presence is read, and some of them are large.
        for value in bare.metadata.annotations.iter_mut().flat_map(|annotations| annotations.values_mut()) {
            *value = String::new();
        }
        let initialization = bare.status.initialization.clone();
        let status = std::mem::take(&mut bare.status);
        bare.status.initialization = initialization;
        Self {
            bare,
            says_connected: conditions::is_true(&status.conditions, connection::CONDITION),
            status: packed,
        }
    }

    /// The Cluster without most of its status.
    pub(crate) fn bare(&self) -> &ClusterRecord {
        &self.bare
    }

    /// Whether it says that its workload cluster answers.
    pub(crate) fn says_connected(&self) -> bool {
        self.says_connected
    }

    /// The whole Cluster.
    pub(crate) fn unpack(&self) -> ClusterRecord {
        let mut whole = self.bare.clone();
        whole.status = self.unpack_status().unwrap_or_default();
        whole
    }

    fn unpack_status(&self) -> Option<ClusterStatus> {
        let text = lz4_flex::decompress_size_prepended(&self.status).ok()?;
        serde_json::from_slice::<Option<ClusterStatus>>(&text).ok()?
    }
}

impl Cached for KnownCluster {
    fn metadata(&self) -> &ObjectMeta {
        &self.bare.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_gets_lost() {
        let object = json!({
            "metadata": {"name": "c", "annotations": {"cluster.x-k8s.io/paused": "a long story"}},
            "spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}},
            "status": {
                "phase": "Provisioned",
                "initialization": {"infrastructureProvisioned": true},
                "conditions": [{
                    "type": "RemoteConnectionProbe", "status": "True", "reason": "ProbeSucceeded", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        });
        let object: Observed = serde_json::from_value(object).unwrap();
        let whole = ClusterRecord::new(object.clone());
        let known = KnownCluster::new(object);
        assert_eq!(known.unpack().status, whole.status);
        assert_eq!(known.unpack().spec, whole.spec);
        assert!(known.bare().was_provisioned() && known.bare().is_paused() && known.says_connected());
        assert_eq!(known.bare().status.phase, None);
    }

    #[test]
    fn what_cannot_be_read_stays_so() {
        let object = json!({"metadata": {"name": "c"}, "spec": {"paused": "perhaps"}});
        let known = KnownCluster::new(serde_json::from_value(object).unwrap());
        assert!(known.unpack().malformed.is_some());
    }
}
