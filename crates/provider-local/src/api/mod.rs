//! The kinds `LocalCluster` and `LocalClusterTemplate` of `infrastructure.cluster.x-k8s.io`.

mod crd;
pub mod v1beta1;
pub mod v1beta2;

pub use crd::crds;

/// The provider's finalizer, until the load balancer is stopped.
pub const FINALIZER: &str = "localcluster.infrastructure.cluster.x-k8s.io";

/// The value of the provider label.
pub const PROVIDER: &str = "infrastructure-local";

/// The webhook that converts between the versions, where the provider runs in the cluster.
pub const WEBHOOK_SERVICE: capstan_api::crd::Conversion<'static> = capstan_api::crd::Conversion::Service {
    namespace: "capstan-local-system",
    name: "capstan-local-webhook-service",
};
