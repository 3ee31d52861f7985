//! `Cluster` between its API versions, as the webhook does it.

use std::sync::Arc;

use capstan_api::{
    cluster::conversion::{ReferenceVersions, to_v1beta1, to_v1beta2},
    contract::{crd_name, pick_version},
};
use capstan_runtime::{
    ObjectKey,
    cache::{Cache, Cached},
    webhook::Converter,
};

use crate::crds::{CrdReader, CrdRecord, Details};

/// Looks the version of a reference up in the kind's CRD, as the Cluster controller does.
struct ByContract {
    crds: Cache<CrdRecord>,
    reader: Arc<CrdReader>,
}

impl ReferenceVersions for ByContract {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        let name = crd_name(group, kind);
        // Only CRDs that exist are read: objects may name others.
        let crd = self.crds.get(&ObjectKey::new("", &name))?;
        let picked = match self.reader.read(&name) {
            Details::Known(details) => details.pick(),
            // A conversion cannot wait.
            Details::Loading | Details::Unreadable(_) => pick_version(&name, crd.metadata().labels.as_ref()?),
        };
        Some(picked.ok()?.version)
    }
}

/// Converts Clusters between the versions that are served.
pub(crate) fn converter(crds: Cache<CrdRecord>, reader: Arc<CrdReader>) -> Converter {
    let versions = ByContract { crds, reader };
    Arc::new(move |object, desired| match desired {
        "cluster.x-k8s.io/v1beta1" => to_v1beta1(object, &versions).map_err(|error| error.to_string()),
        "cluster.x-k8s.io/v1beta2" => to_v1beta2(object).map_err(|error| error.to_string()),
        other => Err(format!("Cluster is not known in version {other}")),
    })
}
