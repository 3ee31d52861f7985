//! Parts of the kinds' schema that no Rust type stands for.
//!
//! What a Deployment takes as it is (affinity, tolerations, resources, environment variables) is left open: the API
//! server judges it together with the Deployment.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::spec::ImageParts;

/// The largest number that flags and replicas can be.
pub(super) const MAX_INT32: i32 = i32::MAX;
/// Seconds, or what Go reads as a duration.
const DURATION: &str = r"^\+?([0-9]+|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
const SIGNED_DURATION: &str = r"^[-+]?([0-9]+|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
/// Selectors of people are far smaller; the API server refuses rules about lists without a limit.
const MAX_REQUIREMENTS: u32 = 100;

/// A duration: seconds as a number, or text.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    seconds(0, DURATION)
}

/// A duration that may be negative.
pub(super) fn signed_duration(_: &mut SchemaGenerator) -> Schema {
    seconds(i32::MIN, SIGNED_DURATION)
}

/// The rule repeats the pattern in words.
fn seconds(minimum: i32, pattern: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": minimum,
        "maximum": MAX_INT32,
        "pattern": pattern,
        "maxLength": 64,
        "x-kubernetes-validations": [{
            "rule": format!("type(self) != string || self.matches(r'{pattern}')"),
            "message": "must be seconds as a number, or text such as 10m30s",
        }],
    })
}

/// An object of Kubernetes.
pub(super) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Tolerations.
pub(super) fn tolerations(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": open_object(generator), "x-kubernetes-list-type": "atomic"})
}

/// Environment variables.
pub(super) fn environment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "name of the variable."},
                "value": {"type": "string", "description": "value of the variable."},
            },
        },
    })
}

/// Flags with numbers, text, true or false. A schema can say number or text, but not these three, so it leaves the
/// values open, and a rule judges them.
pub(super) fn arguments(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}})
}

/// An image as text or in parts. A schema cannot say either, so it says what each would have to keep.
pub(super) fn image(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = ImageParts::json_schema(generator);
    for word in ["type", "additionalProperties", "description"] {
        schema.remove(word);
    }
    schema.insert("minLength".to_owned(), json!(1));
    schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    schema
}

/// A label selector that selects something in particular.
pub(super) fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || \
                     (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "is empty and would select every ConfigMap; name labels in matchLabels or matchExpressions",
        }],
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "matchLabels are labels that ConfigMaps must have.",
                "additionalProperties": {"type": "string", "maxLength": 63},
                "maxProperties": MAX_REQUIREMENTS,
            },
            "matchExpressions": {
                "type": "array",
                "description": "matchExpressions are what ConfigMaps' labels must be like.",
                "x-kubernetes-list-type": "atomic",
                "maxItems": MAX_REQUIREMENTS,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "must have values for In and NotIn, and none for Exists and DoesNotExist",
                    }],
                    "properties": {
                        "key": {
                            "type": "string", "minLength": 1, "maxLength": 317,
                            "description": "key of the label.",
                        },
                        "operator": {
                            "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                            "description": "operator says how the label relates to values.",
                        },
                        "values": {
                            "type": "array",
                            "description": "values of the label, for In and NotIn.",
                            "x-kubernetes-list-type": "atomic",
                            "maxItems": MAX_REQUIREMENTS,
                            "items": {"type": "string", "maxLength": 63},
                        },
                    },
                },
            },
        },
    })
}

/// The rule for where releases come from.
pub(super) fn exactly_one_source() -> Value {
    json!({
        "rule": "has(self.url) != has(self.selector)",
        "message": "must have exactly one of url and selector",
    })
}

/// The rule for addresses of releases.
pub(super) fn url_rule() -> Value {
    json!({
        "rule": "self.matches('^(?i:https?|oci)://[^/]')",
        "message": "must begin with https://, http:// or oci://, followed by a host",
    })
}
