//! Looking for descendants past all caches, before a step that cannot be taken back.

use capstan_api::{contract::compare_versions, names::label};
use capstan_runtime::{
    ObjectKey,
    cache::Cache,
    writer::{WriteError, Writer},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use serde_json::Value;

use super::Kind;
use crate::resolve::CrdRecord;

/// The first descendant of whatever kind is installed that the server knows of.
pub(crate) async fn search(
    writer: &Writer,
    crds: &Cache<CrdRecord>,
    cluster: &ObjectKey,
    has_control_plane: bool,
) -> Result<Option<(Kind, ObjectKey)>, WriteError> {
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    for kind in Kind::ALL {
        let crd = kind.core().crd();
        if crds.get(&crd).is_none() {
            continue;
        }
        let Some(definition) = writer.read(&definitions, &crd).await? else { continue };
        let Some(version) = newest_served(&definition.spec) else { continue };
        let resource = kind.core().resource(&version);
        let mut selector = format!("{}={}", label::CLUSTER_NAME, cluster.name);
        if has_control_plane {
            // The control plane's provider deletes its own Machines.
            selector = format!("{selector},!{}", label::CONTROL_PLANE);
        }
        let found = writer.list_metadata(&resource, &cluster.namespace, &selector).await?;
        if let Some(name) = found.into_iter().find_map(|metadata| metadata.name) {
            return Ok(Some((kind, cluster.beside(&name))));
        }
    }
    Ok(None)
}

fn newest_served(crd: &Value) -> Option<String> {
    let versions = crd.get("versions")?.as_array()?;
    let served = versions.iter().filter(|version| version["served"] == true);
    let names = served.filter_map(|version| version["name"].as_str());
    names.max_by(|a, b| compare_versions(a, b)).map(str::to_owned)
}
