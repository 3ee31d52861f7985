//! Who still needs a provider: objects of its kinds, and what lives in its namespace.

use std::fmt;

use capstan_api::names::{CLUSTERCTL_GROUP, CORE_GROUP};
use futures::TryStreamExt;
use kube::core::ObjectMeta;

use super::search::{Reading, Scope, look};
use capstan_management::{Kind, Kinds, ManagementCluster, ServerError, at_once, sweep::Component};

/// How many objects of a kind are named.
const NAMED: usize = 10;

/// Objects of one kind that still need the provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usage {
    /// The kind.
    pub kind: String,
    /// Its group.
    pub group: String,
    /// How many there are; unknown is none.
    pub count: usize,
    /// The first of them, as `namespace/name`.
    pub first: Vec<String>,
    /// Why the number is unknown: there is at least one.
    pub unreadable: Option<String>,
    /// Whether the kind goes with the provider; others are in a namespace that does.
    pub is_of_own_kind: bool,
}

impl fmt::Display for Usage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.unreadable {
            return write!(out, "{} that cannot be read ({reason})", self.kind);
        }
        write!(out, "{} {}", self.kind, self.first.join(", "))?;
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(out, " and {more} more"),
        }
    }
}

/// Who needs providers: the objects of their kinds, and whatever of Cluster API is in namespaces that go with them.
/// Components of the providers themselves do not count.
pub(crate) async fn find(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    scope: &Scope<'_>,
    readings: &[Reading<'_>],
    namespaces: &[&str],
) -> Result<Vec<Usage>, ServerError> {
    let is_read = |kind: &Kind| {
        let names = |it: &Kind| (it.resource.group.clone(), it.resource.kind.clone());
        readings.iter().any(|it| names(it.kind) == names(kind))
    };
    let others: Vec<&Kind> = kinds
        .preferred()
        .filter(|it| {
            it.is_namespaced && it.is_managed && is_of_cluster_api(&it.resource.group) && !is_read(it)
        })
        .collect();
    let places = namespaces.iter().flat_map(|it| others.iter().map(move |kind| (*kind, *it)));
    let looks = places.map(|(kind, namespace)| async move {
        let objects = look(cluster, kinds, kind, Some(namespace), "").await?;
        Ok::<_, ServerError>(usage(kind, &objects, scope, false))
    });
    let within: Vec<Option<Usage>> = at_once(looks).try_collect().await?;
    let own = readings.iter().map(|it| usage(it.kind, &it.objects, scope, true));
    let mut usages: Vec<Usage> = own.chain(within).flatten().collect();
    usages.sort();
    Ok(usages)
}

/// Who needs the kinds of CRDs that are about to go.
pub(crate) async fn of_crds(
    cluster: &ManagementCluster,
    kinds: &Kinds,
    scope: &Scope<'_>,
    crds: &[&Component],
) -> Result<Vec<Usage>, ServerError> {
    let defined = crds.iter().filter_map(|it| kinds.defined_by(&it.id.name));
    let looks = defined.map(|kind| async move {
        let objects = look(cluster, kinds, kind, None, "").await?;
        Ok::<_, ServerError>(usage(kind, &objects, scope, true))
    });
    let usages: Vec<Option<Usage>> = at_once(looks).try_collect().await?;
    let mut usages: Vec<Usage> = usages.into_iter().flatten().collect();
    usages.sort();
    Ok(usages)
}

/// Kinds of Cluster API and its providers; not the inventory's.
fn is_of_cluster_api(group: &str) -> bool {
    let is_core = group == CORE_GROUP || group.strip_suffix(CORE_GROUP).is_some_and(|it| it.ends_with('.'));
    is_core && group != CLUSTERCTL_GROUP
}

fn usage(
    kind: &Kind,
    found: &Result<Vec<ObjectMeta>, String>,
    scope: &Scope<'_>,
    is_of_own_kind: bool,
) -> Option<Usage> {
    let (mut names, unreadable): (Vec<String>, _) = match found {
        Ok(found) => {
            let others = found.iter().filter(|it| !scope.is_component(it));
            (others.map(name_of).collect(), None)
        }
        Err(reason) => (Vec::new(), Some(reason.clone())),
    };
    names.sort();
    let count = names.len();
    names.truncate(NAMED);
    (count > 0 || unreadable.is_some()).then(|| Usage {
        kind: kind.resource.kind.clone(),
        group: kind.resource.group.clone(),
        count,
        first: names,
        unreadable,
        is_of_own_kind,
    })
}

fn name_of(object: &ObjectMeta) -> String {
    let name = object.name.clone().unwrap_or_default();
    object.namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use capstan_api::{names::label, provider::ProviderType};

    use super::{
        super::{DeleteGoal, Selection, removal::tests::component},
        *,
    };
    use capstan_management::inventory::Installed;

    fn object(name: &str, provider: Option<&str>) -> ObjectMeta {
        let labels = provider.map(|it| {
            [(label::CLUSTERCTL, ""), (label::PROVIDER, it)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        });
        let (name, namespace) = (Some(name.to_owned()), Some("n".to_owned()));
        ObjectMeta { name, namespace, labels, ..ObjectMeta::default() }
    }

    #[test]
    fn the_first_objects_are_named_and_all_are_counted() {
        let kind = component("example.com/v1", "Acme", Some("n"), "", "").kind;
        let (kind_of_provider, name) = (ProviderType::Infrastructure, "acme".to_owned());
        let selection = Selection::Named(vec![DeleteGoal {
            kind: kind_of_provider,
            name,
            version: None,
            namespace: None,
        }]);
        let entry = Installed {
            namespace: "n".to_owned(),
            name: "acme".to_owned(),
            kind: kind_of_provider,
            version: "v1.0.0".to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        };
        let scope = Scope::new(&selection, [&entry]);
        let text = |found| usage(&kind, &found, &scope, true).map(|it| it.to_string());
        assert_eq!(text(Ok(vec![])), None);
        assert_eq!(text(Ok(vec![object("b", None), object("a", None)])).unwrap(), "Acme n/a, n/b");
        // What the provider brought along is no user's.
        assert_eq!(text(Ok(vec![object("b", Some("infrastructure-acme"))])), None);
        assert_eq!(text(Ok(vec![object("b", Some("infrastructure-other"))])).unwrap(), "Acme n/b");
        // What a user copied from it is.
        let copy =
            ObjectMeta { namespace: Some("team".to_owned()), ..object("b", Some("infrastructure-acme")) };
        assert_eq!(text(Ok(vec![copy])).unwrap(), "Acme team/b");
        let many = (0..12).map(|it| object(&format!("{it:02}"), None)).collect();
        let many = text(Ok(many)).unwrap();
        assert!(many.ends_with("n/09 and 2 more") && many.starts_with("Acme n/00, n/01"), "{many}");
        assert_eq!(text(Err("no route".to_owned())).unwrap(), "Acme that cannot be read (no route)");
    }

    #[test]
    fn kinds_of_cluster_api_are_known_by_their_group() {
        for (group, expected) in [
            ("cluster.x-k8s.io", true),
            ("infrastructure.cluster.x-k8s.io", true),
            ("clusterctl.cluster.x-k8s.io", false),
            ("mycluster.x-k8s.io", false),
            ("apps", false),
            ("", false),
        ] {
            assert_eq!(is_of_cluster_api(group), expected, "{group}");
        }
    }
}
