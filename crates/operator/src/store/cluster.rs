//! The Secrets in the management cluster.

use capstan_api::names::FIELD_MANAGER;
use capstan_management::error::is_not_found;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{Expression, Selector},
};

use super::{
    StoreError, StoredRelease,
    parts::{PROVIDER_LABEL, SECRET_TYPE, VERSION_LABEL, label_of, labels},
};

/// The release of a provider that is kept in a namespace, if it is complete.
pub async fn load(
    client: &Client,
    namespace: &str,
    label: &str,
    version: &str,
) -> Result<Option<StoredRelease>, StoreError> {
    let selector: Selector = labels(label, version).into_iter().collect();
    let found = secrets(client, namespace).list(&listed(&selector)).await;
    let found =
        found.map_err(|error| failed(&format!("list the Secrets in namespace {namespace}"), error))?;
    StoredRelease::from_secrets(&found.items)
}

/// Whether a release of a provider is kept in a namespace, whatever its version.
pub async fn has_any(client: &Client, namespace: &str, label: &str) -> Result<bool, StoreError> {
    let selector: Selector =
        [Expression::Equal(PROVIDER_LABEL.to_owned(), label_of(label))].into_iter().collect();
    let found = secrets(client, namespace).list_metadata(&listed(&selector).limit(1)).await;
    let found =
        found.map_err(|error| failed(&format!("list the Secrets in namespace {namespace}"), error))?;
    Ok(!found.items.is_empty())
}

/// Keeps a release in a namespace, in place of what was kept of the same version.
pub async fn save(
    client: &Client,
    namespace: &str,
    label: &str,
    owner: &OwnerReference,
    release: &StoredRelease,
) -> Result<(), StoreError> {
    let api = secrets(client, namespace);
    let parts = release.to_secrets(namespace, label, owner)?;
    let params = PatchParams::apply(FIELD_MANAGER).force();
    for part in &parts {
        let name = part.name_any();
        let applied = api.patch(&name, &params, &Patch::Apply(part)).await;
        applied.map_err(|error| failed(&format!("apply Secret {namespace}/{name}"), error))?;
    }
    let written: Vec<_> = parts.iter().map(ResourceExt::name_any).collect();
    let selector: Selector = labels(label, &release.version).into_iter().collect();
    delete(&api, namespace, &selector, |name| !written.iter().any(|it| it == name)).await
}

/// Deletes what is kept of all versions of a provider, but for one if it is named.
pub async fn prune(
    client: &Client,
    namespace: &str,
    label: &str,
    keep_version: Option<&str>,
) -> Result<(), StoreError> {
    let kept = keep_version.map(|it| Expression::NotEqual(VERSION_LABEL.to_owned(), label_of(it)));
    let selector = [Expression::Equal(PROVIDER_LABEL.to_owned(), label_of(label))].into_iter().chain(kept);
    let selector: Selector = selector.collect();
    delete(&secrets(client, namespace), namespace, &selector, |_| true).await
}

async fn delete(
    api: &Api<Secret>,
    namespace: &str,
    selector: &Selector,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), StoreError> {
    let found = api.list_metadata(&listed(selector)).await;
    let found =
        found.map_err(|error| failed(&format!("list the Secrets in namespace {namespace}"), error))?;
    for name in found.items.iter().map(ResourceExt::name_any).filter(|it| is_wanted(it)) {
        match api.delete(&name, &DeleteParams::default()).await {
            Err(error) if !is_not_found(&error) => {
                return Err(failed(&format!("delete Secret {namespace}/{name}"), error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn secrets(client: &Client, namespace: &str) -> Api<Secret> {
    Api::namespaced(client.clone(), namespace)
}

fn listed(selector: &Selector) -> ListParams {
    ListParams::default().labels_from(selector).fields(&format!("type={SECRET_TYPE}"))
}

fn failed(doing: &str, source: kube::Error) -> StoreError {
    StoreError::Server { doing: doing.to_owned(), source: Box::new(source) }
}
