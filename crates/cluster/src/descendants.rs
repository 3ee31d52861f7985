//! The Machines of a Cluster and what makes them: they go before anything that they stand on.

use capstan_api::{
    contract::{compare_versions, owned_by_cluster},
    names::{CORE_GROUP, label},
};
use capstan_runtime::{
    ObjectKey,
    cache::Cache,
    writer::{WriteError, Writer},
};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::ApiResource;
use serde_json::Value;

use crate::{resolve::CrdRecord, snapshot::ClusterRecord};

/// Kind and plural, in the order in which they are spoken of.
const KINDS: [(&str, &str); 4] = [
    ("MachinePool", "machinepools"),
    ("MachineDeployment", "machinedeployments"),
    ("MachineSet", "machinesets"),
    ("Machine", "machines"),
];

/// An object that belongs to a Cluster.
#[derive(Clone, Debug)]
pub struct Descendant {
    /// The kind.
    pub resource: ApiResource,
    /// The object.
    pub metadata: ObjectMeta,
}

impl Descendant {
    /// The name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether the Cluster itself owns it, so that nobody else will delete it.
    pub fn is_child_of(&self, cluster: &ClusterRecord) -> bool {
        owned_by_cluster(&self.metadata).is_some_and(|owner| owner.name == cluster.name())
    }

    /// Whether it is a Machine of the control plane.
    pub fn is_control_plane(&self) -> bool {
        self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label::CONTROL_PLANE))
    }
}

/// Finds a Cluster's descendants of whatever kinds are installed, past all caches.
pub(crate) async fn find(
    writer: &Writer,
    crds: &Cache<CrdRecord>,
    key: &ObjectKey,
) -> Result<Vec<Descendant>, WriteError> {
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    let mut descendants = Vec::new();
    for (kind, plural) in KINDS {
        let crd = ObjectKey::new("", &format!("{plural}.{CORE_GROUP}"));
        if crds.get(&crd).is_none() {
            continue;
        }
        let Some(definition) = writer.read(&definitions, &crd).await? else { continue };
        let Some(version) = newest_served(&definition.spec) else { continue };
        let resource = ApiResource {
            group: CORE_GROUP.to_owned(),
            api_version: format!("{CORE_GROUP}/{version}"),
            version,
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let selector = format!("{}={}", label::CLUSTER_NAME, key.name);
        for metadata in writer.list_metadata(&resource, &key.namespace, &selector).await? {
            descendants.push(Descendant { resource: resource.clone(), metadata });
        }
    }
    Ok(descendants)
}

fn newest_served(crd: &Value) -> Option<String> {
    let versions = crd.get("versions")?.as_array()?;
    let served = versions.iter().filter(|version| version["served"] == true);
    let names = served.filter_map(|version| version["name"].as_str());
    names.max_by(|a, b| compare_versions(a, b)).map(str::to_owned)
}

/// Names objects, one line a kind: `* Machines: a, b, c, d, e, ... (2 more)`.
pub(crate) fn enumerate(descendants: &[&Descendant]) -> String {
    const MOST_NAMES: usize = 5;
    let lines = KINDS.iter().filter_map(|(kind, _)| {
        let mut names: Vec<_> =
            descendants.iter().filter(|it| it.resource.kind == *kind).map(|it| it.name()).collect();
        names.sort_unstable();
        let more = match names.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(", ... ({more} more)"),
        };
        names.truncate(MOST_NAMES);
        (!names.is_empty()).then(|| format!("* {kind}s: {}{more}", names.join(", ")))
    });
    lines.collect::<Vec<_>>().join("\n")
}
