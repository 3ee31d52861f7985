//! All that one decision about a Cluster is made from.

use std::{sync::Arc, time::Duration};

use capstan_api::{
    cluster::v1beta2::{ClusterSpec, ClusterStatus, ObjectReference},
    contract::{self, ContractVersion},
    names::CORE_GROUP,
};
use capstan_runtime::{Observed, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde_json::{Value, json};

pub use crate::{
    class::ClassGates,
    connection::Health,
    descendants::{Descendant, Descendants, Kind, Member},
    foreign::Foreign,
};

/// A Cluster as the controller reads it.
#[derive(Clone, Debug, Default)]
pub struct ClusterRecord {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: ClusterSpec,
    /// The reported state.
    pub status: ClusterStatus,
    /// What is wrong with the object if it cannot be read; spec and status are empty then.
    pub malformed: Option<String>,
}

impl ClusterRecord {
    /// Reads an object. One that cannot be read is kept with the reason, so that it never stops the others.
    pub fn new(object: Observed) -> Self {
        let Observed { metadata, spec, status } = object;
        let read = || -> Result<_, String> {
            let spec = spec.read().map_err(|error| format!("spec: {error}"))?;
            let status = status.read().map_err(|error| format!("status: {error}"))?;
            Ok((spec, status))
        };
        match read() {
            Ok((spec, status)) => Self { metadata, spec, status, malformed: None },
            Err(error) => Self { metadata, malformed: Some(error), ..Self::default() },
        }
    }

    /// The object as the server has it, as far as patches of it need to know.
    pub fn as_written(&self) -> Value {
        json!({
            "metadata": {"uid": self.metadata.uid, "finalizers": self.metadata.finalizers},
            "spec": self.spec,
            "status": self.status,
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it is paused, by spec or by annotation.
    pub fn is_paused(&self) -> bool {
        self.spec.paused == Some(true) || contract::is_paused(&self.metadata)
    }

    /// Whether a ClusterClass stands behind it.
    pub fn has_topology(&self) -> bool {
        self.spec.topology.is_some()
    }

    /// Whether the infrastructure was provisioned once; this is never taken back.
    pub fn was_provisioned(&self) -> bool {
        let initialization = self.status.initialization.as_ref();
        initialization.and_then(|it| it.infrastructure_provisioned) == Some(true)
    }

    /// Whether the control plane was initialized once; this is never taken back.
    pub fn was_initialized(&self) -> bool {
        let initialization = self.status.initialization.as_ref();
        initialization.and_then(|it| it.control_plane_initialized) == Some(true)
    }
}

impl Cached for ClusterRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// What became of a reference.
#[derive(Clone, Debug)]
pub enum Referenced {
    /// There is no reference.
    Nothing,
    /// The kind is not known well enough to look for the object.
    Unresolved {
        /// The reference.
        reference: ObjectReference,
        /// What is wrong and what to do.
        reason: String,
        /// Whether the kind is not installed at all, so that no object of it can exist.
        kind_missing: bool,
    },
    /// The kind is cluster-scoped: it has no object in the Cluster's namespace.
    ClusterScoped {
        /// The reference.
        reference: ObjectReference,
        /// The name of the kind's CRD.
        crd: String,
    },
    /// There is no such object.
    Missing {
        /// The reference.
        reference: ObjectReference,
        /// The kind in the version that speaks the contract.
        resource: ApiResource,
    },
    /// Here it is.
    Found(FoundObject),
}

/// An object that a Cluster refers to.
#[derive(Clone, Debug)]
pub struct FoundObject {
    /// The reference.
    pub reference: ObjectReference,
    /// The contract that it speaks.
    pub contract: ContractVersion,
    /// The kind in the version that speaks the contract.
    pub resource: ApiResource,
    /// What is known of it.
    pub object: Arc<Foreign>,
}

impl Referenced {
    /// The reference, if there is one.
    pub fn reference(&self) -> Option<&ObjectReference> {
        match self {
            Self::Nothing => None,
            Self::Unresolved { reference, .. }
            | Self::ClusterScoped { reference, .. }
            | Self::Missing { reference, .. }
            | Self::Found(FoundObject { reference, .. }) => Some(reference),
        }
    }

    /// The object, if it exists.
    pub fn found(&self) -> Option<&FoundObject> {
        match self {
            Self::Found(found) => Some(found),
            _ => None,
        }
    }
}

/// A Cluster and the objects that it refers to, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The Cluster.
    pub cluster: Arc<ClusterRecord>,
    /// Its infrastructure.
    pub infrastructure: Referenced,
    /// Its control plane.
    pub control_plane: Referenced,
    /// Its Machines and what makes them.
    pub descendants: Descendants,
    /// The availability gates of its class.
    pub class_gates: ClassGates,
    /// How the connection to its workload cluster fares.
    pub connection: Health,
    /// How long the workload cluster may be silent.
    pub connection_grace: Duration,
}

impl Snapshot {
    /// The same, with an object of that kind marked as one that the server does not let us have.
    #[must_use]
    pub fn with_refusal(&self, resource: &ApiResource, reason: &str) -> Self {
        let mark = |referenced: &Referenced| match referenced.found() {
            Some(found) if found.resource == *resource => Referenced::Unresolved {
                reference: found.reference.clone(),
                reason: reason.to_owned(),
                kind_missing: false,
            },
            _ => referenced.clone(),
        };
        let mut descendants = self.descendants.clone();
        if resource.group == CORE_GROUP {
            descendants.refusal = Some(reason.to_owned());
        }
        Self {
            cluster: Arc::clone(&self.cluster),
            infrastructure: mark(&self.infrastructure),
            control_plane: mark(&self.control_plane),
            descendants,
            class_gates: self.class_gates.clone(),
            connection: self.connection.clone(),
            connection_grace: self.connection_grace,
        }
    }
}
