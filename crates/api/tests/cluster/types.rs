//! What the types read and write.

use capstan_api::cluster::{v1beta1, v1beta2};
use serde_json::{Value, json};

#[test]
fn empty_lists_and_objects_are_never_written() {
    let cluster = v1beta2::Cluster {
        spec: v1beta2::ClusterSpec {
            cluster_network: Some(v1beta2::ClusterNetwork {
                pods: Some(v1beta2::NetworkRanges::default()),
                ..v1beta2::ClusterNetwork::default()
            }),
            control_plane_endpoint: Some(v1beta2::ApiEndpoint::default()),
            infrastructure_ref: Some(v1beta2::ObjectReference::default()),
            topology: Some(Box::new(v1beta2::Topology {
                control_plane: Some(v1beta2::ControlPlaneTopology {
                    deletion: Some(v1beta2::MachineDeletion::default()),
                    ..v1beta2::ControlPlaneTopology::default()
                }),
                ..v1beta2::Topology::default()
            })),
            ..v1beta2::ClusterSpec::default()
        },
        status: Some(v1beta2::ClusterStatus {
            initialization: Some(v1beta2::Initialization::default()),
            control_plane: Some(v1beta2::ControlPlaneStatus::default()),
            deprecated: Some(v1beta2::Deprecated { v1beta1: Some(v1beta2::DeprecatedV1Beta1::default()) }),
            ..v1beta2::ClusterStatus::default()
        }),
        ..v1beta2::Cluster::default()
    };
    assert_eq!(
        serde_json::to_value(cluster).unwrap(),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {}, "spec": {}, "status": {}})
    );
}

#[test]
fn v1beta1_always_writes_its_plain_fields() {
    let spec = v1beta1::ClusterSpec {
        control_plane_endpoint: Some(v1beta1::ApiEndpoint::default()),
        ..v1beta1::ClusterSpec::default()
    };
    assert_eq!(serde_json::to_value(spec).unwrap(), json!({"controlPlaneEndpoint": {"host": "", "port": 0}}));
    assert_eq!(
        serde_json::to_value(v1beta1::ClusterStatus::default()).unwrap(),
        json!({"infrastructureReady": false, "controlPlaneReady": false})
    );
}

#[test]
fn false_and_absent_are_told_apart_in_v1beta2() {
    for spec in [json!({}), json!({"paused": false}), json!({"paused": true})] {
        let decoded: v1beta2::ClusterSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(decoded.paused, spec.get("paused").and_then(Value::as_bool));
        assert_eq!(serde_json::to_value(decoded).unwrap(), spec);
    }
}

#[test]
fn fields_that_the_schema_requires_may_be_missing_when_read() {
    // What upstream stores for v1beta1 references without an apiVersion, for example.
    let cluster: v1beta2::Cluster = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "infrastructureRef": {"kind": "K", "name": "n"},
            "topology": {"workers": {"machineDeployments": [{}]}, "variables": [{}]},
        },
        "status": {"failureDomains": [{}], "controlPlane": {"versions": [{}]}},
    }))
    .unwrap();
    assert_eq!(cluster.spec.infrastructure_ref.unwrap().api_group, "");
}

#[test]
fn an_endpoint_is_valid_when_complete_and_zero_when_empty() {
    let endpoint = |host: &str, port| v1beta2::ApiEndpoint { host: host.into(), port };
    for (endpoint, is_valid, is_zero) in [
        (endpoint("", 0), false, true),
        (endpoint("a", 0), false, false),
        (endpoint("", 1), false, false),
        (endpoint("a", 1), true, false),
    ] {
        assert_eq!((endpoint.is_valid(), endpoint.is_zero()), (is_valid, is_zero), "{endpoint:?}");
    }
}
