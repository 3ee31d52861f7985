//! Which field of one version is which field of the other.
//!
//! A pure rewrite of the object's body: what it cannot carry over, the caller finds out by comparing. Fields
//! that are not named here stay where they are, and so do fields whose values have the wrong type.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::{crd, v1beta1, v1beta2};
use super::ConversionError;
use crate::convert::duration;

/// The version of references whose kind's version is not known.
const FALLBACK_VERSION: &str = "v1beta2";

static V1BETA1: LazyLock<JSONSchemaProps> = LazyLock::new(crd::schema::<v1beta1::Cluster>);
static V1BETA2: LazyLock<JSONSchemaProps> = LazyLock::new(crd::schema::<v1beta2::Cluster>);

/// Where to convert to.
#[derive(Clone, Copy)]
enum To<'a> {
    V1Beta2,
    /// References in v1beta1 carry the Cluster's namespace.
    V1Beta1 {
        namespace: Option<&'a str>,
    },
}

/// A v1beta1 body as v1beta2.
pub(super) fn to_v1beta2(mut body: Value) -> Result<Value, ConversionError> {
    convert(&mut body, To::V1Beta2)?;
    prune(&mut body, &V1BETA2);
    Ok(body)
}

/// A v1beta2 body as v1beta1.
pub(super) fn to_v1beta1(mut body: Value, namespace: Option<&str>) -> Result<Value, ConversionError> {
    convert(&mut body, To::V1Beta1 { namespace })?;
    prune(&mut body, &V1BETA1);
    complete(&mut body);
    Ok(body)
}

/// Whether everybody who knows v1beta1 can decode the body.
pub(super) fn is_v1beta1(body: &Value) -> bool {
    fits(body, &V1BETA1) && decodes::<v1beta1::Cluster>(body)
}

/// Whether everybody who knows v1beta2 can decode the body.
pub(super) fn is_v1beta2(body: &Value) -> bool {
    fits(body, &V1BETA2) && decodes::<v1beta2::Cluster>(body)
}

/// Writes the fields that v1beta1 always shows.
pub(super) fn complete(body: &mut Value) {
    if let Some(spec) = object(body, "spec") {
        let endpoint = spec.entry("controlPlaneEndpoint").or_insert_with(|| json!({}));
        if let Some(endpoint) = endpoint.as_object_mut() {
            endpoint.entry("host").or_insert_with(|| json!(""));
            endpoint.entry("port").or_insert_with(|| json!(0));
        }
    }
    if let Some(status) = object(body, "status") {
        for flag in ["infrastructureReady", "controlPlaneReady"] {
            status.entry(flag).or_insert(Value::Bool(false));
        }
    }
}

/// The two references whose version is found out when they are read.
pub(super) fn references(body: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let spec = object(body, "spec").into_iter().flatten();
    spec.filter(|(field, _)| matches!(field.as_str(), "controlPlaneRef" | "infrastructureRef"))
        .filter_map(|(_, reference)| reference.as_object_mut())
}

/// A field's paths in v1beta1 and in v1beta2, and how its value is rewritten.
struct Rule {
    old: &'static str,
    new: &'static str,
    codec: Codec,
}

const fn rule(old: &'static str, new: &'static str, codec: Codec) -> Rule {
    Rule { old, new, codec }
}

#[derive(Clone, Copy)]
enum Codec {
    /// The value is the same.
    Same,
    /// Zero and false are the same as absent.
    OmitZero,
    /// v1beta2 does not have the field.
    Dropped,
    /// A duration as text; seconds.
    Seconds,
    /// A list whose elements have a `timeout`; a `timeoutSeconds`.
    Timeouts,
    /// A full reference; group, kind and name.
    Reference,
    /// A full reference; apiVersion, kind and name.
    TemplateReference,
    /// A map; a list with names.
    FailureDomains,
}
use Codec::{Dropped, FailureDomains, OmitZero, Reference, Same, Seconds, TemplateReference, Timeouts};

const SPEC: &[Rule] = &[
    rule("paused", "paused", OmitZero),
    rule("clusterNetwork.apiServerPort", "clusterNetwork.apiServerPort", OmitZero),
    rule("controlPlaneRef", "controlPlaneRef", Reference),
    rule("infrastructureRef", "infrastructureRef", Reference),
];

const TOPOLOGY: &[Rule] = &[
    rule("class", "classRef.name", Same),
    rule("classNamespace", "classRef.namespace", Same),
    rule("rolloutAfter", "rolloutAfter", Dropped),
];

const VARIABLE: &[Rule] = &[rule("definitionFrom", "definitionFrom", Dropped)];

const DELETION: &[Rule] = &[
    rule("nodeDrainTimeout", "deletion.nodeDrainTimeoutSeconds", Seconds),
    rule("nodeVolumeDetachTimeout", "deletion.nodeVolumeDetachTimeoutSeconds", Seconds),
    rule("nodeDeletionTimeout", "deletion.nodeDeletionTimeoutSeconds", Seconds),
];

const HEALTH_CHECK: &[Rule] = &[
    rule("machineHealthCheck.enable", "healthCheck.enabled", Same),
    rule("machineHealthCheck.nodeStartupTimeout", "healthCheck.checks.nodeStartupTimeoutSeconds", Seconds),
    rule("machineHealthCheck.unhealthyConditions", "healthCheck.checks.unhealthyNodeConditions", Timeouts),
    rule(
        "machineHealthCheck.unhealthyMachineConditions",
        "healthCheck.checks.unhealthyMachineConditions",
        Timeouts,
    ),
    rule(
        "machineHealthCheck.maxUnhealthy",
        "healthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo",
        Same,
    ),
    rule("machineHealthCheck.unhealthyRange", "healthCheck.remediation.triggerIf.unhealthyInRange", Same),
    rule("machineHealthCheck.remediationTemplate", "healthCheck.remediation.templateRef", TemplateReference),
];

const STRATEGY: &[Rule] = &[
    rule("strategy.type", "rollout.strategy.type", Same),
    rule("strategy.rollingUpdate.maxUnavailable", "rollout.strategy.rollingUpdate.maxUnavailable", Same),
    rule("strategy.rollingUpdate.maxSurge", "rollout.strategy.rollingUpdate.maxSurge", Same),
    rule("strategy.rollingUpdate.deletePolicy", "deletion.order", Same),
    rule("strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight", Same),
];

const STATUS: &[Rule] = &[
    rule("conditions", "deprecated.v1beta1.conditions", Same),
    rule("failureReason", "deprecated.v1beta1.failureReason", Same),
    rule("failureMessage", "deprecated.v1beta1.failureMessage", Same),
    rule("v1beta2.conditions", "conditions", Same),
    rule("v1beta2.controlPlane", "controlPlane", Same),
    rule("v1beta2.workers", "workers", Same),
    rule("infrastructureReady", "initialization.infrastructureProvisioned", OmitZero),
    rule("controlPlaneReady", "initialization.controlPlaneInitialized", OmitZero),
    rule("failureDomains", "failureDomains", FailureDomains),
];

fn convert(body: &mut Value, to: To) -> Result<(), ConversionError> {
    if let Some(spec) = object(body, "spec") {
        apply(SPEC, spec, to).map_err(|error| error.within("spec"))?;
        if let Some(topology) = spec.get_mut("topology").and_then(Value::as_object_mut) {
            convert_topology(topology, to).map_err(|error| error.within("spec.topology"))?;
        }
    }
    if let Some(status) = object(body, "status") {
        apply(STATUS, status, to).map_err(|error| error.within("status"))?;
    }
    Ok(())
}

fn convert_topology(topology: &mut Map<String, Value>, to: To) -> Result<(), ConversionError> {
    apply(TOPOLOGY, topology, to)?;
    convert_variables(topology.get_mut("variables"), to)?;
    if let Some(control_plane) = topology.get_mut("controlPlane").and_then(Value::as_object_mut) {
        convert_machines(control_plane, &[DELETION, HEALTH_CHECK], to)
            .map_err(|error| error.within("controlPlane"))?;
    }
    if let Some(workers) = topology.get_mut("workers").and_then(Value::as_object_mut) {
        for (field, rules) in [
            ("machineDeployments", &[DELETION, HEALTH_CHECK, STRATEGY][..]),
            ("machinePools", &[DELETION][..]),
        ] {
            each(workers.get_mut(field), |machines| convert_machines(machines, rules, to))
                .map_err(|error| error.within(&format!("workers.{field}")))?;
        }
    }
    Ok(())
}

fn convert_machines(
    machines: &mut Map<String, Value>,
    rules: &[&[Rule]],
    to: To,
) -> Result<(), ConversionError> {
    for rules in rules {
        apply(rules, machines, to)?;
    }
    let variables = machines.get_mut("variables");
    convert_variables(variables.and_then(|variables| variables.get_mut("overrides")), to)
}

fn convert_variables(variables: Option<&mut Value>, to: To) -> Result<(), ConversionError> {
    each(variables, |variable| apply(VARIABLE, variable, to))
}

/// Converts the elements of a list.
fn each(
    list: Option<&mut Value>,
    convert: impl Fn(&mut Map<String, Value>) -> Result<(), ConversionError>,
) -> Result<(), ConversionError> {
    let elements = list.and_then(Value::as_array_mut).into_iter().flatten();
    for (index, element) in elements.enumerate() {
        if let Some(element) = element.as_object_mut() {
            convert(element).map_err(|error| error.within(&format!("[{index}]")))?;
        }
    }
    Ok(())
}

/// Moves and rewrites the fields of one object.
fn apply(rules: &[Rule], object: &mut Map<String, Value>, to: To) -> Result<(), ConversionError> {
    let paths = |rule: &Rule| match to {
        To::V1Beta2 => (rule.old, rule.new),
        To::V1Beta1 { .. } => (rule.new, rule.old),
    };
    // All are taken before any is put back: both versions have a `status.conditions`, not of the same kind.
    let taken: Vec<_> =
        rules.iter().filter_map(|rule| take(object, paths(rule).0).map(|value| (rule, value))).collect();
    for (rule, value) in taken {
        let (source, target) = paths(rule);
        // It stays as it is: later there would be no sign that it had been converted.
        if !has_room(object, target) {
            put(object, source, value);
            continue;
        }
        match rule.codec.convert(value, to).map_err(|error| error.within(source))? {
            Converted::To(value) => put(object, target, value),
            Converted::Nothing => {}
            Converted::Unfit(value) => put(object, source, value),
        }
    }
    Ok(())
}

enum Converted {
    To(Value),
    /// The other version says it by not saying anything.
    Nothing,
    /// Not of the type that this field has.
    Unfit(Value),
}

impl Codec {
    fn convert(self, value: Value, to: To) -> Result<Converted, ConversionError> {
        let converted = match (self, value) {
            (OmitZero, value) if value.is_null() || value == false || value == 0 => Converted::Nothing,
            (Same | OmitZero, value) => Converted::To(value),
            (Dropped, value) => match to {
                To::V1Beta2 => Converted::Nothing,
                To::V1Beta1 { .. } => Converted::Unfit(value),
            },
            (Seconds, value) => convert_duration(value, to)?,
            (Timeouts, mut conditions @ Value::Array(_)) => {
                each(Some(&mut conditions), |condition| convert_timeout(condition, to))?;
                Converted::To(conditions)
            }
            (Reference, Value::Object(reference)) => Converted::To(convert_reference(reference, to)?.into()),
            (TemplateReference, Value::Object(mut reference)) => {
                relocate(&mut reference, to);
                Converted::To(reference.into())
            }
            (FailureDomains, Value::Object(domains)) if matches!(to, To::V1Beta2) => {
                Converted::To(list_failure_domains(domains).into())
            }
            (FailureDomains, Value::Array(domains)) if matches!(to, To::V1Beta1 { .. }) => {
                Converted::To(map_failure_domains(domains).into())
            }
            (Timeouts | Reference | TemplateReference | FailureDomains, value) => Converted::Unfit(value),
        };
        Ok(converted)
    }
}

fn convert_duration(value: Value, to: To) -> Result<Converted, ConversionError> {
    let converted = match (to, &value) {
        (To::V1Beta2, Value::String(text)) => {
            let seconds = duration::seconds(text).ok_or_else(|| {
                ConversionError::invalid(format!("{text:?} is not a duration such as 1h30m"))
            })?;
            Some(seconds.into())
        }
        (To::V1Beta1 { .. }, Value::Number(seconds)) => seconds
            .as_i64()
            .and_then(|seconds| i32::try_from(seconds).ok())
            .map(duration::text)
            .map(Value::from),
        _ => None,
    };
    Ok(converted.map_or_else(|| Converted::Unfit(value), Converted::To))
}

/// A health check's timeout is required, and zero unless set.
fn convert_timeout(condition: &mut Map<String, Value>, to: To) -> Result<(), ConversionError> {
    apply(&[rule("timeout", "timeoutSeconds", Seconds)], condition, to)?;
    match to {
        To::V1Beta2 => condition.entry("timeoutSeconds").or_insert_with(|| json!(0)),
        To::V1Beta1 { .. } => condition.entry("timeout").or_insert_with(|| json!("0s")),
    };
    Ok(())
}

fn convert_reference(
    mut reference: Map<String, Value>,
    to: To,
) -> Result<Map<String, Value>, ConversionError> {
    relocate(&mut reference, to);
    match to {
        To::V1Beta2 => {
            if let Some(Value::String(version)) = reference.get("apiVersion") {
                let group = match version.split_once('/') {
                    Some((_, rest)) if rest.contains('/') => {
                        let reason = format!("{version:?} is not of the form group/version");
                        return Err(ConversionError::invalid(reason).within("apiVersion"));
                    }
                    Some((group, _)) => group.to_owned(),
                    None => String::new(),
                };
                reference.remove("apiVersion");
                reference.insert("apiGroup".into(), group.into());
            }
        }
        To::V1Beta1 { .. } => {
            if let Some(Value::String(group)) = reference.get("apiGroup") {
                let version = (!group.is_empty()).then(|| format!("{group}/{FALLBACK_VERSION}"));
                reference.remove("apiGroup");
                reference.extend(version.map(|version| ("apiVersion".to_owned(), version.into())));
            }
        }
    }
    Ok(reference)
}

/// In v1beta2 a reference is to an object in the Cluster's namespace, and to nothing in particular about it.
fn relocate(reference: &mut Map<String, Value>, to: To) {
    match to {
        To::V1Beta2 => {
            for field in ["namespace", "uid", "resourceVersion", "fieldPath"] {
                reference.remove(field);
            }
        }
        To::V1Beta1 { namespace } => {
            reference.extend(namespace.map(|namespace| ("namespace".to_owned(), namespace.into())));
        }
    }
}

fn list_failure_domains(domains: Map<String, Value>) -> Vec<Value> {
    let mut domains: Vec<_> = domains.into_iter().collect();
    domains.sort_by(|(left, _), (right, _)| left.cmp(right));
    domains
        .into_iter()
        .map(|(name, domain)| {
            let mut domain = if let Value::Object(domain) = domain { domain } else { Map::new() };
            domain.entry("controlPlane").or_insert(Value::Bool(false));
            domain.insert("name".into(), name.into());
            domain.into()
        })
        .collect()
}

fn map_failure_domains(domains: Vec<Value>) -> Map<String, Value> {
    domains
        .into_iter()
        .filter_map(|domain| {
            let Value::Object(mut domain) = domain else {
                return None;
            };
            let Some(Value::String(name)) = domain.remove("name") else {
                return None;
            };
            if domain.get("controlPlane") == Some(&Value::Bool(false)) {
                domain.remove("controlPlane");
            }
            Some((name, domain.into()))
        })
        .collect()
}

/// Drops what is empty where the schema does not let it be: an absent field says the same.
fn prune(body: &mut Value, schema: &JSONSchemaProps) {
    for (part, schema) in schema.properties.iter().flatten() {
        let Some(value) = body.get_mut(part) else { continue };
        prune_fields(value, schema);
        if part == "status" && is_void(value, schema) {
            body.as_object_mut().and_then(|body| body.remove(part));
        }
    }
}

fn prune_fields(value: &mut Value, schema: &JSONSchemaProps) {
    match value {
        Value::Object(members) => {
            for (name, schema) in schema.properties.iter().flatten() {
                if let Some(member) = members.get_mut(name) {
                    // Conditions are taken over as they are: an empty reason or message is a statement too.
                    if name != "conditions" {
                        prune_fields(member, schema);
                    }
                    if is_void(member, schema) {
                        members.remove(name);
                    }
                }
            }
            if let Some(JSONSchemaPropsOrBool::Schema(schema)) = &schema.additional_properties {
                for member in members.values_mut() {
                    prune_fields(member, schema);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for element in elements {
                    prune_fields(element, schema);
                }
            }
        }
        _ => {}
    }
}

fn is_void(value: &Value, schema: &JSONSchemaProps) -> bool {
    let at_least_one = |minimum: Option<i64>| minimum.is_some_and(|minimum| minimum >= 1);
    match value {
        Value::Null => schema.x_kubernetes_preserve_unknown_fields != Some(true),
        Value::Bool(_) => false,
        Value::Number(number) => {
            number.as_i64() == Some(0) && schema.minimum.is_some_and(|minimum| minimum >= 1.0)
        }
        Value::String(text) => text.is_empty() && at_least_one(schema.min_length),
        Value::Array(elements) => elements.is_empty() && at_least_one(schema.min_items),
        Value::Object(members) => {
            members.is_empty() && (at_least_one(schema.min_properties) || schema.required.is_some())
        }
    }
}

fn decodes<K: DeserializeOwned>(body: &Value) -> bool {
    let mut object = json!({"metadata": {}, "spec": {}});
    if let (Value::Object(object), Value::Object(body)) = (&mut object, body) {
        object.extend(body.clone());
    }
    K::deserialize(object).is_ok()
}

/// Whether values have the types that the schema gives them. Decoding is no test: serde takes a list for a
/// struct.
fn fits(value: &Value, schema: &JSONSchemaProps) -> bool {
    match (schema.type_.as_deref(), value) {
        (None, _)
        | (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("integer"), Value::Number(_)) => true,
        (Some("object"), Value::Object(members)) => members.iter().all(|(name, member)| {
            let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
            match (known, &schema.additional_properties) {
                (Some(schema), _) => fits(member, schema),
                (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => fits(member, schema),
                _ => true,
            }
        }),
        (Some("array"), Value::Array(elements)) => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(schema)) => {
                elements.iter().all(|element| fits(element, schema))
            }
            _ => true,
        },
        _ => false,
    }
}

fn object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(field)?.as_object_mut()
}

/// Removes a field, and the objects around it that are then empty.
fn take(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((field, rest)) = path.split_once('.') else {
        return object.remove(path);
    };
    let inner = object.get_mut(field)?.as_object_mut()?;
    let value = take(inner, rest);
    if inner.is_empty() {
        object.remove(field);
    }
    value
}

/// Whether a field can be set: nothing but objects are around it.
fn has_room(object: &Map<String, Value>, path: &str) -> bool {
    let Some((field, rest)) = path.split_once('.') else {
        return true;
    };
    match object.get(field) {
        None => true,
        Some(Value::Object(inner)) => has_room(inner, rest),
        Some(_) => false,
    }
}

/// Sets a field, and makes the objects around it. Where there is no room, nothing happens.
fn put(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((field, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    if let Value::Object(inner) = object.entry(field).or_insert_with(|| json!({})) {
        put(inner, rest, value);
    }
}
