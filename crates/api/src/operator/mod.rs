//! The provider operator's kinds: providers as declarative objects of `management.cluster.x-k8s.io`.
//!
//! The seven kinds differ only in their names: spec and status are the same types.

pub mod admission;
mod crd;
mod rules;
mod schema;
mod spec;
mod status;

pub use crd::{crd, crds};
pub use rules::{
    DEBUG_PROFILER_ADDRESS, DEBUG_VERBOSITY, NotADuration, SpecProblem, change_problems, duration_seconds,
    problems, read_spec, warnings,
};
pub use spec::{
    ContainerImage, ContainerSpec, DeploymentSpec, DurationValue, FetchConfiguration, HealthSpec, ImageParts,
    LeaderElectionSpec, ManagerSpec, MetricsSpec, ProviderSpec, WebhookSpec,
};
pub use status::{ProviderStatus, condition, reason};

use kube::core::{ApiResource, GroupVersionKind};

use crate::provider::ProviderType;

/// The API group of the kinds.
pub const GROUP: &str = "management.cluster.x-k8s.io";
/// The version of the kinds.
pub const VERSION: &str = "v1alpha1";
/// The finalizer of provider objects, which upstream's operator uses as well.
pub const FINALIZER: &str = "provider.cluster.x-k8s.io";

/// Annotations of the operator.
pub mod annotation {
    /// On a Deployment of a paused provider: its replicas before.
    pub const ORIGINAL_REPLICAS: &str = "management.cluster.x-k8s.io/original-controller-replicas";
    /// On a provider object: `"true"` deletes the provider although it is used.
    pub const FORCE_DELETE: &str = "management.cluster.x-k8s.io/force-delete";
    /// On a provider object: `report` reports drift and does not heal it.
    pub const DRIFT: &str = "management.cluster.x-k8s.io/drift";
    /// On a ConfigMap with a part of a release: `"1/3"` is the first of three.
    pub const PART: &str = "management.cluster.x-k8s.io/part";
}

/// The plural of a provider type's kind.
pub const fn plural(kind: ProviderType) -> &'static str {
    match kind {
        ProviderType::Core => "coreproviders",
        ProviderType::Bootstrap => "bootstrapproviders",
        ProviderType::ControlPlane => "controlplaneproviders",
        ProviderType::Infrastructure => "infrastructureproviders",
        ProviderType::Ipam => "ipamproviders",
        ProviderType::RuntimeExtension => "runtimeextensionproviders",
        ProviderType::Addon => "addonproviders",
    }
}

/// The kind of a provider type's objects.
pub fn resource(kind: ProviderType) -> ApiResource {
    let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind.as_str());
    ApiResource::from_gvk_with_plural(&gvk, plural(kind))
}
