//! How far a Cluster has come, in one word.

use capstan_api::cluster::v1beta2::{ApiEndpoint, ClusterSpec, ClusterStatus};

/// No infrastructure is associated with the Cluster yet.
pub(crate) const PENDING: &str = "Pending";
/// There is a reference, and its provider is at work.
pub(crate) const PROVISIONING: &str = "Provisioning";
/// The infrastructure is complete and the endpoint known.
pub(crate) const PROVISIONED: &str = "Provisioned";
/// The Cluster is going away.
pub(crate) const DELETING: &str = "Deleting";
/// A provider reported a failure that it cannot recover from.
pub(crate) const FAILED: &str = "Failed";

/// The phase that follows from spec and status.
pub(crate) fn phase(spec: &ClusterSpec, status: &ClusterStatus, deleting: bool) -> &'static str {
    let failed = status
        .deprecated
        .as_ref()
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .is_some_and(|legacy| legacy.failure_reason.is_some() || legacy.failure_message.is_some());
    let provisioned =
        status.initialization.as_ref().and_then(|it| it.infrastructure_provisioned) == Some(true);
    let reachable = spec.control_plane_endpoint.as_ref().is_some_and(ApiEndpoint::is_valid);
    let referring = spec.infrastructure_ref.is_some() || spec.control_plane_ref.is_some();
    if deleting {
        DELETING
    } else if failed {
        FAILED
    } else if provisioned && reachable {
        PROVISIONED
    } else if referring {
        PROVISIONING
    } else {
        PENDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_api::cluster::v1beta2::{Deprecated, DeprecatedV1Beta1, Initialization, ObjectReference};

    #[test]
    fn each_phase_follows_from_what_is_known() {
        let reference = Some(ObjectReference::default());
        let endpoint = |host: &str, port| Some(ApiEndpoint { host: host.into(), port });
        for (infrastructure, control_plane, endpoint, provisioned, failed, deleting, expected) in [
            (None, None, None, false, false, false, PENDING),
            (reference.clone(), None, None, false, false, false, PROVISIONING),
            (None, reference.clone(), None, true, false, false, PROVISIONING),
            (reference.clone(), None, endpoint("h", 0), true, false, false, PROVISIONING),
            (reference.clone(), None, endpoint("h", 1), false, false, false, PROVISIONING),
            (reference.clone(), None, endpoint("h", 1), true, false, false, PROVISIONED),
            (None, None, endpoint("h", 1), true, false, false, PROVISIONED),
            (reference.clone(), None, endpoint("h", 1), true, true, false, FAILED),
            (reference.clone(), None, endpoint("h", 1), true, true, true, DELETING),
        ] {
            let spec = ClusterSpec {
                infrastructure_ref: infrastructure,
                control_plane_ref: control_plane,
                control_plane_endpoint: endpoint,
                ..ClusterSpec::default()
            };
            let status = ClusterStatus {
                initialization: Some(Initialization {
                    infrastructure_provisioned: Some(provisioned),
                    control_plane_initialized: None,
                }),
                deprecated: failed.then(|| Deprecated {
                    v1beta1: Some(DeprecatedV1Beta1 {
                        failure_message: Some("boom".into()),
                        ..DeprecatedV1Beta1::default()
                    }),
                }),
                ..ClusterStatus::default()
            };
            assert_eq!(phase(&spec, &status, deleting), expected);
        }
    }
}
