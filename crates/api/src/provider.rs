//! What a provider is called, and the part that it plays.

use std::fmt;

use crate::names::CORE_PROVIDER;

/// The part that a provider plays. The order is the one in which providers are installed and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderType {
    /// Cluster API itself.
    Core,
    /// Makes machines into nodes.
    Bootstrap,
    /// Runs control planes.
    ControlPlane,
    /// Makes machines, networks and load balancers.
    Infrastructure,
    /// Hands out IP addresses.
    Ipam,
    /// Answers runtime hooks.
    RuntimeExtension,
    /// Installs what runs on workload clusters.
    Addon,
}

impl ProviderType {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Bootstrap,
        Self::ControlPlane,
        Self::Infrastructure,
        Self::Ipam,
        Self::RuntimeExtension,
        Self::Addon,
    ];

    /// The name in configuration files and in the inventory.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "CoreProvider",
            Self::Bootstrap => "BootstrapProvider",
            Self::ControlPlane => "ControlPlaneProvider",
            Self::Infrastructure => "InfrastructureProvider",
            Self::Ipam => "IPAMProvider",
            Self::RuntimeExtension => "RuntimeExtensionProvider",
            Self::Addon => "AddonProvider",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// What its flag, its label and its components file begin with; core's label does not.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
            Self::Infrastructure => "infrastructure",
            Self::Ipam => "ipam",
            Self::RuntimeExtension => "runtime-extension",
            Self::Addon => "addon",
        }
    }

    /// The value of the provider's label, which also names its folder in a repository and its inventory object.
    pub fn label(self, name: &str) -> String {
        match self {
            Self::Core => name.to_owned(),
            other => format!("{}-{name}", other.prefix()),
        }
    }

    /// The type and the name that a label stands for.
    pub fn from_label(label: &str) -> Option<(Self, &str)> {
        if label == CORE_PROVIDER {
            return Some((Self::Core, label));
        }
        Self::ALL.into_iter().skip(1).find_map(|it| {
            let name = label.strip_prefix(it.prefix())?.strip_prefix('-')?;
            (!name.is_empty()).then_some((it, name))
        })
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_names_lead_back_to_the_type() {
        for kind in ProviderType::ALL {
            assert_eq!(ProviderType::from_name(kind.as_str()), Some(kind));
            let name = if kind == ProviderType::Core { CORE_PROVIDER } else { "some-name" };
            assert_eq!(ProviderType::from_label(&kind.label(name)), Some((kind, name)));
        }
        assert_eq!(ProviderType::Infrastructure.label("aws"), "infrastructure-aws");
        for label in ["aws", "infrastructure-", "core-x", ""] {
            assert_eq!(ProviderType::from_label(label), None, "{label}");
        }
    }
}
