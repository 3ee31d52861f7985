//! The fields that the contract puts in a provider's objects, read and written by path.
//!
//! Providers' objects are JSON values: core knows nothing of them but these paths.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json, value::RawValue};

use super::ContractVersion;
use crate::cluster::v1beta2::{ApiEndpoint, FailureDomain, VersionStatus};

/// A field of a provider's object is not what the contract says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} must be {expected} in contract {contract}, but is {found}")]
pub struct FieldError {
    /// Where the field is, e.g. `status.failureDomains`.
    pub path: String,
    /// What the contract says of it.
    pub expected: &'static str,
    /// The contract in force.
    pub contract: ContractVersion,
    /// The value found instead.
    pub found: String,
}

/// A failure that the provider says cannot be recovered from (contract v1beta1 only).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalFailure {
    /// A word for programs.
    pub reason: Option<String>,
    /// A sentence for people.
    pub message: Option<String>,
}

/// Reads one object under one contract.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    object: &'a Value,
    contract: ContractVersion,
}

impl<'a> Reader<'a> {
    /// The value at a dotted path; an explicit null counts as absent.
    fn at(self, path: &str) -> Option<&'a Value> {
        path.split('.')
            .try_fold(self.object, |value, segment| value.get(segment))
            .filter(|value| !value.is_null())
    }

    fn error(self, path: impl Into<String>, expected: &'static str, found: &Value) -> FieldError {
        FieldError { path: path.into(), expected, contract: self.contract, found: describe(found) }
    }

    fn bool(self, path: &str) -> Result<Option<bool>, FieldError> {
        self.at(path)
            .map(|value| value.as_bool().ok_or_else(|| self.error(path, "a boolean", value)))
            .transpose()
    }

    fn count(self, path: &str) -> Result<Option<i32>, FieldError> {
        self.at(path)
            .map(|value| {
                value
                    .as_i64()
                    .and_then(|number| i32::try_from(number).ok())
                    .ok_or_else(|| self.error(path, "a 32-bit integer", value))
            })
            .transpose()
    }

    fn text(self, path: &str) -> Result<Option<&'a str>, FieldError> {
        self.at(path)
            .map(|value| value.as_str().ok_or_else(|| self.error(path, "a string", value)))
            .transpose()
    }

    /// `spec.controlPlaneEndpoint`, absent or with either half missing as long as the provider has not set it.
    fn control_plane_endpoint(self) -> Result<ApiEndpoint, FieldError> {
        const PATH: &str = "spec.controlPlaneEndpoint";
        let Some(value) = self.at(PATH) else {
            return Ok(ApiEndpoint::default());
        };
        if !value.is_object() {
            return Err(self.error(PATH, "an object with host and port", value));
        }
        let host = self.text("spec.controlPlaneEndpoint.host")?.unwrap_or_default();
        let port = match self.at("spec.controlPlaneEndpoint.port") {
            None => 0,
            Some(port) => port
                .as_i64()
                // Contract v1beta1 writes 0 for "not yet".
                .filter(|number| (0..=65535).contains(number))
                .and_then(|number| i32::try_from(number).ok())
                .ok_or_else(|| {
                    self.error("spec.controlPlaneEndpoint.port", "an integer between 1 and 65535", port)
                })?,
        };
        if host.len() > 512 {
            return Err(FieldError {
                path: "spec.controlPlaneEndpoint.host".to_owned(),
                expected: "a host name of at most 512 characters",
                contract: self.contract,
                found: format!("{} characters long", host.len()),
            });
        }
        Ok(ApiEndpoint { host: host.to_owned(), port })
    }

    fn terminal_failure(self) -> Option<TerminalFailure> {
        if self.contract != ContractVersion::V1Beta1 {
            return None;
        }
        // What is not a string is no failure report; the other fields say how the object is.
        let read =
            |path| self.at(path).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let failure =
            TerminalFailure { reason: read("status.failureReason"), message: read("status.failureMessage") };
        (failure.reason.is_some() || failure.message.is_some()).then_some(failure)
    }
}

/// The fields of an InfraCluster that core reads.
#[derive(Clone, Copy, Debug)]
pub struct InfraCluster<'a>(Reader<'a>);

impl<'a> InfraCluster<'a> {
    /// Reads an object under the contract that its CRD's labels led to.
    pub fn new(object: &'a Value, contract: ContractVersion) -> Self {
        Self(Reader { object, contract })
    }

    /// Where the provider says that provisioning is complete.
    pub fn provisioned_path(contract: ContractVersion) -> &'static str {
        match contract {
            ContractVersion::V1Beta1 => "status.ready",
            ContractVersion::V1Beta2 => "status.initialization.provisioned",
        }
    }

    /// Whether the provider says that provisioning is complete.
    pub fn provisioned(self) -> Result<bool, FieldError> {
        Ok(self.0.bool(Self::provisioned_path(self.0.contract))?.unwrap_or(false))
    }

    /// The endpoint that the provider made, zero as long as it has made none.
    pub fn control_plane_endpoint(self) -> Result<ApiEndpoint, FieldError> {
        self.0.control_plane_endpoint()
    }

    /// The failure domains that machines can be placed in, sorted by name.
    pub fn failure_domains(self) -> Result<Vec<FailureDomain>, FieldError> {
        const PATH: &str = "status.failureDomains";
        let reader = self.0;
        let Some(value) = reader.at(PATH) else {
            return Ok(Vec::new());
        };
        let mut domains = match (reader.contract, value) {
            (ContractVersion::V1Beta2, Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    let path = format!("{PATH}[{index}]");
                    let name = item
                        .get("name")
                        .and_then(Value::as_str)
                        .filter(|name| !name.is_empty())
                        .ok_or_else(|| reader.error(&path, "an object with a name", item))?;
                    failure_domain(reader, &path, name, item)
                })
                .collect::<Result<Vec<_>, _>>()?,
            (ContractVersion::V1Beta1, Value::Object(entries)) => entries
                .iter()
                .map(|(name, item)| failure_domain(reader, &format!("{PATH}.{name}"), name, item))
                .collect::<Result<Vec<_>, _>>()?,
            (ContractVersion::V1Beta2, other) => {
                return Err(reader.error(PATH, "a list of {name, controlPlane, attributes}", other));
            }
            (ContractVersion::V1Beta1, other) => {
                return Err(reader.error(PATH, "a map from name to {controlPlane, attributes}", other));
            }
        };
        let limit = |expected, found| FieldError {
            path: PATH.to_owned(),
            expected,
            contract: reader.contract,
            found,
        };
        if domains.len() > 100 {
            return Err(limit("at most 100 failure domains", format!("one of {}", domains.len())));
        }
        if let Some(domain) = domains.iter().find(|it| it.name.is_empty() || it.name.chars().count() > 256) {
            let found = format!("one of {} characters", domain.name.chars().count());
            return Err(limit("failure domains with names of 1 to 256 characters", found));
        }
        domains.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = domains.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(limit("a list with unique names", format!("one with {:?} twice", pair[0].name)));
        }
        Ok(domains)
    }

    /// A failure that cannot be recovered from, if the contract knows such failures and there is one.
    pub fn terminal_failure(self) -> Option<TerminalFailure> {
        self.0.terminal_failure()
    }
}

fn failure_domain(
    reader: Reader<'_>,
    path: &str,
    name: &str,
    item: &Value,
) -> Result<FailureDomain, FieldError> {
    if !item.is_object() {
        return Err(reader.error(path, "an object", item));
    }
    let control_plane = match item.get("controlPlane") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(value)) => *value,
        Some(other) => return Err(reader.error(format!("{path}.controlPlane"), "a boolean", other)),
    };
    let attributes = match item.get("attributes") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(attributes) => serde_json::from_value(attributes.clone())
            .map_err(|_| reader.error(format!("{path}.attributes"), "a map of strings", attributes))?,
    };
    Ok(FailureDomain { name: name.to_owned(), control_plane: Some(control_plane), attributes })
}

/// The fields of a provider's control plane object that core reads.
#[derive(Clone, Copy, Debug)]
pub struct ProviderControlPlane<'a>(Reader<'a>);

impl<'a> ProviderControlPlane<'a> {
    /// Reads an object under the contract that its CRD's labels led to.
    pub fn new(object: &'a Value, contract: ContractVersion) -> Self {
        Self(Reader { object, contract })
    }

    /// Where the provider says that the control plane accepts requests.
    pub fn initialized_path(contract: ContractVersion) -> &'static str {
        match contract {
            ContractVersion::V1Beta1 => "status.initialized",
            ContractVersion::V1Beta2 => "status.initialization.controlPlaneInitialized",
        }
    }

    /// Whether the control plane accepts requests.
    pub fn initialized(self) -> Result<bool, FieldError> {
        Ok(self.0.bool(Self::initialized_path(self.0.contract))?.unwrap_or(false))
    }

    /// The endpoint that the provider made, zero as long as it has made none.
    pub fn control_plane_endpoint(self) -> Result<ApiEndpoint, FieldError> {
        self.0.control_plane_endpoint()
    }

    /// `spec.replicas`.
    pub fn desired_replicas(self) -> Result<Option<i32>, FieldError> {
        self.0.count("spec.replicas")
    }

    /// `status.replicas`.
    pub fn replicas(self) -> Result<Option<i32>, FieldError> {
        self.0.count("status.replicas")
    }

    /// `status.readyReplicas`.
    pub fn ready_replicas(self) -> Result<Option<i32>, FieldError> {
        self.0.count("status.readyReplicas")
    }

    /// Replicas that are available; contract v1beta1 reports the unavailable ones instead.
    pub fn available_replicas(self) -> Result<Option<i32>, FieldError> {
        match self.0.contract {
            ContractVersion::V1Beta2 => self.0.count("status.availableReplicas"),
            ContractVersion::V1Beta1 => {
                let desired = self.desired_replicas()?;
                let unavailable = self.0.count("status.unavailableReplicas")?;
                Ok(desired.zip(unavailable).map(|(desired, unavailable)| (desired - unavailable).max(0)))
            }
        }
    }

    /// Replicas that match the desired state.
    pub fn up_to_date_replicas(self) -> Result<Option<i32>, FieldError> {
        self.0.count(match self.0.contract {
            ContractVersion::V1Beta2 => "status.upToDateReplicas",
            ContractVersion::V1Beta1 => "status.updatedReplicas",
        })
    }

    /// The Kubernetes versions that run, and how often.
    pub fn versions(self) -> Result<Vec<VersionStatus>, FieldError> {
        const PATH: &str = "status.versions";
        let Some(value) = self.0.at(PATH) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.0.error(PATH, "a list", value))?;
        let read = |(index, entry): (usize, &Value)| {
            let error = |expected| self.0.error(format!("{PATH}[{index}]"), expected, entry);
            let version = entry.get("version").and_then(Value::as_str);
            let version = version.filter(|it| (1..=256).contains(&it.len()));
            let version = version.ok_or_else(|| error("an object with a version"))?;
            let replicas = match entry.get("replicas") {
                None | Some(Value::Null) => None,
                Some(count) => Some(
                    count
                        .as_i64()
                        .and_then(|count| i32::try_from(count).ok())
                        .ok_or_else(|| error("an object whose replicas are a 32-bit integer"))?,
                ),
            };
            Ok(VersionStatus { version: version.to_owned(), replicas })
        };
        list.iter().enumerate().map(read).collect()
    }

    /// The Kubernetes version that is asked for.
    pub fn version(self) -> Result<Option<&'a str>, FieldError> {
        self.0.text("spec.version")
    }

    /// A failure that cannot be recovered from, if the contract knows such failures and there is one.
    pub fn terminal_failure(self) -> Option<TerminalFailure> {
        self.0.terminal_failure()
    }
}

/// Writes the contract's fields into an InfraCluster, or into a merge patch for one.
#[derive(Debug)]
pub struct InfraClusterWriter<'a> {
    object: &'a mut Value,
    contract: ContractVersion,
}

impl<'a> InfraClusterWriter<'a> {
    /// Writes into `object`, making the parents of a field where they are missing.
    pub fn new(object: &'a mut Value, contract: ContractVersion) -> Self {
        Self { object, contract }
    }

    /// Says that provisioning is complete (or is not).
    pub fn set_provisioned(&mut self, provisioned: bool) {
        put(self.object, InfraCluster::provisioned_path(self.contract), json!(provisioned));
    }

    /// Records the endpoint that the provider made.
    pub fn set_control_plane_endpoint(&mut self, endpoint: &ApiEndpoint) {
        put(self.object, "spec.controlPlaneEndpoint", json!({"host": endpoint.host, "port": endpoint.port}));
    }

    /// Records the failure domains, in the shape that the contract wants.
    pub fn set_failure_domains(&mut self, domains: &[FailureDomain]) {
        let body = |domain: &FailureDomain| {
            let mut body = Map::new();
            body.insert("controlPlane".into(), json!(domain.control_plane.unwrap_or(false)));
            if !domain.attributes.is_empty() {
                body.insert("attributes".into(), json!(domain.attributes));
            }
            body
        };
        let value = match self.contract {
            ContractVersion::V1Beta1 => Value::Object(
                domains.iter().map(|domain| (domain.name.clone(), Value::Object(body(domain)))).collect(),
            ),
            ContractVersion::V1Beta2 => domains
                .iter()
                .map(|domain| {
                    let mut body = body(domain);
                    body.insert("name".into(), json!(domain.name));
                    Value::Object(body)
                })
                .collect(),
        };
        put(self.object, "status.failureDomains", value);
    }
}

fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for segment in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[segment];
    }
    *place = value;
}

/// What of a provider's object the contract reads, from text to text: everything else may be forgotten.
pub fn essence(spec: &str, status: &str) -> String {
    const SPEC: [&str; 3] = ["controlPlaneEndpoint", "replicas", "version"];
    const STATUS: [&str; 17] = [
        "availableReplicas",
        "conditions",
        "deprecated",
        "externalManagedControlPlane",
        "failureDomains",
        "failureMessage",
        "failureReason",
        "initialization",
        "initialized",
        "ready",
        "readyReplicas",
        "replicas",
        "unavailableReplicas",
        "updatedReplicas",
        "upToDateReplicas",
        "v1beta2",
        "versions",
    ];
    let keep = |text: &str, names: &[&str]| -> String {
        // Something that is not an object has none of the fields.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
        let kept: Vec<_> = names
            .iter()
            .filter_map(|name| fields.get(*name).map(|field| format!("{name:?}:{}", field.get())))
            .collect();
        kept.join(",")
    };
    format!("{{\"spec\":{{{}}},\"status\":{{{}}}}}", keep(spec, &SPEC), keep(status, &STATUS))
}

/// A value as an error message shows it: its kind, and itself where it is short.
fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    match value {
        Value::Array(_) | Value::Object(_) => kind.to_owned(),
        scalar => {
            let text: String = scalar.to_string().chars().take(64).collect();
            format!("{kind} {text}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContractVersion::{V1Beta1, V1Beta2};

    #[test]
    fn provisioned_is_read_where_the_contract_puts_it() {
        let both = json!({"status": {"ready": true, "initialization": {"provisioned": false}}});
        assert_eq!(InfraCluster::new(&both, V1Beta1).provisioned(), Ok(true));
        assert_eq!(InfraCluster::new(&both, V1Beta2).provisioned(), Ok(false));
        assert_eq!(InfraCluster::new(&json!({}), V1Beta2).provisioned(), Ok(false));
        let wrong = json!({"status": {"initialization": {"provisioned": "yes"}}});
        let message = InfraCluster::new(&wrong, V1Beta2).provisioned().unwrap_err().to_string();
        assert_eq!(
            message,
            "status.initialization.provisioned must be a boolean in contract v1beta2, but is the string \"yes\""
        );
    }

    #[test]
    fn endpoints_are_whole_partial_or_malformed() {
        for (endpoint, expected) in [
            (json!(null), Ok((String::new(), 0))),
            (json!({}), Ok((String::new(), 0))),
            (json!({"host": "", "port": 0}), Ok((String::new(), 0))),
            (json!({"host": "h"}), Ok(("h".to_owned(), 0))),
            (json!({"host": "h", "port": 6443}), Ok(("h".to_owned(), 6443))),
            (json!("h:6443"), Err("spec.controlPlaneEndpoint must be an object")),
            (json!({"host": 1, "port": 6443}), Err("spec.controlPlaneEndpoint.host must be a string")),
            (json!({"host": "h", "port": "6443"}), Err("spec.controlPlaneEndpoint.port must be an integer")),
            (json!({"host": "h", "port": 70000}), Err("spec.controlPlaneEndpoint.port must be an integer")),
            (json!({"host": "h", "port": -1}), Err("spec.controlPlaneEndpoint.port must be an integer")),
            (json!({"host": "x".repeat(513), "port": 1}), Err("spec.controlPlaneEndpoint.host must be")),
        ] {
            let object = json!({"spec": {"controlPlaneEndpoint": endpoint}});
            let read = InfraCluster::new(&object, V1Beta2).control_plane_endpoint();
            match (read, expected) {
                (Ok(read), Ok((host, port))) => assert_eq!(read, ApiEndpoint { host, port }),
                (Err(error), Err(start)) => assert!(error.to_string().starts_with(start), "{error}"),
                (read, expected) => panic!("{object}: {read:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn failure_domains_have_a_shape_for_each_contract() {
        let list = json!({"status": {"failureDomains": [
            {"name": "z"}, {"name": "a", "controlPlane": true, "attributes": {"k": "v"}}]}});
        let map = json!({"status": {"failureDomains": {
            "z": {}, "a": {"controlPlane": true, "attributes": {"k": "v"}}}}});
        let expected = vec![
            FailureDomain {
                name: "a".into(),
                control_plane: Some(true),
                attributes: [("k".to_owned(), "v".to_owned())].into(),
            },
            FailureDomain { name: "z".into(), control_plane: Some(false), attributes: BTreeMap::new() },
        ];
        assert_eq!(InfraCluster::new(&list, V1Beta2).failure_domains(), Ok(expected.clone()));
        assert_eq!(InfraCluster::new(&map, V1Beta1).failure_domains(), Ok(expected));
        for (object, contract, start) in [
            (&list, V1Beta1, "status.failureDomains must be a map"),
            (&map, V1Beta2, "status.failureDomains must be a list"),
            (&json!({"status": {"failureDomains": "a"}}), V1Beta2, "status.failureDomains must be a list"),
            (&json!({"status": {"failureDomains": [{}]}}), V1Beta2, "status.failureDomains[0] must be"),
            (
                &json!({"status": {"failureDomains": [{"name": "a", "controlPlane": 1}]}}),
                V1Beta2,
                "status.failureDomains[0].controlPlane must be a boolean",
            ),
            (
                &json!({"status": {"failureDomains": {"a": {"attributes": {"k": 1}}}}}),
                V1Beta1,
                "status.failureDomains.a.attributes must be a map of strings",
            ),
            (
                &json!({"status": {"failureDomains": [{"name": "a"}, {"name": "a"}]}}),
                V1Beta2,
                "status.failureDomains must be a list with unique names",
            ),
        ] {
            let error = InfraCluster::new(object, contract).failure_domains().unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn terminal_failures_belong_to_the_older_contract() {
        let object = json!({"status": {"failureReason": "X", "failureMessage": "boom"}});
        assert_eq!(InfraCluster::new(&object, V1Beta2).terminal_failure(), None);
        assert_eq!(
            InfraCluster::new(&object, V1Beta1).terminal_failure(),
            Some(TerminalFailure { reason: Some("X".into()), message: Some("boom".into()) })
        );
        let empty = json!({"status": {"failureReason": ""}});
        assert_eq!(InfraCluster::new(&empty, V1Beta1).terminal_failure(), None);
    }

    #[test]
    fn control_plane_counters_follow_the_contract() {
        let old = json!({"spec": {"replicas": 3}, "status": {"unavailableReplicas": 1, "updatedReplicas": 2,
            "initialized": true}});
        let old = ProviderControlPlane::new(&old, V1Beta1);
        assert_eq!(old.available_replicas(), Ok(Some(2)));
        assert_eq!(old.up_to_date_replicas(), Ok(Some(2)));
        assert_eq!(old.initialized(), Ok(true));
        let new = json!({"spec": {"replicas": 3}, "status": {"availableReplicas": 1, "upToDateReplicas": 0}});
        let new = ProviderControlPlane::new(&new, V1Beta2);
        assert_eq!(new.available_replicas(), Ok(Some(1)));
        assert_eq!(new.up_to_date_replicas(), Ok(Some(0)));
        assert_eq!(new.initialized(), Ok(false));
        assert_eq!(new.replicas(), Ok(None));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let endpoint = ApiEndpoint { host: "h".into(), port: 1 };
        let domains = vec![FailureDomain {
            name: "a".into(),
            control_plane: Some(true),
            attributes: [("k".to_owned(), "v".to_owned())].into(),
        }];
        for contract in ContractVersion::PREFERENCE {
            let mut object = json!({"spec": {"other": 1}});
            let mut writer = InfraClusterWriter::new(&mut object, contract);
            writer.set_provisioned(true);
            writer.set_control_plane_endpoint(&endpoint);
            writer.set_failure_domains(&domains);
            let read = InfraCluster::new(&object, contract);
            assert_eq!(read.provisioned(), Ok(true));
            assert_eq!(read.control_plane_endpoint(), Ok(endpoint.clone()));
            assert_eq!(read.failure_domains(), Ok(domains.clone()));
            assert_eq!(object["spec"]["other"], 1);
        }
    }

    #[test]
    fn the_essence_reads_like_the_whole() {
        let object = json!({
            "metadata": {"name": "x"},
            "spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}, "region": "r", "replicas": 3},
            "status": {"ready": true, "failureDomains": {"a": {}}, "network": {"id": "vpc-1"}},
        });
        let essence = essence(&object["spec"].to_string(), &object["status"].to_string());
        assert_eq!(
            serde_json::from_str::<Value>(&essence).unwrap(),
            json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}, "replicas": 3},
                   "status": {"ready": true, "failureDomains": {"a": {}}}})
        );
        assert_eq!(super::essence("null", "[1]"), r#"{"spec":{},"status":{}}"#);
    }
}
