//! The flags of a manager, under the names that upstream's managers use.

use std::{path::PathBuf, time::Duration};

use capstan_api::admission::rules;
use clap::{ArgAction, Args};

use crate::certificates::WebhookIdentity;

/// Flags that every manager has.
#[derive(Args, Clone, Debug)]
pub struct ManagerOptions {
    /// Kubeconfig of the management cluster [default: $KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Only objects in this namespace are reconciled [default: all namespaces]
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    pub namespace: String,

    /// Only objects whose label cluster.x-k8s.io/watch-filter has this value are reconciled [default: all objects]
    #[arg(long, value_name = "VALUE", default_value = "", hide_default_value = true)]
    pub watch_filter: String,

    /// Reconcile only while holding a Lease, so that several replicas can run
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true")]
    pub leader_elect: bool,

    /// How long candidates wait before they take an unchanged Lease
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    pub leader_elect_lease_duration: Duration,

    /// How long a leader keeps leading without renewing its Lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub leader_elect_renew_deadline: Duration,

    /// How often leader and candidates look at the Lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub leader_elect_retry_period: Duration,

    /// How often every object is looked at even if nothing happened
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub sync_period: Duration,

    /// Requests a second to the API server; 0 leaves the limit to the server's priority and fairness
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub kube_api_qps: f64,

    /// Requests at once beyond --kube-api-qps
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    pub kube_api_burst: u32,

    /// Address of /healthz and /readyz; 0 for none
    #[arg(long, value_name = "ADDRESS", default_value = ":9440")]
    pub health_addr: String,

    /// Address of /metrics, over TLS and with the API server's authorization; 0 for none
    #[arg(long, value_name = "ADDRESS", default_value = ":8443")]
    pub diagnostics_address: String,

    /// Serve /metrics over plain HTTP to every client that can connect
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true")]
    pub insecure_diagnostics: bool,

    /// Port of the webhooks; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub webhook_port: u16,

    /// Folder with the webhooks' tls.crt and tls.key [default: the manager makes its certificates itself]
    #[arg(long, value_name = "DIR")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Secret that holds the authority for certificates that the manager makes [default: the Service's name and -ca]
    #[arg(long, value_name = "NAME")]
    pub webhook_cert_secret: Option<String>,

    /// Service in front of the webhooks [default: capi-webhook-service, or the local provider's]
    #[arg(long, value_name = "NAME")]
    pub webhook_service: Option<String>,

    /// Namespace of that Service and Secret; without any of these flags and outside a Pod, no webhooks are served
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE")]
    pub webhook_namespace: Option<String>,
}

impl ManagerOptions {
    /// For a manager inside another program: no servers, no election, all namespaces.
    pub fn embedded() -> Self {
        Self {
            kubeconfig: None,
            namespace: String::new(),
            watch_filter: String::new(),
            leader_elect: false,
            leader_elect_lease_duration: Duration::from_secs(15),
            leader_elect_renew_deadline: Duration::from_secs(10),
            leader_elect_retry_period: Duration::from_secs(2),
            sync_period: Duration::from_mins(10),
            kube_api_qps: 0.0,
            kube_api_burst: 200,
            health_addr: "0".to_owned(),
            diagnostics_address: "0".to_owned(),
            insecure_diagnostics: false,
            webhook_port: 0,
            webhook_cert_dir: None,
            webhook_cert_secret: None,
            webhook_service: None,
            webhook_namespace: None,
        }
    }

    /// The Service and Secret of webhooks that a manager serves with its own certificates; nothing if no flag names them.
    pub fn webhook_identity(&self, service: &str, client_namespace: &str) -> Option<WebhookIdentity> {
        let said = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let namespace = said(&self.webhook_namespace);
        let (named, secret) = (said(&self.webhook_service), said(&self.webhook_cert_secret));
        if namespace.is_none() && named.is_none() && secret.is_none() {
            return None;
        }
        let service = named.unwrap_or_else(|| service.to_owned());
        Some(WebhookIdentity {
            namespace: namespace.unwrap_or_else(|| client_namespace.to_owned()),
            secret: secret.unwrap_or_else(|| format!("{service}-ca")),
            service,
        })
    }

    /// Checks what clap cannot see.
    pub fn validate(&self) -> Result<(), OptionsError> {
        if !self.namespace.is_empty() && !rules::is_dns_label(&self.namespace) {
            return Err(OptionsError(format!(
                "--namespace {:?} is not the name of a namespace: it must be at most 63 lower case letters, digits and \
                 '-', and begin and end with a letter or digit",
                self.namespace
            )));
        }
        if let Err(detail) = rules::label_value(&self.watch_filter) {
            return Err(OptionsError(format!(
                "--watch-filter {:?} is not the value of a label: it {detail}",
                self.watch_filter
            )));
        }
        if self.leader_elect {
            if self.leader_elect_lease_duration <= self.leader_elect_renew_deadline {
                return Err(OptionsError(
                    "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline"
                        .to_owned(),
                ));
            }
            if self.leader_elect_renew_deadline <= self.leader_elect_retry_period {
                return Err(OptionsError(
                    "--leader-elect-renew-deadline must be longer than --leader-elect-retry-period"
                        .to_owned(),
                ));
            }
            if self.leader_elect_retry_period.is_zero() {
                return Err(OptionsError("--leader-elect-retry-period must be longer than 0".to_owned()));
            }
        }
        if self.sync_period < Duration::from_secs(1) {
            return Err(OptionsError("--sync-period must be at least 1s".to_owned()));
        }
        if !self.kube_api_qps.is_finite() || self.kube_api_qps < 0.0 {
            return Err(OptionsError("--kube-api-qps must be 0 or more".to_owned()));
        }
        Ok(())
    }
}

/// A flag that cannot be used, or flags that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(String);

/// Reads a duration as Go writes it: `300ms`, `1.5h`, `2h45m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let malformed = || format!("{text:?} is not a duration: write it like 30s, 10m or 1h30m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(malformed)?;
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| malformed())?;
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(malformed()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| malformed())?;
        total = total.checked_add(part).ok_or_else(malformed)?;
        rest = tail;
    }
    if text.is_empty() { Err(malformed()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_served_if_a_flag_names_them() {
        let identity = |namespace: Option<&str>, service: Option<&str>, secret: Option<&str>| {
            let options = ManagerOptions {
                webhook_namespace: namespace.map(str::to_owned),
                webhook_service: service.map(str::to_owned),
                webhook_cert_secret: secret.map(str::to_owned),
                ..ManagerOptions::embedded()
            };
            options.webhook_identity("svc", "mine").map(|it| (it.namespace, it.service, it.secret))
        };
        let text = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(identity(None, None, None), None);
        assert_eq!(identity(Some(""), None, None), None);
        assert_eq!(identity(Some("n"), None, None), text("n", "svc", "svc-ca"));
        assert_eq!(identity(None, Some("s"), None), text("mine", "s", "s-ca"));
        assert_eq!(identity(Some("n"), Some("s"), Some("x")), text("n", "s", "x"));
    }

    #[test]
    fn flags_that_no_object_could_match_are_refused() {
        for (namespace, filter, expected) in [
            ("", "", None),
            ("capi-system", "mine.v1_2", None),
            ("BAD NS", "", Some("--namespace \"BAD NS\" is not the name of a namespace")),
            ("a.b", "", Some("--namespace")),
            ("-a", "", Some("--namespace")),
            (&"a".repeat(64), "", Some("--namespace")),
            ("", "a b!", Some("--watch-filter \"a b!\" is not the value of a label: it must consist of")),
            ("", &"a".repeat(64), Some("--watch-filter")),
            ("", "a=b", Some("--watch-filter")),
        ] {
            let options = ManagerOptions {
                namespace: namespace.to_owned(),
                watch_filter: filter.to_owned(),
                ..ManagerOptions::embedded()
            };
            match (options.validate(), expected) {
                (Ok(()), None) => {}
                (Err(error), Some(words)) => assert!(error.to_string().starts_with(words), "{error}"),
                (result, _) => panic!("{namespace:?}, {filter:?}: {result:?}"),
            }
        }
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("10m", Some(600_000)),
            ("10m0s", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("300ms", Some(300)),
            ("", None),
            ("10", None),
            ("m", None),
            ("-1s", None),
            ("1d", None),
            ("1.2.3s", None),
            ("9999999999999999999999h", None),
        ] {
            let read = parse_duration(text).ok().map(|duration| duration.as_millis());
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
