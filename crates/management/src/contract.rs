//! The contract that the installed core speaks.

use capstan_api::{contract::ContractVersion, names::CORE_GROUP};

use crate::{Kind, ManagementCluster, ServerError, crd::Crd};

/// The contract of the installed core: what the labels of its Cluster CRD say, else the version that it stores. None
/// if there is no such CRD.
pub async fn installed_core_contract(cluster: &ManagementCluster) -> Result<Option<String>, ServerError> {
    let name = format!("clusters.{CORE_GROUP}");
    let failed = |error| cluster.failed(format!("read CRD {name}"), error);
    let found = cluster.objects(&Kind::crd(), None).get_opt(&name).await.map_err(failed)?;
    let Some(found) = found else { return Ok(None) };
    let crd = serde_json::to_value(found).map_err(|error| failed(kube::Error::SerdeError(error)))?;
    Ok(core_contract(Crd::new(&crd)).map(str::to_owned))
}

/// The contract of a core by its Cluster CRD.
fn core_contract(crd: Crd<'_>) -> Option<&str> {
    let labelled = ContractVersion::PREFERENCE.into_iter().find(|it| crd.label(&it.label()).is_some());
    labelled.map(ContractVersion::as_str).or_else(|| crd.storage_version())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_labels_of_the_cluster_crd_come_before_its_storage_version() {
        let (v1beta1, v1beta2) = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2");
        for (labels, stored, expected) in [
            (json!({v1beta1: "v1beta1", v1beta2: "v1beta2"}), Some("v1beta2"), Some("v1beta2")),
            // Core of contract v1beta2 may store an older version.
            (json!({v1beta1: "v1beta1", v1beta2: "v1beta2"}), Some("v1beta1"), Some("v1beta2")),
            (json!({v1beta1: "v1alpha4_v1beta1"}), Some("v1beta1"), Some("v1beta1")),
            (json!({}), Some("v1alpha4"), Some("v1alpha4")),
            (json!(null), Some("v1beta1"), Some("v1beta1")),
            (json!({"cluster.x-k8s.io/v1alpha4": "v1alpha4"}), None, None),
        ] {
            let versions = stored.map(|it| json!([{"name": "v0"}, {"name": it, "storage": true}]));
            let crd = json!({"metadata": {"labels": labels}, "spec": {"versions": versions}});
            assert_eq!(core_contract(Crd::new(&crd)), expected, "{crd}");
        }
    }
}
