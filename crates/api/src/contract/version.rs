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

/// Why there is no version of a kind in which core could speak with its provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCompatibleContract {
    /// The CRD does not say that it implements any contract that core understands.
    #[error(
        "CustomResourceDefinition {crd} has no label {} or {}: its provider must set one to the API versions that implement the contract",
        ContractVersion::V1Beta2.label(),
        ContractVersion::V1Beta1.label()
    )]
    Unlabelled {
        /// The CRD's name.
        crd: String,
    },
    /// The CRD's labels name versions, and none of them is served.
    #[error(
        "CustomResourceDefinition {crd} serves none of the versions that its contract labels name ({}); it serves {}: its provider must serve one of them, or correct the label",
        list_labels(named),
        list_served(served)
    )]
    Unserved {
        /// The CRD's name.
        crd: String,
        /// The labels with their values, that of the preferred contract first.
        named: Vec<(String, String)>,
        /// The versions that it serves.
        served: Vec<String>,
    },
}

/// The versions that a CRD's label names for a contract, in the label's order.
pub fn labelled_versions(
    labels: &BTreeMap<String, String>,
    contract: ContractVersion,
) -> impl Iterator<Item = &str> {
    let versions = labels.get(&contract.label()).map(String::as_str).unwrap_or_default();
    versions.split('_').filter(|version| !version.is_empty())
}

/// Picks the version of a kind in which core speaks with its provider: of the newest contract that has one, the
/// greatest version by Kubernetes' ordering that the contract's label names and that the CRD serves.
///
/// The written contract speaks of the *last available* version in the list; upstream takes the greatest.
pub fn pick_served_version<S: AsRef<str>>(
    crd: &str,
    labels: &BTreeMap<String, String>,
    served: &[S],
) -> Result<PickedVersion, NoCompatibleContract> {
    let is_served = |version: &str| served.iter().any(|it| it.as_ref() == version);
    pick(labels, is_served).ok_or_else(|| {
        // A label without versions names nothing.
        pick_version(crd, labels).map_or_else(
            |unlabelled| unlabelled,
            |_| NoCompatibleContract::Unserved {
                crd: crd.to_owned(),
                named: contract_labels(labels),
                served: served.iter().map(|it| it.as_ref().to_owned()).collect(),
            },
        )
    })
}

/// Picks a version by a CRD's labels alone, for callers that do not know which versions are served.
pub fn pick_version(
    crd: &str,
    labels: &BTreeMap<String, String>,
) -> Result<PickedVersion, NoCompatibleContract> {
    pick(labels, |_| true).ok_or_else(|| NoCompatibleContract::Unlabelled { crd: crd.to_owned() })
}

fn pick(labels: &BTreeMap<String, String>, fits: impl Fn(&str) -> bool) -> Option<PickedVersion> {
    ContractVersion::PREFERENCE.into_iter().find_map(|contract| {
        let fitting = labelled_versions(labels, contract).filter(|version| fits(version));
        let version = fitting.max_by(|a, b| compare_versions(a, b))?.to_owned();
        Some(PickedVersion { contract, version })
    })
}

fn contract_labels(labels: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let all = ContractVersion::PREFERENCE.into_iter();
    all.filter_map(|it| Some((it.label(), labels.get(&it.label())?.clone()))).collect()
}

/// Labels with their values, for a sentence.
pub fn list_labels(labels: &[(String, String)]) -> String {
    labels.iter().map(|(label, value)| format!("{label}: {value}")).collect::<Vec<_>>().join(", ")
}

/// Served versions, for a sentence.
pub fn list_served(versions: &[String]) -> String {
    if versions.is_empty() { "no version".to_owned() } else { versions.join(", ") }
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
    fn only_versions_that_are_served_are_picked() {
        use ContractVersion::{V1Beta1, V1Beta2};
        let (new, old) = ("cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1");
        for (given, served, expected) in [
            (&[(new, "v1beta1_v1beta2")][..], &["v1beta1", "v1beta2"][..], Ok((V1Beta2, "v1beta2"))),
            (&[(new, "v1beta1_v1beta2_v1beta9")], &["v1beta1", "v1beta2"], Ok((V1Beta2, "v1beta2"))),
            (&[(new, "v1beta9_v1beta1")], &["v1beta1", "v1beta2"], Ok((V1Beta2, "v1beta1"))),
            (&[(new, "v1beta9"), (old, "v1beta1")], &["v1beta1"], Ok((V1Beta1, "v1beta1"))),
            (
                &[(new, "v1beta9"), (old, "v1beta8")],
                &["v1beta1", "v1beta2"],
                Err(
                    "CustomResourceDefinition foos.g.io serves none of the versions that its contract labels name \
                     (cluster.x-k8s.io/v1beta2: v1beta9, cluster.x-k8s.io/v1beta1: v1beta8); it serves v1beta1, v1beta2: \
                     its provider must serve one of them, or correct the label",
                ),
            ),
            (
                &[(new, "v1")],
                &[],
                Err(
                    "CustomResourceDefinition foos.g.io serves none of the versions that its contract labels name \
                     (cluster.x-k8s.io/v1beta2: v1); it serves no version: its provider must serve one of them, or \
                     correct the label",
                ),
            ),
            (
                &[(new, "_")],
                &["v1"],
                Err("CustomResourceDefinition foos.g.io has no label cluster.x-k8s.io/v1beta2 or \
                     cluster.x-k8s.io/v1beta1: its provider must set one to the API versions that implement the contract"),
            ),
        ] {
            let picked = pick_served_version("foos.g.io", &labels(given), served);
            let picked = picked.map(|it| (it.contract, it.version)).map_err(|error| error.to_string());
            let expected = expected.map(|(contract, version)| (contract, version.to_owned()));
            assert_eq!(picked, expected.map_err(str::to_owned), "{given:?} {served:?}");
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
