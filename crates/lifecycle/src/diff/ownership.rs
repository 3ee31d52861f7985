//! Who wrote which fields of an object, as servers keep account of it.

use std::fmt;

use capstan_api::names::FIELD_MANAGER;
use serde_json::Value;

/// Who installs providers: what they wrote is replaced by what they write next.
const INSTALLERS: [&str; 2] = [FIELD_MANAGER, CLUSTERCTL];
const CLUSTERCTL: &str = "clusterctl";
/// Kubernetes' own programs, which write again what they need.
const MACHINERY: [&str; 4] =
    ["kube-controller-manager", "kube-apiserver", "kubelet", "clusterrole-aggregation-controller"];

/// The way to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Of a map.
    Field(String),
    /// Of a list, by some of the item's fields.
    Keys(Value),
    /// Of a list of plain values.
    Value(Value),
    /// Of a list, by place.
    Index(usize),
}

impl Path {
    /// The value there.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get(name),
            step => {
                value.as_array()?.iter().enumerate().find(|(at, it)| step.is_item(*at, it)).map(|it| it.1)
            }
        })
    }

    /// Whether one of two fields is the other or within it.
    fn touches(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }

    fn is_below(&self, field: &str) -> bool {
        matches!(self.0.first(), Some(Step::Field(name)) if name == field)
    }

    /// Takes the value out, and what is empty without it.
    fn remove(&self, object: &mut Value) {
        remove(&self.0, object);
    }
}

impl Step {
    fn read(key: &str) -> Option<Self> {
        let (kind, rest) = key.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest).ok().map(Self::Keys),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    fn is_item(&self, at: usize, item: &Value) -> bool {
        match self {
            Self::Field(_) => false,
            Self::Keys(keys) => keys
                .as_object()
                .is_some_and(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value))),
            Self::Value(value) => item == value,
            Self::Index(index) => at == *index,
        }
    }
}

fn remove(steps: &[Step], value: &mut Value) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => {
            if let Some(field) = fields.get_mut(name) {
                remove(rest, field);
                if rest.is_empty() || is_empty(field) {
                    fields.remove(name);
                }
            }
        }
        (step, Value::Array(items)) => {
            let found = items.iter().enumerate().position(|(at, item)| step.is_item(at, item));
            if let Some(at) = found
                && let Some(item) = items.get_mut(at)
            {
                remove(rest, item);
                if rest.is_empty() || is_empty(item) {
                    items.remove(at);
                }
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) => write!(out, "{}{name}", if at == 0 { "" } else { "." })?,
                Step::Keys(keys) => {
                    let texts = keys.as_object().into_iter().flat_map(serde_json::Map::values);
                    let texts = texts.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
                    write!(out, "[{}]", texts.collect::<Vec<_>>().join(","))?;
                }
                Step::Value(value) => write!(out, "[{value}]")?,
                Step::Index(index) => write!(out, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A field of an object that another manager than an installer of providers wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) manager: String,
    pub(crate) path: Path,
}

/// The fields that others wrote, but for metadata, status, and what Kubernetes writes itself.
pub(crate) fn foreign_fields(object: &Value) -> Vec<Foreign> {
    let foreign =
        entries(object).filter(|(manager, _)| !INSTALLERS.contains(manager) && !MACHINERY.contains(manager));
    let fields = foreign.flat_map(|(manager, fields)| {
        leaves(fields).into_iter().map(move |path| Foreign { manager: manager.to_owned(), path })
    });
    fields.filter(|it| !it.path.is_below("metadata") && !it.path.is_below("status")).collect()
}

/// An object without what only clusterctl wrote: its fields become ours before we apply, and go unless we want them.
pub(crate) fn without_fields_of_clusterctl(mut object: Value) -> Value {
    let paths = |is_meant: fn(&str) -> bool| -> Vec<Path> {
        entries(&object).filter(|it| is_meant(it.0)).flat_map(|it| leaves(it.1)).collect()
    };
    let (theirs, others) = (paths(|it| it == CLUSTERCTL), paths(|it| it != CLUSTERCTL));
    for path in theirs.iter().filter(|path| !others.iter().any(|it| it.touches(path))) {
        path.remove(&mut object);
    }
    object
}

/// Who wrote what, but for the status.
fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_main = |it: &&Value| it.get("subresource").and_then(Value::as_str) != Some("status");
    entries
        .into_iter()
        .flatten()
        .filter(of_main)
        .filter_map(|it| Some((it.get("manager")?.as_str()?, it.get("fieldsV1")?)))
}

/// The innermost fields of an account.
fn leaves(fields: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    collect(fields, &mut Vec::new(), &mut found);
    found
}

fn collect(fields: &Value, way: &mut Vec<Step>, found: &mut Vec<Path>) {
    let children: Vec<(Step, &Value)> = fields
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, child)| Some((Step::read(key)?, child)))
        .collect();
    if children.is_empty() && !way.is_empty() {
        found.push(Path(way.clone()));
    }
    for (step, child) in children {
        way.push(step);
        collect(child, way, found);
        way.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        let ours = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"manager\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}});
        let hands = json!({"f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"manager\"}": {"f:args": {}},
            "k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}, "f:image": {}},
        }}}}});
        json!({
            "metadata": {"managedFields": [
                {"manager": "capstan", "fieldsV1": ours},
                {"manager": "kubectl-edit", "fieldsV1": hands},
                {"manager": "somebody", "subresource": "status", "fieldsV1": {"f:status": {"f:x": {}}}},
                {"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}},
            ]},
            "spec": {
                "replicas": 3,
                "strategy": {"type": "defaulted"},
                "template": {"spec": {"containers": [
                    {"name": "manager", "image": "i", "args": ["--v=5"]},
                    {"name": "sidecar", "image": "s"},
                ]}},
            },
        })
    }

    #[test]
    fn fields_are_known_by_who_wrote_them() {
        let object = deployment();
        let fields: Vec<_> = foreign_fields(&object)
            .into_iter()
            .map(|it| (it.manager, it.path.to_string(), it.path.find(&object).unwrap().clone()))
            .collect();
        let containers = "spec.template.spec.containers";
        let by = |path: String, value: Value| ("kubectl-edit".to_owned(), path, value);
        assert_eq!(
            fields,
            [
                by("spec.replicas".to_owned(), json!(3)),
                by(format!("{containers}[manager].args"), json!(["--v=5"])),
                by(format!("{containers}[sidecar].image"), json!("s")),
                by(format!("{containers}[sidecar].name"), json!("sidecar")),
            ]
        );
    }

    #[test]
    fn what_only_clusterctl_wrote_is_gone_once_it_is_ours() {
        let theirs = json!({"f:spec": {"f:replicas": {}, "f:minReadySeconds": {}, "f:paused": {}}});
        let object = json!({
            "metadata": {"managedFields": [
                {"manager": "clusterctl", "fieldsV1": theirs},
                {"manager": "capstan", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:paused": {}, "f:more": {}}}},
            ]},
            "spec": {"replicas": 1, "minReadySeconds": 5, "paused": true, "more": 1},
        });
        let left = without_fields_of_clusterctl(object);
        assert_eq!(left["spec"], json!({"replicas": 1, "paused": true, "more": 1}));
    }
}
