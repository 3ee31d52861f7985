//! Whether cert-manager answers.

use std::time::Duration;

use kube::{api::PostParams, core::GroupVersionKind, discovery::ApiResource};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{CertManagerError, GROUP};
use crate::{Kind, ManagementCluster, ServerError};

/// A namespace that every cluster has.
const NAMESPACE: &str = "default";
const NAME: &str = "capstan-probe";
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Asks it to accept an Issuer and a Certificate: they pass through its webhooks, but are not kept.
pub(super) async fn probe(cluster: &ManagementCluster) -> Result<(), ServerError> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    for (kind, object) in probes() {
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError);
        let doing = || format!("try whether cert-manager accepts an object of kind {}", kind.resource.kind);
        let object = object.map_err(|error| cluster.failed(doing(), error))?;
        let api = cluster.objects(&kind, Some(NAMESPACE));
        api.create(&params, &object).await.map_err(|error| cluster.failed(doing(), error))?;
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
        let reason = error.to_string();
        if start.elapsed() >= limit {
            return Err(CertManagerError::NotWorking { limit, reason });
        }
        tell(&reason);
        sleep(delay.min(limit.saturating_sub(start.elapsed()))).await;
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
