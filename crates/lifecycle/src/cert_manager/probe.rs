//! Whether cert-manager answers.

use std::time::Duration;

use kube::{
    api::{Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{CertManagerError, GROUP};
use capstan_management::{Kind, ManagementCluster, ServerError, apply};

/// A namespace that every cluster has.
const NAMESPACE: &str = "default";
const NAME: &str = "capstan-probe";
/// As long as its kinds are not served, which costs a server next to nothing to say.
const UNKNOWN_DELAY: Duration = Duration::from_millis(50);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Asks it to accept an Issuer and a Certificate: they pass through its webhooks, but are not kept.
pub(super) async fn probe(cluster: &ManagementCluster) -> Result<(), ServerError> {
    // Servers keep whoever creates an object of a kind that is new waiting for two seconds, but nobody who applies one.
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

/// Waits until it answers; `tell` is told why it does not yet.
pub(super) async fn wait(
    cluster: &ManagementCluster,
    limit: Duration,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), CertManagerError> {
    let start = Instant::now();
    let mut delay = FIRST_DELAY;
    loop {
        let Err(error) = probe(cluster).await else { return Ok(()) };
        // Who may not ask will not be allowed to a second later.
        if error.status().is_some_and(|it| matches!(it.code, 401 | 403)) {
            return Err(error.into());
        }
        let is_unknown = error.status().is_some_and(|it| it.code == 404);
        let reason = error.to_string();
        if start.elapsed() >= limit {
            return Err(CertManagerError::NotWorking { limit, reason });
        }
        tell(&reason);
        let rest = limit.saturating_sub(start.elapsed());
        if is_unknown {
            sleep(UNKNOWN_DELAY.min(rest)).await;
            continue;
        }
        sleep(delay.min(rest)).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}

fn probes() -> [(Kind, Value); 2] {
    let object = |kind: &str, spec: Value| {
        let gvk = GroupVersionKind::gvk(GROUP, "v1", kind);
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": spec,
        });
        let resource = ApiResource::from_gvk(&gvk);
        (Kind { resource, is_namespaced: true, is_managed: true, is_preferred: true }, object)
    };
    [
        object("Issuer", json!({"selfSigned": {}})),
        object(
            "Certificate",
            json!({"dnsNames": ["example.com"], "secretName": NAME, "issuerRef": {"name": NAME}}),
        ),
    ]
}
