//! Conversion between `v1beta1` and `v1beta2`, for the API server's conversion webhook.
//!
//! Objects are converted as JSON, so fields that no type here knows stay in place. Neither version can say all
//! that the other can, so each conversion parks what the target cannot say in an annotation, and the conversion
//! back puts it where it was, unless the field next to it has been edited meanwhile:
//!
//! * A v1beta1 object carries the whole v1beta2 object but its metadata in [`CONVERSION_DATA`], as upstream's
//!   does, so that either webhook can read what the other has written.
//! * A v1beta2 object carries the differences that a round trip would make to the v1beta1 object in
//!   [`V1BETA1_DATA`], if there are any.

mod changes;
mod mapping;

use serde_json::{Map, Value};

use self::changes::Change;
use crate::names::CORE_GROUP;
pub use crate::names::annotation::CONVERSION_DATA;

/// Annotation: what a v1beta1 object said that v1beta2 cannot say.
pub const V1BETA1_DATA: &str = "capstan.dev/v1beta1-data";

/// The longest annotation that is read. The API server stores no more than this in all annotations of an object, so a longer
/// one is nothing that a conversion wrote.
const LONGEST_ANNOTATION: usize = crate::admission::rules::ANNOTATIONS_LIMIT;

/// Why an object could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The value is no object at all.
    #[error("a Cluster must be a JSON object")]
    NotAnObject,
    /// The object is of another group or version, or does not say of which.
    #[error("a Cluster cannot be converted from apiVersion {0:?}")]
    UnknownVersion(String),
    /// A field has an invalid value.
    #[error("{path}: {reason}")]
    InvalidValue {
        /// Where it is in the object, such as `spec.topology.controlPlane.nodeDrainTimeout`.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ConversionError {
    fn invalid(reason: String) -> Self {
        Self::InvalidValue { path: String::new(), reason }
    }

    fn within(self, parent: &str) -> Self {
        match self {
            Self::InvalidValue { path, reason } => {
                let separator = if path.is_empty() || path.starts_with('[') { "" } else { "." };
                Self::InvalidValue { path: format!("{parent}{separator}{path}"), reason }
            }
            other => other,
        }
    }
}

/// Knows in which version of their API referenced objects should be named: v1beta1 references say one, v1beta2
/// references do not.
pub trait ReferenceVersions {
    /// The version, without group, of a kind; nothing if it is not known, for example because the kind's
    /// CRD is not installed. Then the version remembered in the object is used.
    fn version(&self, group: &str, kind: &str) -> Option<String>;
}

impl<F: Fn(&str, &str) -> Option<String>> ReferenceVersions for F {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        self(group, kind)
    }
}

/// The object in version `v1beta2`.
pub fn to_v1beta2(object: Value) -> Result<Value, ConversionError> {
    let mut object = into_object(object)?;
    if version(&object)? == Version::V1Beta2 {
        return Ok(object.into());
    }
    let mut metadata = take_metadata(&mut object);
    let remembered = metadata.take_annotation(CONVERSION_DATA).and_then(|text| remembered_body(&text));
    metadata.take_annotation(V1BETA1_DATA);
    let kind = take_type(&mut object);

    let mut old = Value::Object(object);
    let mut new = mapping::to_v1beta2(old.clone())?;
    if let Some(remembered) = remembered
        && let Ok(canonical) = mapping::to_v1beta1(remembered.clone(), None).and_then(mapping::to_v1beta2)
    {
        restore(changes::diff(&canonical, &remembered), &mut new, mapping::is_v1beta2);
    }

    mapping::complete(&mut old);
    let canonical = mapping::to_v1beta1(new.clone(), metadata.namespace())?;
    let lost = changes::diff(&canonical, &old);
    if !lost.is_empty()
        && let Ok(text) = serde_json::to_string(&lost)
    {
        metadata.annotate(V1BETA1_DATA, text);
    }
    Ok(assemble("v1beta2", kind, metadata, new))
}

/// The object in version `v1beta1`. It does not need the CRDs of referenced kinds.
pub fn to_v1beta1(object: Value, versions: &dyn ReferenceVersions) -> Result<Value, ConversionError> {
    let mut object = into_object(object)?;
    if version(&object)? == Version::V1Beta1 {
        return Ok(object.into());
    }
    let mut metadata = take_metadata(&mut object);
    let lost = metadata.take_annotation(V1BETA1_DATA).and_then(|text| changes_in(&text));
    if let Ok(text) = serde_json::to_string(&object) {
        metadata.annotate(CONVERSION_DATA, text);
    }
    let kind = take_type(&mut object);

    let mut old = mapping::to_v1beta1(Value::Object(object), metadata.namespace())?;
    restore(lost.unwrap_or_default(), &mut old, mapping::is_v1beta1);
    for reference in mapping::references(&mut old) {
        set_version(reference, versions);
    }
    Ok(assemble("v1beta1", kind, metadata, old))
}

/// The namespaces that the references of a v1beta2 object named as v1beta1 and that are not its own, by field.
pub(super) fn reference_namespaces(object: &Value) -> Vec<(&'static str, String)> {
    let parked = object.get("metadata").and_then(|it| it.get("annotations")?.get(V1BETA1_DATA)?.as_str());
    let changes = parked.and_then(changes_in).unwrap_or_default();
    let namespace = |name: &str| {
        let said = changes.iter().find_map(|change| change.to_at(&["spec", name]))?;
        let current = object.get("spec")?.get(name)?;
        // What was said about another object is forgotten.
        let is_same = ["kind", "name"].iter().all(|part| said.get(part) == current.get(part));
        let namespace = said.get("namespace")?.as_str().filter(|it| is_same && !it.is_empty())?;
        Some(namespace.to_owned())
    };
    let named = |name| Some((name, namespace(name)?));
    ["infrastructureRef", "controlPlaneRef"].into_iter().filter_map(named).collect()
}

/// Makes parked changes, unless the object could be decoded before and cannot be any more. Anybody who may edit
/// the object may edit its annotations, and one unreadable object would break every list it is in.
fn restore(changes: Vec<Change>, body: &mut Value, is_readable: impl Fn(&Value) -> bool) {
    if changes.is_empty() {
        return;
    }
    let mut restored = body.clone();
    changes::apply(changes, &mut restored);
    if is_readable(&restored) || !is_readable(body) {
        *body = restored;
    }
}

fn set_version(reference: &mut Map<String, Value>, versions: &dyn ReferenceVersions) {
    let text = |field| reference.get(field).and_then(Value::as_str);
    let (Some((group, _)), Some(kind)) =
        (text("apiVersion").and_then(|version| version.split_once('/')), text("kind"))
    else {
        return;
    };
    if let Some(version) = versions.version(group, kind) {
        let version = format!("{group}/{version}");
        reference.insert("apiVersion".into(), version.into());
    }
}

#[derive(PartialEq)]
enum Version {
    V1Beta1,
    V1Beta2,
}

fn version(object: &Map<String, Value>) -> Result<Version, ConversionError> {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    match api_version.split_once('/') {
        Some((CORE_GROUP, "v1beta1")) => Ok(Version::V1Beta1),
        Some((CORE_GROUP, "v1beta2")) => Ok(Version::V1Beta2),
        _ => Err(ConversionError::UnknownVersion(api_version.to_owned())),
    }
}

fn into_object(value: Value) -> Result<Map<String, Value>, ConversionError> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(ConversionError::NotAnObject),
    }
}

fn take_type(object: &mut Map<String, Value>) -> Option<Value> {
    object.remove("apiVersion");
    object.remove("kind")
}

fn assemble(version: &str, kind: Option<Value>, metadata: Metadata, mut body: Value) -> Value {
    if let Value::Object(object) = &mut body {
        object.insert("apiVersion".into(), format!("{CORE_GROUP}/{version}").into());
        object.extend(kind.map(|kind| ("kind".to_owned(), kind)));
        object.insert("metadata".into(), metadata.0);
    }
    body
}

/// The changes that an annotation of a v1beta2 object has parked.
fn changes_in(text: &str) -> Option<Vec<Change>> {
    (text.len() <= LONGEST_ANNOTATION).then(|| serde_json::from_str(text).ok())?
}

/// The v1beta2 object that an annotation of a v1beta1 object remembers, if it is one.
fn remembered_body(text: &str) -> Option<Value> {
    if text.len() > LONGEST_ANNOTATION {
        return None;
    }
    let mut object = into_object(serde_json::from_str(text).ok()?).ok()?;
    if version(&object) != Ok(Version::V1Beta2) {
        return None;
    }
    take_type(&mut object);
    object.remove("metadata");
    Some(object.into())
}

/// An object's metadata. The API server requires it in the answer even if it was absent.
struct Metadata(Value);

fn take_metadata(object: &mut Map<String, Value>) -> Metadata {
    Metadata(
        object.remove("metadata").filter(|metadata| !metadata.is_null()).unwrap_or_else(|| Map::new().into()),
    )
}

impl Metadata {
    fn namespace(&self) -> Option<&str> {
        self.0.get("namespace").and_then(Value::as_str).filter(|namespace| !namespace.is_empty())
    }

    fn annotate(&mut self, name: &str, value: String) {
        if let Some(metadata) = self.0.as_object_mut() {
            let annotations = metadata.entry("annotations").or_insert(Value::Null);
            if annotations.is_null() {
                *annotations = Map::new().into();
            }
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(name.to_owned(), value.into());
            }
        }
    }

    fn take_annotation(&mut self, name: &str) -> Option<String> {
        let metadata = self.0.as_object_mut()?;
        let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
        let value = annotations.remove(name)?;
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        value.as_str().map(str::to_owned)
    }
}
