//! What a provider should be.
//!
//! Decoding is lenient, the schema is strict: an object may have been stored before its schema was.

// The comments are what `kubectl explain` prints, as it is.
#![allow(clippy::doc_markdown)]
// Columns may share a type.
#![allow(clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use super::{
    schema::{self, MAX_INT32},
    status::ProviderStatus,
};
use crate::crd::{DNS_LABEL, DNS_SUBDOMAIN};

/// What a provider should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "management.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "CoreProvider",
    namespaced,
    status = "ProviderStatus",
    category = "cluster-api",
    derive = "Default",
    derive = "PartialEq",
    doc = "A provider as a typed object. All kinds are like this one but for their names.",
    label("clusterctl.cluster.x-k8s.io/core", "capi-operator"),
    printcolumn(name = "Type", type_ = "string", json_path = ".kind", description = "The type of provider"),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "The version that is asked for"
    ),
    printcolumn(
        name = "Installed",
        type_ = "string",
        json_path = ".status.installedVersion",
        description = "The version that is installed"
    ),
    printcolumn(
        name = "Contract",
        type_ = "string",
        json_path = ".status.contract",
        description = "The contract of Cluster API that the installed version implements"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the provider runs as its spec says"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        description = "Whether the provider is scaled to 0"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "Why the provider is not ready"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since the object was created"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ProviderSpec {
    /// version of the provider, with a leading v; where it is empty, the operator writes the latest version here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// manager sets flags of the provider's controller manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerSpec>,
    /// deployment changes the Deployments of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSpec>,
    /// secretName names a Secret in the provider's namespace with variables. It is read on install and upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub secret_name: Option<String>,
    /// fetchConfig says where releases come from; else the name decides. It is read on install and upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_config: Option<FetchConfiguration>,
    /// paused scales the provider's Deployments to 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Flags of a provider's controller manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagerSpec {
    /// syncPeriod is how often everything is reconciled again (--sync-period).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub sync_period: Option<DurationValue>,
    /// leaderElection configures leader election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<LeaderElectionSpec>,
    /// cacheNamespace is ignored: every provider watches all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_namespace: Option<String>,
    /// gracefulShutDown is how long the manager may take to stop; it is stored and has no flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::signed_duration")]
    pub graceful_shut_down: Option<DurationValue>,
    /// metrics configures the metrics server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSpec>,
    /// metricsAddress is short for metrics.bindAddress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_address: Option<String>,
    /// health configures the health probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthSpec>,
    /// webhook configures the webhook server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSpec>,
    /// profilerAddress is where pprof listens (--profiler-address).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiler_address: Option<String>,
    /// maxConcurrentReconciles is how many objects are reconciled at once (--max-concurrent-reconciles).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_INT32))]
    pub max_concurrent_reconciles: Option<i64>,
    /// verbosity of the logs (--v).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_INT32))]
    pub verbosity: Option<i64>,
    /// debug sets verbosity 5 and profilerAddress localhost:6060, and locks the other properties of the manager.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// featureGates switches features on and off (--feature-gates).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
}

/// A duration: seconds as a number, or text such as `10m30s`.
pub type DurationValue = IntOrString;

/// Leader election of a controller manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaderElectionSpec {
    /// leaderElect switches leader election on or off (--leader-elect).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_elect: Option<bool>,
    /// leaseDuration is how long a silent leader is left alone (--leader-elect-lease-duration).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub lease_duration: Option<DurationValue>,
    /// renewDeadline is how long a leader tries to renew (--leader-elect-renew-deadline).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub renew_deadline: Option<DurationValue>,
    /// retryPeriod is the time between two tries (--leader-elect-retry-period).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub retry_period: Option<DurationValue>,
    /// resourceLock is the kind of the lock; it is stored and has no flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_lock: Option<String>,
    /// resourceName is the name of the lock (--leader-election-id, after the namespace).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// resourceNamespace is the namespace of the lock (--leader-election-id, before the name).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_namespace: Option<String>,
}

/// The metrics server of a controller manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricsSpec {
    /// bindAddress is where metrics are served (--metrics-bind-addr); "0" serves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
}

/// The health probes of a controller manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthSpec {
    /// healthProbeBindAddress is where probes are answered (--health-addr).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_probe_bind_address: Option<String>,
    /// readinessEndpointName replaces readyz in the container's readiness probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_endpoint_name: Option<String>,
    /// livenessEndpointName replaces healthz in the container's liveness probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_endpoint_name: Option<String>,
}

/// The webhook server of a controller manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WebhookSpec {
    /// port of the webhook server (--webhook-port).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// host that the webhook server listens on (--webhook-host).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// certDir is the folder with the server's certificate (--webhook-cert-dir).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<String>,
}

/// Changes of a provider's Deployments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// replicas is the number of Pods; without it, the release decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_INT32))]
    pub replicas: Option<i64>,
    /// nodeSelector replaces the labels that nodes must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// tolerations replaces the Pods' tolerations; an empty list removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::tolerations")]
    pub tolerations: Option<Vec<Value>>,
    /// affinity replaces the Pods' affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub affinity: Option<Value>,
    /// containers changes containers by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<ContainerSpec>,
}

/// Changes of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct ContainerSpec {
    /// name of the container.
    #[schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// image replaces the container's image, or parts of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::image")]
    pub image: Option<ContainerImage>,
    /// args sets flags of the container, with or without leading dashes. Flags of spec.manager win.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::arguments")]
    pub args: BTreeMap<String, Value>,
    /// env sets environment variables of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::environment")]
    pub env: Vec<Value>,
    /// resources replaces the container's resource requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub resources: Option<Value>,
}

/// A container's image: as a whole, or in parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ContainerImage {
    /// The whole image, e.g. `registry.example.com/capa/manager:v2.9.1`.
    Whole(String),
    /// Parts of it; the release decides the others.
    Parts(ImageParts),
}

impl<'de> Deserialize<'de> for ContainerImage {
    /// The schema cannot say what an image is, so this is what users read about one that is neither text nor parts.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(image) => Ok(Self::Whole(image)),
            Value::Object(parts) => ImageParts::deserialize(parts)
                .map(Self::Parts)
                .map_err(|error| D::Error::custom(format!("a container's image has an {error}"))),
            _ => Err(D::Error::custom(
                "a container's image must be text, or an object with repository, name or tag",
            )),
        }
    }
}

/// Parts of a container's image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageParts {
    /// repository is the registry and path, e.g. `registry.example.com/capa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub repository: Option<String>,
    /// name of the image, e.g. `manager`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// tag of the image, e.g. `v2.9.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tag: Option<String>,
}

/// Where releases come from: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one_source()]))]
pub struct FetchConfiguration {
    /// url of the releases, e.g. https://github.com/OWNER/REPOSITORY/releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-kubernetes-validations" = [schema::url_rule()]))]
    pub url: Option<String>,
    /// selector of ConfigMaps in the provider's namespace, each with one release.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector")]
    pub selector: Option<LabelSelector>,
}
