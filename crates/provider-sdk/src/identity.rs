//! The name that infrastructure is found again by.

use std::fmt;

use capstan_runtime::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Holds the id of an object's infrastructure. It is written before anything is made, and moves with the object.
pub const ID_ANNOTATION: &str = "capstan.dev/infrastructure-id";

/// Names the infrastructure of one object for as long as there is any, whatever happens to the object: neither a wiped
/// status nor a new uid in another management cluster changes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InfrastructureId(String);

impl InfrastructureId {
    /// The id for an object that has none.
    pub(crate) fn mint(key: &ObjectKey, metadata: &ObjectMeta) -> Self {
        let uid = metadata.uid.as_deref().unwrap_or_default();
        Self(format!("{}/{}/{uid}", key.namespace, key.name))
    }

    /// The id on record. One that names another object was copied from there by hand, and is not this object's.
    pub(crate) fn of(key: &ObjectKey, metadata: &ObjectMeta) -> Option<Self> {
        let recorded = metadata.annotations.as_ref()?.get(ID_ANNOTATION)?;
        Some(Self(recorded.clone())).filter(|id| id.is_of(key) && !recorded.ends_with('/'))
    }

    /// Whether it is that of an object with this name.
    pub(crate) fn is_of(&self, key: &ObjectKey) -> bool {
        self.0.strip_prefix(&format!("{}/{}/", key.namespace, key.name)).is_some_and(|uid| !uid.contains('/'))
    }

    /// Whether there is any id on record, this object's or another's.
    pub(crate) fn is_recorded(metadata: &ObjectMeta) -> bool {
        metadata.annotations.as_ref().is_some_and(|it| it.contains_key(ID_ANNOTATION))
    }

    /// The text: namespace, name and the first uid, separated by slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InfrastructureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(value: &str) -> ObjectMeta {
        ObjectMeta {
            annotations: Some([(ID_ANNOTATION.to_owned(), value.to_owned())].into()),
            uid: Some("new".into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_id_stays_with_its_object_and_not_with_a_copy() {
        let key = ObjectKey::new("n", "a");
        let minted = InfrastructureId::mint(&key, &recorded(""));
        assert_eq!(minted.as_str(), "n/a/new");
        for (value, own) in
            [("n/a/first", true), ("n/b/first", false), ("n/a/", false), ("n/a/x/y", false), ("", false)]
        {
            assert_eq!(InfrastructureId::of(&key, &recorded(value)).is_some(), own, "{value:?}");
        }
        assert_eq!(InfrastructureId::of(&key, &ObjectMeta::default()), None);
    }
}
