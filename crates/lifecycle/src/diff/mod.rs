//! What a change would do to a management cluster, before it is done.
//!
//! The server is asked what it would store; the comparison with what is there is a pure function.

mod comparable;
mod fields;
mod lines;
mod ownership;
mod rbac;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use capstan_manifest::yaml;
use futures::TryStreamExt;
use serde::Serialize;
use serde_json::Value;

pub use self::{
    lines::{Line, Sign},
    summary::{Action, ArgumentChange, CrdChange, ImageChange, LostChange, RoleChange, Summary},
};
use capstan_management::{
    Identity, Kind, ManagementCluster, ObjectRef, ServerError, at_once_in_order,
    dry_run::{self, Detail, Outcome, Refusal},
    sweep::Component,
};

/// What is to be done for one provider.
#[derive(Clone, Debug)]
pub struct Intent<'a> {
    /// The provider's label, or another name for whom the objects belong to.
    pub provider: &'a str,
    /// What is to be there.
    pub wanted: Vec<&'a Value>,
    /// What is to go; what is wanted as well stays.
    pub removed: &'a [Component],
}

/// What would be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// For each provider, in the order of the intents.
    pub providers: Vec<ProviderPreview>,
    /// Objects that the server would not accept.
    pub refusals: Vec<Refusal>,
    /// What the server could not be asked.
    pub notes: Vec<String>,
}

impl Preview {
    /// Whether nothing would be written.
    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty()
            && self.providers.iter().all(|it| it.objects.iter().all(|it| it.action == Action::Unchanged))
    }
}

/// What would be done for one provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderPreview {
    /// Its label.
    pub provider: String,
    /// What matters.
    pub summary: Summary,
    /// What becomes of each object, by name.
    pub objects: Vec<ObjectPreview>,
}

impl ProviderPreview {
    /// The objects that something is done to.
    pub fn those(&self, action: Action) -> impl Iterator<Item = &ObjectRef> {
        self.objects.iter().filter(move |it| it.action == action).map(|it| &it.object)
    }
}

/// What would be done to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPreview {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// What is done to it.
    pub action: Action,
    /// The lines of its YAML that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<Line>,
    /// The paths of the fields that differ, without their values, which may be credentials.
    #[serde(skip)]
    pub fields: Vec<String>,
}

/// An object before and after.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) object: ObjectRef,
    pub(crate) live: Option<Value>,
    pub(crate) becomes: Option<Value>,
}

impl Change {
    pub(crate) fn action(&self) -> Action {
        match (&self.live, &self.becomes) {
            (None, None) => Action::Unchanged,
            (None, Some(_)) => Action::Created,
            (Some(_), None) => Action::Deleted,
            (Some(live), Some(becomes)) => {
                let is_same = comparable::comparable(live) == comparable::comparable(becomes);
                if is_same { Action::Unchanged } else { Action::Changed }
            }
        }
    }

    fn preview(&self) -> ObjectPreview {
        let action = self.action();
        let states = [&self.live, &self.becomes].map(|it| it.as_ref().map(comparable::comparable));
        let is_secret = [&self.live, &self.becomes].into_iter().flatten().any(comparable::is_secret);
        let [mut old, mut new] = states.map(Option::unwrap_or_default);
        let fields = if action == Action::Changed { fields::changed(&old, &new) } else { Vec::new() };
        if is_secret {
            comparable::veil(&mut old, &mut new);
        }
        let text = |state: &Value| if state.is_null() { String::new() } else { yaml::to_string(state) };
        let difference = match action {
            Action::Unchanged => Vec::new(),
            _ => lines::difference(&text(&old), &text(&new)),
        };
        ObjectPreview { object: self.object.clone(), action, difference, fields }
    }
}

/// Compares what is there with what would be, whatever the order of the changes.
fn compare(provider: &str, mut changes: Vec<Change>) -> ProviderPreview {
    changes.sort_by(|a, b| a.object.cmp(&b.object));
    ProviderPreview {
        provider: provider.to_owned(),
        summary: summary::summarize(&changes),
        objects: changes.iter().map(Change::preview).collect(),
    }
}

/// Tries out what is intended, and compares it with what is there. Nothing is written.
pub async fn preview(cluster: &ManagementCluster, intents: &[Intent<'_>]) -> Result<Preview, ServerError> {
    let wanted: Vec<Value> = intents.iter().flat_map(|it| &it.wanted).map(|it| (*it).clone()).collect();
    let mut trials = dry_run::try_all(cluster, &wanted, Detail::Whole).await?.into_iter();
    let mut preview = Preview::default();
    for intent in intents {
        let mut changes = deletions(cluster, intent).await?;
        let live = look_at(cluster, &intent.wanted).await?;
        for ((object, live), trial) in intent.wanted.iter().zip(live).zip(trials.by_ref()) {
            preview.notes.extend(trial.note);
            let stored = match trial.outcome {
                Outcome::Stored(stored) => Some(*stored),
                Outcome::Unknown => None,
                Outcome::Refused(refusal) => {
                    preview.refusals.push(refusal);
                    None
                }
            };
            let becomes = foresee(object, live.as_ref(), stored);
            changes.push(Change { object: ObjectRef::of(object), live, becomes: Some(becomes) });
        }
        preview.providers.push(compare(intent.provider, changes));
    }
    Ok(preview)
}

/// What a wanted object will be like.
fn foresee(wanted: &Value, live: Option<&Value>, stored: Option<Value>) -> Value {
    let Some(live) = live else {
        // What its author wrote is easier to read than what a server makes of it.
        return wanted.clone();
    };
    let stored = stored.unwrap_or_else(|| comparable::overlay(live, wanted));
    ownership::without_fields_of_clusterctl(stored)
}

/// What is there of some objects; nothing of those whose kind or namespace is not there.
async fn look_at(cluster: &ManagementCluster, objects: &[&Value]) -> Result<Vec<Option<Value>>, ServerError> {
    let kinds = &*cluster.kinds().await?;
    let looks = objects.iter().map(|object| async move {
        let id = ObjectRef::of(object);
        match kinds.of(object) {
            Some(kind) => read(cluster, kind, &id).await,
            None => Ok(None),
        }
    });
    at_once_in_order(looks).try_collect().await
}

/// What is to go, and is there, and is not wanted.
async fn deletions(cluster: &ManagementCluster, intent: &Intent<'_>) -> Result<Vec<Change>, ServerError> {
    let wanted: BTreeSet<Identity> = intent.wanted.iter().map(|it| ObjectRef::of(it).identity()).collect();
    let removed: BTreeMap<Identity, &Component> =
        intent.removed.iter().map(|it| (it.id.identity(), it)).filter(|it| !wanted.contains(&it.0)).collect();
    let looks = removed.into_values().map(|component| async move {
        let live = read(cluster, &component.kind, &component.id).await?;
        Ok(Change { object: component.id.clone(), live, becomes: None })
    });
    let changes: Vec<Change> = at_once_in_order(looks).try_collect().await?;
    Ok(changes.into_iter().filter(|it| it.live.is_some()).collect())
}

async fn read(
    cluster: &ManagementCluster,
    kind: &Kind,
    id: &ObjectRef,
) -> Result<Option<Value>, ServerError> {
    let found = cluster.objects(kind, id.namespace.as_deref()).get_opt(&id.name).await;
    let found = found.map_err(|error| cluster.failed(format!("read {id}"), error))?;
    let as_value = |it| serde_json::to_value(it).map_err(kube::Error::SerdeError);
    found.map(as_value).transpose().map_err(|error| cluster.failed(format!("read {id}"), error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn config_map(name: &str, value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
    }

    fn change(live: Option<Value>, becomes: Option<Value>) -> Change {
        let object = ObjectRef::of(live.as_ref().or(becomes.as_ref()).unwrap());
        Change { object, live, becomes }
    }

    #[test]
    fn objects_come_change_and_go() {
        let (one, other) = (config_map("x", "1"), config_map("x", "2"));
        let mut touched = one.clone();
        touched["metadata"]["resourceVersion"] = json!("7");
        touched["status"] = json!({"ready": true});
        for (live, becomes, action, lines) in [
            (
                None,
                Some(&one),
                Action::Created,
                vec![
                    "+apiVersion: v1",
                    "+data:",
                    "+  key: \"1\"",
                    "+kind: ConfigMap",
                    "+metadata:",
                    "+  name: x",
                ],
            ),
            (
                Some(&one),
                Some(&other),
                Action::Changed,
                vec![
                    " apiVersion: v1",
                    " data:",
                    "-  key: \"1\"",
                    "+  key: \"2\"",
                    " kind: ConfigMap",
                    " metadata:",
                    "   name: x",
                ],
            ),
            (Some(&one), Some(&touched), Action::Unchanged, vec![]),
        ] {
            let found = change(live.cloned(), becomes.cloned()).preview();
            let shown: Vec<_> = found.difference.iter().map(ToString::to_string).collect();
            assert_eq!((found.action, shown), (action, lines.into_iter().map(str::to_owned).collect()));
        }
        let gone = change(Some(one), None).preview();
        assert_eq!(gone.action, Action::Deleted);
        assert!(gone.difference.iter().all(|it| it.sign == Sign::Removed) && gone.difference.len() == 6);
    }

    #[test]
    fn a_secret_that_changes_is_seen_but_not_read() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                                          "data": {"password": value}})
        };
        let found = change(Some(secret("b2xk")), Some(secret("bmV3"))).preview();
        assert_eq!(found.action, Action::Changed);
        let text = found.difference.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains("-  password: '(hidden: before)'"), "{text}");
        assert!(!text.contains("b2xk") && !text.contains("bmV3"), "{text}");
    }

    #[test]
    fn machines_read_the_same() {
        let preview = compare("infrastructure-acme", vec![change(None, Some(config_map("x", "1")))]);
        let json = serde_json::to_value(&preview).unwrap();
        assert_eq!(json["objects"][0]["action"], "created");
        assert_eq!(json["objects"][0]["kind"], "ConfigMap");
        assert_eq!(json["objects"][0]["difference"][0], "+apiVersion: v1");
        assert_eq!(json["summary"]["webhooksAdded"], json!([]));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[a-z ]{0,6}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|it| it.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let object = |spec: Value, at: usize| json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": format!("n{at}")}, "spec": spec});
        prop::collection::vec((value(), value(), 0..3_u8), 1..6).prop_map(move |specs| {
            let changes = specs.into_iter().enumerate().map(|(at, (old, new, kind))| {
                let (old, new) = (object(old, at), object(new, at));
                match kind {
                    0 => change(None, Some(new)),
                    1 => change(Some(old), None),
                    _ => change(Some(old), Some(new)),
                }
            });
            changes.collect()
        })
    }

    proptest! {
        #[test]
        fn an_object_does_not_differ_from_itself(spec in value()) {
            let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec});
            let found = compare("p", vec![change(Some(object.clone()), Some(object))]);
            prop_assert_eq!(found.objects[0].action, Action::Unchanged);
            prop_assert!(found.objects[0].difference.is_empty());
            prop_assert_eq!(found.summary, Summary::default());
        }

        #[test]
        fn the_order_of_changes_does_not_matter(changes in changes()) {
            let mut reversed = changes.clone();
            reversed.reverse();
            prop_assert_eq!(compare("p", changes), compare("p", reversed));
        }

        #[test]
        fn a_difference_is_seen_where_there_is_one(old in value(), new in value()) {
            let object = |spec: &Value| json!({"kind": "K", "metadata": {"name": "x"}, "spec": spec});
            let found = change(Some(object(&old)), Some(object(&new))).preview();
            prop_assert_eq!(found.action == Action::Changed, old != new);
        }
    }
}
