//! The kubeconfig of a workload cluster, which its control plane's provider puts into a Secret.

use capstan_api::names::secret;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::Value;

use crate::{
    clusters::{self, ClusterError},
    fields::{is_deleting, is_provisioned, is_true, text},
};
use capstan_management::{ManagementCluster, ServerError};

/// There is no kubeconfig to give.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// There is no such Cluster, or it cannot be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The Secret cannot be read.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The Cluster is not so far yet.
    #[error(
        "Cluster {namespace}/{name} has no kubeconfig yet: there is no Secret {namespace}/{secret}; {state}"
    )]
    NotYet {
        /// The Cluster's namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The Secret that is missing.
        secret: String,
        /// How far the Cluster is.
        state: String,
    },
    /// The Secret holds something else.
    #[error("Secret {namespace}/{secret} has no key {}: {found}", secret::VALUE_KEY)]
    NoKey {
        /// Its namespace.
        namespace: String,
        /// Its name.
        secret: String,
        /// What it has instead.
        found: String,
    },
    /// The key holds no text.
    #[error(
        "key {} of Secret {namespace}/{secret} is not a kubeconfig: it is not UTF-8 text",
        secret::VALUE_KEY
    )]
    NotText {
        /// Its namespace.
        namespace: String,
        /// Its name.
        secret: String,
    },
}

/// The kubeconfig of a Cluster.
pub async fn read(
    cluster: &ManagementCluster,
    namespace: &str,
    name: &str,
) -> Result<String, KubeconfigError> {
    clusters::check_name(name)?;
    let secret = format!("{name}-{}", secret::KUBECONFIG);
    let api: Api<Secret> = Api::namespaced(cluster.client().clone(), namespace);
    let found = api.get_opt(&secret).await;
    let found = found.map_err(|error| cluster.failed(format!("read Secret {namespace}/{secret}"), error))?;
    if let Some(found) = found {
        return value(namespace, secret, found);
    }
    let state = state(&clusters::find(cluster, namespace, name).await?);
    Err(KubeconfigError::NotYet { namespace: namespace.to_owned(), name: name.to_owned(), secret, state })
}

fn value(namespace: &str, name: String, found: Secret) -> Result<String, KubeconfigError> {
    let namespace = namespace.to_owned();
    let mut data = found.data.unwrap_or_default();
    match data.remove(secret::VALUE_KEY) {
        Some(value) if value.0.is_empty() => {
            Err(KubeconfigError::NoKey { namespace, secret: name, found: "it is empty".to_owned() })
        }
        Some(value) => {
            String::from_utf8(value.0).map_err(|_| KubeconfigError::NotText { namespace, secret: name })
        }
        None => {
            let keys: Vec<_> = data.into_keys().collect();
            let found = if keys.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", keys.join(", "))
            };
            Err(KubeconfigError::NoKey { namespace, secret: name, found })
        }
    }
}

/// How far a Cluster is, of either version.
fn state(cluster: &Value) -> String {
    if is_deleting(cluster) {
        return "it is being deleted".to_owned();
    }
    let control_plane = ["/status/initialization/controlPlaneInitialized", "/status/controlPlaneReady"];
    let phase = match text(cluster, "/status/phase") {
        Some(phase) => format!("its phase is {phase}"),
        None => "no controller has looked at it".to_owned(),
    };
    let waits = if !is_provisioned(cluster) {
        "its infrastructure is not provisioned"
    } else if !is_true(cluster, &control_plane) {
        "its control plane is not initialized"
    } else {
        "its control plane is initialized, so its provider should have created the Secret"
    };
    format!("{phase}, and {waits}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_text_under_the_key_is_a_kubeconfig() {
        let read = |data: &[(&str, &[u8])]| {
            let data =
                data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec()))).collect();
            value("ns", "c-kubeconfig".to_owned(), Secret { data: Some(data), ..Secret::default() })
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(&[("value", b"text")]).as_deref(), Ok("text"));
        for (data, expected) in [
            (&[][..], "Secret ns/c-kubeconfig has no key value: it has none"),
            (&[("b", b"".as_slice()), ("a", b"")], "Secret ns/c-kubeconfig has no key value: it has a, b"),
            (&[("value", b"")], "Secret ns/c-kubeconfig has no key value: it is empty"),
            (
                &[("value", b"\xff")],
                "key value of Secret ns/c-kubeconfig is not a kubeconfig: it is not UTF-8 text",
            ),
        ] {
            assert_eq!(read(data).unwrap_err(), expected);
        }
    }

    #[test]
    fn how_far_a_cluster_is_can_be_told_in_both_versions() {
        for (status, expected) in [
            (json!({}), "no controller has looked at it, and its infrastructure is not provisioned"),
            (
                json!({"phase": "Provisioning", "infrastructureReady": true}),
                "its phase is Provisioning, and its control plane is not initialized",
            ),
            (
                json!({"phase": "Provisioned", "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}),
                "its phase is Provisioned, and its control plane is initialized, so its provider should have created the Secret",
            ),
        ] {
            assert_eq!(state(&json!({ "status": status })), expected);
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(state(&deleted), "it is being deleted");
    }
}
