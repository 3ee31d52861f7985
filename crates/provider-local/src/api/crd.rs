//! The CustomResourceDefinitions, with the labels that say which contract each version speaks.

use capstan_api::{
    contract::ContractVersion,
    crd::{Conversion, merge},
    names::label,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::{PROVIDER, v1beta1, v1beta2};

/// All CRDs of the provider.
pub fn crds(conversion: Conversion<'_>) -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        merge(v1beta1::LocalCluster::crd(), v1beta2::LocalCluster::crd(), conversion),
        merge(v1beta1::LocalClusterTemplate::crd(), v1beta2::LocalClusterTemplate::crd(), conversion),
    ];
    for crd in &mut crds {
        let labels = crd.metadata.labels.get_or_insert_default();
        labels.insert(label::PROVIDER.to_owned(), PROVIDER.to_owned());
        for contract in ContractVersion::PREFERENCE {
            // Each version of ours is named after the contract that it speaks.
            let served = crd.spec.versions.iter().any(|it| it.served && it.name == contract.as_str());
            if served {
                labels.insert(contract.label(), contract.as_str().to_owned());
            }
        }
    }
    crds
}
