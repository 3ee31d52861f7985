//! What was installed for providers and what they look after, even where no webhook converts objects between versions.

use capstan_api::names::label;
use futures::TryStreamExt;
use kube::core::ObjectMeta;

use super::{Selection, choice};
use capstan_management::{
    Kind, Kinds, ManagementCluster, ServerError, at_once, error,
    inventory::Installed,
    sweep::{Component, component, is_installed, sweep_kinds},
};

/// What belongs to the providers that are meant.
pub(crate) struct Scope<'a> {
    selection: &'a Selection,
    entries: Vec<&'a Installed>,
}

impl<'a> Scope<'a> {
    /// The providers that are meant, with their entries in the inventory; those of others do no harm.
    pub(crate) fn new(selection: &'a Selection, entries: impl IntoIterator<Item = &'a Installed>) -> Self {
        Self { selection, entries: entries.into_iter().collect() }
    }

    /// Whether an object was installed for one of the providers: it goes with them.
    pub(crate) fn is_component(&self, object: &ObjectMeta) -> bool {
        let provider = object.labels.as_ref().and_then(|it| it.get(label::PROVIDER));
        let own = self.entries.iter().filter(|it| Some(&it.label()) == provider);
        let namespaces: Vec<&str> = own.map(|it| it.namespace.as_str()).collect();
        choice::is_component(self.selection, object) && is_installed(object, &namespaces)
    }
}

/// What is there.
pub(crate) struct Survey<'a> {
    /// What was installed for the providers that are meant.
    pub(crate) components: Vec<Component>,
    /// All objects of the kinds that these providers brought.
    pub(crate) readings: Vec<Reading<'a>>,
}

/// The objects of a kind, or why they cannot be read.
pub(crate) struct Reading<'a> {
    pub(crate) kind: &'a Kind,
    /// The label of the provider that brought the kind.
    pub(crate) provider: String,
    pub(crate) objects: Result<Vec<ObjectMeta>, String>,
}

/// Looks for everything, each kind once.
pub(crate) async fn survey<'a>(
    cluster: &ManagementCluster,
    kinds: &'a Kinds,
    selection: &Selection,
) -> Result<Survey<'a>, ServerError> {
    let defined = defined_kinds(cluster, kinds).await?;
    let is_elsewhere = |kind: &Kind| {
        let names = |it: &Kind| (it.resource.group.clone(), it.resource.kind.clone());
        defined.iter().any(|(_, it)| names(it) == names(kind))
    };
    let selector = choice::selector(selection);
    let mut components = sweep_kinds(cluster, &selector, |kind| !is_elsewhere(kind)).await?;
    let looks = defined.iter().map(|(provider, kind)| {
        let is_meant = choice::is_meant(selection, provider);
        let selector = if is_meant { "" } else { selector.as_str() };
        async move {
            let objects = look(cluster, kinds, kind, None, selector).await?;
            Ok::<_, ServerError>((is_meant, Reading { kind, provider: provider.clone(), objects }))
        }
    });
    let looks: Vec<(bool, Reading<'_>)> = at_once(looks).try_collect().await?;
    for (_, Reading { kind, objects, .. }) in &looks {
        let own = objects.iter().flatten().filter(|it| choice::is_component(selection, it));
        components.extend(own.map(|it| component(kind, it.clone())));
    }
    components.sort_by(|a, b| a.id.cmp(&b.id));
    let readings = looks.into_iter().filter(|(is_meant, _)| *is_meant).map(|(_, reading)| reading).collect();
    Ok(Survey { components, readings })
}

/// The kinds that providers brought, with the providers' labels.
async fn defined_kinds<'a>(
    cluster: &ManagementCluster,
    kinds: &'a Kinds,
) -> Result<Vec<(String, &'a Kind)>, ServerError> {
    let Some(kind) = kinds.any_version("apiextensions.k8s.io", "CustomResourceDefinition") else {
        return Ok(Vec::new());
    };
    let selector = format!("{}=,{}", label::CLUSTERCTL, label::PROVIDER);
    let crds = cluster.list_metadata(kind, None, &selector).await?;
    let defined = crds.into_iter().filter_map(|it| {
        let provider = it.metadata.labels?.remove(label::PROVIDER)?;
        Some((provider, kinds.defined_by(&it.metadata.name?)?))
    });
    Ok(defined.collect())
}

/// The objects of a kind that a selector matches, or why they cannot be read.
///
/// No webhook converts objects once a provider's workloads are gone; most likely one of the versions is the stored one.
pub(crate) async fn look(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    kind: &Kind,
    namespace: Option<&str>,
    selector: &str,
) -> Result<Result<Vec<ObjectMeta>, String>, ServerError> {
    let mut reason = String::new();
    for version in kinds.versions(&kind.resource.group, &kind.resource.kind) {
        match cluster.list_metadata(version, namespace, selector).await {
            Ok(found) => return Ok(Ok(found.into_iter().map(|it| it.metadata).collect())),
            Err(error) if error::is_about_conversion(&error.source) => {
                reason = error.status().map(|it| it.message.clone()).unwrap_or_default();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Err(reason))
}
