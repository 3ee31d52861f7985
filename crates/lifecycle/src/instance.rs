//! Several instances of one provider: what belongs to which, and whose shared objects count.
//!
//! Capstan installs one instance of a provider. A cluster may have more from older tools, and every command copes.

use std::collections::BTreeSet;

use capstan_management::{ObjectRef, crd::is_crd, inventory::Installed};
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

/// The instances of one provider, seen from one of them.
pub(crate) struct Instances<'a> {
    namespace: &'a str,
    others: Vec<&'a str>,
    /// The cluster-wide roles and bindings of all instances.
    roles: Vec<&'a ObjectRef>,
    /// The instances whose roles have their namespace as a prefix.
    prefixed: BTreeSet<&'a str>,
}

impl<'a> Instances<'a> {
    /// The instances in these namespaces, with the installed objects of the provider.
    pub(crate) fn new(
        namespace: &'a str,
        others: impl IntoIterator<Item = &'a str>,
        installed: impl IntoIterator<Item = &'a ObjectRef>,
    ) -> Self {
        let roles: Vec<_> = installed.into_iter().filter(|it| is_role(it)).collect();
        let others = others.into_iter().collect();
        let mut all = Self { namespace, others, roles, prefixed: BTreeSet::new() };
        all.prefixed = all.roles.iter().filter_map(|it| all.named(&it.name)).collect();
        all
    }

    /// Whose an object is.
    pub(crate) fn owner(&self, object: &ObjectRef) -> Owner {
        if self.others.is_empty() {
            return Owner::This;
        }
        let its = match object.namespace.as_deref() {
            Some(SHARED_NAMESPACE) => None,
            Some(namespace) => Some(namespace),
            None if is_shared_kind(object) => None,
            None if is_namespace(object) => self.all().find(|it| *it == object.name),
            None => self.named(&object.name).or_else(|| self.only_unprefixed()),
        };
        match its {
            None => Owner::All,
            Some(its) if its == self.namespace => Owner::This,
            Some(_) => Owner::Another,
        }
    }

    /// Whether the cluster-wide roles of this instance have its namespace as a prefix. Without any, they get it.
    pub(crate) fn has_prefix(&self) -> bool {
        let mut own = self.roles.iter().filter(|it| self.owner(it) != Owner::Another);
        if self.others.is_empty() {
            own.all(|it| self.named(&it.name).is_some())
        } else {
            self.prefixed.contains(self.namespace) || own.next().is_none()
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a str> {
        [self.namespace].into_iter().chain(self.others.iter().copied())
    }

    /// The instance whose namespace is a prefix of a name. Of two namespaces the longer one was meant.
    fn named(&self, name: &str) -> Option<&'a str> {
        let is_prefix = |it: &&str| name.strip_prefix(it).is_some_and(|rest| rest.starts_with('-'));
        self.all().filter(is_prefix).max_by_key(|it| it.len())
    }

    /// The only instance without prefixed roles: roles without a prefix belong to it.
    fn only_unprefixed(&self) -> Option<&'a str> {
        let mut unprefixed = self.all().filter(|it| !self.prefixed.contains(it));
        unprefixed.next().filter(|_| unprefixed.next().is_none())
    }
}

/// Whether all instances use the same object, wherever they are installed.
pub(crate) fn is_shared(object: &ObjectRef) -> bool {
    is_shared_kind(object)
        || object.namespace.as_deref() == Some(SHARED_NAMESPACE)
        || is_namespace(object) && object.name == SHARED_NAMESPACE
}

/// The other instances of a provider.
pub(crate) fn others<'i>(
    provider: &Installed,
    installed: &'i [Installed],
) -> impl Iterator<Item = &'i Installed> {
    installed.iter().filter(|it| {
        (it.kind, &it.name) == (provider.kind, &provider.name) && it.namespace != provider.namespace
    })
}

/// Whether no other instance has a newer version, or is being upgraded to one, so that this one's shared objects count.
pub(crate) fn is_newest<'i>(version: &str, others: impl IntoIterator<Item = &'i Installed>) -> bool {
    let Ok(version) = Version::parse(version) else { return true };
    let versions = others.into_iter().flat_map(|it| [Some(&it.version), it.upgrading_to.as_ref()]);
    let mut parsed = versions.flatten().filter_map(|it| Version::parse(it).ok());
    parsed.all(|it| !it.is_newer_than(&version))
}

/// The instance with the newest version; of several the first.
pub(crate) fn newest<'i>(instances: impl IntoIterator<Item = &'i Installed>) -> Option<&'i Installed> {
    instances.into_iter().reduce(|newest, it| {
        let versions = [&newest.version, &it.version].map(|version| Version::parse(version));
        match versions {
            [Ok(first), Ok(second)] if second.is_newer_than(&first) => it,
            _ => newest,
        }
    })
}

fn is_shared_kind(object: &ObjectRef) -> bool {
    is_crd(object) || object.group() == "admissionregistration.k8s.io"
}

fn is_namespace(object: &ObjectRef) -> bool {
    object.kind == "Namespace" && object.group().is_empty()
}

fn is_role(object: &ObjectRef) -> bool {
    object.group() == "rbac.authorization.k8s.io"
        && matches!(object.kind.as_str(), "ClusterRole" | "ClusterRoleBinding")
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType;

    use super::*;

    fn object(kind: &str, namespace: Option<&str>, name: &str) -> ObjectRef {
        let api_version = match kind {
            "ClusterRole" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            "ValidatingWebhookConfiguration" => "admissionregistration.k8s.io/v1",
            _ => "v1",
        };
        ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    fn roles(names: &[&str]) -> Vec<ObjectRef> {
        names.iter().map(|it| object("ClusterRole", None, it)).collect()
    }

    #[test]
    fn objects_belong_to_the_instance_whose_namespace_they_are_in_or_named_after() {
        let installed = roles(&["a-manager", "b-manager", "a-2-manager"]);
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
            ("ValidatingWebhookConfiguration", None, "a-webhooks", Owner::All),
        ] {
            let object = object(kind, namespace, name);
            assert_eq!(Instances::new("a", ["b", "a-2"], &installed).owner(&object), expected, "{object}");
            assert_eq!(Instances::new("a", [], &installed).owner(&object), Owner::This, "{object}");
        }
    }

    #[test]
    fn roles_without_a_prefix_belong_to_the_only_instance_without_prefixed_roles() {
        let role = object("ClusterRoleBinding", None, "manager");
        for (installed, expected, has_prefix) in [
            (&["a-manager", "b-manager"][..], Owner::All, true),
            (&["b-manager", "manager"], Owner::This, false),
            (&["a-manager", "manager"], Owner::Another, true),
            (&["manager"], Owner::All, false),
            (&["b-manager"], Owner::This, true),
            (&[], Owner::All, true),
        ] {
            let installed = roles(installed);
            let instances = Instances::new("a", ["b"], &installed);
            assert_eq!(
                (instances.owner(&role), instances.has_prefix()),
                (expected, has_prefix),
                "{installed:?}"
            );
        }
        for (installed, has_prefix) in
            [(&["a-manager"][..], true), (&["a-manager", "manager"], false), (&[], true)]
        {
            assert_eq!(Instances::new("a", [], &roles(installed)).has_prefix(), has_prefix, "{installed:?}");
        }
    }

    #[test]
    fn shared_objects_are_those_of_the_newest_instance() {
        let instance = |version: &str, upgrading_to: Option<&str>| Installed {
            namespace: version.to_owned(),
            name: "acme".to_owned(),
            kind: ProviderType::Infrastructure,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: upgrading_to.map(str::to_owned),
        };
        let old = instance("v1.0.0", None);
        for (others, expected) in [
            (&[old.clone(), instance("v1.1.0", None)][..], true),
            (&[old.clone(), instance("v1.2.0", None)], false),
            (&[instance("v1.0.0", Some("v1.2.0"))], false),
            (&[], true),
            (&[instance("nightly", None)], true),
        ] {
            assert_eq!(is_newest("v1.1.0", others), expected, "{others:?}");
        }
        let instances = [old.clone(), instance("v1.1.0", Some("v1.2.0")), instance("v1.1.0", None), old];
        assert_eq!(newest(&instances), Some(&instances[1]));
        assert_eq!(newest(&[]), None);
    }
}
