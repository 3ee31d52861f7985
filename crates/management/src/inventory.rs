//! The inventory of installed providers: objects of kind Provider, shared with clusterctl.

use capstan_api::{
    inventory::{KIND, VERSION, crd},
    names::{CLUSTERCTL_GROUP, INVENTORY, annotation, label},
    provider::ProviderType,
};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use crate::{Kind, ManagementCluster, ServerError, apply};

/// An installed provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The namespace of its instance.
    pub namespace: String,
    /// Its name, e.g. `aws`.
    pub name: String,
    /// Its type.
    pub kind: ProviderType,
    /// Its version, as requested.
    pub version: String,
    /// The only namespace that it watches; all if none.
    pub watched_namespace: Option<String>,
    /// The target of an unfinished upgrade.
    pub upgrading_to: Option<String>,
}

impl Installed {
    /// The value of the provider label on its components, and the name of its inventory entry.
    pub fn label(&self) -> String {
        self.kind.label(&self.name)
    }
}

/// The inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The installed providers, by type and name.
    pub providers: Vec<Installed>,
    /// Entries of an unknown type or without a needed field, as `namespace/name`.
    pub unreadable: Vec<String>,
}

impl Inventory {
    /// Reads it; empty if its CRD does not exist.
    pub async fn read(cluster: &ManagementCluster) -> Result<Self, ServerError> {
        let mut inventory = Self::default();
        let entries = cluster
            .list(&kind(), None, "")
            .await
            .map_err(|error| ServerError { doing: "list installed providers".to_owned(), ..error })?;
        for object in entries {
            if let Some(it) = installed(&object) {
                inventory.providers.push(it);
            } else {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                inventory.unreadable.push(format!("{namespace}/{name}"));
            }
        }
        inventory
            .providers
            .sort_by(|a, b| (a.kind, &a.name, &a.namespace).cmp(&(b.kind, &b.name, &b.namespace)));
        Ok(inventory)
    }

    /// The providers whose upgrade began and did not finish, with the version that they were to get.
    pub fn unfinished(&self) -> impl Iterator<Item = (&Installed, &str)> {
        self.providers.iter().filter_map(|it| Some((it, it.upgrading_to.as_deref()?)))
    }

    /// The core provider.
    pub fn core(&self) -> Option<&Installed> {
        self.providers.iter().find(|it| it.kind == ProviderType::Core)
    }

    /// The instances of a provider.
    pub fn instances<'a>(&'a self, kind: ProviderType, name: &'a str) -> impl Iterator<Item = &'a Installed> {
        self.providers.iter().filter(move |it| it.kind == kind && it.name == name)
    }
}

/// Writes an entry, replacing an older one of the same instance. That ends an unfinished upgrade.
pub async fn record(cluster: &ManagementCluster, provider: &Installed) -> Result<(), ServerError> {
    apply::put(cluster, &kind(), &entry(provider), &|_| {}).await
}

/// The object of an entry.
pub fn entry(provider: &Installed) -> Value {
    let label = provider.label();
    let mut entry = json!({
        "apiVersion": format!("{CLUSTERCTL_GROUP}/{VERSION}"),
        "kind": KIND,
        "metadata": {
            "namespace": provider.namespace,
            "name": label,
            "labels": {
                label::CLUSTERCTL: "",
                label::CLUSTERCTL_CORE: INVENTORY,
                label::PROVIDER: label,
            },
        },
        "providerName": provider.name,
        "type": provider.kind.as_str(),
        "version": provider.version,
    });
    if let Some(namespace) = &provider.watched_namespace {
        entry["watchedNamespace"] = json!(namespace);
    }
    if let Some(version) = &provider.upgrading_to {
        entry["metadata"]["annotations"] = json!({annotation::UPGRADING_TO: version});
    }
    entry
}

/// Whether a namespace has an instance of the provider with that label.
pub async fn has_entry(
    cluster: &ManagementCluster,
    namespace: &str,
    label: &str,
) -> Result<bool, ServerError> {
    match cluster.objects(&kind(), Some(namespace)).get_metadata_opt(label).await {
        Ok(found) => Ok(found.is_some()),
        Err(error) => Err(cluster.failed(format!("look for Provider {namespace}/{label}"), error)),
    }
}

/// The CRD of the inventory if it does not exist.
pub async fn missing_kind(cluster: &ManagementCluster) -> Result<Option<Value>, ServerError> {
    let kinds = cluster.kinds().await?;
    Ok(kinds.find(&format!("{CLUSTERCTL_GROUP}/{VERSION}"), KIND).is_none().then(crd))
}

/// The kind of the entries.
pub fn kind() -> Kind {
    Kind::namespaced(CLUSTERCTL_GROUP, VERSION, KIND)
}

/// The provider that an entry stands for.
fn installed(entry: &DynamicObject) -> Option<Installed> {
    let text = |field: &str| entry.data[field].as_str().map(str::to_owned);
    Some(Installed {
        namespace: entry.namespace().unwrap_or_default(),
        name: text("providerName")?,
        kind: ProviderType::from_name(entry.data["type"].as_str()?)?,
        version: text("version")?,
        watched_namespace: text("watchedNamespace").filter(|it| !it.is_empty()),
        upgrading_to: entry.annotations().get(annotation::UPGRADING_TO).cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> Installed {
        Installed {
            namespace: "acme-system".to_owned(),
            name: "acme".to_owned(),
            kind: ProviderType::Infrastructure,
            version: "v1.0.0".to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let object = |entry: Value| serde_json::from_value::<DynamicObject>(entry).unwrap();
        for watched_namespace in [None, Some("team".to_owned())] {
            let provider = Installed { watched_namespace, ..acme() };
            assert_eq!(installed(&object(entry(&provider))), Some(provider));
        }
        let mut marked = entry(&acme());
        marked["metadata"]["annotations"] = json!({"capstan.dev/upgrading-to": "v1.1.0"});
        let marked = installed(&object(marked)).unwrap();
        assert_eq!(marked, Installed { upgrading_to: Some("v1.1.0".to_owned()), ..acme() });
        assert_eq!(installed(&object(entry(&marked))), Some(marked), "the mark is written as well");
        assert_eq!(
            entry(&acme())["metadata"].get("annotations"),
            None,
            "an entry without it ends the upgrade"
        );
        let mut unknown = entry(&acme());
        unknown["type"] = json!("QuantumProvider");
        assert_eq!(installed(&object(unknown)), None);
    }
}
