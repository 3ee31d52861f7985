//! What a CustomResourceDefinition says of its kind.

use std::collections::BTreeMap;

use capstan_api::contract::{ContractVersion, PickedVersion, pick_version};
use serde_json::Value;

use crate::fields::{service, text};

/// What a CustomResourceDefinition says of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The plural by which objects are addressed.
    pub plural: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether objects are in namespaces.
    pub is_namespaced: bool,
    /// All versions, and whether each is served.
    pub versions: Vec<(String, bool)>,
    /// Namespace and name of the Service that converts objects, if one does.
    pub converter: Option<(String, String)>,
}

impl Crd {
    /// What a CRD says.
    pub(crate) fn of(object: &Value) -> Self {
        let owned = |pointer: &str| text(object, pointer).unwrap_or_default().to_owned();
        let versions = object.pointer("/spec/versions").and_then(Value::as_array);
        let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
        Self {
            name: owned("/metadata/name"),
            group: owned("/spec/group"),
            plural: owned("/spec/names/plural"),
            // Labels are always a map of texts.
            labels: serde_json::from_value(labels).unwrap_or_default(),
            is_namespaced: text(object, "/spec/scope") == Some("Namespaced"),
            versions: versions
                .into_iter()
                .flatten()
                .filter_map(|it| Some((it["name"].as_str()?.to_owned(), it["served"] == true)))
                .collect(),
            converter: service(object, "/spec/conversion/webhook/clientConfig/service")
                .filter(|_| text(object, "/spec/conversion/strategy") == Some("Webhook")),
        }
    }

    /// The contract and the version that core speaks with the provider: the greatest version that a contract's label names
    /// and that is served.
    pub(crate) fn picked(&self) -> Option<PickedVersion> {
        let mut labels = self.labels.clone();
        for contract in ContractVersion::PREFERENCE {
            if let Some(named) = labels.get_mut(&contract.label()) {
                let served: Vec<_> =
                    named.split('_').filter(|it| self.served().any(|served| served == *it)).collect();
                *named = served.join("_");
            }
        }
        pick_version(&self.name, &labels).ok()
    }

    /// The versions that are served.
    pub(crate) fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|it| it.1).map(|it| it.0.as_str())
    }
}
