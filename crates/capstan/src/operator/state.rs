//! What a management cluster has of the operator: its Deployment, and the provider objects.

use std::collections::BTreeMap;

use capstan_api::{
    conditions::{Condition, ConditionStatus},
    names::label,
    operator::{FetchConfiguration, GROUP, VERSION, resource},
    provider::ProviderType,
};
use capstan_management::{
    Kind, ManagementCluster, ObjectRef, ServerError,
    inventory::{Installed, Inventory},
};
use futures::future::try_join_all;
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;

use crate::error::CommandError;

use super::{COMPONENT, CORE_LABEL, DEPLOYMENT, NAME_LABEL, NAMESPACE, OperatorProblem, VERSION_LABEL};

/// On a provider object that an upgrade paused: the contract that the upgrade goes to.
pub(crate) const PAUSED_FOR_UPGRADE: &str = "capstan.dev/paused-for-upgrade";

/// The operator and its provider objects; there are none where their kinds are not served.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperatorState {
    /// The operator, if it runs in the cluster.
    pub(crate) operator: Option<InstalledOperator>,
    /// The provider objects, core first.
    pub(crate) providers: Vec<ProviderObject>,
}

/// The operator's Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledOperator {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Its version, where its label says one.
    pub(crate) version: Option<String>,
    pub(crate) is_available: bool,
    /// What else manages it, e.g. Helm.
    pub(crate) managed_by: Option<String>,
}

/// A provider object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderObject {
    pub(crate) kind: ProviderType,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) generation: i64,
    pub(crate) is_deleting: bool,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The spec as it is stored.
    pub(crate) spec: Value,
    pub(crate) contract: Option<String>,
    pub(crate) installed_version: Option<String>,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Vec<Condition>,
}

impl OperatorState {
    /// Reads it. Where discovery does not show the kinds, nothing more is asked for.
    pub(crate) async fn read(cluster: &ManagementCluster) -> Result<Self, ServerError> {
        let kinds = cluster.kinds().await?;
        let api_version = format!("{GROUP}/{VERSION}");
        let is_served = |it: &ProviderType| kinds.find(&api_version, it.as_str()).is_some();
        let served: Vec<ProviderType> = ProviderType::ALL.into_iter().filter(is_served).collect();
        if served.is_empty() {
            return Ok(Self::default());
        }
        let (operator, providers) =
            futures::try_join!(InstalledOperator::find(cluster), list(cluster, served))?;
        Ok(Self { operator, providers })
    }

    /// Reads the provider objects again.
    pub(crate) async fn refresh(&mut self, cluster: &ManagementCluster) -> Result<(), ServerError> {
        let kinds: Vec<ProviderType> = ProviderType::ALL.into_iter().collect();
        self.providers = list(cluster, kinds).await?;
        Ok(())
    }

    /// Whether the operator or one of its objects is there.
    pub(crate) fn is_in_charge(&self) -> bool {
        self.operator.is_some() || !self.providers.is_empty()
    }

    /// The object of a provider; of several, the one that is installed.
    pub(crate) fn find(&self, kind: ProviderType, name: &str) -> Option<&ProviderObject> {
        let mut found = self.providers.iter().filter(|it| it.kind == kind && it.name == name);
        found.clone().find(|it| it.installed_version.is_some()).or_else(|| found.next())
    }

    /// The object of the core provider.
    pub(crate) fn core(&self) -> Option<&ProviderObject> {
        self.providers.iter().find(|it| it.kind == ProviderType::Core)
    }

    /// The providers of an inventory that have no object.
    pub(crate) fn unmanaged(&self, inventory: &Inventory) -> Inventory {
        let is_unmanaged = |it: &&Installed| self.find(it.kind, &it.name).is_none();
        let providers = inventory.providers.iter().filter(is_unmanaged).cloned().collect();
        Inventory { providers, unreadable: inventory.unreadable.clone() }
    }

    /// The inventory with what the objects say instead of its entries for them.
    pub(crate) fn merged(&self, inventory: &Inventory) -> Inventory {
        let mut merged = self.unmanaged(inventory);
        merged.providers.extend(self.providers.iter().filter_map(ProviderObject::installed));
        merged
            .providers
            .sort_by(|a, b| (a.kind, &a.name, &a.namespace).cmp(&(b.kind, &b.name, &b.namespace)));
        merged
    }
}

impl InstalledOperator {
    /// Finds it, in whatever namespace it was installed.
    pub(crate) async fn find(cluster: &ManagementCluster) -> Result<Option<Self>, ServerError> {
        let found = operators(cluster).await?;
        let mut found: Vec<Self> = found.iter().filter(|it| is_ours(it)).map(Self::of).collect();
        found.sort_by_key(|it| !it.is_own());
        Ok(found.into_iter().next())
    }

    /// Refuses a cluster in which upstream's operator runs: both would manage the same providers.
    pub(crate) async fn check_alone(cluster: &ManagementCluster) -> Result<(), CommandError> {
        let found = operators(cluster).await?;
        match found.iter().find(|it| !is_ours(it) && it.data["spec"]["replicas"] != 0) {
            Some(it) => {
                let (namespace, name) = (it.namespace().unwrap_or_default(), it.name_any());
                Err(OperatorProblem::Upstream { namespace, name }.into())
            }
            None => Ok(()),
        }
    }

    fn of(deployment: &DynamicObject) -> Self {
        let label = |name: &str| deployment.labels().get(name).cloned();
        let conditions = deployment.data["status"]["conditions"].as_array();
        let is_available = |it: &Value| it["type"] == "Available" && it["status"] == "True";
        Self {
            namespace: deployment.namespace().unwrap_or_default(),
            name: deployment.name_any(),
            version: label(VERSION_LABEL),
            is_available: conditions.into_iter().flatten().any(is_available),
            managed_by: label("app.kubernetes.io/managed-by").filter(|it| it == "Helm"),
        }
    }

    /// Whether it is where this program installs it.
    pub(crate) fn is_own(&self) -> bool {
        self.managed_by.is_none() && (self.namespace.as_str(), self.name.as_str()) == (NAMESPACE, DEPLOYMENT)
    }

    /// Its version, for messages.
    pub(crate) fn shown_version(&self) -> &str {
        self.version.as_deref().unwrap_or("an unknown version")
    }
}

impl ProviderObject {
    fn of(kind: ProviderType, object: DynamicObject) -> Self {
        let DynamicObject { metadata, mut data, .. } = object;
        let status = data["status"].take();
        let text = |field: &str| status[field].as_str().map(str::to_owned);
        // A condition that is none says nothing; the schema keeps such from being stored.
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let conditions = conditions.filter_map(|it| serde_json::from_value(it.clone()).ok()).collect();
        Self {
            kind,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation.unwrap_or_default(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            contract: text("contract"),
            installed_version: text("installedVersion"),
            observed_generation: status["observedGeneration"].as_i64(),
            conditions,
            spec: data["spec"].take(),
        }
    }

    /// The provider's label, e.g. `infrastructure-aws`.
    pub(crate) fn label(&self) -> String {
        self.kind.label(&self.name)
    }

    /// Its reference.
    pub(crate) fn id(&self) -> ObjectRef {
        reference(self.kind, &self.namespace, &self.name)
    }

    /// The version that is wanted; without one the operator chooses.
    pub(crate) fn version(&self) -> Option<&str> {
        self.spec["version"].as_str().filter(|it| !it.is_empty())
    }

    /// Whether it is to be paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.spec["paused"].as_bool() == Some(true)
    }

    /// Where its releases come from, where it says so.
    pub(crate) fn fetch_config(&self) -> Option<FetchConfiguration> {
        serde_json::from_value(self.spec.get("fetchConfig")?.clone()).ok()
    }

    /// Whether an upgrade of ours paused it.
    pub(crate) fn is_paused_for_upgrade(&self) -> bool {
        self.annotations.contains_key(PAUSED_FOR_UPGRADE)
    }

    /// One of its conditions.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|it| it.type_ == kind)
    }

    /// Whether a condition has a status.
    pub(crate) fn has(&self, kind: &str, status: ConditionStatus) -> bool {
        self.condition(kind).is_some_and(|it| it.status == status)
    }

    /// The entry of an inventory for what is installed.
    pub(crate) fn installed(&self) -> Option<Installed> {
        Some(Installed {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            kind: self.kind,
            version: self.installed_version.clone()?,
            watched_namespace: None,
            upgrading_to: None,
        })
    }
}

/// The Deployments of operators, upstream's included.
async fn operators(cluster: &ManagementCluster) -> Result<Vec<DynamicObject>, ServerError> {
    let selector = format!("{}={CORE_LABEL}", label::CLUSTERCTL_CORE);
    cluster.list(&Kind::deployment(), None, &selector).await
}

/// Whether a Deployment is of our operator. Upstream's has the same label of clusterctl's.
fn is_ours(deployment: &DynamicObject) -> bool {
    deployment.labels().get(NAME_LABEL).is_some_and(|it| it == COMPONENT)
        || deployment.name_any() == DEPLOYMENT
}

/// The reference to a provider object.
pub(crate) fn reference(kind: ProviderType, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::new(&format!("{GROUP}/{VERSION}"), kind.as_str(), Some(namespace), name)
}

/// The kind of a provider type's objects.
pub(crate) fn kind_of(kind: ProviderType) -> Kind {
    Kind { resource: resource(kind), is_namespaced: true, is_managed: true, is_preferred: true }
}

async fn list(
    cluster: &ManagementCluster,
    kinds: Vec<ProviderType>,
) -> Result<Vec<ProviderObject>, ServerError> {
    let lists = kinds.into_iter().map(async |kind| {
        let found = cluster.list(&kind_of(kind), None, "").await?;
        Ok(found.into_iter().map(|it| ProviderObject::of(kind, it)).collect::<Vec<_>>())
    });
    let mut found: Vec<ProviderObject> = try_join_all(lists).await?.into_iter().flatten().collect();
    found.sort_by(|a, b| (a.kind, &a.name, &a.namespace).cmp(&(b.kind, &b.name, &b.namespace)));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A provider object as the server has it.
    pub(crate) fn object(kind: ProviderType, name: &str, spec: Value, status: Value) -> ProviderObject {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": kind.as_str(),
            "metadata": {"name": name, "namespace": format!("{name}-system"), "generation": 2,
                         "resourceVersion": "7"},
        });
        object["spec"] = spec;
        object["status"] = status;
        ProviderObject::of(kind, serde_json::from_value(object).unwrap())
    }

    fn entry(kind: ProviderType, name: &str, version: &str) -> Installed {
        Installed {
            namespace: format!("{name}-system"),
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: Some("v9.0.0".to_owned()),
        }
    }

    #[test]
    fn objects_take_the_place_of_their_entries() {
        use ProviderType::{Bootstrap, Core, Infrastructure};
        let installed = |version: &str| json!({"installedVersion": version});
        let state = OperatorState {
            operator: None,
            providers: vec![
                object(Core, "cluster-api", json!({"version": "v1.1.0"}), installed("v1.0.0")),
                object(Infrastructure, "new", json!({}), json!(null)),
            ],
        };
        let entries = [
            entry(Bootstrap, "kubeadm", "v1.0.0"),
            entry(Core, "cluster-api", "v0.9.0"),
            entry(Infrastructure, "other", "v1.0.0"),
        ];
        let inventory = Inventory { providers: entries.into(), unreadable: Vec::new() };
        let names = |inventory: &Inventory| -> Vec<String> {
            let text = |it: &Installed| format!("{} {} {:?}", it.label(), it.version, it.upgrading_to);
            inventory.providers.iter().map(text).collect()
        };
        let unmanaged =
            ["bootstrap-kubeadm v1.0.0 Some(\"v9.0.0\")", "infrastructure-other v1.0.0 Some(\"v9.0.0\")"];
        assert_eq!(names(&state.unmanaged(&inventory)), unmanaged);
        let merged = [&["cluster-api v1.0.0 None"], &unmanaged[..]].concat();
        assert_eq!(names(&state.merged(&inventory)), merged, "what is not installed has no entry");
    }

    #[test]
    fn upstreams_operator_is_another_one() {
        let deployment = |name: &str, more: Option<&str>| -> DynamicObject {
            let mut labels = json!({label::CLUSTERCTL_CORE: CORE_LABEL});
            labels[NAME_LABEL] = json!(more);
            let metadata = json!({"name": name, "namespace": "n", "labels": labels});
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
            let mut object = object;
            if more.is_none() {
                object["metadata"]["labels"].as_object_mut().unwrap().remove(NAME_LABEL);
            }
            serde_json::from_value(object).unwrap()
        };
        for (name, more, expected) in [
            (DEPLOYMENT, Some(COMPONENT), true),
            ("release-capstan-operator", Some(COMPONENT), true),
            (DEPLOYMENT, None, true),
            ("capi-operator-controller-manager", None, false),
            ("capi-operator-controller-manager", Some("cluster-api-operator"), false),
        ] {
            assert_eq!(is_ours(&deployment(name, more)), expected, "{name} {more:?}");
        }
    }

    #[test]
    fn of_two_objects_the_installed_one_is_meant() {
        let kind = ProviderType::Infrastructure;
        let first = object(kind, "a", json!({}), json!({}));
        let mut second = object(kind, "a", json!({}), json!({"installedVersion": "v1.0.0"}));
        second.namespace = "other".to_owned();
        let state = OperatorState { operator: None, providers: vec![first.clone(), second] };
        assert_eq!(state.find(kind, "a").map(|it| it.namespace.as_str()), Some("other"));
        let state = OperatorState { operator: None, providers: vec![first] };
        assert_eq!(state.find(kind, "a").map(|it| it.namespace.as_str()), Some("a-system"));
        assert!(state.find(ProviderType::Ipam, "a").is_none());
    }

    #[test]
    fn an_object_is_read_as_far_as_it_is_one() {
        let condition = json!({"type": "Ready", "status": "True", "reason": "A", "message": "m",
                               "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let found = object(
            ProviderType::Core,
            "c",
            json!({"version": "", "paused": true, "fetchConfig": {"url": "https://x.example.com/o/r/releases"}}),
            json!({"conditions": [{"type": 1}, condition], "observedGeneration": 2}),
        );
        assert_eq!((found.version(), found.is_paused(), found.observed_generation), (None, true, Some(2)));
        assert_eq!(found.fetch_config().unwrap().url.as_deref(), Some("https://x.example.com/o/r/releases"));
        assert!(found.has("Ready", ConditionStatus::True) && found.conditions.len() == 1);
        assert_eq!(found.id().to_string(), "CoreProvider c-system/c");
    }
}
