//! What two states of an object are compared by.

use serde_json::{Map, Value};

/// Metadata that servers set.
const SERVERS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Annotations that tools and controllers keep for themselves.
const NOTES: [&str; 2] =
    ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];
/// Asks cert-manager to write `caBundle`.
const INJECTION_PREFIX: &str = "cert-manager.io/inject-ca-from";

/// An object without what servers and controllers write into it.
pub(crate) fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else {
        return object;
    };
    fields.remove("status");
    if fields.contains_key("aggregationRule") {
        // A controller gathers them from other roles.
        fields.remove("rules");
    }
    let mut is_injected = false;
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVERS.contains(&name.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            is_injected = annotations.keys().any(|it| it.starts_with(INJECTION_PREFIX));
            annotations.retain(|name, _| !NOTES.contains(&name.as_str()));
        }
        metadata.retain(|_, value| !matches!(value, Value::Object(fields) if fields.is_empty()));
    }
    if is_injected {
        forget_authority(&mut object);
    }
    object
}

fn forget_authority(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("caBundle");
            fields.values_mut().for_each(forget_authority);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_authority),
        _ => {}
    }
}

/// Two states of a Secret with words in the place of its values, so that what changes is seen but not what it is.
pub(crate) fn veil(old: &mut Value, new: &mut Value) {
    for field in ["data", "stringData"] {
        let before = old.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        let after = new.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        hide(old, field, &after, "(hidden: before)");
        hide(new, field, &before, "(hidden: after)");
    }
}

fn hide(object: &mut Value, field: &str, other: &Map<String, Value>, changed: &str) {
    let values = object.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten();
    for (key, value) in values {
        let is_same = other.get(key).is_none_or(|it| it == value);
        *value = if is_same { "(hidden)" } else { changed }.into();
    }
}

/// Whether the values of an object must not be shown.
pub(crate) fn is_secret(object: &Value) -> bool {
    object.get("kind").is_some_and(|it| it == "Secret")
        && object.get("apiVersion").is_some_and(|it| it == "v1")
}

/// What is there with what is wanted over it: a guess at what a server would store that cannot be asked.
pub(crate) fn overlay(there: &Value, wanted: &Value) -> Value {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            let mut fields = there.clone();
            for (name, value) in wanted {
                let merged = there.get(name).map_or_else(|| value.clone(), |it| overlay(it, value));
                fields.insert(name.clone(), merged);
            }
            Value::Object(fields)
        }
        (Value::Array(there), Value::Array(wanted)) => {
            let twin = |item: &Value| {
                let name = item.get("name")?;
                there.iter().find(|it| it.get("name") == Some(name))
            };
            wanted
                .iter()
                .map(|item| twin(item).map_or_else(|| item.clone(), |it| overlay(it, item)))
                .collect()
        }
        (_, wanted) => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_servers_and_controllers_write_is_not_compared() {
        let wanted = json!({
            "kind": "A",
            "metadata": {"name": "x", "annotations": {"cert-manager.io/inject-ca-from": "a/b"}},
            "webhooks": [{"clientConfig": {"service": {"name": "s"}}}],
        });
        let live = json!({
            "kind": "A",
            "metadata": {
                "name": "x", "uid": "1", "resourceVersion": "2", "generation": 3, "managedFields": [{}],
                "creationTimestamp": "now",
                "annotations": {"cert-manager.io/inject-ca-from": "a/b", "deployment.kubernetes.io/revision": "4"},
            },
            "webhooks": [{"clientConfig": {"service": {"name": "s"}, "caBundle": "Zm9v"}}],
            "status": {"ready": true},
        });
        assert_eq!(comparable(&live), comparable(&wanted));
        let annotated = |name: &str| json!({"metadata": {"name": "x", "annotations": {name: ""}}});
        let plain = json!({"metadata": {"name": "x"}});
        assert_eq!(comparable(&annotated("kubectl.kubernetes.io/last-applied-configuration")), plain);
        assert_ne!(comparable(&annotated("mine")), plain);
        // Only what cert-manager was asked to write is its business.
        let own = json!({"clientConfig": {"caBundle": "Zm9v"}});
        assert_eq!(comparable(&own), own);
        let gathered = json!({"aggregationRule": {}, "rules": [1]});
        assert_eq!(comparable(&gathered), json!({"aggregationRule": {}}));
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        let mut old = json!({"kind": "Secret", "data": {"a": "1", "b": "2", "c": "3"}});
        let mut new = json!({"kind": "Secret", "data": {"a": "1", "b": "9", "d": "4"}});
        veil(&mut old, &mut new);
        assert_eq!(old["data"], json!({"a": "(hidden)", "b": "(hidden: before)", "c": "(hidden)"}));
        assert_eq!(new["data"], json!({"a": "(hidden)", "b": "(hidden: after)", "d": "(hidden)"}));
    }

    #[test]
    fn what_is_wanted_lies_over_what_is_there() {
        let there = json!({"a": 1, "b": {"c": 2}, "l": [{"name": "x", "d": 3}, {"name": "y"}], "p": [1, 2]});
        let wanted = json!({"b": {"e": 4}, "l": [{"name": "x", "d": 5}], "p": [2]});
        let merged = json!({"a": 1, "b": {"c": 2, "e": 4}, "l": [{"name": "x", "d": 5}], "p": [2]});
        assert_eq!(overlay(&there, &wanted), merged);
        assert_eq!(overlay(&merged, &wanted), merged);
    }
}
