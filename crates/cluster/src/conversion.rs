//! `Cluster` between its API versions, as the webhook does it.

use capstan_api::{
    cluster::conversion::{ReferenceVersions, to_v1beta1, to_v1beta2},
    contract::{crd_name, pick_version},
};
use capstan_runtime::{
    ObjectKey,
    cache::{Cache, Cached},
    webhook::Converter,
};

use crate::crds::CrdRecord;

/// Looks the version of a reference up in the CRDs' contract labels.
struct ByContractLabels(Cache<CrdRecord>);

impl ReferenceVersions for ByContractLabels {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        let name = crd_name(group, kind);
        let crd = self.0.get(&ObjectKey::new("", &name))?;
        let picked = pick_version(&name, crd.metadata().labels.as_ref()?).ok()?;
        Some(picked.version)
    }
}

/// Converts Clusters between the versions that are served.
pub(crate) fn converter(crds: Cache<CrdRecord>) -> Converter {
    let versions = ByContractLabels(crds);
    std::sync::Arc::new(move |object, desired| match desired {
        "cluster.x-k8s.io/v1beta1" => to_v1beta1(object, &versions).map_err(|error| error.to_string()),
        "cluster.x-k8s.io/v1beta2" => to_v1beta2(object).map_err(|error| error.to_string()),
        other => Err(format!("Cluster is not known in version {other}")),
    })
}
