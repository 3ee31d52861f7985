//! The CustomResourceDefinitions, with the labels that say which contract each version speaks.

use capstan_api::crd::{Conversion, merge};
use capstan_provider_sdk::{ContractVersion, labelled};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::{PROVIDER, v1beta1, v1beta2};

/// All CRDs of the provider.
pub fn crds(conversion: Conversion<'_>) -> Vec<CustomResourceDefinition> {
    // Each version of ours is named after the contract that it speaks; without a webhook only the stored one is served.
    let both: &[(ContractVersion, &[&str])] =
        &[(ContractVersion::V1Beta2, &["v1beta2"]), (ContractVersion::V1Beta1, &["v1beta1"])];
    let served = if conversion == Conversion::Nobody { &both[..1] } else { both };
    [
        merge(v1beta1::LocalCluster::crd(), v1beta2::LocalCluster::crd(), conversion),
        merge(v1beta1::LocalClusterTemplate::crd(), v1beta2::LocalClusterTemplate::crd(), conversion),
    ]
    .into_iter()
    .map(|crd| labelled(spec_may_be_absent(crd), PROVIDER, served))
    .collect()
}

/// The derive makes `spec` required, but every field of ours has a default.
fn spec_may_be_absent(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|it| it.open_api_v3_schema.as_mut()) {
            schema.required = None;
        }
    }
    crd
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_kind_requires_a_spec() {
        for crd in crds(Conversion::Nobody) {
            for version in &json!(crd)["spec"]["versions"].as_array().unwrap()[..] {
                let schema = &version["schema"]["openAPIV3Schema"];
                assert_eq!(schema["required"], json!(null), "{} {}", crd.spec.names.kind, version["name"]);
                assert_eq!(schema["properties"]["spec"]["type"], "object");
            }
        }
    }
}
