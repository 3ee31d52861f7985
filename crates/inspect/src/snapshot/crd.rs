//! What a CRD says of its kind.

use std::collections::BTreeMap;

use capstan_api::contract::{NoCompatibleContract, PickedVersion, pick_served_version};
use capstan_management::{Kind, ObjectRef, crd};
use serde_json::Value;

use crate::fields::{labels, service, text};

/// What a CRD says of its kind.
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
        let crd = crd::Crd::new(object);
        Self {
            name: crd.name().to_owned(),
            group: crd.group().to_owned(),
            plural: crd.plural().to_owned(),
            labels: labels(object),
            is_namespaced: crd.is_namespaced(),
            versions: crd.versions().map(|it| (it.name().to_owned(), it.is_served())).collect(),
            converter: service(object, "/spec/conversion/webhook/clientConfig/service")
                .filter(|_| text(object, "/spec/conversion/strategy") == Some("Webhook")),
        }
    }

    /// The contract and the version that core speaks with the provider.
    pub(crate) fn picked(&self) -> Result<PickedVersion, NoCompatibleContract> {
        pick_served_version(&self.name, &self.labels, &self.served().collect::<Vec<_>>())
    }

    /// The versions that are served.
    pub(crate) fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|it| it.1).map(|it| it.0.as_str())
    }

    /// The CRD itself.
    pub(crate) fn reference(&self) -> ObjectRef {
        Kind::crd().object(None, &self.name)
    }
}
