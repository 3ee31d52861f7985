//! Whether cert-manager answers.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{CertManagerError, GROUP};
use capstan_management::{
    Kind, ManagementCluster, ServerError, apply,
    retry::{Backoff, Wait},
};

/// A namespace that every cluster has.
const NAMESPACE: &str = "default";
const NAME: &str = "capstan-probe";
/// As long as its kinds are not served, which costs a server next to nothing to say.
const UNKNOWN_DELAY: Duration = Duration::from_millis(50);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// Asks it to accept an Issuer and a Certificate: they pass through its webhooks, but are not kept.
pub(super) async fn probe(cluster: &ManagementCluster) -> Result<(), ServerError> {
    // Servers delay a create of an object of a new kind for two seconds, but not an apply.
    let params = PatchParams { dry_run: true, ..apply::params() };
    for (kind, object) in probes() {
        let api = cluster.objects(&kind, Some(NAMESPACE));
        api.patch(NAME, &params, &Patch::Apply(object)).await.map_err(|error| {
            let kind = &kind.resource.kind;
            cluster.failed(format!("try whether cert-manager accepts an object of kind {kind}"), error)
        })?;
    }
    Ok(())
}

/// Waits until it answers; `tell` receives why it does not yet.
pub(super) async fn wait(
    cluster: &ManagementCluster,
    limit: Duration,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), CertManagerError> {
    let mut wait = Wait::new(BACKOFF, limit);
    loop {
        let Err(error) = probe(cluster).await else { return Ok(()) };
        let code = error.status().map(|it| it.code);
        // A second later the answer will be the same.
        if matches!(code, Some(401 | 403)) {
            return Err(error.into());
        }
        let reason = error.to_string();
        // Even a limit shorter than one probe shows what is being waited for.
        tell(&reason);
        if wait.is_over() {
            return Err(CertManagerError::NotWorking { limit, reason });
        }
        match code {
            Some(404) => wait.pause_for(UNKNOWN_DELAY).await,
            _ => wait.pause().await,
        }
    }
}

fn probes() -> [(Kind, Value); 2] {
    let object = |kind: &str, spec: Value| {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": spec,
        });
        (Kind::namespaced(GROUP, "v1", kind), object)
    };
    [
        object("Issuer", json!({"selfSigned": {}})),
        object(
            "Certificate",
            json!({"dnsNames": ["example.com"], "secretName": NAME, "issuerRef": {"name": NAME}}),
        ),
    ]
}
