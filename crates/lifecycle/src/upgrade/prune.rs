//! What a new release does not have any more goes, but for what holds anything of the user's.

use std::collections::HashMap;

use capstan_api::names::{INVENTORY, label};
use futures::TryStreamExt;
use kube::api::ListParams;
use serde_json::Value;

use capstan_management::{
    Identity, ManagementCluster, ObjectRef, ServerError, at_once, crd::is_crd, error, sweep::Component,
};

/// What becomes of the objects that a release no longer has.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    /// They go.
    pub gone: Vec<Component>,
    /// CRDs that stay, since there are objects of their kinds.
    pub kept: Vec<ObjectRef>,
    /// Objects that stay, since they carry the provider's label but were not installed for it.
    pub not_installed: Vec<ObjectRef>,
}

/// How many of the new releases have an object.
#[derive(Debug, Default)]
pub(super) struct Coming(HashMap<Identity, usize>);

impl Coming {
    /// What is in releases.
    pub(super) fn in_releases<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut counts = HashMap::new();
        for object in objects {
            *counts.entry(ObjectRef::of(object).identity()).or_default() += 1;
        }
        Self(counts)
    }

    /// Whether several releases have it.
    pub(super) fn is_shared(&self, id: &ObjectRef) -> bool {
        self.0.get(&id.identity()).is_some_and(|count| *count > 1)
    }

    fn has(&self, component: &Component) -> bool {
        // A release may give an object of a cluster-scoped kind a namespace, which means nothing.
        let mut id = component.id.identity();
        let is_known = self.0.contains_key(&id);
        id.2 = id.2.filter(|_| component.kind.is_namespaced);
        is_known || self.0.contains_key(&id)
    }
}

/// Finds what is there of a provider and in none of the new releases: it may go from one provider to another.
pub(super) async fn find(
    cluster: &ManagementCluster,
    installed: &[Component],
    provider: &str,
    coming: &Coming,
) -> Result<Leftovers, ServerError> {
    let mut leftovers = Leftovers::default();
    let namespaces = namespaces_of(installed, provider);
    for component in dropped(installed, provider, coming) {
        if !component.is_installed(&namespaces) {
            leftovers.not_installed.push(component.id.clone());
        } else if is_crd(&component.id) && has_objects(cluster, &component.id.name).await? {
            leftovers.kept.push(component.id.clone());
        } else {
            leftovers.gone.push(component.clone());
        }
    }
    Ok(leftovers)
}

/// Deletes them; what is gone already is no matter. CRDs stay of which objects were created meanwhile.
pub(super) async fn delete(
    cluster: &ManagementCluster,
    gone: &[Component],
) -> Result<Vec<ObjectRef>, ServerError> {
    let each = gone.iter().map(|component| async move {
        let id = &component.id;
        if is_crd(id) && has_objects(cluster, &id.name).await? {
            return Ok(Some(id.clone()));
        }
        match component.delete(cluster).await {
            Ok(()) => Ok(None),
            Err(error) => Err(cluster.failed(format!("delete {id}"), error)),
        }
    });
    let kept: Vec<_> = at_once(each).try_collect().await?;
    Ok(kept.into_iter().flatten().collect())
}

/// What is installed for a provider and in no new release. Namespaces and the inventory are never among it, nor what
/// others make of a component and label as it is.
fn dropped<'a>(
    installed: &'a [Component],
    provider: &'a str,
    coming: &'a Coming,
) -> impl Iterator<Item = &'a Component> {
    installed.iter().filter(move |it| {
        it.provider() == Some(provider)
            && it.label(label::CLUSTERCTL_CORE) != Some(INVENTORY)
            && !(it.id.kind == "Namespace" && it.id.group().is_empty())
            && !it.is_made_from_another()
            && !coming.has(it)
    })
}

/// The namespaces of a provider's entries in the inventory, which are among what is installed.
fn namespaces_of<'a>(installed: &'a [Component], provider: &str) -> Vec<&'a str> {
    let is_entry = |it: &&Component| {
        it.provider() == Some(provider) && it.label(label::CLUSTERCTL_CORE) == Some(INVENTORY)
    };
    installed.iter().filter(is_entry).filter_map(|it| it.id.namespace.as_deref()).collect()
}

async fn has_objects(cluster: &ManagementCluster, crd: &str) -> Result<bool, ServerError> {
    let kinds = cluster.kinds().await?;
    let Some(kind) = kinds.defined_by(crd) else { return Ok(false) };
    match cluster.objects(kind, None).list_metadata(&ListParams::default().limit(1)).await {
        Ok(list) => Ok(!list.items.is_empty()),
        Err(error) if error::is_not_found(&error) => Ok(false),
        // No webhook converts the objects; but there are some.
        Err(kube::Error::Api(status)) if status.code == 500 => Ok(true),
        Err(error) => Err(cluster.failed(format!("look for objects of {crd}"), error)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use capstan_management::Kind;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use kube::core::ObjectMeta;
    use serde_json::json;

    use super::*;

    fn component(api_version: &str, kind: &str, name: &str, labels: &[(&str, &str)]) -> Component {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_namespaced = !matches!(kind, "Namespace" | "ClusterRole" | "CustomResourceDefinition");
        let labels: BTreeMap<_, _> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Component {
            kind: Kind { is_namespaced, ..Kind::namespaced(group, version, kind) },
            id: ObjectRef {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: is_namespaced.then(|| "acme-system".to_owned()),
                name: name.to_owned(),
            },
            metadata: ObjectMeta { labels: Some(labels), ..ObjectMeta::default() },
            content: None,
        }
    }

    #[test]
    fn what_the_new_release_lacks_goes_but_nothing_that_holds_what_users_made() {
        let acme = [(label::PROVIDER, "infrastructure-acme")];
        let entry = [(label::PROVIDER, "infrastructure-acme"), (label::CLUSTERCTL_CORE, INVENTORY)];
        let mut installed = vec![
            component("v1", "Namespace", "acme-system", &acme),
            component("apiextensions.k8s.io/v1", "CustomResourceDefinition", "acmeclusters.acme.io", &acme),
            component("v1", "ConfigMap", "old", &acme),
            component("v1", "ConfigMap", "kept", &acme),
            component("v1", "ConfigMap", "others", &[(label::PROVIDER, "infrastructure-other")]),
            component("rbac.authorization.k8s.io/v1", "ClusterRole", "kept", &acme),
            component("rbac.authorization.k8s.io/v1", "ClusterRole", "old", &acme),
            component("cert-manager.io/v1", "Issuer", "old", &acme),
            component("policy/v2", "Budget", "kept", &acme),
            component("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-acme", &entry),
        ];
        let mut request = component("cert-manager.io/v1", "CertificateRequest", "serving-1", &acme);
        request.metadata.owner_references = Some(vec![OwnerReference::default()]);
        installed.push(request);
        let object = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        let release = [
            object("v1", "ConfigMap", "kept", Some("acme-system")),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "kept", None),
            object("policy/v1", "Budget", "kept", Some("acme-system")),
            object("v1", "ConfigMap", "new", Some("acme-system")),
        ];
        assert_eq!(namespaces_of(&installed, "infrastructure-acme"), ["acme-system"]);
        assert!(namespaces_of(&installed, "infrastructure-other").is_empty());
        let coming = Coming::in_releases(&release);
        let gone: Vec<_> =
            dropped(&installed, "infrastructure-acme", &coming).map(|it| it.id.to_string()).collect();
        assert_eq!(
            gone,
            [
                "CustomResourceDefinition acmeclusters.acme.io",
                "ConfigMap acme-system/old",
                "ClusterRole old",
                "Issuer acme-system/old",
            ]
        );
    }

    #[test]
    fn what_several_releases_have_is_shared_whatever_its_version() {
        let budget = |version: &str| json!({"apiVersion": format!("policy/{version}"), "kind": "Budget", "metadata": {"name": "b"}});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}});
        let coming = Coming::in_releases([&budget("v1"), &budget("v2"), &role]);
        assert!(coming.is_shared(&ObjectRef::of(&budget("v3"))));
        assert!(!coming.is_shared(&ObjectRef::of(&role)));
    }
}
