//! Looking for descendants past all caches, before a step that cannot be taken back.

use capstan_api::names::label;
use capstan_runtime::{
    ObjectKey,
    writer::{WriteError, Writer},
};

use super::Kind;

/// The first descendant by label that the server knows of, among the kinds that are installed.
pub(crate) async fn search(
    writer: &Writer,
    installed: &[(Kind, &str)],
    cluster: &ObjectKey,
    has_control_plane: bool,
) -> Result<Option<(Kind, ObjectKey)>, WriteError> {
    let mut selector = format!("{}={}", label::CLUSTER_NAME, cluster.name);
    if has_control_plane {
        // The control plane's provider deletes its own Machines.
        selector = format!("{selector},!{}", label::CONTROL_PLANE);
    }
    for (kind, version) in installed {
        let resource = kind.core().resource(version);
        let found = writer.list_metadata(&resource, &cluster.namespace, &selector).await?;
        if let Some(name) = found.into_iter().find_map(|metadata| metadata.name) {
            return Ok(Some((*kind, cluster.beside(&name))));
        }
    }
    Ok(None)
}
