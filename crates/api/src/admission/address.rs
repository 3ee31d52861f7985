//! Where an API server reaches webhooks.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{ServiceReference, WebhookClientConfig},
};

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
    /// How the API server reaches the webhook at a path.
    pub(crate) fn client_config(self, path: &str) -> WebhookClientConfig {
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
