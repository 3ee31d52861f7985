//! What became of an object: every state that was seen, and who wrote it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    contract::{ContractVersion, InfraCluster},
    names::label,
};
use serde_json::Value;

/// One state of an object.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// When it was seen, from the beginning of the run.
    pub(crate) at: Duration,
    /// The object.
    pub(crate) object: Value,
    /// Whether this is the last that was seen of it.
    pub(crate) gone: bool,
}

/// What core did to an object, and which of its states shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Owner reference and label were written; the uid is the Cluster's.
    Adopted { uid: String },
    /// Owner reference and label were taken away.
    Released,
}

/// All states of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The object's name.
    pub(crate) name: String,
    /// The states in the order of the watch.
    pub(crate) states: Vec<State>,
    /// The resourceVersions that the fake core wrote.
    pub(crate) ours: BTreeSet<String>,
    /// The marks, by the resourceVersion that they begin with.
    pub(crate) marks: Vec<(String, Mark)>,
    /// Whether a real core writes owner references and the label.
    pub(crate) real_core: bool,
}

/// A write by another writer.
#[derive(Clone, Debug)]
pub(crate) struct Change<'a> {
    /// When it was seen.
    pub(crate) at: Duration,
    /// The fields that it changed.
    pub(crate) paths: Vec<String>,
    /// The object afterwards.
    pub(crate) object: &'a Value,
    /// Who wrote, by the object's managed fields.
    pub(crate) writer: Option<String>,
}

impl Change<'_> {
    /// The change in words.
    pub(crate) fn describe(&self) -> String {
        let what = if self.paths.is_empty() {
            "nothing but its resourceVersion".to_owned()
        } else {
            let shown = self.paths.iter().take(4).map(|path| match lookup(self.object, path) {
                Some(value) => format!("{path} = {}", shorten(&value.to_string())),
                None => format!("{path} (removed)"),
            });
            let words = shown.collect::<Vec<_>>().join(", ");
            match self.paths.len().saturating_sub(4) {
                0 => words,
                more => format!("{words} and {more} more"),
            }
        };
        let who = self.writer.as_ref().map(|name| format!(" by field manager {name:?}")).unwrap_or_default();
        format!("{what}{who} after {:.1} s", self.at.as_secs_f64())
    }
}

impl History {
    /// The last state, if the object exists.
    pub(crate) fn current(&self) -> Option<&Value> {
        self.states.last().filter(|state| !state.gone).map(|state| &state.object)
    }

    /// Whether the object existed and was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.states.last().is_some_and(|state| state.gone)
    }

    /// The index of the state with a resourceVersion; the end if it has not been seen.
    pub(crate) fn index_of(&self, version: &str) -> usize {
        self.states
            .iter()
            .position(|state| version_of(&state.object) == Some(version))
            .unwrap_or(self.states.len())
    }

    /// What others wrote after the state at `from`. The object's end is no write.
    pub(crate) fn changes(&self, from: usize) -> Vec<Change<'_>> {
        let pairs = self.states.windows(2).skip(from);
        pairs
            .filter(|pair| !pair[1].gone && !self.is_ours(&pair[1].object))
            .map(|pair| {
                let (before, after) = (&pair[0].object, &pair[1].object);
                let paths = difference(before, after);
                Change { at: pair[1].at, paths, object: after, writer: writer(before, after) }
            })
            .filter(|change| !(self.real_core && is_adoption(&change.paths)))
            .collect()
    }

    fn is_ours(&self, object: &Value) -> bool {
        version_of(object).is_some_and(|version| self.ours.contains(version))
    }

    /// The states between adoption and release, with the uid of the Cluster.
    pub(crate) fn adopted(&self) -> Option<(&str, &[State])> {
        let (version, uid) = self.marks.iter().find_map(|(version, mark)| match mark {
            Mark::Adopted { uid } => Some((version, uid)),
            Mark::Released => None,
        })?;
        let released = self.marks.iter().find(|(_, mark)| *mark == Mark::Released);
        let from = self.index_of(version);
        let to = released.map_or(self.states.len(), |(version, _)| self.index_of(version));
        Some((uid, self.states.get(from..to).unwrap_or_default()))
    }

    /// The index of the first state that reports provisioned.
    pub(crate) fn provisioned_at(&self, contract: ContractVersion) -> Option<usize> {
        self.states.iter().position(|state| is_provisioned(&state.object, contract))
    }
}

/// Whether an object reports provisioned; what is not a boolean does not.
pub(crate) fn is_provisioned(object: &Value, contract: ContractVersion) -> bool {
    InfraCluster::new(object, contract).provisioned() == Ok(true)
}

/// The endpoint of an object if it is whole.
pub(crate) fn endpoint(object: &Value, contract: ContractVersion) -> Option<ApiEndpoint> {
    InfraCluster::new(object, contract).control_plane_endpoint().ok().filter(ApiEndpoint::is_valid)
}

/// The status of a condition, wherever the object keeps its conditions.
pub(crate) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    ["/status/v1beta2/conditions", "/status/conditions"]
        .into_iter()
        .filter_map(|pointer| object.pointer(pointer)?.as_array())
        .flatten()
        .find(|entry| entry.get("type").and_then(Value::as_str) == Some(name))?
        .get("status")?
        .as_str()
}

/// The object's resourceVersion.
pub(crate) fn version_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion")?.as_str()
}

/// Whether the object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The object's finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_adoption(paths: &[String]) -> bool {
    let label = format!("metadata.labels.{}", label::CLUSTER_NAME);
    !paths.is_empty() && paths.iter().all(|path| path == "metadata.ownerReferences" || *path == label)
}

/// The paths at which two objects differ; bookkeeping of the server does not count.
pub(crate) fn difference(before: &Value, after: &Value) -> Vec<String> {
    const BOOKKEEPING: [&str; 3] =
        ["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"];
    let mut paths = Vec::new();
    compare("", Some(before), Some(after), &mut paths);
    paths.retain(|path| !BOOKKEEPING.iter().any(|it| path == it));
    paths
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, paths: &mut Vec<String>) {
    if before == after {
        return;
    }
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (before, after) {
        _ if path.ends_with("conditions") => {
            let (before, after) = (by_type(before), by_type(after));
            let names: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
            let changed = names.into_iter().filter(|name| before.get(name) != after.get(name));
            paths.extend(changed.map(|name| format!("{path}[{name}]")));
        }
        // A parent that is added or removed is reported by its children, so that the paths are the same either way.
        (Some(Value::Object(before)), None) if path_is_container(path) => {
            before.iter().for_each(|(key, value)| compare(&join(key), Some(value), None, paths));
        }
        (None, Some(Value::Object(after))) if path_is_container(path) => {
            after.iter().for_each(|(key, value)| compare(&join(key), None, Some(value), paths));
        }
        (Some(Value::Object(before)), Some(Value::Object(after))) if path != "metadata.managedFields" => {
            let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
            for key in keys {
                compare(&join(key), before.get(key), after.get(key), paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

fn path_is_container(path: &str) -> bool {
    matches!(path, "spec" | "status" | "status.v1beta2" | "metadata.labels" | "metadata.annotations")
}

fn by_type(conditions: Option<&Value>) -> BTreeMap<&str, &Value> {
    let list = conditions.and_then(Value::as_array).into_iter().flatten();
    list.map(|entry| (entry.get("type").and_then(Value::as_str).unwrap_or("without type"), entry)).collect()
}

/// The last writer by managed fields.
fn writer(before: &Value, after: &Value) -> Option<String> {
    let entries = |object: &Value| {
        object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let before = entries(before);
    let after = entries(after);
    let changed = after.iter().filter(|entry| !before.contains(entry));
    let name = changed.filter_map(|entry| entry.get("manager")?.as_str()).next_back()?;
    Some(name.to_owned())
}

/// The value at a path of [`difference`].
fn lookup<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    for (index, _) in path.match_indices('.').chain([(path.len(), "")]) {
        let (key, rest) = path.split_at(index);
        let rest = rest.strip_prefix('.').unwrap_or_default();
        if let Some((list, name)) = key.strip_suffix(']').and_then(|key| key.split_once('[')) {
            let entries = object.get(list)?.as_array()?;
            return entries.iter().find(|it| it.get("type").and_then(Value::as_str) == Some(name));
        }
        // Keys of labels and annotations hold dots themselves.
        let Some(value) = object.get(key) else { continue };
        if rest.is_empty() {
            return Some(value);
        }
        if let Some(found) = lookup(value, rest) {
            return Some(found);
        }
    }
    None
}

fn shorten(text: &str) -> String {
    const MOST: usize = 120;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MOST).collect();
    short.push('…');
    short
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use serde_json::json;

    /// A history of states; those at the indices in `ours` were written by the fake core.
    pub(crate) fn history(objects: &[Value], ours: &[usize]) -> History {
        let states = objects.iter().enumerate().map(|(index, object)| {
            let mut object = object.clone();
            if object.get("metadata").is_none() {
                object["metadata"] = json!({});
            }
            object["metadata"]["resourceVersion"] = json!(index.to_string());
            State { at: Duration::from_secs(1), object, gone: false }
        });
        History {
            name: "c".to_owned(),
            states: states.collect(),
            ours: ours.iter().map(ToString::to_string).collect(),
            ..History::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::history, *};
    use serde_json::json;

    #[test]
    fn differences_are_named_by_path() {
        for (before, after, expected) in [
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1}}), &[][..]),
            (json!({}), json!({"status": {"ready": true}}), &["status.ready"]),
            (
                json!({"metadata": {"resourceVersion": "1", "managedFields": [1], "generation": 1}}),
                json!({"metadata": {"resourceVersion": "2", "managedFields": [2], "generation": 2}}),
                &[],
            ),
            (json!({"metadata": {"finalizers": ["a"]}}), json!({"metadata": {}}), &["metadata.finalizers"]),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
                json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Paused", "status": "True"}]}}),
                &["status.conditions[Paused]"],
            ),
            (
                json!({}),
                json!({"status": {"conditions": [{"type": "Paused"}]}}),
                &["status.conditions[Paused]"],
            ),
            (
                json!({"metadata": {"labels": {"a.b/c": "d"}}}),
                json!({"metadata": {}}),
                &["metadata.labels.a.b/c"],
            ),
        ] {
            assert_eq!(difference(&before, &after), expected, "{before} -> {after}");
        }
    }

    #[test]
    fn only_what_others_wrote_is_a_change() {
        let states = [json!({"spec": {}}), json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}})];
        let history = history(&states, &[0, 1]);
        let changes = history.changes(0);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].describe(), "spec.a = 2 after 1.0 s");
        assert!(history.changes(2).is_empty());
    }

    #[test]
    fn a_real_cores_adoption_is_no_change_of_the_providers() {
        let adopted = json!({"metadata": {
            "labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [{"kind": "Cluster"}],
        }});
        let mut history = history(&[json!({"metadata": {}}), adopted], &[0]);
        assert_eq!(history.changes(0).len(), 1);
        history.real_core = true;
        assert!(history.changes(0).is_empty());
    }

    #[test]
    fn values_are_found_by_their_paths() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "d"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(lookup(&object, "metadata.labels.a.b/c"), Some(&json!("d")));
        assert_eq!(
            lookup(&object, "status.conditions[Ready]"),
            Some(&json!({"type": "Ready", "status": "True"}))
        );
        assert_eq!(lookup(&object, "status.nothing"), None);
    }
}
