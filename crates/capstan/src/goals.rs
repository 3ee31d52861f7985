//! The providers that flags ask for.

use capstan_api::{admission::rules::is_dns_label, names::CORE_PROVIDER, provider::ProviderType};
use capstan_lifecycle::goal::{ProviderGoal, VersionGoal};
use capstan_repository::LATEST;

use crate::error::CommandError;

/// Stands for no provider of a type.
const NONE: &str = "-";
/// The bootstrap and control plane provider of a first installation.
const KUBEADM: &str = "kubeadm";

/// What a user writes for a provider: `name[:version]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderArgument {
    /// The name in lower case.
    pub(crate) name: String,
    /// The version, which is not checked here.
    pub(crate) version: Option<String>,
}

impl ProviderArgument {
    /// Reads an argument.
    pub(crate) fn parse(argument: &str) -> Result<Self, CommandError> {
        let fail = |problem: &str| {
            let form = "Provider name should be in the form name[:version]";
            Err(CommandError::plain(format!("invalid provider name {argument:?}. {form}: {problem}"))
                .hint("write NAME or NAME:VERSION, e.g. aws:v2.9.1"))
        };
        let (name, version) = match argument.split_once(':') {
            Some((name, version)) => (name, Some(version)),
            None => (argument, None),
        };
        if version.is_some_and(|it| it.contains(':')) {
            return fail("there is more than one colon");
        }
        if name.is_empty() {
            return fail("the name is empty");
        }
        if version == Some("") {
            return fail("the version is empty");
        }
        let name = name.to_lowercase();
        if !is_dns_label(&name) {
            return fail(
                "a name has at most 63 letters, digits and dashes, and begins and ends with a letter or digit",
            );
        }
        Ok(Self { name, version: version.map(str::to_owned) })
    }
}

/// The provider that `name[:version]` means.
pub(crate) fn goal(kind: ProviderType, argument: &str) -> Result<ProviderGoal, CommandError> {
    let ProviderArgument { name, version } = ProviderArgument::parse(argument)?;
    Ok(ProviderGoal { kind, name, version: version_goal(version), namespace: None })
}

/// The version that is meant: `latest` has its own word.
pub(crate) fn version_goal(version: Option<String>) -> VersionGoal {
    VersionGoal::from(version.filter(|it| it != LATEST))
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
        assert_eq!(ask(&[(Infrastructure, "a:latest")], false).unwrap(), ["infrastructure-a"]);
    }

    #[test]
    fn arguments_are_a_name_and_perhaps_a_version() {
        let long = "a".repeat(64);
        for (argument, expected) in [
            ("aws", Ok(("aws", None))),
            ("aws:v1.2.3", Ok(("aws", Some("v1.2.3")))),
            ("AWS:latest", Ok(("aws", Some("latest")))),
            ("my-cloud-2:main", Ok(("my-cloud-2", Some("main")))),
            ("", Err("the name is empty")),
            (":v1.2.3", Err("the name is empty")),
            ("aws:", Err("the version is empty")),
            ("aws:v1:v2", Err("more than one colon")),
            ("aws::", Err("more than one colon")),
            ("my.cloud", Err("letters, digits and dashes")),
            ("-aws", Err("letters, digits and dashes")),
            ("aws-", Err("letters, digits and dashes")),
            ("a_b", Err("letters, digits and dashes")),
            ("a b", Err("letters, digits and dashes")),
            (&long, Err("at most 63")),
        ] {
            let parsed = ProviderArgument::parse(argument);
            match (&parsed, expected) {
                (Ok(it), Ok((name, version))) => {
                    assert_eq!((it.name.as_str(), it.version.as_deref()), (name, version));
                }
                (Err(error), Err(part)) => {
                    let message = &error.message;
                    let start = format!(
                        "invalid provider name {argument:?}. Provider name should be in the form name[:version]"
                    );
                    assert!(message.starts_with(&start) && message.contains(part), "{message}");
                }
                _ => panic!("{argument}: {parsed:?}"),
            }
        }
    }
}
