//! The objects by which an API server knows that it is to ask about Clusters.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
        ValidatingWebhookConfiguration,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    admission::Address,
    names::{CORE_GROUP, CORE_PROVIDER, label},
};

/// Where Clusters are defaulted.
pub const MUTATE_PATH: &str = "/mutate-cluster-x-k8s-io-v1beta2-cluster";
/// Where Clusters are judged.
pub const VALIDATE_PATH: &str = "/validate-cluster-x-k8s-io-v1beta2-cluster";

/// Both configurations, under the names that upstream's release gives them.
pub fn webhook_configurations(
    address: Address<'_>,
) -> (MutatingWebhookConfiguration, ValidatingWebhookConfiguration) {
    let metadata = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(label::PROVIDER.to_owned(), CORE_PROVIDER.to_owned())].into()),
        ..ObjectMeta::default()
    };
    let rule = |operations: &[&str]| {
        let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        vec![RuleWithOperations {
            api_groups: owned(&[CORE_GROUP]),
            api_versions: owned(&["v1beta2"]),
            operations: owned(operations),
            resources: owned(&["clusters"]),
            scope: None,
        }]
    };
    // An unchecked Cluster may be invalid in ways that cannot be undone.
    let fail = || Some("Fail".to_owned());
    // Clients of older versions are asked about too.
    let equivalent = || Some("Equivalent".to_owned());
    let mutating = MutatingWebhook {
        name: "default.cluster.cluster.x-k8s.io".to_owned(),
        client_config: address.client_config(MUTATE_PATH),
        rules: Some(rule(&["CREATE", "UPDATE"])),
        failure_policy: fail(),
        match_policy: equivalent(),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..MutatingWebhook::default()
    };
    let validating = ValidatingWebhook {
        name: "validation.cluster.cluster.x-k8s.io".to_owned(),
        client_config: address.client_config(VALIDATE_PATH),
        rules: Some(rule(&["CREATE", "UPDATE", "DELETE"])),
        failure_policy: fail(),
        match_policy: equivalent(),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    };
    (
        MutatingWebhookConfiguration {
            metadata: metadata("capi-mutating-webhook-configuration"),
            webhooks: Some(vec![mutating]),
        },
        ValidatingWebhookConfiguration {
            metadata: metadata("capi-validating-webhook-configuration"),
            webhooks: Some(vec![validating]),
        },
    )
}
