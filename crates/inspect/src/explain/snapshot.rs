//! All that an explanation is made from.

use std::collections::{BTreeMap, BTreeSet};

use capstan_api::contract::{ContractVersion, PickedVersion, crd_name, pick_version};
use serde_json::Value;

use super::fields::{Reference, group, kind, name, text};
use capstan_management::{ObjectRef, inventory::Inventory};

/// What a CustomResourceDefinition says of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The plural of the kind, by which its objects are addressed.
    pub plural: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// All versions, and whether each is served.
    pub versions: Vec<(String, bool)>,
    /// Namespace and name of the Service that converts its objects, if one does.
    pub converter: Option<(String, String)>,
}

impl Definition {
    /// What a definition says.
    pub fn of(object: &Value) -> Self {
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

    /// The contract and the version that core speaks with its provider: the greatest version that a contract's label names
    /// and that is served.
    pub(crate) fn picked(&self) -> Option<PickedVersion> {
        let mut labels = self.labels.clone();
        for contract in ContractVersion::PREFERENCE {
            if let Some(named) = labels.get_mut(&contract.label()) {
                let served: Vec<_> = named.split('_').filter(|it| self.serves(it)).collect();
                *named = served.join("_");
            }
        }
        pick_version(&self.name, &labels).ok()
    }

    fn serves(&self, version: &str) -> bool {
        self.served().any(|it| it == version)
    }

    pub(crate) fn served(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().filter(|it| it.1).map(|it| it.0.as_str())
    }
}

/// Namespace and name of a Service.
pub(crate) fn service(object: &Value, pointer: &str) -> Option<(String, String)> {
    let service = object.pointer(pointer)?;
    Some((service["namespace"].as_str()?.to_owned(), service["name"].as_str()?.to_owned()))
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What: an object, or a kind if it has no name.
    pub what: ObjectRef,
    /// Why.
    pub reason: String,
}

/// All that belongs to a Cluster, and what its providers are made of.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The Cluster.
    pub cluster: Value,
    /// What it refers to, its Machines and what makes them, and what those refer to.
    pub objects: Vec<Value>,
    /// The definitions of their kinds, by name. A kind that is used and not here is not installed.
    pub definitions: BTreeMap<String, Definition>,
    /// Definitions whose names break the contract, by the names that they should have.
    pub misnamed: BTreeMap<String, String>,
    /// Names of the Secrets that are there of those that are of interest.
    pub secrets: BTreeSet<String>,
    /// The Deployments of all providers, unless they cannot be read.
    pub deployments: Option<Vec<Value>>,
    /// The Leases in their namespaces.
    pub leases: Vec<Value>,
    /// Configurations of webhooks.
    pub webhooks: Vec<Value>,
    /// How many endpoints of a Service are ready, by its namespace and name; none if the Service does not exist.
    pub services: BTreeMap<(String, String), Option<usize>>,
    /// The labels of the Cluster's namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// The providers that are installed.
    pub inventory: Inventory,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

impl Snapshot {
    /// The object behind a reference of the Cluster or of something that belongs to it.
    pub(crate) fn object(&self, reference: &Reference) -> Option<&Value> {
        self.objects.iter().find(|it| {
            group(it) == reference.group && kind(it) == reference.kind && name(it) == reference.name
        })
    }

    /// All objects of a kind.
    pub(crate) fn all<'a>(&'a self, of_group: &'a str, of_kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |it| kind(it) == of_kind && group(it) == of_group)
    }

    /// The definition of a kind, if it is there under the name that the contract wants.
    pub(crate) fn definition(&self, of_group: &str, of_kind: &str) -> Option<&Definition> {
        self.definitions.get(&crd_name(of_group, of_kind))
    }

    /// Why an object could not be read, or its whole kind.
    pub(crate) fn unreadable(&self, of_group: &str, of_kind: &str, of_name: &str) -> Option<&str> {
        let is_it = |it: &&Unreadable| {
            it.what.kind == of_kind
                && it.what.group() == of_group
                && (it.what.name == of_name || it.what.name.is_empty())
        };
        self.unreadable.iter().find(is_it).map(|it| it.reason.as_str())
    }
}
