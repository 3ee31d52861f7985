//! Which providers are to be installed.

use capstan_api::{names::CORE_PROVIDER, provider::ProviderType};
use capstan_repository::{InvalidProviderArgument, ProviderArgument};

use crate::release::Wanted;
use capstan_management::inventory::{Installed, Inventory};

/// Stands for no provider of a type.
pub const NONE: &str = "-";
/// The bootstrap and control plane provider of a first installation.
const KUBEADM: &str = "kubeadm";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The providers, as `name`, `name:version` or [`NONE`].
    pub providers: Vec<(ProviderType, String)>,
    /// Where all of them go; where their releases say if there is none.
    pub target_namespace: Option<String>,
    /// The only namespace that they look at; all if there is none.
    pub watching_namespace: Option<String>,
    /// Whether ClusterRoles and ClusterRoleBindings get the target namespace as a prefix.
    pub rbac_prefix: bool,
}

/// One provider that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The part that it plays.
    pub kind: ProviderType,
    /// Its name.
    pub name: String,
    /// Its version; the latest if there is none.
    pub version: Option<String>,
}

impl Asked {
    /// The provider's label.
    pub fn label(&self) -> String {
        self.kind.label(&self.name)
    }

    /// What to prepare for it.
    pub(super) fn wanted<'a>(&'a self, request: &'a Request) -> Wanted<'a> {
        Wanted {
            kind: self.kind,
            name: &self.name,
            version: self.version.as_deref(),
            target_namespace: request.target_namespace.as_deref(),
            watching_namespace: request.watching_namespace.as_deref(),
            rbac_prefix: request.rbac_prefix,
        }
    }

    /// The instance that makes it needless: the same version where it is to go.
    pub(super) fn installed<'a>(
        &self,
        version: Option<&str>,
        target_namespace: Option<&str>,
        inventory: &'a Inventory,
    ) -> Option<&'a Installed> {
        inventory.providers.iter().find(|it| {
            it.kind == self.kind
                && it.name == self.name
                && version == Some(it.version.as_str())
                && target_namespace.is_none_or(|namespace| namespace == it.namespace)
        })
    }
}

/// A request that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// A provider's name is none.
    #[error(transparent)]
    Argument(#[from] InvalidProviderArgument),
    /// There would be no core provider.
    #[error("the core provider cannot be left out: none is installed, and the others cannot do without")]
    NoCore,
    /// One provider in two versions.
    #[error("provider {label} is asked for twice: as {} and as {}", told(first.as_deref()), told(second.as_deref()))]
    Twice {
        /// Its label.
        label: String,
        /// The version that was asked for first.
        first: Option<String>,
        /// The other version.
        second: Option<String>,
    },
}

fn told(version: Option<&str>) -> &str {
    version.unwrap_or("the latest version")
}

impl QueueError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Argument(_) => "write NAME or NAME:VERSION, e.g. aws:v2.9.1",
            Self::NoCore => "leave --core out for cluster-api, or name another one",
            Self::Twice { .. } => "name one version of it",
        }
        .to_owned()
    }
}

/// The providers to install by type, with those that a first installation has by default.
pub fn asked(given: &[(ProviderType, String)], first: bool) -> Result<Vec<Asked>, QueueError> {
    let mut queue: Vec<Asked> = Vec::new();
    for kind in ProviderType::ALL {
        let mut names: Vec<&str> = given.iter().filter(|it| it.0 == kind).map(|it| it.1.as_str()).collect();
        names.retain(|it| !it.is_empty());
        if kind == ProviderType::Core && first && names.contains(&NONE) {
            return Err(QueueError::NoCore);
        }
        if names.is_empty() && first {
            names.extend(default_of(kind));
        }
        for name in names.into_iter().filter(|it| *it != NONE) {
            let ProviderArgument { name, version } = ProviderArgument::parse(name)?;
            let same = queue.iter().find(|it| it.kind == kind && it.name == name);
            match same {
                None => queue.push(Asked { kind, name, version }),
                Some(same) if same.version == version => {}
                Some(same) => {
                    let (label, first) = (same.label(), same.version.clone());
                    return Err(QueueError::Twice { label, first, second: version });
                }
            }
        }
    }
    Ok(queue)
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

    fn ask(given: &[(ProviderType, &str)], first: bool) -> Result<Vec<String>, String> {
        let given: Vec<_> = given.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect();
        let told = |it: Asked| it.version.as_ref().map_or(it.label(), |v| format!("{}:{v}", it.label()));
        asked(&given, first).map(|it| it.into_iter().map(told).collect()).map_err(|it| it.to_string())
    }

    #[test]
    fn a_first_installation_has_core_and_kubeadm_unless_they_are_turned_down() {
        let all = ["cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"].map(str::to_owned);
        assert_eq!(ask(&[], true).unwrap(), all);
        assert_eq!(ask(&[(Core, "")], true).unwrap(), all);
        assert_eq!(ask(&[], false).unwrap(), <[String; 0]>::default());
        for (given, first, expected) in [
            (&[(Bootstrap, "-"), (ControlPlane, "-")][..], true, &["cluster-api"][..]),
            (&[(Core, "-"), (Infrastructure, "a")], false, &["infrastructure-a"]),
            (
                &[(Ipam, "i:v1"), (Core, "mine:v2"), (Bootstrap, "-"), (ControlPlane, "k")],
                true,
                &["mine:v2", "control-plane-k", "ipam-i:v1"],
            ),
            (
                &[(Infrastructure, "a"), (Infrastructure, "b"), (Infrastructure, "a")],
                false,
                &["infrastructure-a", "infrastructure-b"],
            ),
        ] {
            assert_eq!(ask(given, first).unwrap(), expected, "{given:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (given, words) in [
            (&[(Core, "-")][..], "cannot be left out"),
            (&[(Infrastructure, "a:v1"), (Infrastructure, "a:v2")], "as v1 and as v2"),
            (&[(Infrastructure, "a"), (Infrastructure, "a:v2")], "as the latest version and as v2"),
            (&[(Infrastructure, "a:")], "a:"),
        ] {
            let error = ask(given, true).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
