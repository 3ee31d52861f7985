//! Manifests of `cluster.x-k8s.io` from v1beta1 to v1beta2, for people who keep them in files.
//!
//! What becomes of an object is what upstream's conversion webhook makes of it, so that applying the converted
//! manifest changes nothing. Nothing is added but an empty spec where a Cluster has none: no status where there was none, no fields that
//! are false or zero by default. Fields that are not known stay where they are.
//!
//! The webhook's conversion of a Cluster is in [`crate::cluster::conversion`]: it goes both ways, and parks in
//! annotations what a file has no need to remember.

pub(crate) mod duration;
mod fields;
mod shape;
#[cfg(test)]
mod tests;
mod walk;

use serde_json::{Map, Value};

use self::{shape::Fields, walk::Walk};
use crate::names::{CORE_GROUP, annotation::CONVERSION_DATA};

const OLD: &str = "v1beta1";
const NEW: &str = "v1beta2";

/// An object in v1beta2, or one that is not concerned.
#[derive(Clone, Debug, PartialEq)]
pub enum Converted {
    /// It was of v1beta1 and is of v1beta2 now.
    Changed {
        /// The object.
        object: Value,
        /// The paths of fields that had a value and that v1beta2 does not have.
        lost: Vec<String>,
        /// References into another namespace than the object's, or than the one that it will be applied in.
        elsewhere: Vec<Elsewhere>,
    },
    /// It is of v1beta2 already, or of a kind or group that is none of ours.
    Unchanged(Value),
}

/// A reference that names a namespace which v1beta2 leaves out: its references are in the namespace of their object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The path of the namespace.
    pub path: String,
    /// The namespace that it names.
    pub namespace: String,
    /// Whether the object says what its own namespace is; otherwise that is decided when it is applied.
    pub is_certain: bool,
}

/// Why an object could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The value is no object at all.
    #[error("it is not an object with apiVersion and kind")]
    NotAnObject,
    /// The object does not say what it is.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// A field has a value that means nothing.
    #[error("{path}: {reason}")]
    InvalidValue {
        /// Where it is in the object, such as `spec.template.spec.nodeDrainTimeout`.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The object in version v1beta2, if it is one of `cluster.x-k8s.io` and v1beta1, and else as it is.
pub fn to_v1beta2(object: Value) -> Result<Converted, ConvertError> {
    let Value::Object(object) = object else {
        return Err(ConvertError::NotAnObject);
    };
    let said = |field: &'static str| {
        let text = object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.ok_or(ConvertError::Missing(field))
    };
    let (version, kind) = (said("apiVersion")?, said("kind")?);
    if version.split_once('/') != Some((CORE_GROUP, OLD)) {
        return Ok(Converted::Unchanged(object.into()));
    }
    let mut walk = Walk::default();
    let converted = if let Some(fields) = fields::of(kind) {
        convert(fields, object, &mut walk)?
    } else if let Some(fields) = kind.strip_suffix("List").and_then(fields::of) {
        convert_list(fields, object, &mut walk)?
    } else {
        return Ok(Converted::Unchanged(object.into()));
    };
    Ok(Converted::Changed { object: converted.into(), lost: walk.lost, elsewhere: walk.elsewhere })
}

/// Whether an object is of `cluster.x-k8s.io` in v1beta1, whatever its kind.
pub fn is_v1beta1(object: &Value) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.and_then(|version| version.split_once('/')) == Some((CORE_GROUP, OLD))
}

type Object = Map<String, Value>;

fn convert(fields: &Fields, object: Object, walk: &mut Walk) -> Result<Object, ConvertError> {
    walk.namespace = object.get("metadata").and_then(|it| it.get("namespace")?.as_str()).map(str::to_owned);
    let mut object = walk.object(fields, object)?;
    object.insert("apiVersion".into(), format!("{CORE_GROUP}/{NEW}").into());
    restore(&mut object);
    Ok(object)
}

fn convert_list(fields: &Fields, mut list: Object, walk: &mut Walk) -> Result<Object, ConvertError> {
    let items = list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, item) in items.enumerate() {
        let step = format!("items[{index}]");
        if let Value::Object(object) = item.take() {
            *item = walk.within(&step, |walk| convert(fields, object, walk))?.into();
        }
    }
    list.insert("apiVersion".into(), format!("{CORE_GROUP}/{NEW}").into());
    Ok(list)
}

/// Fields of a Machine that v1beta1 lacks, from the v1beta2 object it was converted from.
const REMEMBERED: [(&str, &str); 3] =
    [("spec", "minReadySeconds"), ("status", "phase"), ("status", "failureDomain")];

/// Takes the annotation away in which a server remembers the object in v1beta2. What only it knows comes back.
fn restore(object: &mut Object) {
    let Some(remembered) = take_annotation(object, CONVERSION_DATA) else { return };
    let Ok(remembered) = serde_json::from_str::<Value>(&remembered) else { return };
    if object.get("kind") != Some(&"Machine".into()) {
        return;
    }
    for (part, field) in REMEMBERED {
        let value = remembered.get(part).and_then(|part| part.get(field));
        if let (Some(value), Some(Value::Object(part))) = (value, object.get_mut(part)) {
            part.insert(field.to_owned(), value.clone());
        }
    }
}

fn take_annotation(object: &mut Object, name: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    value.as_str().map(str::to_owned)
}
