//! Which contract a provider speaks, and in which of its API versions.

use std::{cmp::Ordering, collections::BTreeMap, fmt};

use kube::core::Version;

use crate::names::label;

/// The contract versions that core understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContractVersion {
    /// `status.ready`, failure domains as a map, terminal failures.
    V1Beta1,
    /// `status.initialization`, failure domains as a list, no terminal failures.
    V1Beta2,
}

impl ContractVersion {
    /// All of them, the preferred one first.
    pub const PREFERENCE: [Self; 2] = [Self::V1Beta2, Self::V1Beta1];

    /// The contract's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// The label by which a CRD says which of its versions speak this contract.
    pub fn label(self) -> String {
        format!("{}{self}", label::CONTRACT_PREFIX)
    }
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a CRD's labels led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickedVersion {
    /// The contract to speak.
    pub contract: ContractVersion,
    /// The API version of the kind that implements it.
    pub version: String,
}

/// The CRD does not say that it implements any contract that core understands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "CustomResourceDefinition {crd} has no label {} or {}: its provider must set one to the API versions that implement the contract",
    ContractVersion::V1Beta2.label(),
    ContractVersion::V1Beta1.label()
)]
pub struct NoCompatibleContract {
    /// The CRD's name.
    pub crd: String,
}

/// Picks the newest contract that a CRD's labels name, and its greatest version by Kubernetes' ordering.
///
/// The written contract speaks of the *last* version in the list; upstream takes the greatest, and so do we.
pub fn pick_version(
    crd: &str,
    labels: &BTreeMap<String, String>,
) -> Result<PickedVersion, NoCompatibleContract> {
    ContractVersion::PREFERENCE
        .into_iter()
        .find_map(|contract| {
            let versions = labels.get(&contract.label())?;
            let version = versions
                .split('_')
                .filter(|version| !version.is_empty())
                .max_by(|a, b| compare_versions(a, b))?
                .to_owned();
            Some(PickedVersion { contract, version })
        })
        .ok_or_else(|| NoCompatibleContract { crd: crd.to_owned() })
}

/// Kubernetes' ordering of API versions: `v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else`.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    Version::parse(a).priority().cmp(&Version::parse(b).priority())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_newest_contract_and_its_greatest_version_win() {
        use ContractVersion::{V1Beta1, V1Beta2};
        for (given, expected) in [
            (&[("cluster.x-k8s.io/v1beta2", "v1beta2")][..], Some((V1Beta2, "v1beta2"))),
            (&[("cluster.x-k8s.io/v1beta1", "v1beta1")], Some((V1Beta1, "v1beta1"))),
            (&[("cluster.x-k8s.io/v1beta1", "v1beta2")], Some((V1Beta1, "v1beta2"))),
            (
                &[("cluster.x-k8s.io/v1beta1", "v1"), ("cluster.x-k8s.io/v1beta2", "v1alpha1")],
                Some((V1Beta2, "v1alpha1")),
            ),
            (&[("cluster.x-k8s.io/v1beta2", "v1_v1beta2_v1beta1")], Some((V1Beta2, "v1"))),
            (&[("cluster.x-k8s.io/v1beta2", "v1beta1_v1beta10_v1beta2")], Some((V1Beta2, "v1beta10"))),
            (
                &[("cluster.x-k8s.io/v1beta2", ""), ("cluster.x-k8s.io/v1beta1", "v1alpha3_v1alpha4")],
                Some((V1Beta1, "v1alpha4")),
            ),
            (&[("cluster.x-k8s.io/v1alpha4", "v1alpha4")], None),
            (&[], None),
        ] {
            let picked = pick_version("foos.g.io", &labels(given)).ok();
            let expected =
                expected.map(|(contract, version)| PickedVersion { contract, version: version.to_owned() });
            assert_eq!(picked, expected, "{given:?}");
        }
    }

    #[test]
    fn a_missing_label_names_the_crd_and_the_labels() {
        let message = pick_version("foos.g.io", &BTreeMap::new()).unwrap_err().to_string();
        for part in ["foos.g.io", "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
