//! Which version each provider can go to, for each contract that core can speak.

use std::collections::BTreeSet;

use capstan_api::{
    contract::{compatible_with, is_supported},
    provider::ProviderType,
};

use super::{
    CertManagerPlan, UpgradeError,
    available::{AvailableVersions, Candidate, look},
    certificates, rules,
};
use crate::{
    catalog::CertManagerPolicy,
    release::{Releases, unlabelled},
};
use capstan_management::{
    ManagementCluster,
    contract::installed_core_contract,
    inventory::{Installed, Inventory},
};

/// What can be upgraded.
#[derive(Debug)]
pub struct AvailableUpgrades {
    /// What becomes of cert-manager.
    pub cert_manager: CertManagerPlan,
    /// The upgrades of each contract, by its name.
    pub contracts: Vec<ContractUpgrades>,
    /// What is wrong with repositories and releases; it stops no other provider's upgrade.
    pub warnings: Vec<UpgradeWarning>,
}

/// The newest versions that go together under one contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractUpgrades {
    /// The contract.
    pub contract: String,
    /// All providers, by type, name and namespace.
    pub items: Vec<Item>,
}

/// What becomes of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The provider as it is installed.
    pub provider: Installed,
    /// What it can be upgraded to.
    pub next: Next,
}

/// What a provider can be upgraded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This version.
    Version(String),
    /// Nothing newer.
    UpToDate,
    /// Its repository cannot tell.
    Unknown,
}

/// Something that a user should know about a provider's releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeWarning {
    /// The provider's label.
    pub label: String,
    /// What was found, and what comes of it.
    pub text: String,
}

impl ContractUpgrades {
    /// Whether there is anything to upgrade.
    pub fn has_upgrades(&self) -> bool {
        self.items.iter().any(|it| matches!(it.next, Next::Version(_)))
    }

    /// Whether it can be applied: we must speak the contract.
    pub fn is_supported(&self) -> bool {
        is_supported(&self.contract)
    }

    /// Whether it takes more than one step.
    pub fn is_too_far(&self) -> bool {
        too_far(self).next().is_some()
    }
}

/// Asks all repositories for every contract that core can go to.
pub async fn available(
    cluster: &ManagementCluster,
    inventory: &Inventory,
    releases: &Releases<'_>,
    cert_manager: &CertManagerPolicy,
) -> Result<AvailableUpgrades, UpgradeError> {
    rules::core_of(&inventory.providers)?;
    let certificates =
        async { certificates::plan(cluster, certificates::fetch(cert_manager).await, None).await };
    let (candidates, spoken, certificates) =
        futures::join!(look(releases, &inventory.providers), installed_core_contract(cluster), certificates);
    let (cert_manager, warning) = certificates?;
    let contracts = decide(&candidates, spoken?.as_deref());
    let mut warnings: Vec<UpgradeWarning> = warning.into_iter().chain(warnings(&candidates)).collect();
    warnings.extend(contracts.iter().flat_map(too_far));
    Ok(AvailableUpgrades { cert_manager, contracts, warnings })
}

/// The upgrades for all contracts that core can go to. Where its repository cannot tell, that is the one it speaks.
fn decide(candidates: &[Candidate], spoken: Option<&str>) -> Vec<ContractUpgrades> {
    let core = candidates.iter().find(|it| it.provider.kind == ProviderType::Core);
    let available = core.and_then(|it| it.available.as_ref().ok());
    let current = spoken.or(available.and_then(|it| it.contract.as_deref()));
    let contracts: BTreeSet<&str> =
        available.into_iter().flat_map(|it| &it.contracts).map(String::as_str).chain(current).collect();
    let is_shown = |contract: &&str| Some(*contract) == current || is_whole(candidates, contract);
    contracts.into_iter().filter(is_shown).map(|contract| upgrades_for(candidates, contract)).collect()
}

/// The plan for one contract, whether or not every provider can follow.
pub(super) fn upgrades_for(candidates: &[Candidate], contract: &str) -> ContractUpgrades {
    let mut items: Vec<Item> = candidates
        .iter()
        .map(|it| Item { provider: it.provider.clone(), next: next(it, contract) })
        .collect();
    items.sort_by(|a, b| order(&a.provider).cmp(&order(&b.provider)));
    ContractUpgrades { contract: contract.to_owned(), items }
}

fn order(provider: &Installed) -> (&str, String, &str) {
    (provider.kind.as_str(), provider.label(), &provider.namespace)
}

fn next(candidate: &Candidate, contract: &str) -> Next {
    match &candidate.available {
        Err(_) => Next::Unknown,
        Ok(available) => {
            let version = newest(candidate.provider.kind, available, contract);
            version.map_or(Next::UpToDate, Next::Version)
        }
    }
}

/// Core goes to the contract itself; the others may stay with one that is compatible.
fn newest(kind: ProviderType, available: &AvailableVersions, contract: &str) -> Option<String> {
    let contracts = if kind == ProviderType::Core { vec![contract] } else { compatible_with(contract) };
    available.next(&contracts).map(ToString::to_string)
}

/// Whether all providers can go to a contract together. Those that cannot be asked are not held against it.
fn is_whole(candidates: &[Candidate], contract: &str) -> bool {
    candidates.iter().all(|it| {
        let Ok(available) = &it.available else { return true };
        let speaks_it =
            || available.contract.as_deref().is_some_and(|it| compatible_with(contract).contains(&it));
        let may_stay = it.provider.kind != ProviderType::Core && speaks_it();
        newest(it.provider.kind, available, contract).is_some() || may_stay
    })
}

/// What is wrong with repositories and releases.
pub(super) fn warnings(candidates: &[Candidate]) -> Vec<UpgradeWarning> {
    let mut warnings = Vec::new();
    for candidate in candidates {
        let label = candidate.provider.label();
        let mut warn = |text: String| warnings.push(UpgradeWarning { label: label.clone(), text });
        match &candidate.available {
            Err(error) => {
                warn(format!("cannot determine available versions: {}", unlabelled(&label, error)));
            }
            Ok(available) => {
                for (version, reason) in &available.passed_over {
                    warn(format!("{version} is skipped: {reason}"));
                }
                if available.contract.is_none() {
                    warn(format!(
                        "no metadata name the contract of {}, which is installed",
                        candidate.provider.version
                    ));
                }
            }
        }
    }
    warnings
}

/// Upgrades of a plan that leave out too many versions for one step.
fn too_far(plan: &ContractUpgrades) -> impl Iterator<Item = UpgradeWarning> {
    plan.items.iter().filter_map(|item| {
        let Next::Version(version) = &item.next else { return None };
        let farthest = rules::farthest(&item.provider, version)?;
        let label = item.provider.label();
        let text =
            format!("{version} cannot be reached in one step: upgrade to a release of {farthest} first");
        Some(UpgradeWarning { label, text })
    })
}

#[cfg(test)]
mod tests {
    use super::{super::available::tests::available, *};

    type Releases = &'static [(&'static str, &'static str)];
    /// Version and releases of core and of an infrastructure provider, and the upgrades: contract, core, infrastructure.
    type Case = (
        &'static str,
        (&'static str, Releases),
        (&'static str, Releases),
        &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
    );

    fn candidate(kind: ProviderType, name: &str, (version, releases): (&str, Releases)) -> Candidate {
        Candidate { provider: installed(kind, name, version), available: Ok(available(version, releases).0) }
    }

    fn installed(kind: ProviderType, name: &str, version: &str) -> Installed {
        Installed {
            namespace: format!("{name}-system"),
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    fn next_of(plan: &ContractUpgrades, kind: ProviderType) -> Option<&str> {
        match &plan.items.iter().find(|it| it.provider.kind == kind).unwrap().next {
            Next::Version(version) => Some(version),
            _ => None,
        }
    }

    fn told(upgrades: &[ContractUpgrades]) -> Vec<(&str, Option<&str>, Option<&str>)> {
        let row = |it| {
            let plan: &ContractUpgrades = it;
            let [core, infrastructure] =
                [ProviderType::Core, ProviderType::Infrastructure].map(|kind| next_of(plan, kind));
            (plan.contract.as_str(), core, infrastructure)
        };
        upgrades.iter().map(row).collect()
    }

    #[test]
    fn providers_go_to_the_newest_version_of_each_contract_together() {
        let cases: &[Case] = &[
            (
                "within the current contract",
                ("v1.0.0", &[("v1.0.0", ""), ("v1.0.1", "1.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.0", ""), ("v2.0.1", "2.0=v1beta2")]),
                &[("v1beta2", Some("v1.0.1"), Some("v2.0.1"))],
            ),
            (
                "within the current contract and one compatible with it",
                ("v1.0.0", &[("v1.0.0", ""), ("v1.0.1", "1.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.0", ""), ("v2.0.1", "2.0=v1beta1")]),
                &[("v1beta2", Some("v1.0.1"), Some("v2.0.1"))],
            ),
            (
                "pre-releases are ignored",
                ("v1.0.0", &[("v1.0.0", ""), ("v1.0.1", "1.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1beta2"), ("v3.0.0-alpha.0", "2.0=v1beta2 3.0=v1beta2")]),
                &[("v1beta2", Some("v1.0.1"), Some("v2.0.1"))],
            ),
            (
                "from a contract that is no longer supported",
                ("v1.0.0", &[("v1.0.1", "1.0=v1alpha4"), ("v2.0.0", "1.0=v1alpha4 2.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1alpha4"), ("v3.0.0", "2.0=v1alpha4 3.0=v1beta2")]),
                &[("v1alpha4", Some("v1.0.1"), Some("v2.0.1")), ("v1beta2", Some("v2.0.0"), Some("v3.0.0"))],
            ),
            (
                "infrastructure stays with a compatible contract",
                ("v1.0.0", &[("v1.0.1", "1.0=v1beta1"), ("v2.0.0", "1.0=v1beta1 2.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1beta1"), ("v3.0.0", "2.0=v1beta1 3.0=v1beta1")]),
                &[("v1beta1", Some("v1.0.1"), Some("v3.0.0")), ("v1beta2", Some("v2.0.0"), Some("v3.0.0"))],
            ),
            (
                "a contract that is not spoken yet",
                ("v1.0.0", &[("v1.0.1", "1.0=v1beta2"), ("v2.0.0", "1.0=v1beta2 2.0=v1beta9")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1beta2"), ("v3.0.0", "2.0=v1beta2 3.0=v1beta9")]),
                &[("v1beta2", Some("v1.0.1"), Some("v2.0.1")), ("v1beta9", Some("v2.0.0"), Some("v3.0.0"))],
            ),
            (
                "a partial upgrade is shown for the current contract",
                ("v1.0.0", &[("v1.0.0", "1.0=v1beta2")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1beta2")]),
                &[("v1beta2", None, Some("v2.0.1"))],
            ),
            (
                "no upgrade to a contract that infrastructure cannot follow to",
                ("v1.0.0", &[("v1.0.1", "1.0=v1beta2"), ("v2.0.0", "1.0=v1beta2 2.0=v1beta9")]),
                ("v2.0.0", &[("v2.0.0", "2.0=v1beta2")]),
                &[("v1beta2", Some("v1.0.1"), None)],
            ),
            (
                "no upgrade to a contract that core has not released yet",
                ("v1.0.0", &[("v1.0.1", "1.0=v1beta1 1.1=v1beta2")]),
                ("v2.0.0", &[("v2.0.1", "2.0=v1beta1")]),
                &[("v1beta1", Some("v1.0.1"), Some("v2.0.1"))],
            ),
            // Upstream hides this plan, and applies it when told to.
            (
                "what is installed may be good for the new contract already",
                (
                    "v1.9.0",
                    &[("v1.10.0", "1.9=v1beta1 1.10=v1beta1"), ("v1.13.6", "1.9=v1beta1 1.13=v1beta2")],
                ),
                ("v1.10.0", &[("v1.10.0", "1.10=v1beta1")]),
                &[("v1beta1", Some("v1.10.0"), None), ("v1beta2", Some("v1.13.6"), None)],
            ),
        ];
        for (name, core, infrastructure, expected) in cases {
            let candidates = [
                candidate(ProviderType::Infrastructure, "infra", *infrastructure),
                candidate(ProviderType::Core, "cluster-api", *core),
            ];
            assert_eq!(told(&decide(&candidates, None)), *expected, "{name}");
        }
    }

    fn unreachable(kind: ProviderType, name: &str) -> Candidate {
        let error = capstan_repository::MetadataError::Empty { origin: "nowhere".to_owned() };
        Candidate { provider: installed(kind, name, "v1.0.0"), available: Err(Box::new(error.into())) }
    }

    #[test]
    fn who_cannot_be_asked_stops_nobody_else() {
        let releases: Releases = &[("v1.0.1", "1.0=v1beta1"), ("v1.1.0", "1.0=v1beta1 1.1=v1beta2")];
        let core = candidate(ProviderType::Core, "cluster-api", ("v1.0.0", releases));
        let candidates = [core, unreachable(ProviderType::Infrastructure, "infra")];
        let upgrades = decide(&candidates, None);
        assert_eq!(told(&upgrades), [("v1beta1", Some("v1.0.1"), None), ("v1beta2", Some("v1.1.0"), None)]);
        assert_eq!(upgrades[1].items[1].next, Next::Unknown);
        let warnings = warnings(&candidates);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].label == "infrastructure-infra" && warnings[0].text.contains("nowhere"));

        // Without core's repository there is still the contract that the cluster speaks.
        let infrastructure = candidate(ProviderType::Infrastructure, "infra", ("v1.0.0", releases));
        let candidates = [unreachable(ProviderType::Core, "cluster-api"), infrastructure];
        assert_eq!(told(&decide(&candidates, Some("v1beta1"))), [("v1beta1", None, Some("v1.0.1"))]);
        assert_eq!(decide(&candidates, None), []);
    }

    #[test]
    fn rows_are_in_upstreams_order() {
        let kinds =
            [ProviderType::Core, ProviderType::Infrastructure, ProviderType::Ipam, ProviderType::Addon];
        let candidates: Vec<_> =
            kinds.map(|it| candidate(it, "any", ("v1.0.0", &[("v1.0.0", "1.0=v1beta2")]))).into();
        let plan = upgrades_for(&candidates, "v1beta2");
        let order: Vec<_> = plan.items.iter().map(|it| it.provider.kind).collect();
        assert_eq!(
            order,
            [ProviderType::Addon, ProviderType::Core, ProviderType::Ipam, ProviderType::Infrastructure]
        );
        assert!(!plan.has_upgrades() && plan.is_supported());
    }
}
