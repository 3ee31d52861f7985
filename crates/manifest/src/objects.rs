//! Objects of a manifest on their way through the transforms, and what can be wrong with one of them.

use std::fmt;

use capstan_api::names::label;
use serde_json::{Map, Value};

use crate::images::ReferenceError;
use crate::typed::{Mismatch, Struct, describe};

/// Which object of a file is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectId {
    /// The place of its document in the file, beginning with 0.
    pub document: usize,
    /// Its kind, or nothing if it has none.
    pub kind: String,
    /// Its name, or nothing if it has none.
    pub name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { document, kind, name } = self;
        match (kind.as_str(), name.as_str()) {
            ("", _) => write!(out, "document {}", document + 1),
            (kind, "") => write!(out, "{kind} without a name (document {})", document + 1),
            (kind, name) => write!(out, "{kind} {name}"),
        }
    }
}

/// An object that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct ObjectError {
    /// The object.
    pub object: Box<ObjectId>,
    /// What is wrong with it.
    pub problem: Box<Problem>,
}

/// What can be wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The document is a list or a scalar.
    #[error("expected an object, found {found}")]
    NotAnObject {
        /// What it is.
        found: String,
    },
    /// There is no `kind`.
    #[error("it has no kind")]
    MissingKind,
    /// A field holds what it cannot hold.
    #[error(transparent)]
    Type(#[from] Mismatch),
    /// The kind is one that must be understood, but not in this version.
    #[error("apiVersion {found:?} is not supported for this kind, only {}", supported.join(" and "))]
    Version {
        /// The version it has.
        found: String,
        /// The versions that are understood.
        supported: Vec<String>,
    },
    /// A container's image is none.
    #[error("image {image:?} of container {container:?}: {reason}")]
    Image {
        /// The container.
        container: String,
        /// Its image.
        image: String,
        /// What is wrong with it.
        reason: ReferenceError,
    },
    /// An annotation that says where a CA comes from cannot be read.
    #[error("annotation {annotation}: expected namespace/name, found {found}")]
    CaSource {
        /// The annotation's name.
        annotation: &'static str,
        /// Its value.
        found: String,
    },
    /// A label is no string; an API server would refuse the object.
    #[error("label {label}: expected a string, found {found}")]
    Label {
        /// The label's name.
        label: String,
        /// Its value.
        found: String,
    },
}

/// An object with the place it came from.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) document: usize,
    pub(crate) content: Map<String, Value>,
    group: String,
    version: String,
    kind: String,
}

impl Object {
    fn read(document: usize, value: Value) -> Result<Self, ObjectError> {
        let id = ObjectId { document, kind: String::new(), name: String::new() };
        let refuse = |problem| ObjectError { object: Box::new(id), problem: Box::new(problem) };
        let content = match value {
            Value::Object(content) => content,
            other => return Err(refuse(Problem::NotAnObject { found: describe(&other) })),
        };
        let text = |name| content.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind").to_owned();
        if kind.is_empty() {
            return Err(refuse(Problem::MissingKind));
        }
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (group, version) = (group.to_owned(), version.to_owned());
        Ok(Self { document, content, group, version, kind })
    }

    /// An object that is no document of the file.
    pub(crate) fn namespace(document: usize, name: &str) -> Self {
        let content =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        Self {
            document,
            content: if let Value::Object(content) = content { content } else { Map::new() },
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
        }
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.is("", "Namespace")
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata_text("name")
    }

    pub(crate) fn namespace_name(&self) -> &str {
        self.metadata_text("namespace")
    }

    fn metadata_text(&self, field: &str) -> &str {
        let metadata = self.content.get("metadata").and_then(Value::as_object);
        metadata.and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn set_metadata(&mut self, field: &str, value: &str) -> Result<(), ObjectError> {
        self.metadata()?.insert(field.to_owned(), Value::from(value));
        Ok(())
    }

    fn metadata(&mut self) -> Result<&mut Map<String, Value>, ObjectError> {
        self.map_at(&["metadata"])
    }

    /// The labels, created if absent.
    pub(crate) fn labels(&mut self) -> Result<&mut Map<String, Value>, ObjectError> {
        self.map_at(&["metadata", "labels"])
    }

    /// Whether it was rendered before.
    pub(crate) fn is_labelled(&self) -> bool {
        let labels = self.content.get("metadata").and_then(|it| it.get("labels"));
        labels.is_some_and(|it| it.get(label::CLUSTERCTL).is_some())
    }

    /// The annotation of a name, if there is one.
    pub(crate) fn annotation(&mut self, name: &str) -> Option<&mut Value> {
        self.at("metadata")?.get_mut("annotations")?.get_mut(name)
    }

    /// What is at a field.
    pub(crate) fn at(&mut self, field: &str) -> Option<&mut Value> {
        self.content.get_mut(field)
    }

    /// What is at a JSON pointer whose parts are names of fields.
    pub(crate) fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        let mut fields = pointer.split('/').skip(1);
        let first = self.content.get_mut(fields.next()?)?;
        fields.try_fold(first, |value, field| value.get_mut(field))
    }

    /// The map at a path, made where there is none.
    fn map_at(&mut self, path: &[&str]) -> Result<&mut Map<String, Value>, ObjectError> {
        let id = self.id();
        let mut map = &mut self.content;
        for (depth, field) in path.iter().enumerate() {
            let value = map.entry(*field).or_insert(Value::Null);
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            map = match value {
                Value::Object(map) => map,
                other => {
                    let path = path.iter().take(depth + 1).copied().collect::<Vec<_>>().join(".");
                    let mismatch = Mismatch::at(&path, "an object", other);
                    return Err(ObjectError { object: Box::new(id), problem: Box::new(mismatch.into()) });
                }
            };
        }
        Ok(map)
    }

    /// Brings the object into the form that upstream's typed structs give it.
    pub(crate) fn normalise(&mut self) -> Result<(), ObjectError> {
        let Some(shape) = Struct::of(&self.group, &self.version, &self.kind) else {
            let found = self.content.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Err(
                self.error(Problem::Version { found, supported: Struct::versions_of(&self.kind).collect() })
            );
        };
        shape.normalise(&mut self.content).map_err(|mismatch| self.error(mismatch.into()))
    }

    pub(crate) fn id(&self) -> ObjectId {
        ObjectId { document: self.document, kind: self.kind.clone(), name: self.name().to_owned() }
    }

    pub(crate) fn error(&self, problem: Problem) -> ObjectError {
        ObjectError { object: Box::new(self.id()), problem: Box::new(problem) }
    }
}

/// The objects of a file's documents; empty documents are none, and a `List` is what is in it. Upstream leaves lists
/// as they are, so that nothing in them is moved or labelled.
pub(crate) fn read(documents: Vec<Value>) -> Result<Vec<Object>, ObjectError> {
    let mut objects = Vec::with_capacity(documents.len());
    for (document, value) in documents.into_iter().enumerate() {
        for value in unpack(value) {
            objects.push(Object::read(document, value)?);
        }
    }
    Ok(objects)
}

fn unpack(value: Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Object(mut list) if is_list(&list) => match list.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        value => vec![value],
    }
}

fn is_list(object: &Map<String, Value>) -> bool {
    let is = |field: &str, text: &str| object.get(field).and_then(Value::as_str) == Some(text);
    is("kind", "List")
        && is("apiVersion", "v1")
        && matches!(object.get("items"), None | Some(Value::Array(_) | Value::Null))
}
