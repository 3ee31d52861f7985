//! The paths of fields that differ between two states of an object.

use std::collections::BTreeSet;

use serde_json::Value;

/// The paths of the fields that differ, in order. Items of a list are known by their names; a list of anything else is
/// one field.
pub(super) fn changed(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", old, new, &mut found);
    found
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(before), Value::Object(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let (old, new) = (before.get(name), after.get(name));
                let path = join(path, name);
                compare(&path, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(before), Value::Array(after)) if are_named(before) && are_named(after) => {
            let names: BTreeSet<&str> = before.iter().chain(after).filter_map(name_of).collect();
            let count = found.len();
            for name in names {
                let item = |items: &[Value]| items.iter().find(|it| name_of(it) == Some(name)).cloned();
                let (old, new) = (item(before).unwrap_or_default(), item(after).unwrap_or_default());
                compare(&format!("{path}[{name}]"), &old, &new, found);
            }
            if found.len() == count {
                // Only their order differs.
                found.push(path.to_owned());
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Names that would be several steps of a path stand in brackets.
fn join(path: &str, name: &str) -> String {
    match path {
        path if name.contains(['.', '/', '[']) => format!("{path}[{name}]"),
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

fn are_named(items: &[Value]) -> bool {
    items.iter().all(|it| name_of(it).is_some())
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_named_and_values_are_not() {
        let container = |name: &str, args: Value| json!({"name": name, "args": args});
        for (old, new, expected) in [
            (json!({"a": 1}), json!({"a": 1}), vec![]),
            (json!({"a": 1}), json!({"a": 2, "b": 3}), vec!["a", "b"]),
            (json!({"s": {"r": 5, "t": {"x": 1}}}), json!({"s": {"r": 1}}), vec!["s.r", "s.t"]),
            (
                json!({"m": {"labels": {"a.io/b": "x"}}}),
                json!({"m": {"labels": {"a.io/b": "y"}}}),
                vec!["m.labels[a.io/b]"],
            ),
            (
                json!({"c": [container("m", json!(["--token=hidden"])), container("p", json!([]))]}),
                json!({"c": [container("m", json!(["--token=other"])), container("q", json!([]))]}),
                vec!["c[m].args", "c[p]", "c[q]"],
            ),
            (
                json!({"c": [container("a", json!([])), container("b", json!([]))]}),
                json!({"c": [container("b", json!([])), container("a", json!([]))]}),
                vec!["c"],
            ),
            (json!({"l": [1, 2]}), json!({"l": [2]}), vec!["l"]),
        ] {
            assert_eq!(changed(&old, &new), expected, "{old} {new}");
        }
    }
}
