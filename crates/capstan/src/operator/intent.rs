//! What `init --operator` is to do for each provider that is named.

use capstan_lifecycle::goal::{ProviderGoal, VersionGoal};
use capstan_management::{
    ObjectRef,
    inventory::{Installed, Inventory},
};

use super::{OperatorProblem, OperatorState, judge::is_same};

/// What is to be done for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Its object is there.
    Present(ObjectRef),
    /// An object is to be created.
    Create(ProviderGoal),
}

/// Decides by what is there. What is installed without the operator keeps its version and namespace.
pub(crate) fn intend(
    goal: &ProviderGoal,
    state: &OperatorState,
    inventory: &Inventory,
) -> Result<Intent, OperatorProblem> {
    if let Some(object) = state.find(goal.kind, &goal.name) {
        if let Some(namespace) = goal.namespace.as_ref().filter(|it| **it != object.namespace) {
            return Err(OperatorProblem::SecondObject {
                object: Box::new(object.id()),
                namespace: namespace.clone(),
            });
        }
        let is_other = |version: &&str| !object.version().is_some_and(|it| is_same(it, version));
        if let Some(version) = goal.version.exact().filter(is_other) {
            return Err(OperatorProblem::OtherVersion {
                kind: goal.kind,
                object: Box::new(object.id()),
                found: object.version().map(str::to_owned),
                version: version.to_owned(),
            });
        }
        return Ok(Intent::Present(object.id()));
    }
    let instances: Vec<&Installed> = inventory.instances(goal.kind, &goal.name).collect();
    let installed = match instances.as_slice() {
        [] => return Ok(Intent::Create(goal.clone())),
        [installed] => *installed,
        several => {
            let namespaces = several.iter().map(|it| it.namespace.clone()).collect();
            return Err(OperatorProblem::SeveralInstances { label: goal.label(), namespaces });
        }
    };
    let boxed = || Box::new(installed.clone());
    if installed.watched_namespace.is_some() {
        return Err(OperatorProblem::WatchesNamespace { installed: boxed() });
    }
    let is_other_version = goal.version.exact().is_some_and(|it| !is_same(it, &installed.version));
    if is_other_version || goal.namespace.as_ref().is_some_and(|it| *it != installed.namespace) {
        return Err(OperatorProblem::Installed { installed: boxed() });
    }
    Ok(Intent::Create(ProviderGoal {
        version: VersionGoal::Exact(installed.version.clone()),
        namespace: Some(installed.namespace.clone()),
        ..goal.clone()
    }))
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType::{Infrastructure, Ipam};
    use serde_json::json;

    use super::{super::state::tests::object, *};

    #[test]
    fn what_is_there_is_left_as_it_is() {
        let entry = |name: &str, namespace: &str, watched: Option<&str>| Installed {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: Infrastructure,
            version: "v1.0.0".to_owned(),
            watched_namespace: watched.map(str::to_owned),
            upgrading_to: None,
        };
        let state = OperatorState {
            operator: None,
            providers: vec![
                object(Infrastructure, "acme", json!({"version": "v1.0.0"}), json!({})),
                object(Ipam, "any", json!({}), json!({})),
            ],
        };
        let inventory = Inventory {
            providers: vec![
                entry("old", "old-system", None),
                entry("two", "a", None),
                entry("two", "b", None),
                entry("narrow", "c", Some("team")),
            ],
            unreadable: Vec::new(),
        };
        let ask = |kind, name: &str, version: Option<&str>, namespace: Option<&str>| {
            let goal = ProviderGoal {
                kind,
                name: name.to_owned(),
                version: VersionGoal::from(version.map(str::to_owned)),
                namespace: namespace.map(str::to_owned),
            };
            match intend(&goal, &state, &inventory) {
                Ok(Intent::Present(object)) => format!("present: {object}"),
                Ok(Intent::Create(it)) => format!("create {} in {:?}", it.version, it.namespace),
                Err(problem) => problem.to_string(),
            }
        };
        let acme = "InfrastructureProvider acme-system/acme";
        for (kind, name, version, namespace, expected) in [
            (Infrastructure, "acme", None, None, format!("present: {acme}")),
            (Infrastructure, "acme", Some("1.0.0"), Some("acme-system"), format!("present: {acme}")),
            (Infrastructure, "acme", Some("v1.1.0"), None, format!("{acme} asks for v1.0.0, not for v1.1.0")),
            (
                Infrastructure,
                "acme",
                None,
                Some("x"),
                format!("{acme} exists already: the operator would not"),
            ),
            (Ipam, "any", Some("v1.0.0"), None, "asks for the latest version, not for v1.0.0".to_owned()),
            (Ipam, "acme", Some("v1.0.0"), Some("x"), "create v1.0.0 in Some(\"x\")".to_owned()),
            (Ipam, "acme", None, None, "create the latest version in None".to_owned()),
            (Infrastructure, "old", None, None, "create v1.0.0 in Some(\"old-system\")".to_owned()),
            (
                Infrastructure,
                "old",
                Some("v1.1.0"),
                None,
                "v1.0.0 is installed in namespace old-system".to_owned(),
            ),
            (
                Infrastructure,
                "old",
                None,
                Some("x"),
                "v1.0.0 is installed in namespace old-system".to_owned(),
            ),
            (Infrastructure, "two", None, None, "several times, in namespaces a, b".to_owned()),
            (Infrastructure, "narrow", None, None, "watches namespace team only".to_owned()),
        ] {
            let found = ask(kind, name, version, namespace);
            assert!(found.contains(&expected), "{name}: {found}");
        }
    }
}
