//! What may be upgraded to what.

use capstan_api::{
    contract::{ContractVersion, compatible_with},
    provider::ProviderType,
};
use capstan_repository::{NotAVersion, Version};

use super::{UpgradeError, UpgradeProblem};
use crate::{
    goal::{ProviderGoal, VersionGoal},
    instance,
};
use capstan_management::inventory::Installed;

/// How many minor versions core and kubeadm can go on at once.
pub(super) const MOST_MINORS: u64 = 3;
/// Before this release there was no such limit.
const LIMITED_SINCE: (u64, u64) = (1, 10);

/// A provider, and where it is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) provider: Installed,
    pub(super) version: String,
}

/// What a provider speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Speaker {
    pub(super) provider: Installed,
    pub(super) version: String,
    pub(super) contract: Option<String>,
}

/// The contracts that we speak, in words.
pub(super) fn spoken() -> String {
    ContractVersion::PREFERENCE.map(ContractVersion::as_str).join(" and ")
}

/// The one core provider; of several instances the newest, whose CRDs count.
pub(super) fn core_of(providers: &[Installed]) -> Result<&Installed, UpgradeError> {
    if providers.is_empty() {
        return Err(UpgradeError::NothingInstalled);
    }
    let cores = || providers.iter().filter(|it| it.kind == ProviderType::Core);
    match instance::newest(cores()) {
        Some(core) if cores().all(|it| it.name == core.name) => Ok(core),
        _ => {
            let found = cores().map(|it| format!("{}/{}", it.namespace, it.label())).collect();
            Err(UpgradeError::Cores { found })
        }
    }
}

/// The installed providers that are named, in the order in which they are to be upgraded.
pub(super) fn choose<'a>(
    providers: &[Installed],
    goals: &'a [ProviderGoal],
) -> Result<Vec<(Installed, &'a VersionGoal)>, UpgradeError> {
    let mut chosen: Vec<(Installed, &VersionGoal)> = Vec::new();
    for goal in goals {
        let label = goal.label();
        let is_meant = |it: &&Installed| {
            it.kind == goal.kind
                && it.name == goal.name
                && goal.namespace.as_ref().is_none_or(|namespace| *namespace == it.namespace)
        };
        let meant: Vec<&Installed> = providers.iter().filter(is_meant).collect();
        let provider = match meant.as_slice() {
            [provider] => *provider,
            [] => return Err(UpgradeError::NotInstalled { label, namespace: goal.namespace.clone() }),
            several => {
                let namespaces = several.iter().map(|it| it.namespace.clone()).collect();
                return Err(UpgradeError::SeveralInstances { label, namespaces });
            }
        };
        if chosen.iter().any(|it| it.0 == *provider) {
            return Err(UpgradeError::NamedTwice { label });
        }
        chosen.push((provider.clone(), &goal.version));
    }
    chosen.sort_by(|a, b| (a.0.kind, &a.0.name).cmp(&(b.0.kind, &b.0.name)));
    Ok(chosen)
}

/// Which way a provider is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Nowhere,
    Down,
}

pub(super) fn direction(target: &Target) -> Result<Direction, NotAVersion> {
    let installed = Version::parse(&target.provider.version)?;
    let version = Version::parse(&target.version)?;
    Ok(if version.is_newer_than(&installed) {
        Direction::Up
    } else if installed.is_newer_than(&version) {
        Direction::Down
    } else if version.is_same_release(&installed) {
        Direction::Nowhere
    } else {
        // Another build of the same version.
        Direction::Up
    })
}

/// Whether a step is too wide.
pub(super) fn too_far(target: &Target) -> Option<UpgradeProblem> {
    let farthest = farthest(&target.provider, &target.version)?;
    Some(UpgradeProblem::TooFar {
        label: target.provider.label(),
        installed: target.provider.version.clone(),
        version: target.version.clone(),
        farthest,
    })
}

/// The last series that a provider can go to in one step, if a version is beyond it.
pub(super) fn farthest(provider: &Installed, version: &str) -> Option<String> {
    let is_limited = match provider.kind {
        ProviderType::Core => true,
        ProviderType::Bootstrap | ProviderType::ControlPlane => provider.name == "kubeadm",
        _ => false,
    };
    let installed = Version::parse(&provider.version).ok().filter(|_| is_limited)?;
    let version = Version::parse(version).ok()?;
    let farthest = installed.minor() + MOST_MINORS;
    let is_too_far = (installed.major(), installed.minor()) >= LIMITED_SINCE
        && version.major() == installed.major()
        && version.minor() > farthest;
    is_too_far.then(|| format!("v{}.{farthest}", installed.major()))
}

/// Providers that core would not understand afterwards, among those that are upgraded and those that stay.
///
/// A provider that stays and whose contract is unknown is trusted as long as core keeps its contract.
pub(super) fn check_contracts(
    core: &str,
    core_before: Option<&str>,
    targets: &[Speaker],
    others: &[Speaker],
) -> Vec<UpgradeProblem> {
    let compatible = compatible_with(core);
    let incompatible = targets.iter().filter_map(|target| {
        let contract = target.contract.as_deref().filter(|it| !compatible.contains(it))?;
        Some(UpgradeProblem::IncompatibleTarget {
            label: target.provider.label(),
            version: target.version.clone(),
            contract: contract.to_owned(),
            core: core.to_owned(),
        })
    });
    let is_understood = |it: &&Speaker| match it.contract.as_deref() {
        Some(contract) => compatible.contains(&contract),
        None => core_before == Some(core),
    };
    let left_behind = others.iter().filter(|it| !is_understood(it)).map(|left| UpgradeProblem::LeftBehind {
        provider: Box::new(left.provider.clone()),
        contract: left.contract.clone(),
        core: core.to_owned(),
    });
    incompatible.chain(left_behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(kind: ProviderType, name: &str, version: &str) -> Installed {
        Installed {
            namespace: format!("{}-system", kind.label(name)),
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    fn target(kind: ProviderType, name: &str, from: &str, to: &str) -> Target {
        Target { provider: installed(kind, name, from), version: to.to_owned() }
    }

    #[test]
    fn core_and_kubeadm_skip_no_more_than_three_versions_from_v1_10_on() {
        use ProviderType::{Bootstrap, ControlPlane, Core, Infrastructure};
        for (kind, name, from, to, farthest) in [
            (Core, "cluster-api", "v1.10.0", "v1.13.6", None),
            (Core, "cluster-api", "v1.10.0", "v1.14.0", Some("v1.13")),
            (Core, "cluster-api", "v1.11.3", "v1.15.0", Some("v1.14")),
            (Core, "cluster-api", "v1.9.9", "v1.14.0", None),
            (Core, "cluster-api", "v1.10.0-rc.0", "v1.14.0", Some("v1.13")),
            (Core, "cluster-api", "v1.10.0", "v2.0.0", None),
            (Bootstrap, "kubeadm", "v1.10.0", "v1.14.0", Some("v1.13")),
            (ControlPlane, "kubeadm", "v1.10.0", "v1.14.0", Some("v1.13")),
            (Bootstrap, "talos", "v1.10.0", "v1.14.0", None),
            (Infrastructure, "kubeadm", "v1.10.0", "v1.14.0", None),
        ] {
            let target = target(kind, name, from, to);
            let found = too_far(&target).map(|it| match it {
                UpgradeProblem::TooFar { farthest, .. } => farthest,
                other => panic!("{other}"),
            });
            assert_eq!(found.as_deref(), farthest, "{target:?}");
        }
    }

    #[test]
    fn versions_go_up_down_or_nowhere() {
        for (from, to, expected) in [
            ("v1.0.0", "v1.0.1", Direction::Up),
            ("v1.0.0", "1.0.0", Direction::Nowhere),
            ("v1.0.0-rc.1", "v1.0.0", Direction::Up),
            ("v1.1.0", "v1.0.9", Direction::Down),
            ("v1.0.0+a", "v1.0.0+b", Direction::Up),
        ] {
            let target = target(ProviderType::Core, "cluster-api", from, to);
            assert_eq!(direction(&target).unwrap(), expected, "{from} {to}");
        }
        assert!(direction(&target(ProviderType::Core, "c", "v1.0.0", "main")).is_err());
    }

    fn goal(kind: ProviderType, name: &str, namespace: Option<&str>) -> ProviderGoal {
        ProviderGoal {
            kind,
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            version: VersionGoal::Exact("v1.1.0".to_owned()),
        }
    }

    #[test]
    fn what_is_named_must_be_one_installed_instance_and_named_once() {
        use ProviderType::{Bootstrap, Core, Infrastructure};
        let other =
            Installed { namespace: "other".to_owned(), ..installed(Infrastructure, "twice", "v1.0.0") };
        let providers = [
            installed(Core, "cluster-api", "v1.0.0"),
            installed(Bootstrap, "kubeadm", "v1.0.0"),
            installed(Infrastructure, "twice", "v1.0.0"),
            other,
        ];
        let bootstrap = goal(Bootstrap, "kubeadm", Some("bootstrap-kubeadm-system"));
        let core = goal(Core, "cluster-api", None);
        let one = goal(Infrastructure, "twice", Some("other"));
        let goals = [one, bootstrap, core.clone()];
        let chosen = choose(&providers, &goals).unwrap();
        let labels: Vec<_> = chosen.iter().map(|it| it.0.label()).collect();
        assert_eq!(labels, ["cluster-api", "bootstrap-kubeadm", "infrastructure-twice"]);
        assert_eq!(chosen[2].0.namespace, "other");
        for (goals, expected) in [
            (vec![core.clone(), core], "provider cluster-api is named more than once"),
            (vec![goal(Infrastructure, "aws", None)], "provider infrastructure-aws is not installed"),
            (
                vec![goal(Bootstrap, "kubeadm", Some("elsewhere"))],
                "provider bootstrap-kubeadm is not installed in namespace elsewhere",
            ),
            (
                vec![goal(Infrastructure, "twice", None)],
                "in namespaces infrastructure-twice-system and other",
            ),
        ] {
            let message = choose(&providers, &goals).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn there_is_one_core() {
        let core = installed(ProviderType::Core, "cluster-api", "v1.0.0");
        let aws = installed(ProviderType::Infrastructure, "aws", "v1.0.0");
        assert_eq!(core_of(&[aws.clone(), core.clone()]).unwrap(), &core);
        let newer =
            Installed { namespace: "second".to_owned(), version: "v1.1.0".to_owned(), ..core.clone() };
        assert_eq!(core_of(&[core.clone(), newer.clone()]).unwrap(), &newer);
        let other = installed(ProviderType::Core, "other", "v1.0.0");
        for (providers, expected) in [
            (vec![], "no providers are installed"),
            (vec![aws], "but there are none"),
            (vec![core, other], "but there are cluster-api-system/cluster-api, other-system/other"),
        ] {
            let message = core_of(&providers).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    /// Core's contract, before and after; the others' contracts; which of them are upgraded; who is to blame.
    type Case<'a> = ((&'a str, &'a str), Option<&'a str>, Option<&'a str>, Option<&'a str>);

    #[test]
    fn everybody_understands_everybody_afterwards() {
        let speaker = |name: &str, contract: Option<&str>| Speaker {
            provider: installed(ProviderType::Infrastructure, name, "v1.0.0"),
            version: "v1.0.0".to_owned(),
            contract: contract.map(str::to_owned),
        };
        let cases: [Case<'_>; 7] = [
            (("v1beta1", "v1beta2"), Some("v1beta2"), Some("v1beta1"), None),
            (("v1beta1", "v1beta2"), Some("v1beta1"), Some("v1beta2"), None),
            (
                ("v1beta2", "v1beta2"),
                Some("v1alpha4"),
                Some("v1beta1"),
                Some("infrastructure-goes v1.0.0 speaks"),
            ),
            (
                ("v1beta1", "v1beta1"),
                Some("v1beta2"),
                Some("v1beta1"),
                Some("infrastructure-goes v1.0.0 speaks"),
            ),
            (
                ("v1alpha4", "v1beta2"),
                Some("v1beta2"),
                Some("v1alpha4"),
                Some("infrastructure-stays v1.0.0 speaks"),
            ),
            (("v1beta2", "v1beta2"), Some("v1beta2"), None, None),
            (("v1beta1", "v1beta2"), Some("v1beta2"), None, Some("an unknown contract")),
        ];
        for ((before, core), goes, stays, expected) in cases {
            let (targets, others) = ([speaker("goes", goes)], [speaker("stays", stays)]);
            let problems = check_contracts(core, Some(before), &targets, &others);
            match (expected, problems.as_slice()) {
                (None, []) => {}
                (Some(part), [problem]) => assert!(problem.to_string().contains(part), "{problem}"),
                (_, problems) => panic!("{core} {goes:?} {stays:?}: {problems:?}"),
            }
        }
    }
}
