//! What one object says of another: its kind and name.

use std::fmt;

use serde_json::Value;

use crate::fields::namespace;

/// An object that another one refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The group of its kind.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The version that the reference itself names, as references of v1beta1 do.
    pub stated_version: Option<String>,
}

impl Reference {
    /// The reference at a place in an object, of v1beta2 (`apiGroup`) or of v1beta1 (`apiVersion`).
    pub(crate) fn at(object: &Value, pointer: &str) -> Option<Self> {
        Self::read(object.pointer(pointer)?, namespace(object))
    }

    /// A reference of an object in a namespace.
    pub(crate) fn read(value: &Value, namespace: &str) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
        let (kind, name) = (text("kind")?.to_owned(), text("name")?.to_owned());
        let (group, stated_version) = match (text("apiGroup"), text("apiVersion")) {
            (Some(group), _) => (group.to_owned(), None),
            (None, Some(version)) => match version.split_once('/') {
                Some((group, version)) => (group.to_owned(), Some(version.to_owned())),
                None => (String::new(), Some(version.to_owned())),
            },
            (None, None) => return None,
        };
        let namespace = text("namespace").unwrap_or(namespace).to_owned();
        Some(Self { group, kind, namespace, name, stated_version })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_read() {
        let expected = |version: Option<&str>| {
            Some(Reference {
                group: "g.io".to_owned(),
                kind: "Foo".to_owned(),
                namespace: "ns".to_owned(),
                name: "x".to_owned(),
                stated_version: version.map(str::to_owned),
            })
        };
        for (value, expected) in [
            (json!({"apiGroup": "g.io", "kind": "Foo", "name": "x"}), expected(None)),
            (json!({"apiVersion": "g.io/v1", "kind": "Foo", "name": "x"}), expected(Some("v1"))),
            (
                json!({"apiVersion": "g.io/v1", "kind": "Foo", "name": "x", "namespace": "ns"}),
                expected(Some("v1")),
            ),
            (json!({"apiGroup": "g.io", "kind": "", "name": "x"}), None),
            (json!({"kind": "Foo", "name": "x"}), None),
            (json!({}), None),
            (json!(null), None),
        ] {
            assert_eq!(Reference::read(&value, "ns"), expected, "{value}");
        }
    }
}
