//! The smallest merge patch between two states.

use serde_json::{Map, Value};

/// The RFC 7386 patch that turns `before` into `after`; nothing where they are equal.
///
/// Lists are replaced whole, and what is missing in `after` is removed.
pub fn merge_diff(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(old) => {
                if let Some(difference) = merge_diff(old, value) {
                    patch.insert(name.clone(), difference);
                }
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

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
            if let Some(patch) = merge_diff(&before, &after) {
                apply(&mut state, &patch);
            }
            prop_assert_eq!(state, after);
        }
    }

    #[test]
    fn only_what_differs_is_sent() {
        let before = json!({"a": {"x": 1, "y": 2}, "b": [1], "c": 3});
        let after = json!({"a": {"x": 1, "y": 3}, "b": [1]});
        assert_eq!(merge_diff(&before, &after), Some(json!({"a": {"y": 3}, "c": null})));
        assert_eq!(merge_diff(&after, &after), None);
    }
}
