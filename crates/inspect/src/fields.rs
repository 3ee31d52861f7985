//! The fields of core's kinds, which are in different places in v1beta1 and v1beta2.

use std::collections::BTreeMap;

use capstan_api::{
    conditions::{self, Report, legacy},
    contract::is_externally_managed,
    names::{annotation, label},
};
use capstan_management::ObjectRef;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

/// A text that is there and not empty.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|it| !it.is_empty())
}

/// A number.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Whether one of these fields is true.
pub(crate) fn is_true(object: &Value, pointers: &[&str]) -> bool {
    pointers.iter().any(|it| object.pointer(it) == Some(&Value::Bool(true)))
}

/// Whether the infrastructure of a Cluster or a Machine is provisioned.
pub(crate) fn is_provisioned(object: &Value) -> bool {
    is_true(object, &["/status/initialization/infrastructureProvisioned", "/status/infrastructureReady"])
}

/// A time.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer)?.parse().ok()
}

/// Namespace and name of a Service.
pub(crate) fn service(object: &Value, pointer: &str) -> Option<(String, String)> {
    let service = object.pointer(pointer)?;
    Some((service["namespace"].as_str()?.to_owned(), service["name"].as_str()?.to_owned()))
}

/// As much of an object as its reference says.
pub(crate) fn stand_in(it: &ObjectRef) -> Value {
    json!({
        "apiVersion": it.api_version, "kind": it.kind,
        "metadata": {"namespace": it.namespace, "name": it.name},
    })
}

pub(crate) fn api_version(object: &Value) -> &str {
    text(object, "/apiVersion").unwrap_or_default()
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace").unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

pub(crate) fn kind(object: &Value) -> &str {
    text(object, "/kind").unwrap_or_default()
}

pub(crate) fn group(object: &Value) -> &str {
    api_version(object).split_once('/').map_or("", |(group, _)| group)
}

pub(crate) fn created(object: &Value) -> Option<Timestamp> {
    time(object, "/metadata/creationTimestamp")
}

pub(crate) fn deleted(object: &Value) -> Option<Timestamp> {
    time(object, "/metadata/deletionTimestamp")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}

/// Labels are always a map of texts.
pub(crate) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    serde_json::from_value(labels).unwrap_or_default()
}

pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(name)?.as_str()
}

pub(crate) fn annotations(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten()
}

pub(crate) fn is_paused_by_annotation(object: &Value) -> bool {
    annotations(object).any(|(name, _)| name == annotation::PAUSED)
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether an object has an owner.
pub(crate) fn is_owned(object: &Value) -> bool {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|it| !it.is_empty())
}

/// Whether a Machine belongs to the control plane.
pub(crate) fn is_control_plane(machine: &Value) -> bool {
    label(machine, label::CONTROL_PLANE).is_some()
}

/// Whether a condition is bad news if it holds.
pub(crate) fn is_negative(type_: &str) -> bool {
    ["Paused", "Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Remediating"]
        .contains(&type_)
}

/// The conditions of an object in either style; a list that breaks the rules is read as far as it can be.
pub(crate) fn reports(object: &Value) -> Vec<Report> {
    conditions::read(object).unwrap_or_else(|_| legacy::read(object).into_iter().map(Report::from).collect())
}

/// The condition of a type.
pub(crate) fn report(object: &Value, type_: &str) -> Option<Report> {
    reports(object).into_iter().find(|it| it.type_ == type_)
}

/// The condition that sums up a Cluster; older cores know only whether it is ready.
pub(crate) fn summary(cluster: &Value) -> Option<Report> {
    report(cluster, "Available").or_else(|| report(cluster, "Ready"))
}

/// A failure that its reporter calls final, wherever the object's version keeps it.
pub(crate) fn terminal_failure(object: &Value) -> Option<String> {
    ["/status", "/status/deprecated/v1beta1"].into_iter().find_map(|place| {
        let part = |field: &str| text(object, &format!("{place}/{field}"));
        match (part("failureReason"), part("failureMessage")) {
            (None, None) => None,
            (Some(reason), None) => Some(reason.to_owned()),
            (None, Some(message)) => Some(message.to_owned()),
            (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        }
    })
}

pub(crate) fn has_external_manager(object: &Value) -> bool {
    ObjectMeta::deserialize(&object["metadata"]).is_ok_and(|it| is_externally_managed(&it))
}

/// Whether a control plane endpoint has both halves.
pub(crate) fn has_endpoint(object: &Value) -> bool {
    text(object, "/spec/controlPlaneEndpoint/host").is_some()
        && number(object, "/spec/controlPlaneEndpoint/port").is_some_and(|it| it > 0)
}
