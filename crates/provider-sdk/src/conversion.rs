//! A kind between two API versions that say the same facts in the shapes of the two contracts.

use std::sync::Arc;

use capstan_api::contract::GroupKind;
use capstan_runtime::webhook::{Converter, Converters};
use serde_json::{Map, Value, json};

/// Two API versions of a kind, of which one speaks contract v1beta1 and the other v1beta2, and that differ in nothing
/// but the contract's fields.
#[derive(Clone, Debug)]
pub struct ContractVersions {
    /// The API group.
    pub group: &'static str,
    /// The API version that speaks contract v1beta1.
    pub v1beta1: &'static str,
    /// The API version that speaks contract v1beta2.
    pub v1beta2: &'static str,
}

impl ContractVersions {
    /// Adds an InfraCluster kind and its template to what the webhook converts.
    pub fn add_to(&self, converters: &mut Converters, kind: &str) {
        let versions = self.clone();
        let cluster: Converter =
            Arc::new(move |object, desired| versions.convert(object, desired, "/spec", "/status"));
        let versions = self.clone();
        let template: Converter =
            Arc::new(move |object, desired| versions.convert(object, desired, "/spec/template/spec", ""));
        converters.add(GroupKind::new(self.group, kind), cluster);
        converters.add(GroupKind::new(self.group, format!("{kind}Template")), template);
    }

    fn convert(&self, mut object: Value, desired: &str, spec: &str, status: &str) -> Result<Value, String> {
        let (older, newer) =
            (format!("{}/{}", self.group, self.v1beta1), format!("{}/{}", self.group, self.v1beta2));
        let known = |version: &str| version == older || version == newer;
        let current = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !known(&current) || !known(desired) {
            return Err(format!("versions {older} and {newer} are known"));
        }
        if current == desired {
            return Ok(object);
        }
        object["apiVersion"] = json!(desired);
        if desired == newer
            && let Some(spec) = object.pointer_mut(spec).and_then(Value::as_object_mut)
        {
            drop_zero_endpoint(spec);
        }
        // An empty pointer would be the whole object: a template has no status.
        let status = Some(status).filter(|it| !it.is_empty()).and_then(|it| object.pointer_mut(it));
        if let Some(status) = status.and_then(Value::as_object_mut) {
            if desired == newer {
                status_to_v1beta2(status);
            } else {
                status_to_v1beta1(status);
            }
        }
        Ok(object)
    }
}

/// v1beta1 writes zero values for what is not known yet, v1beta2 leaves it out.
fn drop_zero_endpoint(spec: &mut Map<String, Value>) {
    let Some(endpoint) = spec.get_mut("controlPlaneEndpoint").and_then(Value::as_object_mut) else {
        return;
    };
    endpoint.retain(
        |name, value| !matches!((name.as_str(), &*value), ("host", Value::String(host)) if host.is_empty()),
    );
    endpoint.retain(|name, value| name != "port" || value.as_i64() != Some(0));
    if endpoint.is_empty() {
        spec.remove("controlPlaneEndpoint");
    }
}

fn status_to_v1beta2(status: &mut Map<String, Value>) {
    if let Some(ready) = status.remove("ready")
        && ready == json!(true)
    {
        status.insert("initialization".to_owned(), json!({ "provisioned": true }));
    }
    if let Some(Value::Object(domains)) = status.get("failureDomains") {
        let list = domains.iter().map(|(name, domain)| {
            let mut domain = domain.clone();
            if let Some(fields) = domain.as_object_mut() {
                fields.insert("name".to_owned(), json!(name));
            }
            domain
        });
        let list: Vec<_> = list.collect();
        status.insert("failureDomains".to_owned(), Value::Array(list));
    }
    let mut failure = Map::new();
    for name in ["failureReason", "failureMessage"] {
        if let Some(value) = status.remove(name) {
            failure.insert(name.to_owned(), value);
        }
    }
    if !failure.is_empty() {
        status.insert("deprecated".to_owned(), json!({ "v1beta1": failure }));
    }
}

fn status_to_v1beta1(status: &mut Map<String, Value>) {
    let provisioned = status.remove("initialization").and_then(|it| it.get("provisioned").cloned());
    status.insert("ready".to_owned(), provisioned.unwrap_or(json!(false)));
    if let Some(Value::Array(domains)) = status.get("failureDomains") {
        let map: Map<_, _> = domains
            .iter()
            .filter_map(|domain| {
                let mut domain = domain.clone();
                let name = domain.as_object_mut()?.remove("name")?.as_str()?.to_owned();
                Some((name, domain))
            })
            .collect();
        status.insert("failureDomains".to_owned(), Value::Object(map));
    }
    if let Some(Value::Object(mut deprecated)) = status.remove("deprecated")
        && let Some(Value::Object(failure)) = deprecated.remove("v1beta1")
    {
        status.extend(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
    const V1BETA2: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
    const LOCAL: ContractVersions =
        ContractVersions { group: "infrastructure.cluster.x-k8s.io", v1beta1: "v1beta1", v1beta2: "v1beta2" };

    fn to(object: &Value, version: &str) -> Value {
        LOCAL.convert(object.clone(), version, "/spec", "/status").unwrap()
    }

    #[test]
    fn both_shapes_say_the_same() {
        let v1beta2 = json!({
            "apiVersion": V1BETA2, "kind": "LocalCluster", "metadata": {"name": "a"},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}, "backends": ["127.0.0.1:1"]},
            "status": {
                "initialization": {"provisioned": true},
                "failureDomains": [{"name": "a", "controlPlane": true}, {"name": "b"}],
                "conditions": [{"type": "Ready", "status": "True"}],
                "deprecated": {"v1beta1": {"failureReason": "X"}},
            },
        });
        let v1beta1 = to(&v1beta2, V1BETA1);
        assert_eq!(
            v1beta1["status"],
            json!({"ready": true, "failureDomains": {"a": {"controlPlane": true}, "b": {}},
                   "conditions": [{"type": "Ready", "status": "True"}], "failureReason": "X"})
        );
        assert_eq!(to(&v1beta1, V1BETA2), v1beta2);
    }

    #[test]
    fn zero_values_of_the_older_version_are_left_out() {
        let v1beta1 = json!({
            "apiVersion": V1BETA1, "kind": "LocalCluster",
            "spec": {"controlPlaneEndpoint": {"host": "", "port": 0}}, "status": {"ready": false},
        });
        assert_eq!(
            to(&v1beta1, V1BETA2),
            json!({"apiVersion": V1BETA2, "kind": "LocalCluster", "spec": {}, "status": {}})
        );
    }

    #[test]
    fn objects_without_spec_or_of_other_versions_do_no_harm() {
        let bare = json!({"apiVersion": V1BETA1, "kind": "LocalCluster"});
        assert_eq!(to(&bare, V1BETA2), json!({"apiVersion": V1BETA2, "kind": "LocalCluster"}));
        let template = json!({"apiVersion": V1BETA1, "kind": "LocalClusterTemplate",
            "spec": {"template": {"spec": {"controlPlaneEndpoint": {"host": "", "port": 0}}}}});
        let converted = LOCAL.convert(template, V1BETA2, "/spec/template/spec", "").unwrap();
        assert_eq!(converted["spec"], json!({"template": {"spec": {}}}));
        assert!(LOCAL.convert(json!({"apiVersion": "g/v1"}), V1BETA2, "/spec", "/status").is_err());
    }
}
