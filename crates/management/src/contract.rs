//! Contracts: which ones go together, and which one the installed core speaks.

use capstan_api::{contract::ContractVersion, names::CORE_GROUP};

use crate::{Kind, ManagementCluster, ServerError, crd::Crd};

/// The contracts that providers may speak beside a core that speaks this one.
pub fn compatible_with(core: &str) -> Vec<&str> {
    if core == ContractVersion::V1Beta2.as_str() {
        ContractVersion::PREFERENCE.map(ContractVersion::as_str).to_vec()
    } else {
        vec![core]
    }
}

/// Whether a provider that speaks one contract works with a core that speaks another.
pub fn is_compatible(core: &str, provider: &str) -> bool {
    compatible_with(core).contains(&provider)
}

/// Whether releases of a contract can be installed.
pub fn is_supported(contract: &str) -> bool {
    ContractVersion::PREFERENCE.iter().any(|it| it.as_str() == contract)
}

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
    fn a_core_goes_with_its_own_contract_and_the_one_before_it() {
        for (core, provider, expected) in [
            ("v1beta2", "v1beta2", true),
            ("v1beta2", "v1beta1", true),
            ("v1beta2", "v1alpha4", false),
            ("v1beta1", "v1beta1", true),
            ("v1beta1", "v1beta2", false),
            ("v1beta3", "v1beta3", true),
            ("v1beta3", "v1beta2", false),
        ] {
            assert_eq!(is_compatible(core, provider), expected, "{core} {provider}");
        }
        assert_eq!(compatible_with("v1beta2"), ["v1beta2", "v1beta1"]);
        assert_eq!(compatible_with("v1alpha4"), ["v1alpha4"]);
        for (contract, expected) in
            [("v1beta1", true), ("v1beta2", true), ("v1alpha4", false), ("v1beta3", false)]
        {
            assert_eq!(is_supported(contract), expected, "{contract}");
        }
    }

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
