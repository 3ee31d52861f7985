//! The kubeconfig that is created for a workload cluster's administrator, and when it is renewed.

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    names::{CORE_GROUP, label, secret},
};
use capstan_manifest::yaml;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use x509_parser::parse_x509_certificate;

use super::authority::Authority;
use crate::{connection::secrets::Mark, snapshot::ClusterRecord};

/// How long a client certificate is valid.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Clocks differ: a certificate is valid from a little before it is made.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(5);
/// What the API server calls its first administrator, and the group that may do all.
const USER: &str = "kubernetes-admin";
const GROUP: &str = "system:masters";

/// Where clients find the API server.
pub(crate) fn server_url(endpoint: &ApiEndpoint) -> String {
    let ApiEndpoint { host, port } = endpoint;
    let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if is_bare_ipv6 { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

fn user_name(cluster: &str) -> String {
    format!("{cluster}-admin")
}

fn context_name(cluster: &str) -> String {
    format!("{}@{cluster}", user_name(cluster))
}

/// A kubeconfig that was just made.
pub(crate) struct Fresh {
    /// Its text.
    pub(crate) text: String,
    /// When its client certificate ends.
    pub(crate) not_after: Timestamp,
}

/// Makes a kubeconfig with a new key and a client certificate.
pub(crate) fn make(
    cluster: &str,
    server: &str,
    authority: Authority,
    now: Timestamp,
) -> Result<Fresh, String> {
    if authority.not_after() <= now {
        return Err(format!(
            "the certificate in {} expired at {}",
            secret::CERTIFICATE_KEY,
            authority.not_after()
        ));
    }
    // No certificate is worth anything without the one that it was signed with.
    let not_after =
        now.saturating_add(LIFE).map_or(authority.not_after(), |end| end.min(authority.not_after()));
    let not_before = now.saturating_sub(CLOCK_DIFFERENCE).unwrap_or(now);
    let authority_pem = pem(authority.certificate());
    let identity = authority.issue(USER, GROUP, not_before, not_after)?;
    let base64 = |text: String| json!(ByteString(text.into_bytes()));
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {
            "server": server,
            "certificate-authority-data": base64(authority_pem),
        }}],
        "users": [{"name": user_name(cluster), "user": {
            "client-certificate-data": base64(identity.certificate_pem),
            "client-key-data": base64(identity.key_pem),
        }}],
        "contexts": [{"name": context_name(cluster), "context": {
            "cluster": cluster,
            "user": user_name(cluster),
        }}],
        "current-context": context_name(cluster),
    });
    Ok(Fresh { text: yaml::to_string(&kubeconfig), not_after: identity.not_after })
}

/// A certificate in PEM, with nothing around it.
fn pem(der: &[u8]) -> String {
    let Value::String(base64) = json!(ByteString(der.to_vec())) else { return String::new() };
    let lines: Vec<_> = base64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// The Secret that holds a kubeconfig, as upstream writes it.
pub(crate) fn secret(cluster: &ClusterRecord, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": secret::TYPE,
        "metadata": {
            "name": format!("{}-{}", cluster.name(), secret::KUBECONFIG),
            "namespace": cluster.metadata.namespace,
            "labels": {label::CLUSTER_NAME: cluster.name()},
            "ownerReferences": [{
                "apiVersion": format!("{CORE_GROUP}/v1beta2"),
                "kind": "Cluster",
                "name": cluster.name(),
                "uid": cluster.uid(),
            }],
        },
        "data": {secret::VALUE_KEY: ByteString(text.as_bytes().to_vec())},
    })
}

/// A kubeconfig of the shape that [`make`] gives: one that we, or upstream, made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    server: String,
    authority: Mark,
    not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Made {
    /// Recognizes a kubeconfig that was created here. One of another shape is not ours to change.
    pub(crate) fn recognize(cluster: &str, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let kubeconfig = Kubeconfig::from_yaml(text).ok()?;
        if kubeconfig.current_context.as_deref() != Some(&*context_name(cluster)) {
            return None;
        }
        let ([cluster_entry], [user_entry], [context_entry]) =
            (&*kubeconfig.clusters, &*kubeconfig.auth_infos, &*kubeconfig.contexts)
        else {
            return None;
        };
        let context = context_entry.context.as_ref()?;
        let named_as_ours = cluster_entry.name == cluster
            && user_entry.name == user_name(cluster)
            && context.cluster == cluster
            && context.user.as_deref() == Some(&*user_entry.name);
        let (remote, user) = (cluster_entry.cluster.as_ref()?, user_entry.auth_info.as_ref()?);
        let has_other_credentials = user.token.is_some()
            || user.exec.is_some()
            || user.username.is_some()
            || user.impersonate.is_some();
        let has_other_ways = remote.proxy_url.is_some()
            || remote.tls_server_name.is_some()
            || remote.insecure_skip_tls_verify == Some(true);
        if !named_as_ours || has_other_credentials || has_other_ways {
            return None;
        }
        let authority = Mark::of_pem(&decode(remote.certificate_authority_data.as_deref()?)?)?;
        let certificate =
            CertificateDer::from_pem_slice(&decode(user.client_certificate_data.as_deref()?)?).ok()?;
        let (_, certificate) = parse_x509_certificate(&certificate).ok()?;
        let is_admin = certificate.subject().iter_common_name().any(|name| name.as_str() == Ok(USER));
        if !is_admin {
            return None;
        }
        let validity = certificate.validity();
        Some(Self {
            server: remote.server.clone()?,
            authority,
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        })
    }

    /// Half of its life is over then. Upstream's certificates begin with their authority: their life is a year as well.
    fn half(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before).min(LIFE);
        self.not_after.saturating_sub(life / 2).unwrap_or(self.not_before)
    }

    /// Whether renewal is due.
    pub(crate) fn renewal(&self, server: &str, authority: Option<Mark>, now: Timestamp) -> Renewal {
        if self.server != server {
            return Renewal::Due(Why::Endpoint);
        }
        if authority.is_some_and(|authority| authority != self.authority) {
            return Renewal::Due(Why::Authority);
        }
        match Duration::try_from(self.half().duration_since(now)) {
            Ok(left) if !left.is_zero() => Renewal::In(left),
            _ => Renewal::Due(Why::Age),
        }
    }
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    serde_json::from_value::<ByteString>(json!(base64)).ok().map(|bytes| bytes.0)
}

/// When a kubeconfig is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Now.
    Due(Why),
    /// Later, if nothing else happens.
    In(Duration),
}

/// Why a kubeconfig is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The Cluster's endpoint is another one.
    Endpoint,
    /// The cluster's certificate authority is another one.
    Authority,
    /// Half of the client certificate's life is over.
    Age,
}
