//! The `CustomResourceDefinition` of `Cluster`, generated from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;

use super::{v1beta1, v1beta2};
use crate::crd::{Conversion, limit_name, merge};

/// A Cluster's name becomes the value of a label, so it can be no longer than one.
const MAX_NAME_LENGTH: i64 = 63;
const NAME: &str = "name of the Cluster; objects that belong to it carry it as a label.";

/// The webhook of a core manager that runs in the cluster, under the name that upstream gives it.
pub const WEBHOOK_SERVICE: Conversion<'static> =
    Conversion::Service { namespace: "capi-system", name: "capi-webhook-service" };

/// The CRD with both versions; v1beta1 is served only with a conversion webhook.
pub fn crd(conversion: Conversion<'_>) -> CustomResourceDefinition {
    let mut crd = merge(v1beta1::Cluster::crd(), v1beta2::Cluster::crd(), conversion);
    for version in &mut crd.spec.versions {
        let storage = version.storage;
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            limit_name(schema, MAX_NAME_LENGTH, NAME);
            // The derive makes `spec` required everywhere; v1beta1 has always accepted objects without.
            if !storage {
                schema.required = None;
            }
        }
    }
    crd
}

/// The schema of one version.
pub(super) fn schema<K: CustomResourceExt>() -> JSONSchemaProps {
    let version = K::crd().spec.versions.pop();
    version.and_then(|version| version.schema?.open_api_v3_schema).unwrap_or_default()
}
