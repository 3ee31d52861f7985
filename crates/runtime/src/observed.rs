//! Objects as they come off the wire, stripped at once of what no controller reads.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// The annotation in which kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object of any kind: metadata without managed fields, spec and status.
///
/// It is for reading only. What is written goes out as a patch of what we own, never as one of these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The metadata, less `managedFields` and kubectl's copy of the object.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: JsonText,
    /// The reported state.
    pub status: JsonText,
}

/// A part of an object as it came off the wire. It is parsed only when a reader needs it: most of what
/// arrives is the echo of our own write and is never read.
///
/// Each part is read by itself: one that is nested too deeply spoils neither the object nor the list that it is in.
#[derive(Clone, Debug, Default)]
pub struct JsonText(Option<Box<RawValue>>);

impl JsonText {
    /// The text; `null` if there is nothing.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().map_or("null", RawValue::get)
    }

    /// Reads it as something that may be left out altogether.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T, serde_json::Error> {
        Ok(serde_json::from_str::<Option<T>>(self.as_str())?.unwrap_or_default())
    }

    /// Parses it. An unreadable part becomes a value of a type that no spec or status has, so that readers
    /// notice.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.as_str())
            .unwrap_or_else(|error| Value::String(format!("unreadable: {error}")))
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        // A value can always become text.
        Self(serde_json::value::to_raw_value(&value).ok())
    }
}

/// The metadata of an object of any kind, asked for without the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedMetadata(pub Observed);

/// A Secret: metadata, type and contents. Of all objects only Secrets have contents that controllers read.
#[derive(Clone, Default, PartialEq)]
pub struct ObservedSecret {
    /// The metadata, less `managedFields` and kubectl's copy of the object.
    pub metadata: ObjectMeta,
    /// The type of Secret.
    pub type_: String,
    /// The contents.
    pub data: BTreeMap<String, ByteString>,
}

impl fmt::Debug for ObservedSecret {
    /// Omits the contents, which must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedSecret")
            .field("metadata", &self.metadata)
            .field("type_", &self.type_)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: WireMetadata,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<WireMetadata> for ObjectMeta {
    fn from(metadata: WireMetadata) -> Self {
        let mut annotations = metadata.annotations;
        if let Some(annotations) = &mut annotations {
            annotations.remove(LAST_APPLIED);
        }
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: metadata.labels,
            annotations,
            finalizers: metadata.finalizers,
            owner_references: metadata.owner_references,
            ..Self::default()
        }
    }
}

impl<'de> Deserialize<'de> for Observed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::deserialize(deserializer)?;
        Ok(Self { metadata: metadata.into(), spec: JsonText(spec), status: JsonText(status) })
    }
}

impl<'de> Deserialize<'de> for ObservedSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct WireSecret {
            #[serde(default)]
            metadata: WireMetadata,
            #[serde(default, rename = "type")]
            type_: String,
            #[serde(default)]
            data: Option<BTreeMap<String, ByteString>>,
        }
        let WireSecret { metadata, type_, data } = WireSecret::deserialize(deserializer)?;
        Ok(Self { metadata: metadata.into(), type_, data: data.unwrap_or_default() })
    }
}

impl<'de> Deserialize<'de> for ObservedMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Observed::deserialize(deserializer).map(Self)
    }
}

impl Serialize for Observed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Observed", 3)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec.0)?;
        object.serialize_field("status", &self.status.0)?;
        object.end()
    }
}

macro_rules! dynamic_resource {
    ($kind:ty, $self_:ident => $metadata:expr, $metadata_only:literal) => {
        impl Resource for $kind {
            type DynamicType = ApiResource;
            type Scope = DynamicResourceScope;

            fn kind(dt: &ApiResource) -> Cow<'_, str> {
                dt.kind.as_str().into()
            }
            fn group(dt: &ApiResource) -> Cow<'_, str> {
                dt.group.as_str().into()
            }
            fn version(dt: &ApiResource) -> Cow<'_, str> {
                dt.version.as_str().into()
            }
            fn api_version(dt: &ApiResource) -> Cow<'_, str> {
                dt.api_version.as_str().into()
            }
            fn plural(dt: &ApiResource) -> Cow<'_, str> {
                dt.plural.as_str().into()
            }
            fn metadata_api() -> bool {
                $metadata_only
            }
            fn meta(&self) -> &ObjectMeta {
                let $self_ = self;
                &$metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                let $self_ = self;
                &mut $metadata
            }
        }
    };
}

dynamic_resource!(Observed, object => object.metadata, false);
dynamic_resource!(ObservedMetadata, object => object.0.metadata, true);
dynamic_resource!(ObservedSecret, object => object.metadata, false);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_controller_reads_is_dropped() {
        let object: Observed = serde_json::from_value(json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "n", "resourceVersion": "7", "managedFields": [{"manager": "m"}],
                "annotations": {LAST_APPLIED: "{}", "keep": "me"}},
            "data": {"big": "value"},
            "spec": {"a": 1},
        }))
        .unwrap();
        assert_eq!(object.metadata.managed_fields, None);
        assert_eq!(object.metadata.annotations, Some([("keep".to_owned(), "me".to_owned())].into()));
        assert_eq!(object.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(object.spec.value(), json!({"a": 1}));
        assert_eq!(object.status.value(), Value::Null);
    }

    #[test]
    fn spec_and_status_of_any_shape_are_accepted() {
        let object: Observed =
            serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": "text", "status": [1]}))
                .unwrap();
        assert_eq!((object.spec.value(), object.status.value()), (json!("text"), json!([1])));
        assert!(object.spec.read::<BTreeMap<String, Value>>().is_err());
    }

    #[test]
    fn nesting_without_end_spoils_only_itself() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let text =
            format!(r#"[{{"metadata": {{"name": "n"}}, "spec": {{"a": {deep}}}, "status": {{"b": 1}}}}]"#);
        let objects: Vec<Observed> = serde_json::from_str(&text).unwrap();
        assert_eq!(objects[0].metadata.name.as_deref(), Some("n"));
        let spec = objects[0].spec.value();
        assert!(spec.as_str().unwrap().contains("recursion limit"), "{spec}");
        assert_eq!(objects[0].status.value(), json!({"b": 1}));
    }

    #[test]
    fn what_is_absent_or_null_is_empty() {
        for text in [r#"{"metadata": {}}"#, r#"{"metadata": {}, "spec": null}"#] {
            let object: Observed = serde_json::from_str(text).unwrap();
            assert_eq!(object.spec, JsonText::default());
            assert_eq!(object.spec.read::<BTreeMap<String, Value>>().unwrap(), BTreeMap::new());
        }
    }

    #[test]
    fn a_secret_keeps_its_contents_but_never_shows_them() {
        let wire =
            json!({"metadata": {"name": "n", "managedFields": []}, "type": "t", "data": {"k": "c2VjcmV0"}});
        let secret: ObservedSecret = serde_json::from_value(wire).unwrap();
        assert_eq!((secret.type_.as_str(), secret.data["k"].0.as_slice()), ("t", &b"secret"[..]));
        let shown = format!("{secret:?}");
        assert!(!shown.contains("c2VjcmV0") && !shown.contains("secret"), "{shown}");
        let empty: ObservedSecret = serde_json::from_value(json!({"data": null})).unwrap();
        assert!(empty.data.is_empty());
    }
}
