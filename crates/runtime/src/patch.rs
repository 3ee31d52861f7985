//! The smallest patch between two states.

use serde_json::{Map, Value, json};

/// The RFC 7386 patch that turns `before` into `after`; nothing where they are equal.
///
/// Lists are replaced whole, and what is missing in `after` is removed.
pub fn merge_diff(before: &Value, after: Value) -> Option<Value> {
    if *before == after {
        return None;
    }
    let (before, after) = match (before, after) {
        (Value::Object(before), Value::Object(after)) => (before, after),
        (_, after) => return Some(after),
    };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let difference = match before.get(&name) {
            Some(old) => merge_diff(old, value),
            None => Some(value),
        };
        if let Some(difference) = difference {
            patch.insert(name, difference);
        }
    }
    Some(Value::Object(patch))
}

/// A merge patch as RFC 6902 operations that hold only while the lists which they replace are still as in `before`.
///
/// Guarded by resourceVersion, a patch loses every race against a controller that writes other fields of the object all the
/// time. Of these operations the server itself takes care: it tries them on top of the newest state.
pub fn guarded_by_lists(before: &Value, patch: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    walk("", Some(before), patch, &mut operations);
    operations
}

fn walk(path: &str, before: Option<&Value>, patch: &Value, operations: &mut Vec<Value>) {
    match (before.filter(|before| !before.is_null()), patch) {
        (Some(Value::Object(before)), Value::Object(patch)) => {
            for (name, value) in patch {
                let name_in_path = name.replace('~', "~0").replace('/', "~1");
                walk(&format!("{path}/{name_in_path}"), before.get(name), value, operations);
            }
        }
        (None, Value::Null) => {}
        (Some(before), value) => {
            if before.is_array() || value.is_array() {
                operations.push(json!({"op": "test", "path": path, "value": before}));
            }
            operations.push(match value {
                Value::Null => json!({"op": "remove", "path": path}),
                value => json!({"op": "replace", "path": path, "value": value}),
            });
        }
        (None, value) => {
            // To the server, a field that is not there equals null.
            operations.push(json!({"op": "test", "path": path, "value": null}));
            operations.push(json!({"op": "add", "path": path, "value": without_nulls(value)}));
        }
    }
}

/// What a merge patch makes of nothing.
fn without_nulls(patch: &Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7386 as the server applies it.
    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let Some(object) = target.as_object_mut() else {
            return;
        };
        for (name, value) in patch {
            if value.is_null() {
                object.remove(name);
            } else {
                apply(object.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn objects() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[abc]", values(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn applying_the_difference_gives_the_second_state(before in objects(), after in objects()) {
            let mut state = before.clone();
            if let Some(patch) = merge_diff(&before, after.clone()) {
                apply(&mut state, &patch);
            }
            prop_assert_eq!(state, after);
        }

        #[test]
        fn both_kinds_of_patches_lead_to_the_same(before in objects(), after in objects()) {
            let mut state = before.clone();
            if let Some(patch) = merge_diff(&before, after.clone()) {
                // Our own library is stricter than the server: to it, what is not there equals nothing.
                let is_no_test_of_nothing = |it: &Value| it["op"] != "test" || !it["value"].is_null();
                let operations: Vec<_> =
                    guarded_by_lists(&before, &patch).into_iter().filter(is_no_test_of_nothing).collect();
                let operations: json_patch::Patch = serde_json::from_value(json!(operations)).unwrap();
                json_patch::patch(&mut state, &operations).unwrap();
            }
            prop_assert_eq!(state, after);
        }
    }

    #[test]
    fn only_what_differs_is_sent() {
        let before = json!({"a": {"x": 1, "y": 2}, "b": [1], "c": 3});
        let after = json!({"a": {"x": 1, "y": 3}, "b": [1]});
        assert_eq!(merge_diff(&before, after.clone()), Some(json!({"a": {"y": 3}, "c": null})));
        assert_eq!(merge_diff(&after, after.clone()), None);
    }

    #[test]
    fn lists_guard_themselves() {
        let before = json!({"status": {"conditions": [1], "phase": "a"}});
        let patch = json!({"status": {"conditions": [1, 2], "phase": "b", "a/b": {"c": true, "d": null}}});
        assert_eq!(
            json!(guarded_by_lists(&before, &patch)),
            json!([
                {"op": "test", "path": "/status/a~1b", "value": null},
                {"op": "add", "path": "/status/a~1b", "value": {"c": true}},
                {"op": "test", "path": "/status/conditions", "value": [1]},
                {"op": "replace", "path": "/status/conditions", "value": [1, 2]},
                {"op": "replace", "path": "/status/phase", "value": "b"},
            ])
        );
    }
}
