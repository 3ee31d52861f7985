//! Differences between JSON values, written down so that they can be made again later on another value.
//!
//! Conversion loses things. What it loses is the difference between an object and what comes back from a round
//! trip; it is parked and made again after the way back. A change knows what it expects to find, so a field
//! that was edited in between is left alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Changes within a reference make no sense once it names another object, so references change as a whole.
const REFERENCES: [&str; 4] = ["controlPlaneRef", "infrastructureRef", "remediationTemplate", "templateRef"];

/// The most list elements that are looked at for all changes of an object. Changes that were parked honestly are found in
/// the order of the lists, so this is far beyond what they need.
const MOST_LOOKS: usize = 1 << 20;

/// One difference.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Change {
    at: Vec<Step>,
    /// The expected value; `None` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    from: Option<Value>,
    /// The new value; `None` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    to: Option<Value>,
    /// For a list with the right elements in the wrong order: their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    order: Vec<String>,
}

/// A step on the way to a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    /// A member of an object.
    Key(String),
    /// The element of a list that has this name.
    Element {
        /// The element's `name`.
        name: String,
    },
}

/// Distinguishes null from absent, which serde reads as the same.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What must be changed in `from` to get `to`.
pub(super) fn diff(from: &Value, to: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(&mut Vec::new(), Some(from), Some(to), &mut changes);
    changes
}

/// Makes the changes that still find what they expect.
pub(super) fn apply(changes: Vec<Change>, value: &mut Value) {
    let mut search = Search { looks: MOST_LOOKS, found: Vec::new() };
    for change in changes {
        change.apply(value, &mut search);
    }
}

fn compare(at: &mut Vec<Step>, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    if from == to {
        return;
    }
    match (from, to) {
        (Some(Value::Object(old)), Some(Value::Object(new))) if !is_reference(at) => {
            for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                at.push(Step::Key(key.clone()));
                compare(at, old.get(key), new.get(key), changes);
                at.pop();
            }
            return;
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            if let (Some(old_names), Some(new_names)) = (names(old), names(new))
                && same_elements(&old_names, &new_names)
            {
                let new_by_name: BTreeMap<_, _> = new_names.iter().zip(new).collect();
                for (name, old) in old_names.iter().zip(old) {
                    at.push(Step::Element { name: (*name).to_owned() });
                    compare(at, Some(old), new_by_name.get(name).copied(), changes);
                    at.pop();
                }
                if old_names != new_names {
                    let order = new_names.into_iter().map(str::to_owned).collect();
                    changes.push(Change { at: at.clone(), from: None, to: None, order });
                }
                return;
            }
        }
        _ => {}
    }
    changes.push(Change { at: at.clone(), from: from.cloned(), to: to.cloned(), order: Vec::new() });
}

impl Change {
    /// What should be at a path of members, if that is what this change is about.
    pub(super) fn to_at(&self, path: &[&str]) -> Option<&Value> {
        let steps = self.at.iter().map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Element { .. } => None,
        });
        self.to.as_ref().filter(|_| steps.eq(path.iter().map(|name| Some(*name))))
    }

    fn apply(self, root: &mut Value, search: &mut Search) {
        if !self.order.is_empty() {
            if let Some(Value::Array(list)) = search.find(root, &self.at) {
                reorder(list, &self.order);
            }
            return;
        }
        match self.at.split_last() {
            Some((Step::Key(key), parents)) => {
                let Some(Value::Object(parent)) = search.find(root, parents) else {
                    return;
                };
                if parent.get(key) == self.from.as_ref() {
                    match self.to {
                        Some(to) => parent.insert(key.clone(), to),
                        None => parent.remove(key),
                    };
                } else if is_reference(&self.at)
                    && let Some(reference) = parent.get_mut(key)
                {
                    self.apply_version(reference);
                }
            }
            Some((Step::Element { .. }, _)) | None => {
                if let (Some(value), Some(to)) = (search.find(root, &self.at), self.to)
                    && Some(&*value) == self.from.as_ref()
                {
                    *value = to;
                }
            }
        }
    }

    /// A reference to another object of the same kind was still written with the same version of that kind.
    fn apply_version(&self, reference: &mut Value) {
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            return;
        };
        let is_same = |field| reference.get(field).is_some_and(|value| from.get(field) == Some(value));
        if is_same("apiVersion")
            && is_same("kind")
            && let (Some(version), Some(remembered)) = (reference.get_mut("apiVersion"), to.get("apiVersion"))
        {
            *version = remembered.clone();
        }
    }
}

/// Finds values by their paths, within a limit: annotations are anybody's to write.
struct Search {
    /// List elements that may still be looked at.
    looks: usize,
    /// Where an element was found last, by how many lists lead to it. Changes are parked in the order of the lists.
    found: Vec<usize>,
}

impl Search {
    fn find<'a>(&mut self, root: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
        let mut lists = 0;
        steps.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.as_object_mut()?.get_mut(key),
            Step::Element { name } => {
                let list = value.as_array_mut()?;
                let position = self.position(lists, list, name)?;
                lists += 1;
                list.get_mut(position)
            }
        })
    }

    /// The position of the element with a name, looked for from the last one on.
    fn position(&mut self, lists: usize, list: &[Value], name: &str) -> Option<usize> {
        let last = self.found.get(lists).copied().unwrap_or_default();
        for position in (last..list.len()).chain(0..last.min(list.len())) {
            self.looks = self.looks.checked_sub(1)?;
            if name_of(&list[position]) == Some(name) {
                self.found.resize(lists, 0);
                self.found.push(position);
                return Some(position);
            }
        }
        None
    }
}

fn is_reference(at: &[Step]) -> bool {
    matches!(at.last(), Some(Step::Key(key)) if REFERENCES.contains(&key.as_str()))
}

fn name_of(element: &Value) -> Option<&str> {
    element.as_object()?.get("name")?.as_str()
}

/// The names of all elements, if each has one of its own.
fn names(list: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<_> = list.iter().map(name_of).collect::<Option<_>>()?;
    (names.iter().collect::<BTreeSet<_>>().len() == names.len()).then_some(names)
}

fn same_elements(left: &[&str], right: &[&str]) -> bool {
    left.len() == right.len() && left.iter().collect::<BTreeSet<_>>() == right.iter().collect::<BTreeSet<_>>()
}

fn reorder(list: &mut [Value], order: &[String]) {
    let wanted: Vec<_> = order.iter().map(String::as_str).collect();
    if names(list).is_some_and(|names| same_elements(&names, &wanted)) {
        let places: BTreeMap<_, _> = wanted.iter().zip(0_usize..).collect();
        list.sort_by_cached_key(|element| name_of(element).and_then(|name| places.get(&name).copied()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Parks the changes as text and takes them out again.
    fn parked(changes: &[Change]) -> Vec<Change> {
        serde_json::from_str(&serde_json::to_string(changes).unwrap()).unwrap()
    }

    #[test]
    fn an_edit_wins_over_a_change() {
        let changes = diff(
            &json!({"a": 1, "b": {"c": "x"}, "list": [{"name": "one"}, {"name": "two"}]}),
            &json!({"a": null, "b": {"c": "x", "d": false}, "list": [{"name": "two"}, {"name": "one", "e": 1}]}),
        );
        for (edited, expected) in [
            (
                json!({"a": 2, "b": {"c": "y"}, "list": [{"name": "one"}, {"name": "two"}]}),
                json!({"a": 2, "b": {"c": "y", "d": false}, "list": [{"name": "two"}, {"name": "one", "e": 1}]}),
            ),
            (
                json!({"a": 1, "list": [{"name": "one", "e": 2}]}),
                json!({"a": null, "list": [{"name": "one", "e": 2}]}),
            ),
            (json!({"b": {"d": true}, "list": 5}), json!({"b": {"d": true}, "list": 5})),
            (json!(5), json!(5)),
        ] {
            let mut value = edited;
            apply(parked(&changes), &mut value);
            assert_eq!(value, expected);
        }
    }

    #[test]
    fn a_reference_changes_as_a_whole_but_keeps_its_version() {
        let reference = |version: &str, name: &str| json!({"apiVersion": version, "kind": "K", "name": name});
        let mut old = json!({"infrastructureRef": reference("g/v1", "a")});
        old["infrastructureRef"]["uid"] = json!("u");
        let canonical = json!({"infrastructureRef": reference("g/v2", "a")});
        let changes = diff(&canonical, &old);

        let mut same = canonical.clone();
        apply(parked(&changes), &mut same);
        assert_eq!(same, old);

        let mut renamed = json!({"infrastructureRef": reference("g/v2", "b")});
        apply(parked(&changes), &mut renamed);
        assert_eq!(renamed, json!({"infrastructureRef": reference("g/v1", "b")}));

        let mut another_group = json!({"infrastructureRef": reference("h/v2", "a")});
        apply(parked(&changes), &mut another_group);
        assert_eq!(another_group, json!({"infrastructureRef": reference("h/v2", "a")}));
    }

    #[test]
    fn changes_of_long_lists_take_time_in_proportion_to_their_length() {
        let list = |names: &mut dyn Iterator<Item = usize>, field: &str| -> Value {
            names.map(|it| json!({"name": it.to_string(), "field": field})).collect()
        };
        let count = 20_000;
        let old = json!({"list": list(&mut (0..count), "old")});
        let new = json!({"list": list(&mut (0..count).rev(), "new")});
        let mut value = old.clone();
        let mut search = Search { looks: 2 * count, found: Vec::new() };
        for change in parked(&diff(&old, &new)) {
            change.apply(&mut value, &mut search);
        }
        assert!(value == new, "each element is looked at once or twice");

        // Changes in an order that no conversion parks are made up to the limit.
        let change = |name: usize| json!({"at": ["list", {"name": name.to_string()}, "field"], "from": "old", "to": "new"});
        let changes: Value = (0..count).rev().map(change).collect();
        let mut value = old.clone();
        let mut search = Search { looks: MOST_LOOKS, found: Vec::new() };
        for change in serde_json::from_value::<Vec<Change>>(changes).unwrap() {
            change.apply(&mut value, &mut search);
        }
        assert_eq!(search.looks, 0);
        let changed = value["list"].as_array().unwrap().iter().filter(|it| it["field"] == "new").count();
        assert!((1..count).contains(&changed), "{changed}");
    }

    fn arbitrary_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::from),
        ];
        let key = prop_oneof![Just("name"), Just("kind"), Just("infrastructureRef"), Just("x"), Just("y")];
        leaf.prop_recursive(4, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn changes_lead_from_one_value_to_the_other(from in arbitrary_json(), to in arbitrary_json()) {
            let mut value = from.clone();
            apply(parked(&diff(&from, &to)), &mut value);
            prop_assert_eq!(value, to);
        }

        #[test]
        fn changes_never_panic_on_another_value(
            from in arbitrary_json(), to in arbitrary_json(), mut other in arbitrary_json(),
        ) {
            apply(parked(&diff(&from, &to)), &mut other);
        }
    }
}
