//! The contract, rule by rule.
//!
//! A rule is seen either in files (CRDs, RBAC, release files) or only in a running provider.

mod bootstrap_config;
mod common;
mod control_plane;
mod infra_cluster;
mod infra_machine;
mod infra_machine_pool;
mod release;

pub use bootstrap_config::*;
pub use common::*;
pub use control_plane::*;
pub use infra_cluster::*;
pub use infra_machine::*;
pub use infra_machine_pool::*;
pub use release::*;

use serde::Serialize;

use crate::rule::{Contracts, Level, Reader, Rule};

/// The parts that a kind can play in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Role {
    /// What a Cluster's `infrastructureRef` leads to.
    InfraCluster,
    /// What a Machine's `infrastructureRef` leads to.
    InfraMachine,
    /// What a MachinePool's `infrastructureRef` leads to.
    InfraMachinePool,
    /// What a Machine's `bootstrap.configRef` leads to.
    BootstrapConfig,
    /// What a Cluster's `controlPlaneRef` leads to.
    ControlPlane,
}

impl Role {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 5] = [
        Self::InfraCluster,
        Self::InfraMachine,
        Self::InfraMachinePool,
        Self::BootstrapConfig,
        Self::ControlPlane,
    ];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InfraCluster => "InfraCluster",
            Self::InfraMachine => "InfraMachine",
            Self::InfraMachinePool => "InfraMachinePool",
            Self::BootstrapConfig => "BootstrapConfig",
            Self::ControlPlane => "ControlPlane",
        }
    }
}

/// Where it shows whether a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SeenIn {
    /// In CRDs, RBAC and release files.
    Files,
    /// Only in a provider that runs.
    RunningProvider,
}

/// A rule in the list of all rules.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The rule.
    #[serde(flatten)]
    pub rule: &'static Rule,
    /// Where it shows whether it is kept.
    pub seen_in: SeenIn,
}

/// All rules, those for all kinds first.
pub fn all() -> Vec<Listed> {
    let pages = [
        (COMMON_IN_FILES, COMMON_RUNNING),
        (&[], TEMPLATE_RUNNING),
        (INFRA_CLUSTER_IN_FILES, INFRA_CLUSTER_RUNNING),
        (INFRA_MACHINE_IN_FILES, INFRA_MACHINE_RUNNING),
        (INFRA_MACHINE_POOL_IN_FILES, INFRA_MACHINE_POOL_RUNNING),
        (BOOTSTRAP_CONFIG_IN_FILES, BOOTSTRAP_CONFIG_RUNNING),
        (CONTROL_PLANE_IN_FILES, CONTROL_PLANE_RUNNING),
    ];
    let list =
        |rules: &'static [&'static Rule], seen_in| rules.iter().map(move |&rule| Listed { rule, seen_in });
    pages
        .into_iter()
        .flat_map(|(files, running)| list(files, SeenIn::Files).chain(list(running, SeenIn::RunningProvider)))
        .collect()
}

/// The rules that bind a kind and that files cannot show.
pub fn running(role: Role) -> impl Iterator<Item = &'static Rule> {
    let own = match role {
        Role::InfraCluster => INFRA_CLUSTER_RUNNING,
        Role::InfraMachine => INFRA_MACHINE_RUNNING,
        Role::InfraMachinePool => INFRA_MACHINE_POOL_RUNNING,
        Role::BootstrapConfig => BOOTSTRAP_CONFIG_RUNNING,
        Role::ControlPlane => CONTROL_PLANE_RUNNING,
    };
    COMMON_RUNNING.iter().chain(own).copied()
}

/// The rules that bind a kind's template and that files cannot show.
pub fn running_template(role: Role) -> impl Iterator<Item = &'static Rule> {
    let bound = matches!(role, Role::InfraMachine | Role::InfraMachinePool | Role::BootstrapConfig);
    TEMPLATE_RUNNING.iter().copied().filter(move |_| bound)
}

/// Where a rule stands in the list of all rules, for sorting.
pub fn position(rule: &Rule) -> usize {
    all().iter().position(|it| it.rule.id == rule.id).unwrap_or(usize::MAX)
}

/// The address of a paragraph of the contract.
macro_rules! paragraph {
    ($page:literal, $anchor:literal) => {
        concat!("https://cluster-api.sigs.k8s.io/developer/providers/contracts/", $page, "#", $anchor)
    };
}
use paragraph;

/// A rule, with the fields in the order in which a reader asks for them.
const fn rule(
    id: &'static str,
    level: Level,
    contracts: Contracts,
    statement: &'static str,
    check: &'static str,
    otherwise: &'static str,
    link: &'static str,
) -> Rule {
    Rule { id, level, contracts, statement, check, otherwise, reader: Reader::Core, link }
}

/// A rule for release files, which clusterctl reads.
const fn release(
    id: &'static str,
    level: Level,
    statement: &'static str,
    check: &'static str,
    otherwise: &'static str,
    link: &'static str,
) -> Rule {
    Rule {
        id,
        level,
        contracts: Contracts::All,
        statement,
        check,
        otherwise,
        reader: Reader::Clusterctl,
        link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_says_all_that_it_should() {
        let rules = all();
        let names: BTreeSet<_> = rules.iter().map(|it| it.rule.id).collect();
        assert_eq!(names.len(), rules.len());
        for Listed { rule, .. } in &rules {
            for text in [rule.statement, rule.check, rule.otherwise] {
                assert!(text.len() > 10 && !text.ends_with('.'), "{}: {text:?}", rule.id);
            }
            assert!(rule.link.contains(".io/developer/providers/contracts/"), "{}", rule.id);
            let (_, anchor) = rule.link.split_once('#').unwrap();
            assert!(
                !anchor.is_empty() && anchor.chars().all(|it| it == '-' || it.is_ascii_alphanumeric()),
                "{}: {anchor}",
                rule.id
            );
        }
    }

    #[test]
    fn a_rule_can_be_had_as_json() {
        let text = serde_json::to_value(all()).unwrap();
        let ready = text.as_array().unwrap().iter().find(|it| it["id"] == "IC4").unwrap();
        assert_eq!((&ready["level"], &ready["seenIn"]), (&"MUST".into(), &"files".into()));
    }
}
