//! Cluster-wide roles get the target namespace as a prefix, so that instances in several namespaces do not meet.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::ComponentsError;
use crate::objects::Object;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Kinds that are renamed, with their names in rules.
const KINDS: [(&str, &str); 2] =
    [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")];

/// New names by old ones, for each kind.
type Renamed = HashMap<&'static str, HashMap<String, String>>;

/// Renames the ClusterRoles and ClusterRoleBindings that lack the prefix, and everything that refers to them by name.
/// Roles that are not among the objects keep their names.
pub(super) fn prefix(objects: &mut [Object], namespace: &str) -> Result<(), ComponentsError> {
    let mut renamed = Renamed::new();
    for (kind, _) in KINDS {
        renamed.insert(kind, rename(objects, kind, &format!("{namespace}-"))?);
    }
    for object in objects.iter_mut().filter(|object| object.group() == GROUP) {
        match object.kind() {
            "ClusterRoleBinding" | "RoleBinding" => redirect_role(object, &renamed),
            "ClusterRole" | "Role" => redirect_rules(object, &renamed),
            _ => {}
        }
    }
    Ok(())
}

fn rename(
    objects: &mut [Object],
    kind: &'static str,
    prefix: &str,
) -> Result<HashMap<String, String>, ComponentsError> {
    let is_of_kind = |object: &&mut Object| object.is(GROUP, kind) && !object.name().is_empty();
    let taken: HashSet<String> =
        objects.iter_mut().filter(is_of_kind).map(|object| object.name().to_owned()).collect();
    let mut renamed = HashMap::new();
    for object in objects.iter_mut().filter(is_of_kind) {
        if object.name().starts_with(prefix) {
            continue;
        }
        let name = format!("{prefix}{}", object.name());
        if taken.contains(&name) {
            return Err(ComponentsError::NameTaken { object: Box::new(object.id()), name });
        }
        renamed.insert(object.name().to_owned(), name.clone());
        object.set_metadata("name", &name)?;
    }
    Ok(renamed)
}

fn redirect_role(binding: &mut Object, renamed: &Renamed) {
    let Some(role) = binding.at("roleRef") else { return };
    let kind = role.get("kind").and_then(Value::as_str);
    let names = kind.and_then(|kind| renamed.get(kind));
    if let Some(name) = role.get_mut("name")
        && let Some(new) = names.and_then(|names| names.get(name.as_str()?))
    {
        *name = Value::from(new.as_str());
    }
}

fn redirect_rules(role: &mut Object, renamed: &Renamed) {
    let rules = role.at("rules").and_then(Value::as_array_mut);
    rules.into_iter().flatten().for_each(|rule| redirect_rule(rule, renamed));
}

/// Changes the names that a rule is limited to. A name that could also be meant for another kind, because the rule
/// speaks of several, is kept beside the new one.
fn redirect_rule(rule: &mut Value, renamed: &Renamed) {
    let list = |field: &str| -> Vec<String> {
        let items = rule.get(field).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let (groups, resources) = (list("apiGroups"), list("resources"));
    let covers = |items: &[String], wanted: &str| items.iter().any(|item| item == wanted || item == "*");
    if !covers(&groups, GROUP) {
        return;
    }
    let covered: Vec<_> = KINDS
        .iter()
        .filter(|(_, resource)| covers(&resources, resource))
        .filter_map(|(kind, _)| renamed.get(kind))
        .collect();
    let speaks_of_others = groups.len() > 1 || resources.len() > covered.len() || covers(&resources, "*");
    let Some(names) = rule.get_mut("resourceNames").and_then(Value::as_array_mut) else { return };
    let mut changed: Vec<Value> = Vec::with_capacity(names.len());
    for name in names.drain(..) {
        let new: Vec<Option<&String>> = covered.iter().map(|names| names.get(name.as_str()?)).collect();
        let replacement = new.iter().flatten().next().map(|new| Value::from(new.as_str()));
        if replacement.is_none() || speaks_of_others || new.contains(&None) {
            changed.push(name);
        }
        changed.extend(replacement);
    }
    *names = changed;
}
