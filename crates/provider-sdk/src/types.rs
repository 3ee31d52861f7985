//! Types for an author's kinds, and CRDs made from them.

use std::collections::BTreeMap;

use capstan_api::{
    cluster::v1beta2::FailureDomain, conditions::Condition, contract::ContractVersion, crd::single,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, core::Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::labelled;

/// The CRD of a kind with one version, labelled for the contract that the version speaks.
pub fn crd<K: CustomResourceExt + Resource<DynamicType = ()>>(
    provider: &str,
    contract: ContractVersion,
) -> CustomResourceDefinition {
    labelled(single(K::crd()), provider, &[(contract, &[K::version(&()).as_ref()])])
}

/// All that contract v1beta2 asks of an InfraCluster's status.
///
/// It is enough for a provider that has nothing of its own to say; others have these fields beside theirs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InfraClusterStatus {
    /// conditions say what is true of the infrastructure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// initialization says which first steps are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// failureDomains are the places that machines can be put in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub failure_domains: Vec<FailureDomain>,
}

/// Which first steps are done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Initialization {
    /// provisioned is true once the infrastructure has been complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// What a template kind holds in `spec.template`: the object to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateResource<S> {
    /// metadata is given to the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// spec is given to the objects.
    pub spec: S,
}

/// Labels and annotations of the objects made from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// labels of the object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// annotations of the object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
