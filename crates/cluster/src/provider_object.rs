//! What a provider's objects say, read under the contract that they speak.

use capstan_api::{
    cluster::v1beta2::{ApiEndpoint, ControlPlaneStatus, FailureDomain},
    contract::{FieldError, InfraCluster, ProviderControlPlane, TerminalFailure},
};
use serde_json::Value;

use crate::snapshot::FoundObject;

/// What the infrastructure says of itself.
#[derive(Debug)]
pub(crate) struct InfrastructureFacts {
    pub(crate) provisioned: bool,
    pub(crate) endpoint: ApiEndpoint,
    pub(crate) failure_domains: Vec<FailureDomain>,
}

impl InfrastructureFacts {
    pub(crate) fn read(found: &FoundObject, essence: &Value) -> Result<Self, FieldError> {
        let object = InfraCluster::new(essence, found.contract);
        Ok(Self {
            provisioned: object.provisioned()?,
            endpoint: object.control_plane_endpoint()?,
            failure_domains: object.failure_domains()?,
        })
    }
}

/// What the control plane says of itself.
#[derive(Debug)]
pub(crate) struct ControlPlaneFacts {
    pub(crate) initialized: bool,
    pub(crate) endpoint: ApiEndpoint,
    pub(crate) counters: ControlPlaneStatus,
}

impl ControlPlaneFacts {
    pub(crate) fn read(found: &FoundObject, essence: &Value) -> Result<Self, FieldError> {
        let object = ProviderControlPlane::new(essence, found.contract);
        Ok(Self {
            initialized: object.initialized()?,
            endpoint: object.control_plane_endpoint()?,
            counters: ControlPlaneStatus {
                desired_replicas: object.desired_replicas()?,
                replicas: object.replicas()?,
                ready_replicas: object.ready_replicas()?,
                available_replicas: object.available_replicas()?,
                up_to_date_replicas: object.up_to_date_replicas()?,
                versions: object.versions()?,
                upgrade_plan: Vec::new(),
            },
        })
    }
}

/// A failure that cannot be recovered from, in the words that the Cluster shows.
pub(crate) fn terminal_failure(found: &FoundObject, essence: &Value) -> Option<TerminalFailure> {
    let failure = InfraCluster::new(essence, found.contract).terminal_failure()?;
    let message = failure.message.map(|message| {
        format!(
            "Failure detected from referenced resource {}, Kind={} with name {:?}: {message}",
            found.resource.api_version, found.resource.kind, found.reference.name
        )
    });
    Some(TerminalFailure { message, ..failure })
}
