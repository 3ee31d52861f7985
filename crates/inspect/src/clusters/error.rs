//! Why there is no Cluster to look at, and which ones there are.

use capstan_api::names::CORE_GROUP;

use capstan_management::ServerError;

/// A Cluster cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server refused to answer, or could not be reached.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kind is not there.
    #[error("{url} knows no kind Cluster of {CORE_GROUP}: Cluster API is not installed there")]
    NotInstalled {
        /// The API server.
        url: String,
    },
    /// The name is empty.
    #[error("the name of the Cluster is empty")]
    NameMissing,
    /// No Cluster can have that name.
    #[error("the name of the Cluster has {length} characters, but the name of a Cluster has at most {limit}")]
    NameTooLong {
        /// How long the name is.
        length: usize,
        /// How long a name can be.
        limit: usize,
    },
    /// No Cluster has that name.
    #[error("there is no Cluster {namespace}/{name} in {url}")]
    NotFound {
        /// The API server.
        url: String,
        /// The namespace that was looked at.
        namespace: String,
        /// The name.
        name: String,
        /// The Clusters that are there, by namespace and name; none where they may not be listed.
        others: Vec<(String, String)>,
    },
}
