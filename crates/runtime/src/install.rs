//! What webhooks and kinds need on an API server: put there, and waited for.

use std::{pin::pin, time::Duration};

use futures::{StreamExt, future::try_join_all};
use k8s_openapi::{
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::ApiResource,
    runtime::watcher::watch_object,
};

use crate::Observed;

/// How long the API server may take to serve a new kind.
const ESTABLISHED_LIMIT: Duration = Duration::from_secs(30);

/// A CRD could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The API server refused it.
    #[error("cannot apply CustomResourceDefinition {name}")]
    Apply {
        /// The CRD.
        name: String,
        /// The reason.
        source: Box<kube::Error>,
    },
    /// The API server refused a webhook configuration.
    #[error("cannot apply the webhook configuration {name}")]
    Webhook {
        /// The configuration.
        name: String,
        /// The reason.
        source: Box<kube::Error>,
    },
    /// The API server does not serve it.
    #[error("CustomResourceDefinition {name} was not established within {ESTABLISHED_LIMIT:?}: {state}")]
    NotEstablished {
        /// The CRD.
        name: String,
        /// What its conditions say.
        state: String,
    },
}

/// Applies the objects that make an API server ask webhooks about other objects.
pub async fn install_webhooks(
    client: &Client,
    mutating: &MutatingWebhookConfiguration,
    validating: &ValidatingWebhookConfiguration,
    field_manager: &str,
) -> Result<(), InstallError> {
    let params = PatchParams::apply(field_manager).force();
    let wrap = |name: String| move |source| InstallError::Webhook { name, source: Box::new(source) };
    let name = mutating.name_any();
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    api.patch(&name, &params, &Patch::Apply(mutating)).await.map_err(wrap(name.clone()))?;
    let name = validating.name_any();
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    api.patch(&name, &params, &Patch::Apply(validating)).await.map_err(wrap(name.clone()))?;
    Ok(())
}

/// Applies CRDs and waits until their kinds are served.
pub async fn install_crds(
    client: &Client,
    crds: &[CustomResourceDefinition],
    field_manager: &str,
) -> Result<(), InstallError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    try_join_all(crds.iter().map(|crd| install(client, &api, crd, field_manager))).await?;
    Ok(())
}

async fn install(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
    field_manager: &str,
) -> Result<(), InstallError> {
    let name = crd.name_any();
    let params = PatchParams::apply(field_manager).force();
    api.patch(&name, &params, &Patch::Apply(crd))
        .await
        .map_err(|source| InstallError::Apply { name: name.clone(), source: Box::new(source) })?;
    let mut state = "it has no conditions yet".to_owned();
    let wait = async {
        let mut states = pin!(watch_object(api.clone(), &name));
        while let Some(event) = states.next().await {
            let Ok(Some(crd)) = event else { continue };
            let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
            if conditions.iter().any(|it| it.type_ == "Established" && it.status == "True") {
                return;
            }
            let words = conditions.iter().map(|it| {
                format!("{}={} {}", it.type_, it.status, it.message.as_deref().unwrap_or_default())
            });
            state = words.collect::<Vec<_>>().join("; ");
        }
    };
    if tokio::time::timeout(ESTABLISHED_LIMIT, wait).await.is_err() {
        return Err(InstallError::NotEstablished { name, state });
    }
    // The server calls a kind established a moment before it answers for it.
    let served = async {
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let resource = ApiResource {
                group: crd.spec.group.clone(),
                version: version.name.clone(),
                api_version: format!("{}/{}", crd.spec.group, version.name),
                kind: crd.spec.names.kind.clone(),
                plural: crd.spec.names.plural.clone(),
            };
            let objects: Api<Observed> = Api::all_with(client.clone(), &resource);
            while matches!(objects.list(&ListParams::default().limit(1)).await, Err(kube::Error::Api(status)) if status.code == 404)
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let state = "its kind is not served".to_owned();
    tokio::time::timeout(ESTABLISHED_LIMIT, served)
        .await
        .map_err(|_| InstallError::NotEstablished { name, state })
}
