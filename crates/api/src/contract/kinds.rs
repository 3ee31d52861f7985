//! From a kind to the name of its CustomResourceDefinition.

use std::fmt;

use super::plural::pluralize;

/// A kind without its version: what a reference names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The API group, e.g. `infrastructure.cluster.x-k8s.io`.
    pub group: String,
    /// The kind, e.g. `LocalCluster`.
    pub kind: String,
}

impl GroupKind {
    /// Names a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.group)
    }
}

/// The name that a provider must give the CRD of a kind, so that core finds it without a search.
pub fn crd_name(group: &str, kind: &str) -> String {
    format!("{}.{group}", pluralize(&kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crd_names_follow_the_contract() {
        for (kind, expected) in [
            ("LocalCluster", "localclusters.g.io"),
            ("LocalClusterTemplate", "localclustertemplates.g.io"),
            ("KubeadmControlPlane", "kubeadmcontrolplanes.g.io"),
            ("AzureManagedControlPlane", "azuremanagedcontrolplanes.g.io"),
            ("FooConfig", "fooconfigs.g.io"),
            ("IPAddress", "ipaddresses.g.io"),
            ("Policy", "policies.g.io"),
        ] {
            assert_eq!(crd_name("g.io", kind), expected);
        }
    }
}
