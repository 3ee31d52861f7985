//! The objects by which an API server knows that it is to ask about Clusters.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
        ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::names::{CORE_GROUP, CORE_PROVIDER, label};

/// Where Clusters are defaulted.
pub const MUTATE_PATH: &str = "/mutate-cluster-x-k8s-io-v1beta2-cluster";
/// Where Clusters are judged.
pub const VALIDATE_PATH: &str = "/validate-cluster-x-k8s-io-v1beta2-cluster";

/// Where the webhooks are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// Behind a Service. The manager that serves them adds the CA bundle.
    Service {
        /// The Service's namespace.
        namespace: &'a str,
        /// The Service's name.
        name: &'a str,
    },
    /// At a URL, such as a manager on a developer's machine.
    Url {
        /// Scheme, host and port.
        base: &'a str,
        /// The authority that the certificate is from.
        ca_bundle_pem: &'a [u8],
    },
}

impl Address<'_> {
    fn client_config(self, path: &str) -> WebhookClientConfig {
        match self {
            Self::Service { namespace, name } => WebhookClientConfig {
                service: Some(ServiceReference {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    path: Some(path.to_owned()),
                    port: None,
                }),
                ..WebhookClientConfig::default()
            },
            Self::Url { base, ca_bundle_pem } => WebhookClientConfig {
                url: Some(format!("{base}{path}")),
                ca_bundle: Some(ByteString(ca_bundle_pem.into())),
                ..WebhookClientConfig::default()
            },
        }
    }
}

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
