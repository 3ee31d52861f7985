//! Whether an installation can end well, decided before anything is written.

use std::collections::BTreeMap;

use capstan_api::{
    contract::{crd_name, is_compatible},
    names::label,
    provider::ProviderType,
};
use serde_json::Value;

use super::InstallProblem;
use super::problem::SKIP_NAME_CHECK;
use crate::release::Prepared;
use capstan_management::{
    Kinds, ObjectRef,
    apply::Wave,
    inventory::{Installed, Inventory},
};

/// The CRDs of a server: by name, the labels.
pub(super) type Crds = BTreeMap<String, BTreeMap<String, String>>;

/// The core provider and the contract that it speaks.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) name: String,
    pub(super) contract: String,
}

/// Providers that are installed stay alone: one instance of each, and one core.
pub(super) fn check_instances(queue: &[Prepared], inventory: &Inventory) -> Vec<InstallProblem> {
    let mut problems = Vec::new();
    for new in queue.iter().map(Prepared::entry) {
        for installed in inventory.instances(new.kind, &new.name) {
            let installed = Box::new(installed.clone());
            problems.push(if installed.version == new.version {
                InstallProblem::SecondInstance { installed, namespace: new.namespace.clone() }
            } else {
                InstallProblem::OtherVersion { installed, version: new.version.clone() }
            });
        }
    }
    let is_core = |it: &Installed| it.kind == ProviderType::Core;
    let added = queue.iter().map(Prepared::entry);
    let mut cores: Vec<String> =
        inventory.providers.iter().cloned().chain(added).filter(is_core).map(|it| it.label()).collect();
    // The same one in two versions is a problem of its own.
    cores.dedup();
    if cores.len() > 1 {
        problems.push(InstallProblem::Cores { cores });
    }
    problems
}

/// An installed provider that would have to watch other namespaces.
pub(super) fn watches_another(
    installed: &Installed,
    wanted: Option<&str>,
    inventory: &Inventory,
) -> Option<InstallProblem> {
    let wanted = wanted.filter(|it| installed.watched_namespace.as_deref() != Some(*it))?;
    Some(InstallProblem::OtherWatchedNamespace {
        installed: Box::new(installed.clone()),
        wanted: wanted.to_owned(),
        is_alone: inventory.instances(installed.kind, &installed.name).count() == 1,
    })
}

/// Every provider speaks a contract that core speaks.
pub(super) fn check_contracts(queue: &[Prepared], core: &Core) -> Vec<InstallProblem> {
    let others = queue.iter().filter(|it| it.provider.kind != ProviderType::Core);
    let refused = others.filter(|it| !is_compatible(&core.contract, it.contract.as_str()));
    let problem = |it: &Prepared| InstallProblem::Contract {
        provider: format!("{} {}", it.provider.label(), it.version),
        contract: it.contract,
        core: core.name.clone(),
        core_contract: core.contract.clone(),
    };
    refused.map(problem).collect()
}

/// CRDs have names that core finds them by, belong to no other provider, and define kinds that no other CRD defines.
pub(super) fn check_crds(queue: &[Prepared], on_server: &Crds, known: &Kinds) -> Vec<InstallProblem> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for prepared in queue {
        let provider = prepared.provider.label();
        let crds = prepared.components.objects().iter().filter(|it| Wave::of(it) == Wave::Crds);
        for crd in crds {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            problems.extend(misnamed(crd, name, &provider));
            problems.extend(foreign(name, &provider, on_server.get(name)));
            problems.extend(taken(crd, name, &provider, known));
            if let Some(first) = seen.insert(name, provider.clone()) {
                let (name, second) = (name.to_owned(), provider.clone());
                problems.push(InstallProblem::SharedCrd { name, first, second });
            }
        }
    }
    problems
}

fn misnamed(crd: &Value, name: &str, provider: &str) -> Option<InstallProblem> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/spec/names/kind");
    let expected = crd_name(text("/spec/group"), kind);
    let is_excused = crd["metadata"]["annotations"].get(SKIP_NAME_CHECK).is_some();
    (name != expected && !is_excused).then(|| InstallProblem::CrdName {
        provider: provider.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        expected,
    })
}

/// What carries the provider's own labels was left by an installation that did not end, or by an earlier one.
fn foreign(name: &str, provider: &str, labels: Option<&BTreeMap<String, String>>) -> Option<InstallProblem> {
    let labels = labels?;
    let owner = labels.get(label::PROVIDER).filter(|_| labels.contains_key(label::CLUSTERCTL));
    (owner.map(String::as_str) != Some(provider)).then(|| InstallProblem::ForeignCrd {
        provider: provider.to_owned(),
        name: name.to_owned(),
        owner: owner.cloned(),
    })
}

/// A CRD whose kind has another name on the server would be accepted, but never served.
fn taken(crd: &Value, name: &str, provider: &str, known: &Kinds) -> Option<InstallProblem> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/spec/names/kind");
    let there = &known.any_version(text("/spec/group"), kind)?.resource;
    (there.plural != text("/spec/names/plural")).then(|| InstallProblem::KindTaken {
        provider: provider.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        taken: format!("{}.{}", there.plural, there.group),
    })
}

/// Every object has a kind that the server or a CRD of the plan defines.
pub(super) fn check_kinds(queue: &[Prepared], kinds: &Kinds) -> Vec<InstallProblem> {
    let objects = queue.iter().flat_map(|it| it.components.objects().iter().map(move |object| (it, object)));
    let unknown = objects.filter(|(_, object)| kinds.of(object).is_none());
    let problem = |(prepared, object): (&Prepared, &Value)| InstallProblem::UnknownKind {
        provider: prepared.provider.label(),
        object: Box::new(ObjectRef::of(object)),
    };
    unknown.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use capstan_api::contract::ContractVersion;
    use capstan_manifest::{components, images::Overrides};
    use capstan_repository::Provider;
    use serde_json::json;

    use super::*;

    fn prepared(kind: ProviderType, name: &str, contract: ContractVersion, more: Vec<Value>) -> Prepared {
        let provider = Provider { name: name.to_owned(), kind, ..provider_template() };
        let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})];
        objects.extend(more);
        let options = components::Options {
            label: &provider.label(),
            target_namespace: None,
            watching_namespace: None,
            rbac_prefix: true,
            images: &Overrides::default(),
        };
        Prepared {
            components: components::render(objects, &options).unwrap(),
            provider,
            version: "v1.1.0".to_owned(),
            contract,
            watching_namespace: None,
            origin: "a test".to_owned(),
        }
    }

    fn provider_template() -> Provider {
        Provider { name: String::new(), kind: ProviderType::Core, url: String::new() }
    }

    fn installed(kind: ProviderType, name: &str, version: &str, namespace: &str) -> Inventory {
        let provider = Installed {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            watched_namespace: None,
            upgrading_to: None,
        };
        Inventory { providers: vec![provider], unreadable: Vec::new() }
    }

    fn crd(kind: &str, name: &str, annotations: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"group": "g.io", "names": {"kind": kind, "plural": "x"}, "scope": "Namespaced",
                     "versions": []},
        })
    }

    fn told(problems: &[InstallProblem]) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_installed_provider_stays_alone() {
        use ProviderType::{Core, Infrastructure};
        let queue = [prepared(Infrastructure, "a", ContractVersion::V1Beta2, vec![])];
        for (inventory, words) in [
            (Inventory::default(), None),
            (installed(Infrastructure, "b", "v1.0.0", "ns"), None),
            (installed(Core, "a", "v1.0.0", "ns"), None),
            (installed(Infrastructure, "a", "v1.0.0", "ns"), Some("as v1.0.0, not as v1.1.0")),
            (installed(Infrastructure, "a", "v1.1.0", "other"), Some("a second instance in namespace ns")),
        ] {
            let problems = told(&check_instances(&queue, &inventory));
            assert_eq!(problems.len(), usize::from(words.is_some()), "{problems:?}");
            assert!(words.is_none_or(|it| problems[0].contains(it)), "{problems:?}");
        }
        let cores = [prepared(Core, "mine", ContractVersion::V1Beta2, vec![])];
        let problems = told(&check_instances(&cores, &installed(Core, "cluster-api", "v1", "ns")));
        assert_eq!(problems, ["there must be one core provider, but there would be 2: cluster-api, mine"]);
    }

    #[test]
    fn core_speaks_its_own_contract_and_those_before_it() {
        use ContractVersion::{V1Beta1, V1Beta2};
        for (core, provider, is_fine) in [
            (V1Beta2, V1Beta2, true),
            (V1Beta2, V1Beta1, true),
            (V1Beta1, V1Beta1, true),
            (V1Beta1, V1Beta2, false),
        ] {
            let queue = [prepared(ProviderType::Ipam, "a", provider, vec![])];
            let core = Core { name: "cluster-api v1".to_owned(), contract: core.as_str().to_owned() };
            assert_eq!(check_contracts(&queue, &core).is_empty(), is_fine, "{core:?} {provider}");
        }
    }

    #[test]
    fn a_crd_is_called_after_its_kind_and_belongs_to_nobody_else() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let own = labels(&[(label::CLUSTERCTL, ""), (label::PROVIDER, "ipam-a")]);
        let other = labels(&[(label::CLUSTERCTL, ""), (label::PROVIDER, "ipam-b")]);
        let pretended = labels(&[(label::PROVIDER, "ipam-a")]);
        for (kind, name, annotations, on_server, words) in [
            ("Proxy", "proxies.g.io", json!({}), None, None),
            ("Proxy", "proxys.g.io", json!({}), None, Some("must be called proxies.g.io")),
            ("Proxy", "proxys.g.io", json!({SKIP_NAME_CHECK: ""}), None, None),
            ("Box", "boxes.g.io", json!({}), Some(own), None),
            ("Box", "boxes.g.io", json!({}), Some(other), Some("belongs to ipam-b")),
            ("Box", "boxes.g.io", json!({}), Some(labels(&[])), Some("belongs to no provider")),
            ("Box", "boxes.g.io", json!({}), Some(pretended), Some("belongs to no provider")),
        ] {
            let objects = vec![crd(kind, name, &annotations)];
            let queue = [prepared(ProviderType::Ipam, "a", ContractVersion::V1Beta2, objects)];
            let on_server: Crds = on_server.into_iter().map(|it| (name.to_owned(), it)).collect();
            let problems = told(&check_crds(&queue, &on_server, &Kinds::default()));
            assert_eq!(problems.len(), usize::from(words.is_some()), "{name}: {problems:?}");
            assert!(words.is_none_or(|it| problems[0].contains(it)), "{problems:?}");
        }
    }

    #[test]
    fn a_kind_is_not_defined_under_another_name() {
        let served = |plural: &str| {
            let mut kinds = Kinds::default();
            kinds.learn(&json!({"spec": {"group": "g.io", "names": {"kind": "Box", "plural": plural},
                                         "versions": [{"name": "v1", "served": true}]}}));
            kinds
        };
        let mut brought = crd("Box", "boxes.g.io", &json!({}));
        brought["spec"]["names"]["plural"] = json!("boxes");
        let queue = [prepared(ProviderType::Ipam, "a", ContractVersion::V1Beta2, vec![brought])];
        assert!(check_crds(&queue, &Crds::new(), &served("boxes")).is_empty());
        let problems = told(&check_crds(&queue, &Crds::new(), &served("boxen")));
        assert_eq!(
            problems,
            ["ipam-a: kind Box of CRD boxes.g.io is defined by boxen.g.io on the server already"]
        );
    }

    #[test]
    fn two_providers_do_not_bring_the_same_crd() {
        let of = |name| {
            let objects = vec![crd("Box", "boxes.g.io", &json!({}))];
            prepared(ProviderType::Ipam, name, ContractVersion::V1Beta2, objects)
        };
        let problems = told(&check_crds(&[of("a"), of("b")], &Crds::new(), &Kinds::default()));
        assert_eq!(problems, ["ipam-a and ipam-b both have CRD boxes.g.io"]);
    }

    #[test]
    fn every_kind_is_defined_by_somebody() {
        let object = json!({"apiVersion": "g.io/v1", "kind": "Box", "metadata": {"name": "one"}});
        let mut kinds = Kinds::default();
        let queue = [prepared(ProviderType::Ipam, "a", ContractVersion::V1Beta2, vec![object])];
        let problems = told(&check_kinds(&queue, &kinds));
        assert!(problems[1].contains("no kind Box in g.io/v1, as Box ns/one needs"), "{problems:?}");
        kinds.learn(&json!({"spec": {"group": "g.io", "names": {"kind": "Box", "plural": "boxes"},
                                     "scope": "Namespaced", "versions": [{"name": "v1", "served": true}]}}));
        assert_eq!(check_kinds(&queue, &kinds).len(), 1, "only the Namespace's is unknown here");
    }
}
