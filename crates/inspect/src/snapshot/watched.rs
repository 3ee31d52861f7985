//! What has to be watched to know when a Cluster's tree changes.

use kube::core::ApiResource;

use super::selector;

/// Objects of a kind in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Their kind.
    pub resource: ApiResource,
    /// Their namespace.
    pub namespace: String,
    /// The one that is meant; all that bear the Cluster's name if there is none.
    pub name: Option<String>,
    /// The label by which they belong to the Cluster.
    pub label: String,
}

impl Watched {
    /// All objects of a kind that belong to a Cluster.
    pub(super) fn belonging(resource: ApiResource, namespace: &str, cluster: &str) -> Self {
        Self { resource, namespace: namespace.to_owned(), name: None, label: selector(cluster) }
    }

    /// One object.
    pub(super) fn one(resource: ApiResource, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.to_owned(), name: Some(name.to_owned()), label: String::new() }
    }
}
