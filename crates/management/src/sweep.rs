//! Finds installed components by their labels, whatever their kinds and names.

use capstan_api::names::{
    CLUSTERCTL_FIELD_MANAGER, FIELD_MANAGER, OPERATOR_FIELD_MANAGER, SHARED_NAMESPACE, label,
};
use futures::TryStreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    api::{DeleteParams, DynamicObject, Preconditions},
    core::ObjectMeta,
};
use serde_json::Value;

use crate::{Kind, ManagementCluster, ObjectRef, ServerError, at_once, error};

/// Kinds that are never part of a release: controllers create them in large numbers, some with the labels of their
/// owners.
const DERIVED: [(&str, &str); 8] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("", "Node"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("storage.k8s.io", "CSINode"),
];

/// The field managers that install components. Releases of upstream's operator before v0.28 write as `manager`, like most
/// providers' controllers do: that name proves nothing.
const INSTALLERS: [&str; 3] = [FIELD_MANAGER, CLUSTERCTL_FIELD_MANAGER, OPERATOR_FIELD_MANAGER];

/// An installed object.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its kind.
    pub kind: Kind,
    /// Its reference.
    pub id: ObjectRef,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its other fields, if they were read.
    pub content: Option<Value>,
}

impl Component {
    /// The value of one of its labels.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// The label of its provider.
    pub fn provider(&self) -> Option<&str> {
        self.label(label::PROVIDER)
    }

    /// Whether it has an owner: a controller made it, with the labels of its owner, and it is deleted with it.
    pub fn is_made_from_another(&self) -> bool {
        self.metadata.owner_references.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// Whether it was installed; see [`is_installed`].
    pub fn is_installed(&self, namespaces: &[&str]) -> bool {
        is_installed(&self.metadata, namespaces)
    }

    /// Deletes it, unless it does not exist any more or another object has its name.
    pub async fn delete(&self, cluster: &ManagementCluster) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: self.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        let api = cluster.objects(&self.kind, self.id.namespace.as_deref());
        match api.delete(&self.id.name, &params).await {
            Err(error) if !error::is_not_found(&error) && !error::is_about_uid(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether an object that carries a provider's labels was installed for it. Users copy objects, labels included.
///
/// The labels are enough for cluster-scoped objects and in the provider's own namespaces. Anywhere else an installer
/// must own the label.
pub fn is_installed(metadata: &ObjectMeta, namespaces: &[&str]) -> bool {
    let Some(namespace) = metadata.namespace.as_deref().filter(|it| !it.is_empty()) else { return true };
    namespace == SHARED_NAMESPACE
        || namespaces.contains(&namespace)
        || metadata.managed_fields.iter().flatten().any(is_label_by_installer)
}

fn is_label_by_installer(entry: &ManagedFieldsEntry) -> bool {
    let is_installer = entry.manager.as_deref().is_some_and(|it| INSTALLERS.contains(&it));
    let field = format!("f:{}", label::CLUSTERCTL);
    let labels = entry.fields_v1.as_ref().map(|it| &it.0["f:metadata"]["f:labels"]);
    is_installer && labels.is_some_and(|it| it.get(&field).is_some())
}

/// The selector of the components of a provider.
pub fn selector_of(provider: &str) -> String {
    format!("{}=,{}={provider}", label::CLUSTERCTL, label::PROVIDER)
}

/// All objects that a selector matches, in all namespaces: one list for each kind, many at a time.
pub async fn sweep(cluster: &ManagementCluster, selector: &str) -> Result<Vec<Component>, ServerError> {
    sweep_kinds(cluster, selector, |_| true).await
}

/// The same for some of the kinds.
pub async fn sweep_kinds(
    cluster: &ManagementCluster,
    selector: &str,
    fits: impl Fn(&Kind) -> bool,
) -> Result<Vec<Component>, ServerError> {
    let kinds = meant(cluster, fits).await?;
    let lists = kinds.iter().map(|kind| async move {
        let found = cluster.list_metadata(kind, None, selector).await?;
        Ok(found.into_iter().map(|it| component(kind, it.metadata)).collect())
    });
    Ok(sorted(at_once(lists).try_concat().await?))
}

/// The same with whole objects.
pub async fn sweep_whole(
    cluster: &ManagementCluster,
    selector: &str,
    fits: impl Fn(&Kind) -> bool,
) -> Result<Vec<Component>, ServerError> {
    let kinds = meant(cluster, fits).await?;
    let lists = kinds.iter().map(|kind| async move {
        let found = cluster.list(kind, None, selector).await?;
        let whole = |it: DynamicObject| Component { content: Some(it.data), ..component(kind, it.metadata) };
        Ok(found.into_iter().map(whole).collect())
    });
    Ok(sorted(at_once(lists).try_concat().await?))
}

/// The kinds to look through.
async fn meant(cluster: &ManagementCluster, fits: impl Fn(&Kind) -> bool) -> Result<Vec<Kind>, ServerError> {
    let is_meant = |it: &&Kind| it.is_managed && !is_derived(it) && fits(it);
    Ok(cluster.kinds().await?.preferred().filter(is_meant).cloned().collect())
}

fn sorted(mut found: Vec<Component>) -> Vec<Component> {
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

fn is_derived(kind: &Kind) -> bool {
    DERIVED.contains(&(kind.resource.group.as_str(), kind.resource.kind.as_str()))
}

/// The component of that kind and metadata.
pub fn component(kind: &Kind, metadata: ObjectMeta) -> Component {
    let id = ObjectRef {
        api_version: kind.resource.api_version.clone(),
        kind: kind.resource.kind.clone(),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    Component { kind: kind.clone(), id, metadata, content: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copied_label_makes_no_component() {
        let own = ["acme-system"];
        let label = json!({"f:metadata": {"f:labels": {".": {}, "f:clusterctl.cluster.x-k8s.io": {}}}});
        let data = json!({"f:data": {"f:key": {}}});
        let entry = |manager: &str, fields: &Value| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        for (namespace, fields, expected) in [
            // The label is enough.
            (None, vec![], true),
            (Some(""), vec![], true),
            (Some("acme-system"), vec![], true),
            (Some("acme-system"), vec![entry("kubectl-client-side-apply", &label)], true),
            (Some("capi-webhook-system"), vec![], true),
            // Anywhere else an installer has to have written it.
            (Some("kube-system"), vec![entry("capstan", &label)], true),
            (Some("kube-system"), vec![entry("clusterctl", &label)], true),
            (Some("kube-system"), vec![entry("capi-operator", &label)], true),
            (Some("kube-system"), vec![entry("kubectl", &data), entry("capstan", &label)], true),
            (Some("team"), vec![], false),
            (Some("team"), vec![entry("kubectl-client-side-apply", &label)], false),
            (Some("team"), vec![entry("manager", &label)], false),
            // We changed a user's object, e.g. in a move.
            (Some("team"), vec![entry("kubectl", &label), entry("capstan", &data)], false),
            (Some("team"), vec![json!({"manager": "capstan", "operation": "Update"})], false),
        ] {
            let metadata = json!({"namespace": namespace, "name": "it", "managedFields": fields});
            let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
            assert_eq!(is_installed(&metadata, &own), expected, "{namespace:?} {fields:?}");
        }
    }
}
