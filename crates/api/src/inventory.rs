//! The kind Provider of clusterctl's inventory of installed providers.

use serde_json::{Value, json};

use crate::names::{CLUSTERCTL_GROUP, INVENTORY, label};

/// The name of the kind.
pub const KIND: &str = "Provider";
/// The version of the kind.
pub const VERSION: &str = "v1alpha3";
/// The name of its CRD.
const CRD: &str = "providers.clusterctl.cluster.x-k8s.io";

/// Its CRD.
pub fn crd() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": CRD,
            // As clusterctl labels it: the general label would make it a component.
            "labels": {label::CLUSTERCTL_CORE: INVENTORY},
        },
        "spec": {
            "group": CLUSTERCTL_GROUP,
            "names": {
                "categories": ["cluster-api"],
                "kind": KIND,
                "listKind": "ProviderList",
                "plural": "providers",
                "singular": "provider",
            },
            "scope": "Namespaced",
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    {"jsonPath": ".metadata.creationTimestamp", "name": "Age", "type": "date"},
                    {"jsonPath": ".type", "name": "Type", "type": "string"},
                    {"jsonPath": ".providerName", "name": "Provider", "type": "string"},
                    {"jsonPath": ".version", "name": "Version", "type": "string"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "An entry in the inventory of providers that are installed.",
                    "properties": {
                        "apiVersion": text("Version of the schema of this object."),
                        "kind": text("Kind of this object."),
                        "metadata": {"type": "object"},
                        "providerName": text("Name of the provider, e.g. aws."),
                        "type": text("Part that the provider plays, e.g. InfrastructureProvider."),
                        "version": text("Version of the provider that is installed."),
                        "watchedNamespace": text("Only namespace that the provider looks at; all if empty."),
                    },
                }},
                "subresources": {},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crd_has_the_labels_that_clusterctl_gives_it() {
        assert_eq!(
            crd()["metadata"]["labels"],
            json!({"clusterctl.cluster.x-k8s.io/core": "inventory"}),
            "with clusterctl.cluster.x-k8s.io it would count as a component of some provider"
        );
    }
}
