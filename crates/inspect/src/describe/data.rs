//! The tree as data.

use serde_json::{Map, Value, json};

use super::{Condition, Figures, Node, NodeKind};

/// A node and all below it, for programs.
pub fn to_value(node: &Node) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        let is_nothing = match &value {
            Value::Null => true,
            Value::Bool(is_set) => !is_set,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Number(_) => false,
        };
        if !is_nothing {
            map.insert(key.to_owned(), value);
        }
    };
    put("apiVersion", json!(node.api_version));
    put("kind", json!(node.kind));
    put("namespace", json!(node.namespace));
    put("name", json!(node.name));
    put("role", json!(node.role));
    put("virtual", json!(node.what != NodeKind::Object));
    if let NodeKind::Group(items) = &node.what {
        put("items", json!(items));
    }
    put("version", json!(node.version));
    put("deleting", json!(node.is_deleting));
    put("replicas", figures(&node.figures));
    if let Some(unreadable) = &node.unreadable {
        put("unreadable", json!({"reason": unreadable.why.as_str(), "message": unreadable.message}));
    } else {
        put("summary", node.summary.as_ref().map_or(Value::Null, condition));
    }
    put("conditions", node.conditions.iter().map(condition).collect());
    put("children", node.children.iter().map(to_value).collect());
    Value::Object(map)
}

fn figures(figures: &Figures) -> Value {
    let all = [
        ("current", figures.current),
        ("desired", figures.desired),
        ("available", figures.available),
        ("ready", figures.ready),
        ("upToDate", figures.up_to_date),
    ];
    all.into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), json!(value?))))
        .collect::<Map<_, _>>()
        .into()
}

fn condition(condition: &Condition) -> Value {
    let since = condition.since.map(|it| it.to_string()).unwrap_or_default();
    let all = [
        ("type", &condition.type_),
        ("status", &condition.status),
        ("severity", &condition.severity),
        ("reason", &condition.reason),
        ("message", &condition.message),
        ("lastTransitionTime", &since),
    ];
    let set = all.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(key, value)| (key.to_owned(), json!(value))).collect::<Map<_, _>>().into()
}
