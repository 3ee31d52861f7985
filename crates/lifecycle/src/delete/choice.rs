//! Which providers are meant.

use std::collections::BTreeSet;

use capstan_api::names::label;
use kube::core::ObjectMeta;

use super::{DeleteError, DeleteGoal, Selection};
use crate::instance::Instances;
use capstan_management::{
    ObjectRef,
    inventory::{Installed, Inventory},
    sweep::Component,
};

/// A provider that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) label: String,
    /// Its instances that go.
    pub(crate) entries: Vec<Installed>,
    /// Its instances that stay.
    pub(crate) others: Vec<Installed>,
}

impl Chosen {
    /// The instance that is deleted among those that stay, if any stay.
    pub(crate) fn instances<'a>(
        &'a self,
        installed: impl IntoIterator<Item = &'a ObjectRef>,
    ) -> Option<Instances<'a>> {
        let others = self.others.iter().map(|it| it.namespace.as_str());
        let entry = self.entries.first().filter(|_| !self.others.is_empty())?;
        Some(Instances::new(&entry.namespace, others, installed))
    }

    /// Whether an instance that stays looks after the objects of a namespace.
    pub(crate) fn is_covered(&self, namespace: Option<&str>) -> bool {
        self.others.iter().any(|it| {
            let watched = it.watched_namespace.as_deref();
            watched.is_none() || watched == namespace
        })
    }
}

/// Refuses what the inventory alone shows to be wrong.
pub(crate) fn check(inventory: &Inventory, selection: &Selection) -> Result<(), DeleteError> {
    let Selection::Named(asked) = selection else {
        return Ok(());
    };
    for asked in asked {
        let instances: Vec<&Installed> =
            inventory.instances(asked.kind, &asked.name).filter(|it| is_in(asked, it)).collect();
        match (instances.as_slice(), &asked.version) {
            ([installed], Some(version)) if installed.version != *version => {
                return Err(DeleteError::OtherVersion {
                    label: asked.label(),
                    asked: version.clone(),
                    installed: installed.version.clone(),
                });
            }
            // The version and the namespace of what a cut-off installation left are unknown.
            ([], _) if asked.version.is_some() || asked.namespace.is_some() => {
                return Err(not_installed(inventory, asked.label(), asked.namespace.clone()));
            }
            ([] | [_], _) => {}
            (several, _) => {
                return Err(DeleteError::SeveralInstances {
                    label: asked.label(),
                    namespaces: several.iter().map(|it| it.namespace.clone()).collect(),
                });
            }
        }
    }
    Ok(())
}

/// Whether an instance is in the namespace that is named, if one is.
fn is_in(goal: &DeleteGoal, instance: &Installed) -> bool {
    goal.namespace.as_ref().is_none_or(|it| *it == instance.namespace)
}

/// What has to be looked for.
pub(crate) fn selector(selection: &Selection) -> String {
    match selection {
        Selection::All => format!("{}=,{}", label::CLUSTERCTL, label::PROVIDER),
        Selection::Named(asked) => {
            let labels: BTreeSet<String> = asked.iter().map(DeleteGoal::label).collect();
            let labels = labels.into_iter().collect::<Vec<_>>().join(",");
            format!("{}=,{} in ({labels})", label::CLUSTERCTL, label::PROVIDER)
        }
    }
}

/// Whether a provider of that label is meant.
pub(crate) fn is_meant(selection: &Selection, provider: &str) -> bool {
    match selection {
        Selection::All => true,
        Selection::Named(asked) => asked.iter().any(|it| it.label() == provider),
    }
}

/// Whether an object is a component of a provider that is meant.
pub(crate) fn is_component(selection: &Selection, object: &ObjectMeta) -> bool {
    let labels = object.labels.as_ref();
    let value = |name: &str| labels.and_then(|it| it.get(name)).map(String::as_str);
    value(label::CLUSTERCTL) == Some("") && value(label::PROVIDER).is_some_and(|it| is_meant(selection, it))
}

/// The providers that are meant, with what an installation or deletion left that was cut off.
pub(crate) fn choose(
    inventory: &Inventory,
    selection: &Selection,
    found: &[Component],
) -> Result<Vec<Chosen>, DeleteError> {
    let present: BTreeSet<&str> = found.iter().filter_map(Component::provider).collect();
    let labels: Vec<String> = match selection {
        Selection::All => {
            let installed: Vec<String> = inventory.providers.iter().map(Installed::label).collect();
            let left = present.iter().map(|it| (*it).to_owned());
            let left: Vec<String> = left.filter(|it| !installed.contains(it)).collect();
            [installed, left].concat()
        }
        Selection::Named(asked) => asked.iter().map(DeleteGoal::label).collect(),
    };
    let mut chosen: Vec<Chosen> = Vec::new();
    for label in labels {
        if chosen.iter().any(|it| it.label == label) {
            continue;
        }
        let is_meant = |it: &Installed| match selection {
            Selection::All => true,
            Selection::Named(goals) => goals.iter().any(|goal| goal.label() == label && is_in(goal, it)),
        };
        let instances = inventory.providers.iter().filter(|it| it.label() == label).cloned();
        let (entries, others): (Vec<_>, Vec<_>) = instances.partition(is_meant);
        if entries.is_empty() && !present.contains(label.as_str()) {
            return Err(not_installed(inventory, label, None));
        }
        chosen.push(Chosen { label, entries, others });
    }
    Ok(chosen)
}

fn not_installed(inventory: &Inventory, label: String, namespace: Option<String>) -> DeleteError {
    let text = |it: &Installed| format!("{} {} in namespace {}", it.label(), it.version, it.namespace);
    let installed = inventory.providers.iter().map(text).collect();
    DeleteError::NotInstalled { label, namespace, installed }
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType;

    use super::{super::removal::tests::component, *};

    fn installed(name: &str, version: &str, namespace: &str) -> Installed {
        Installed {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: ProviderType::Infrastructure,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        }
    }

    fn named(names: &[(&str, Option<&str>)]) -> Selection {
        let goals = names.iter().map(|(name, version)| DeleteGoal {
            kind: ProviderType::Infrastructure,
            name: (*name).to_owned(),
            version: version.map(str::to_owned),
            namespace: None,
        });
        Selection::Named(goals.collect())
    }

    fn inventory() -> Inventory {
        let providers = vec![
            installed("acme", "v1.0.0", "acme-system"),
            installed("twice", "v1.0.0", "a"),
            installed("twice", "v1.0.0", "b"),
        ];
        Inventory { providers, unreadable: Vec::new() }
    }

    #[test]
    fn only_what_is_there_is_deleted() {
        let left = [component("v1", "Service", Some("left-system"), "s", "infrastructure-left")];
        let labels = |selection: &Selection| {
            let inventory = inventory();
            let chosen = check(&inventory, selection).and_then(|()| choose(&inventory, selection, &left));
            chosen
                .map(|it| it.into_iter().map(|it| it.label).collect::<Vec<_>>())
                .map_err(|it| it.to_string())
        };
        for (selection, expected) in [
            (named(&[("acme", None)]), Ok(vec!["infrastructure-acme"])),
            (named(&[("acme", Some("v1.0.0")), ("acme", None)]), Ok(vec!["infrastructure-acme"])),
            (
                named(&[("acme", Some("v2"))]),
                Err(
                    "provider infrastructure-acme is installed in version v1.0.0, not v2; nothing was deleted",
                ),
            ),
            (
                named(&[("acme", None), ("nobody", None)]),
                Err("provider infrastructure-nobody is not installed; nothing was deleted"),
            ),
            (
                named(&[("twice", None)]),
                Err(
                    "provider infrastructure-twice is installed several times, in namespaces a, b; nothing was deleted",
                ),
            ),
            // What was left behind can be named, but not its version.
            (named(&[("left", None)]), Ok(vec!["infrastructure-left"])),
            (
                named(&[("left", Some("v1.0.0"))]),
                Err("provider infrastructure-left is not installed; nothing was deleted"),
            ),
            (Selection::All, Ok(vec!["infrastructure-acme", "infrastructure-twice", "infrastructure-left"])),
        ] {
            let expected =
                expected.map(|it| it.into_iter().map(str::to_owned).collect()).map_err(str::to_owned);
            assert_eq!(labels(&selection), expected, "{selection:?}");
        }
    }

    #[test]
    fn one_of_several_instances_goes_by_its_namespace() {
        let named_in = |namespace: &str| {
            let Selection::Named(mut goals) = named(&[("twice", None)]) else { unreachable!() };
            goals[0].namespace = Some(namespace.to_owned());
            Selection::Named(goals)
        };
        let inventory = inventory();
        assert!(check(&inventory, &named_in("a")).is_ok());
        let chosen = choose(&inventory, &named_in("a"), &[]).unwrap();
        let namespaces = |entries: &[Installed]| -> Vec<String> {
            entries.iter().map(|it| it.namespace.clone()).collect()
        };
        assert_eq!(namespaces(&chosen[0].entries), ["a"]);
        assert_eq!(namespaces(&chosen[0].others), ["b"]);
        assert!(chosen[0].is_covered(Some("anywhere")), "the other instance watches all namespaces");
        let refused = check(&inventory, &named_in("c")).unwrap_err().to_string();
        assert!(refused.contains("infrastructure-twice is not installed"), "{refused}");
    }

    #[test]
    fn only_named_providers_are_looked_for() {
        let selection = named(&[("b", None), ("a", None), ("b", None)]);
        assert_eq!(
            selector(&selection),
            "clusterctl.cluster.x-k8s.io=,cluster.x-k8s.io/provider in (infrastructure-a,infrastructure-b)"
        );
        assert_eq!(selector(&Selection::All), "clusterctl.cluster.x-k8s.io=,cluster.x-k8s.io/provider");
    }
}
