//! Which providers the flags of `init` ask for.

use capstan_api::{names::CORE_PROVIDER, provider::ProviderType};
use capstan_lifecycle::goal::{ProviderGoal, VersionGoal};
use capstan_repository::ProviderArgument;

use crate::error::CommandError;

/// Stands for no provider of a type.
const NONE: &str = "-";
/// The bootstrap and control plane provider of a first installation.
const KUBEADM: &str = "kubeadm";

/// The provider that `name[:version]` means.
pub(crate) fn goal(kind: ProviderType, argument: &str) -> Result<ProviderGoal, CommandError> {
    let ProviderArgument { name, version } = ProviderArgument::parse(argument)?;
    Ok(ProviderGoal { kind, name, version: VersionGoal::from(version), namespace: None })
}

/// The providers that are named, by type; a first installation has core and kubeadm unless others are named.
pub(crate) fn install_goals(
    named: &[(ProviderType, String)],
    is_first: bool,
    namespace: Option<&str>,
) -> Result<Vec<ProviderGoal>, CommandError> {
    let mut goals = Vec::new();
    for kind in ProviderType::ALL {
        let mut names: Vec<&str> = named.iter().filter(|it| it.0 == kind).map(|it| it.1.as_str()).collect();
        names.retain(|it| !it.is_empty());
        if names.is_empty() && is_first {
            names.extend(default_of(kind));
        }
        for name in names.into_iter().filter(|it| *it != NONE) {
            let namespace = namespace.map(str::to_owned);
            goals.push(ProviderGoal { namespace, ..goal(kind, name)? });
        }
    }
    Ok(goals)
}

fn default_of(kind: ProviderType) -> Option<&'static str> {
    match kind {
        ProviderType::Core => Some(CORE_PROVIDER),
        ProviderType::Bootstrap | ProviderType::ControlPlane => Some(KUBEADM),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ProviderType::{Bootstrap, ControlPlane, Core, Infrastructure, Ipam};

    use super::*;

    fn ask(named: &[(ProviderType, &str)], is_first: bool) -> Result<Vec<String>, String> {
        let named: Vec<_> = named.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect();
        let text = |it: &ProviderGoal| match it.version.exact() {
            Some(version) => format!("{}:{version}", it.label()),
            None => it.label(),
        };
        let goals = install_goals(&named, is_first, None).map_err(|it| it.message)?;
        Ok(goals.iter().map(text).collect())
    }

    #[test]
    fn a_first_installation_has_core_and_kubeadm_unless_they_are_turned_down() {
        let all = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"].map(str::to_owned);
        assert_eq!(ask(&[], true).unwrap(), all);
        assert_eq!(ask(&[(Core, "")], true).unwrap(), all);
        assert_eq!(ask(&[], false).unwrap(), <[String; 0]>::default());
        for (named, is_first, expected) in [
            (&[(Bootstrap, "-"), (ControlPlane, "-")][..], true, &["cluster-api"][..]),
            (&[(Core, "-"), (Infrastructure, "a")], false, &["infrastructure-a"]),
            (
                &[(Ipam, "i:v1"), (Core, "mine:v2"), (Bootstrap, "-"), (ControlPlane, "k")],
                true,
                &["mine:v2", "control-plane-k", "ipam-i:v1"],
            ),
            (
                &[(Infrastructure, "a"), (Infrastructure, "b")],
                false,
                &["infrastructure-a", "infrastructure-b"],
            ),
        ] {
            assert_eq!(ask(named, is_first).unwrap(), expected, "{named:?}");
        }
        assert!(ask(&[(Infrastructure, "a:")], false).unwrap_err().contains("a:"));
    }
}
