//! Several instances of one provider: what belongs to which, and whose shared objects count.
//!
//! Capstan installs one instance of a provider. A cluster may have more from older tools, and every command copes.

use capstan_management::sweep::Component;
use capstan_manifest::components::SHARED_NAMESPACE;
use capstan_repository::Version;

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The instance that is looked at.
    This,
    /// Another instance.
    Another,
    /// All instances.
    All,
}

/// Whose a component is, from the namespaces of an instance and of the others.
pub(crate) fn owner(component: &Component, namespace: &str, others: &[&str]) -> Owner {
    if others.is_empty() {
        return Owner::This;
    }
    let is_prefixed = |namespace: &str| component.id.name.starts_with(&format!("{namespace}-"));
    // Of two namespaces that both are a prefix, the longer one was meant.
    let longest = |it: &&&str| it.len();
    match component.id.namespace.as_deref() {
        Some(SHARED_NAMESPACE) => Owner::All,
        Some(its) if its == namespace => Owner::This,
        Some(_) => Owner::Another,
        None if component.id.kind == "Namespace" && component.id.name == namespace => Owner::This,
        None if component.id.kind == "Namespace" && others.contains(&component.id.name.as_str()) => {
            Owner::Another
        }
        None if component.id.kind == "CustomResourceDefinition" => Owner::All,
        None => {
            let named = [namespace];
            let candidates = named.iter().chain(others).filter(|it| is_prefixed(it));
            match candidates.max_by_key(longest) {
                Some(it) if *it == namespace => Owner::This,
                Some(_) => Owner::Another,
                None => Owner::All,
            }
        }
    }
}

/// Whether no other instance has a newer version, so that this one's shared objects count.
pub(crate) fn is_newest<'a>(version: &str, others: impl IntoIterator<Item = &'a str>) -> bool {
    let Ok(version) = Version::parse(version) else { return true };
    others.into_iter().filter_map(|it| Version::parse(it).ok()).all(|it| !it.is_newer_than(&version))
}

#[cfg(test)]
mod tests {
    use capstan_management::{Kind, ObjectRef};
    use kube::core::{GroupVersionKind, ObjectMeta};

    use super::*;

    fn component(kind: &str, namespace: Option<&str>, name: &str) -> Component {
        let resource = kube::discovery::ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        Component {
            kind: Kind { resource, is_namespaced: namespace.is_some(), is_managed: true, is_preferred: true },
            id: ObjectRef {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            },
            metadata: ObjectMeta::default(),
            content: None,
        }
    }

    #[test]
    fn objects_belong_to_the_instance_whose_namespace_they_are_in_or_named_after() {
        for (kind, namespace, name, expected) in [
            ("Deployment", Some("a"), "manager", Owner::This),
            ("Deployment", Some("b"), "manager", Owner::Another),
            ("Deployment", Some("elsewhere"), "manager", Owner::Another),
            ("Service", Some(SHARED_NAMESPACE), "webhooks", Owner::All),
            ("Namespace", None, "a", Owner::This),
            ("Namespace", None, "b", Owner::Another),
            ("Namespace", None, SHARED_NAMESPACE, Owner::All),
            ("ClusterRole", None, "a-manager", Owner::This),
            ("ClusterRole", None, "b-manager", Owner::Another),
            ("ClusterRole", None, "a-2-manager", Owner::Another),
            ("ClusterRole", None, "manager", Owner::All),
            ("CustomResourceDefinition", None, "a-boxes.example.com", Owner::All),
        ] {
            let component = component(kind, namespace, name);
            assert_eq!(owner(&component, "a", &["b", "a-2"]), expected, "{}", component.id);
            assert_eq!(owner(&component, "a", &[]), Owner::This, "{}", component.id);
        }
    }

    #[test]
    fn shared_objects_are_those_of_the_newest_instance() {
        assert!(is_newest("v1.1.0", ["v1.0.0", "v1.1.0"]));
        assert!(!is_newest("v1.1.0", ["v1.0.0", "v1.2.0"]));
        assert!(is_newest("v1.1.0", []));
        assert!(is_newest("v1.1.0", ["nightly"]));
    }
}
