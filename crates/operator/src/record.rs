//! What the controllers keep of objects on the server.

use capstan_api::{
    conditions::{self, Condition},
    names::label,
    operator::{ProviderSpec, ProviderStatus, annotation, condition},
    provider::ProviderType,
};
use capstan_runtime::{ObjectKey, Observed, cache::Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// A provider object.
#[derive(Clone, Debug)]
pub struct ProviderRecord {
    /// Its type.
    pub kind: ProviderType,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it should be.
    pub spec: ProviderSpec,
    /// What it was when it was last looked at.
    pub status: ProviderStatus,
    /// Why it cannot be read, if it cannot.
    pub malformed: Option<String>,
}

impl Cached for ProviderRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl ProviderRecord {
    /// Reads an object of a provider type.
    pub fn new(kind: ProviderType, object: Observed) -> Self {
        let key = ObjectKey::of(&object);
        let (spec, spec_error) = readable(object.spec.read(), "spec");
        let (status, status_error) = readable(object.status.read(), "status");
        let malformed = spec_error.or(status_error);
        Self { kind, key, metadata: object.metadata, spec, status, malformed }
    }

    /// The provider's label, e.g. `infrastructure-aws`.
    pub fn label(&self) -> String {
        self.kind.label(&self.key.name)
    }

    /// How messages name it.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.kind, self.key)
    }

    /// The object's uid.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The generation of its spec.
    pub fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions::get(&self.status.conditions, type_)
    }

    /// Whether its status says that its Deployments were scaled to 0.
    pub fn is_scaled_down(&self) -> bool {
        conditions::is_true(&self.status.conditions, condition::PAUSED)
    }

    /// Whether it counts as paused: it is to be, or still is.
    pub fn is_paused(&self) -> bool {
        self.spec.paused || self.is_scaled_down()
    }

    /// Whether the spec as it is now was carried out.
    pub fn is_applied(&self) -> bool {
        self.condition(condition::INSTALLED).is_some_and(|it| {
            it.status == conditions::ConditionStatus::True && it.observed_generation == self.generation()
        })
    }

    /// Whether deletion ignores who uses the provider.
    pub fn is_deletion_forced(&self) -> bool {
        self.annotation(annotation::FORCE_DELETE) == Some("true")
    }

    /// Whether drift is only reported.
    pub fn only_reports_drift(&self) -> bool {
        self.annotation(annotation::DRIFT) == Some("report")
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

fn readable<T: Default>(read: Result<T, serde_json::Error>, part: &str) -> (T, Option<String>) {
    match read {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(format!("{part} cannot be read: {error}"))),
    }
}

/// A Deployment that was installed for a provider.
#[derive(Clone, Debug)]
pub struct DeploymentRecord {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The provider's label.
    pub provider: String,
    /// Whether it is available, and why not.
    pub availability: Result<(), String>,
}

impl Cached for DeploymentRecord {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl DeploymentRecord {
    /// Keeps what matters of a Deployment.
    pub fn new(object: Observed) -> Self {
        let status = object.status.value();
        let labels = object.metadata.labels.as_ref();
        let provider = labels.and_then(|it| it.get(label::PROVIDER)).cloned().unwrap_or_default();
        Self {
            availability: availability(&status, object.metadata.generation),
            provider,
            metadata: object.metadata,
        }
    }

    /// Whether it is scaled to 0 because its provider is paused.
    pub fn is_scaled_down(&self) -> bool {
        self.original_replicas().is_some()
    }

    /// The replicas that it had before its provider was paused.
    pub fn original_replicas(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(annotation::ORIGINAL_REPLICAS).map(String::as_str)
    }

    /// The Deployment's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Whether a Deployment's status says that it is available in its current generation.
fn availability(status: &Value, generation: Option<i64>) -> Result<(), String> {
    let is_seen = status["observedGeneration"].as_i64().is_none_or(|it| Some(it) >= generation);
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let available = conditions.into_iter().find(|it| it["type"] == "Available");
    match available {
        None => Err("has no Available condition yet".to_owned()),
        Some(_) if !is_seen => Err("was changed and is not rolled out yet".to_owned()),
        Some(it) if it["status"] == "True" => Ok(()),
        Some(it) => Err(match it["message"].as_str().filter(|it| !it.is_empty()) {
            Some(message) => format!("is not available: {message}"),
            None => "is not available".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_available_in_its_current_generation() {
        let condition = |status: &str, message: &str| json!([{"type": "Available", "status": status, "message": message}]);
        for (status, expected) in [
            (json!(null), Err("has no Available condition yet")),
            (json!({"conditions": condition("True", "")}), Ok(())),
            (json!({"observedGeneration": 2, "conditions": condition("True", "")}), Ok(())),
            (
                json!({"observedGeneration": 1, "conditions": condition("True", "")}),
                Err("was changed and is not rolled out yet"),
            ),
            (json!({"conditions": condition("False", "")}), Err("is not available")),
            (json!({"conditions": condition("False", "no Pods")}), Err("is not available: no Pods")),
        ] {
            let found = availability(&status, Some(2));
            assert_eq!(found, expected.map_err(str::to_owned), "{status}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"paused": "yes"}});
        let record = ProviderRecord::new(ProviderType::Core, serde_json::from_value(object).unwrap());
        assert_eq!(record.full_name(), "CoreProvider n/a");
        let reason = record.malformed.unwrap();
        assert!(reason.starts_with("spec cannot be read: "), "{reason}");
    }
}
