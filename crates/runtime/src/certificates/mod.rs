//! Certificates for webhooks that a manager makes, shares with its replicas and renews by itself.
//!
//! One *authority* is kept in a Secret. Every replica signs a serving certificate with it, in memory, and the first
//! replica to see it writes the authority's certificate as `caBundle` wherever an API server needs it to trust the
//! webhooks: in CRDs and webhook configurations that name the manager's Service. No replica needs to lead for that:
//! all decide the same from the same Secret, and every write is guarded by the state it was decided on.
//!
//! An authority is replaced in three steps, so that every certificate served is trusted by every API server:
//! the next one is *introduced* (trusted, but signs nothing), *promoted* once every bundle has it (the old one is
//! still trusted), and the old one is *retired* when nothing that it signed can be valid any more.

mod authority;
mod contention;
mod keeper;
mod plan;
mod targets;
mod validity;

pub use authority::Authority;
pub(crate) use keeper::Keeper;
pub use plan::{Previous, Spread, Step, Stored, apply, decide};

/// The field manager of the Secret and the bundles.
const FIELD_MANAGER: &str = "capstan-webhooks";

/// The Service and Secret of a manager's webhooks.
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
