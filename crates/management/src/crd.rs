//! CustomResourceDefinitions, read from the JSON of a manifest or of a server's response.

use kube::{core::GroupVersionKind, discovery::ApiResource};
use serde_json::Value;

use crate::{Kind, ObjectRef};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// A view of a CRD; fields that are missing are empty.
#[derive(Clone, Copy, Debug)]
pub struct Crd<'a>(&'a Value);

/// A version of a CRD.
#[derive(Clone, Copy, Debug)]
pub struct CrdVersion<'a>(&'a Value);

/// A condition of a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrdCondition<'a> {
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// The server's explanation.
    pub message: &'a str,
}

impl<'a> Crd<'a> {
    /// A view of an object that is a CRD.
    pub fn new(crd: &'a Value) -> Self {
        Self(crd)
    }

    /// A view of an object if it is a CRD.
    pub fn of(object: &'a Value) -> Option<Self> {
        is_crd(&ObjectRef::of(object)).then_some(Self(object))
    }

    /// Its name, `<plural>.<group>`.
    pub fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    /// The group of its kind.
    pub fn group(self) -> &'a str {
        self.text("/spec/group")
    }

    /// The name of its kind.
    pub fn kind(self) -> &'a str {
        self.text("/spec/names/kind")
    }

    /// The plural name of its kind.
    pub fn plural(self) -> &'a str {
        self.text("/spec/names/plural")
    }

    /// Whether objects of its kind are in namespaces.
    pub fn is_namespaced(self) -> bool {
        self.text("/spec/scope") == "Namespaced"
    }

    /// All versions.
    pub fn versions(self) -> impl Iterator<Item = CrdVersion<'a>> {
        self.list("/spec/versions").map(CrdVersion)
    }

    /// The version of that name.
    pub fn version(self, name: &str) -> Option<CrdVersion<'a>> {
        self.versions().find(|it| it.name() == name)
    }

    /// The names of the versions that are served.
    pub fn served_versions(self) -> impl Iterator<Item = &'a str> {
        self.versions().filter(|it| it.is_served()).map(CrdVersion::name)
    }

    /// The name of the version that objects are written in.
    pub fn storage_version(self) -> Option<&'a str> {
        self.versions().find(|it| it.is_stored()).map(CrdVersion::name)
    }

    /// The names of all versions that objects may be stored in.
    pub fn stored_versions(self) -> Vec<&'a str> {
        self.list("/status/storedVersions").filter_map(Value::as_str).collect()
    }

    /// The value of a label.
    pub fn label(self, name: &str) -> Option<&'a str> {
        self.0.get("metadata")?.get("labels")?.get(name)?.as_str()
    }

    /// The condition of a type.
    pub fn condition(self, kind: &str) -> Option<CrdCondition<'a>> {
        let found = self.list("/status/conditions").find(|it| it["type"] == kind)?;
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        Some(CrdCondition { status: text("status"), message: text("message") })
    }

    /// Its kind in a version.
    pub fn kind_in(self, version: &str) -> Kind {
        let gvk = GroupVersionKind::gvk(self.group(), version, self.kind());
        Kind {
            resource: ApiResource::from_gvk_with_plural(&gvk, self.plural()),
            is_namespaced: self.is_namespaced(),
            is_managed: true,
            is_preferred: self.storage_version() == Some(version),
        }
    }

    fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(self, pointer: &str) -> impl Iterator<Item = &'a Value> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }
}

impl<'a> CrdVersion<'a> {
    /// Its name, e.g. `v1beta2`.
    pub fn name(self) -> &'a str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Whether it is served.
    pub fn is_served(self) -> bool {
        self.0["served"] == true
    }

    /// Whether objects are written in it.
    pub fn is_stored(self) -> bool {
        self.0["storage"] == true
    }

    /// Its JSON.
    pub fn content(self) -> &'a Value {
        self.0
    }
}

/// Whether an object is a CRD.
pub fn is_crd(id: &ObjectRef) -> bool {
    id.kind == KIND && id.group() == GROUP
}

/// The name of the CRD that defines a kind.
pub fn name_of(kind: &Kind) -> String {
    format!("{}.{}", kind.resource.plural, kind.resource.group)
}

impl Kind {
    /// The kind CustomResourceDefinition.
    pub fn crd() -> Self {
        Self::cluster_scoped(GROUP, "v1", KIND)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_is_read_and_missing_fields_are_empty() {
        let value = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.g.io", "labels": {"a": "b"}},
            "spec": {
                "group": "g.io", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
                "versions": [{"name": "v1", "served": true},
                             {"name": "v2", "served": true, "storage": true}, {"name": "v0", "served": false}],
            },
            "status": {"storedVersions": ["v1", "v2"],
                       "conditions": [{"type": "Established", "status": "False", "message": "wait"}]},
        });
        let crd = Crd::of(&value).unwrap();
        assert_eq!(
            (crd.name(), crd.group(), crd.kind(), crd.plural()),
            ("boxes.g.io", "g.io", "Box", "boxes")
        );
        assert!(crd.is_namespaced());
        assert_eq!(crd.served_versions().collect::<Vec<_>>(), ["v1", "v2"]);
        assert_eq!((crd.storage_version(), crd.stored_versions()), (Some("v2"), vec!["v1", "v2"]));
        assert_eq!((crd.label("a"), crd.label("c")), (Some("b"), None));
        assert_eq!(crd.condition("Established"), Some(CrdCondition { status: "False", message: "wait" }));
        assert_eq!(crd.condition("Terminating"), None);
        assert!(crd.version("v1").is_some_and(CrdVersion::is_served) && crd.version("v3").is_none());
        let kind = crd.kind_in("v2");
        assert_eq!((kind.resource.api_version.as_str(), kind.is_preferred), ("g.io/v2", true));
        assert_eq!(name_of(&kind), crd.name());

        let nothing = Value::Null;
        let empty = Crd::new(&nothing);
        assert_eq!((empty.name(), empty.is_namespaced(), empty.storage_version()), ("", false, None));
        assert_eq!((empty.versions().count(), empty.stored_versions().len()), (0, 0));
        let other = json!({"apiVersion": "example.com/v1", "kind": "CustomResourceDefinition"});
        assert!(Crd::of(&other).is_none());
    }
}
