//! The object by which an API server knows that it is to ask about providers.

use k8s_openapi::{
    api::admissionregistration::v1::{RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    admission::Address,
    names::{OPERATOR, label},
    operator::{GROUP, VERSION, plural},
    provider::ProviderType,
};

/// How long the API server waits for an answer: nobody should wait long for a check that may be skipped.
const TIMEOUT_SECONDS: i32 = 5;

/// Where providers of a type are judged.
pub fn validate_path(kind: ProviderType) -> String {
    format!("/validate-{}-{VERSION}-{}", GROUP.replace('.', "-"), kind.as_str().to_lowercase())
}

/// The configuration, under the name that upstream's release gives it, with a webhook for each kind.
pub fn webhook_configuration(address: Address<'_>) -> ValidatingWebhookConfiguration {
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some("capi-operator-validating-webhook-configuration".to_owned()),
            labels: Some([(label::CLUSTERCTL_CORE.to_owned(), OPERATOR.to_owned())].into()),
            ..ObjectMeta::default()
        },
        webhooks: Some(ProviderType::ALL.into_iter().map(|kind| webhook(kind, address)).collect()),
    }
}

fn webhook(kind: ProviderType, address: Address<'_>) -> ValidatingWebhook {
    let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    ValidatingWebhook {
        name: format!("validation.{}.{GROUP}", kind.as_str().to_lowercase()),
        client_config: address.client_config(&validate_path(kind)),
        rules: Some(vec![RuleWithOperations {
            api_groups: owned(&[GROUP]),
            api_versions: owned(&[VERSION]),
            operations: owned(&["CREATE", "UPDATE"]),
            resources: owned(&[plural(kind)]),
            scope: None,
        }]),
        // The schema and the controller judge providers as well.
        failure_policy: Some("Ignore".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    }
}
