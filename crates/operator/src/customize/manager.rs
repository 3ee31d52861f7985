//! Flags and probes of a controller manager.

use std::collections::BTreeMap;

use capstan_api::operator::{DurationValue, LeaderElectionSpec, ManagerSpec};
use capstan_runtime::options::parse_duration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value};

use super::CustomizeError;
use super::flags::Flags;

/// The verbosity of `debug`.
const DEBUG_VERBOSITY: i64 = 5;
/// The profiler's address of `debug`.
const DEBUG_PROFILER: &str = "localhost:6060";

/// What a spec asks of the container of the controller manager.
#[derive(Default)]
pub(super) struct ManagerChanges<'a> {
    flags: Flags,
    feature_gates: Option<&'a BTreeMap<String, bool>>,
    readiness_path: Option<String>,
    liveness_path: Option<String>,
}

impl<'a> ManagerChanges<'a> {
    pub(super) fn read(spec: &'a ManagerSpec, problems: &mut Vec<CustomizeError>) -> Self {
        let metrics = spec.metrics.clone().unwrap_or_default();
        let health = spec.health.clone().unwrap_or_default();
        let webhook = spec.webhook.clone().unwrap_or_default();
        let (verbosity, profiler) = if spec.debug {
            (Some(DEBUG_VERBOSITY), Some(DEBUG_PROFILER.to_owned()))
        } else {
            (spec.verbosity, given(spec.profiler_address.as_ref()))
        };
        let number = |number: Option<i64>| number.map(|it| it.to_string());
        let mut flags = Flags::default();
        for (name, value) in [
            ("sync-period", duration("spec.manager.syncPeriod", spec.sync_period.as_ref(), problems)),
            (
                "metrics-bind-addr",
                given(metrics.bind_address.as_ref()).or_else(|| given(spec.metrics_address.as_ref())),
            ),
            ("health-addr", given(health.health_probe_bind_address.as_ref())),
            ("webhook-port", number(webhook.port)),
            ("webhook-host", given(webhook.host.as_ref())),
            ("webhook-cert-dir", given(webhook.cert_dir.as_ref())),
            ("profiler-address", profiler),
            ("max-concurrent-reconciles", number(spec.max_concurrent_reconciles)),
            ("v", number(verbosity)),
        ] {
            if let Some(value) = value {
                flags.set(name, value);
            }
        }
        if let Some(election) = &spec.leader_election {
            set_leader_election(&mut flags, election, problems);
        }
        let path = |endpoint| given(endpoint).map(|it: String| format!("/{}", it.trim_start_matches('/')));
        Self {
            flags,
            feature_gates: Some(&spec.feature_gates).filter(|gates| !gates.is_empty()),
            readiness_path: path(health.readiness_endpoint_name.as_ref()),
            liveness_path: path(health.liveness_endpoint_name.as_ref()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flags.is_empty()
            && self.feature_gates.is_none()
            && self.readiness_path.is_none()
            && self.liveness_path.is_none()
    }

    /// The flags to set, without those of feature gates.
    pub(super) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The feature gates to set, if there are any.
    pub(super) fn feature_gates(&self) -> Option<&'a BTreeMap<String, bool>> {
        self.feature_gates
    }

    /// Replaces the paths of the probes that a container has.
    pub(super) fn rewrite_probes(&self, container: &mut Map<String, Value>) {
        for (probe, path) in
            [("readinessProbe", &self.readiness_path), ("livenessProbe", &self.liveness_path)]
        {
            let get = container.get_mut(probe).and_then(|it| it.get_mut("httpGet"));
            if let (Some(get), Some(path)) = (get.and_then(Value::as_object_mut), path) {
                get.insert("path".to_owned(), Value::from(path.as_str()));
            }
        }
    }
}

/// Sets the flags of leader election; without it, its lock and its times mean nothing.
fn set_leader_election(flags: &mut Flags, spec: &LeaderElectionSpec, problems: &mut Vec<CustomizeError>) {
    if let Some(is_on) = spec.leader_elect {
        flags.set("leader-elect", is_on.to_string());
    }
    if spec.leader_elect == Some(false) {
        return;
    }
    let namespace = given(spec.resource_namespace.as_ref());
    let id = given(spec.resource_name.as_ref()).map(|name| match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    });
    for (name, value) in [
        ("leader-election-id", id),
        (
            "leader-elect-lease-duration",
            duration("spec.manager.leaderElection.leaseDuration", spec.lease_duration.as_ref(), problems),
        ),
        (
            "leader-elect-renew-deadline",
            duration("spec.manager.leaderElection.renewDeadline", spec.renew_deadline.as_ref(), problems),
        ),
        (
            "leader-elect-retry-period",
            duration("spec.manager.leaderElection.retryPeriod", spec.retry_period.as_ref(), problems),
        ),
    ] {
        if let Some(value) = value {
            flags.set(name, value);
        }
    }
}

/// An empty text is no text: templates of users leave it behind.
fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn duration(
    field: &'static str,
    value: Option<&DurationValue>,
    problems: &mut Vec<CustomizeError>,
) -> Option<String> {
    match seconds(value?) {
        Ok(seconds) => Some(format!("{seconds}s")),
        Err(reason) => {
            problems.push(CustomizeError::Duration { field, reason });
            None
        }
    }
}

/// A duration in seconds: a bare number means seconds. Fractions are rounded, but what is more than nothing stays so.
fn seconds(value: &DurationValue) -> Result<i64, String> {
    let text = match value {
        IntOrString::Int(seconds) => seconds.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = parse_duration(&if is_number { format!("{text}s") } else { text.clone() })?;
    let rounded = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    let seconds = if duration.is_zero() { 0 } else { rounded.max(1) };
    i64::try_from(seconds).map_err(|_| format!("{text:?} is too long for a duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_seconds() {
        let text = |text: &str| IntOrString::String(text.to_owned());
        for (value, expected) in [
            (IntOrString::Int(660), Ok(660)),
            (IntOrString::Int(0), Ok(0)),
            (text("660"), Ok(660)),
            (text("660s"), Ok(660)),
            (text("11m"), Ok(660)),
            (text("10m30s"), Ok(630)),
            (text("1h"), Ok(3600)),
            (text("1.5h"), Ok(5400)),
            (text("0s"), Ok(0)),
            (text("1499ms"), Ok(1)),
            (text("1500ms"), Ok(2)),
            (text("1ms"), Ok(1)),
            (text("1ns"), Ok(1)),
            (text(""), Err(r#""" is not a duration: write it like 30s, 10m or 1h30m"#)),
            (text("soon"), Err(r#""soon" is not a duration: write it like 30s, 10m or 1h30m"#)),
            (text("-5s"), Err(r#""-5s" is not a duration: write it like 30s, 10m or 1h30m"#)),
            (IntOrString::Int(-5), Err(r#""-5" is not a duration: write it like 30s, 10m or 1h30m"#)),
            (
                text("9223372036854775807h"),
                Err(r#""9223372036854775807h" is not a duration: write it like 30s, 10m or 1h30m"#),
            ),
            (text("10000000000000000000"), Err(r#""10000000000000000000" is too long for a duration"#)),
        ] {
            assert_eq!(seconds(&value), expected.map_err(str::to_owned), "{value:?}");
        }
    }
}
