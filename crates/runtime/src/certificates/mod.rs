//! Certificates for webhooks that a manager makes, shares with its replicas and renews by itself.
//!
//! One *authority* is kept in a Secret. Every replica signs a serving certificate with it, in memory, and whoever of
//! them comes first writes the authority's certificate as `caBundle` wherever an API server needs it to trust the
//! webhooks: in CRDs and webhook configurations that name the manager's Service. No replica needs to lead for that:
//! all decide the same from the same Secret, and every write is guarded by the state it was decided on.
//!
//! An authority is replaced in three steps, so that at no moment a certificate is shown that somebody cannot trust:
//! the next one is *introduced* (trusted, but signs nothing), *promoted* once every bundle has it (the old one is
//! still trusted), and the old one is *retired* when nothing that it signed can be valid any more.

mod authority;
mod keeper;
mod plan;
mod quarrel;
mod targets;
mod validity;

pub use authority::Authority;
pub(crate) use keeper::Keeper;
pub use plan::{Previous, Spread, Step, Stored, apply, decide};

/// Under this name the Secret and the bundles are written.
const FIELD_MANAGER: &str = "capstan-webhooks";

/// Whose webhooks these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookIdentity {
    /// The namespace of Service and Secret.
    pub namespace: String,
    /// The Service in front of the webhooks.
    pub service: String,
    /// The Secret with the authority.
    pub secret: String,
}

impl WebhookIdentity {
    /// The names under which API servers call the webhooks.
    pub fn dns_names(&self) -> Vec<String> {
        let Self { namespace, service, .. } = self;
        let host = format!("{service}.{namespace}.svc");
        vec![host.clone(), format!("{host}.cluster.local"), format!("{service}.{namespace}"), service.clone()]
    }
}
