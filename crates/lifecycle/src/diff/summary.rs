//! What matters of a change, without reading the objects.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::{Change, comparable::is_secret, ownership, rbac};
use capstan_management::{ObjectRef, crd::Crd};

/// What matters of a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// CustomResourceDefinitions that come or go, or whose versions do.
    pub crds: Vec<CrdChange>,
    /// Roles that allow more or less.
    pub roles: Vec<RoleChange>,
    /// Admission webhooks that come, as `configuration: webhook`.
    pub webhooks_added: Vec<String>,
    /// Admission webhooks that go.
    pub webhooks_removed: Vec<String>,
    /// Containers with another image.
    pub images: Vec<ImageChange>,
    /// Containers with other arguments.
    pub arguments: Vec<ArgumentChange>,
    /// What was changed by hand and would be lost.
    pub lost: Vec<LostChange>,
}

/// A CustomResourceDefinition that comes or goes, or whose versions do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdChange {
    /// Its name.
    pub name: String,
    /// Whether it comes, goes or stays.
    pub action: Action,
    /// Versions that are served from then on.
    pub versions_added: Vec<String>,
    /// Versions that are not served any more.
    pub versions_removed: Vec<String>,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It is made.
    Created,
    /// It is changed.
    Changed,
    /// It is deleted.
    Deleted,
    /// It stays as it is.
    Unchanged,
}

/// A role that allows more or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleChange {
    /// The role.
    pub role: ObjectRef,
    /// What it allows in addition, as `verbs: resources`.
    pub gained: Vec<String>,
    /// What it allows no more.
    pub lost: Vec<String>,
}

/// A container with another image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageChange {
    /// Whose container.
    pub workload: ObjectRef,
    /// Its name.
    pub container: String,
    /// The image that it has, if it is there.
    pub from: Option<String>,
    /// The image that it gets, if it stays.
    pub to: Option<String>,
}

/// A container with other arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentChange {
    /// Whose container.
    pub workload: ObjectRef,
    /// Its name.
    pub container: String,
    /// Arguments that come.
    pub added: Vec<String>,
    /// Arguments that go.
    pub removed: Vec<String>,
}

/// Something that was changed by hand and would be lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostChange {
    /// Whose.
    pub object: ObjectRef,
    /// Which field.
    pub field: String,
    /// Who wrote it, as the server knows them.
    pub manager: String,
    /// What it is.
    pub from: Value,
    /// What it becomes; nothing if it is gone.
    pub to: Option<Value>,
}

/// Sums up changes.
pub(crate) fn summarize(changes: &[Change]) -> Summary {
    let mut summary = Summary::default();
    for change in changes {
        match (change.object.group(), change.object.kind.as_str()) {
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                summary.crds.extend(crd(change));
            }
            ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => summary.roles.extend(role(change)),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
            ) => webhooks(change, &mut summary),
            ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => containers(change, &mut summary),
            _ => {}
        }
        summary.lost.extend(lost(change));
    }
    summary
}

fn crd(change: &Change) -> Option<CrdChange> {
    let (before, after) = (served(change.live.as_ref()), served(change.becomes.as_ref()));
    let action = change.action();
    let versions_added: Vec<String> = after.difference(&before).cloned().collect();
    let versions_removed: Vec<String> = before.difference(&after).cloned().collect();
    let is_worth_it = matches!(action, Action::Created | Action::Deleted)
        || !versions_added.is_empty()
        || !versions_removed.is_empty();
    is_worth_it.then(|| CrdChange {
        name: change.object.name.clone(),
        action,
        versions_added,
        versions_removed,
    })
}

fn served(crd: Option<&Value>) -> BTreeSet<String> {
    crd.into_iter().flat_map(|it| Crd::new(it).served_versions()).map(str::to_owned).collect()
}

fn role(change: &Change) -> Option<RoleChange> {
    let is_gathered = |it: &Value| it.get("aggregationRule").is_some();
    if change.live.iter().chain(&change.becomes).any(is_gathered) {
        return None;
    }
    let gained = rbac::allowed_beyond(change.becomes.as_ref(), change.live.as_ref());
    let lost = rbac::allowed_beyond(change.live.as_ref(), change.becomes.as_ref());
    (!gained.is_empty() || !lost.is_empty()).then(|| RoleChange { role: change.object.clone(), gained, lost })
}

fn webhooks(change: &Change, summary: &mut Summary) {
    let names = |configuration: Option<&Value>| -> BTreeSet<String> {
        let webhooks = configuration.and_then(|it| it["webhooks"].as_array()).into_iter().flatten();
        let names = webhooks.filter_map(|it| it["name"].as_str());
        names.map(|name| format!("{}: {name}", change.object.name)).collect()
    };
    let (before, after) = (names(change.live.as_ref()), names(change.becomes.as_ref()));
    summary.webhooks_added.extend(after.difference(&before).cloned());
    summary.webhooks_removed.extend(before.difference(&after).cloned());
}

fn containers(change: &Change, summary: &mut Summary) {
    let containers = |workload: Option<&Value>| -> Vec<Value> {
        let spec = workload.and_then(|it| it.pointer("/spec/template/spec"));
        let lists = ["initContainers", "containers"].map(|list| spec.and_then(|it| it[list].as_array()));
        lists.into_iter().flatten().flatten().cloned().collect()
    };
    let name = |container: &Value| container["name"].as_str().unwrap_or_default().to_owned();
    let (before, after) = (containers(change.live.as_ref()), containers(change.becomes.as_ref()));
    let names: BTreeSet<String> = before.iter().chain(&after).map(name).collect();
    for container in names {
        let find = |list: &[Value]| list.iter().find(|it| name(it) == container).cloned();
        let (old, new) = (find(&before), find(&after));
        let image = |it: &Option<Value>| it.as_ref().and_then(|it| it["image"].as_str().map(str::to_owned));
        let (from, to) = (image(&old), image(&new));
        if from != to {
            let workload = change.object.clone();
            summary.images.push(ImageChange { workload, container: container.clone(), from, to });
        }
        if let (Some(old), Some(new)) = (old, new) {
            let (before, after) = (arguments(&old), arguments(&new));
            let beyond = |these: &[String], those: &[String]| -> Vec<String> {
                these.iter().filter(|it| !those.contains(it)).cloned().collect()
            };
            let (added, removed) = (beyond(&after, &before), beyond(&before, &after));
            if !added.is_empty() || !removed.is_empty() {
                let workload = change.object.clone();
                summary.arguments.push(ArgumentChange { workload, container, added, removed });
            }
        }
    }
}

fn arguments(container: &Value) -> Vec<String> {
    let lists = ["command", "args"].map(|list| container[list].as_array());
    lists.into_iter().flatten().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What was written by hand and would be lost; of what is deleted, everything is.
fn lost(change: &Change) -> Vec<LostChange> {
    // CRDs and webhooks are written into by those who inject certificates and convert versions.
    let is_injected =
        matches!(change.object.group(), "apiextensions.k8s.io" | "admissionregistration.k8s.io");
    let (Some(live), Some(becomes), false) = (&change.live, &change.becomes, is_injected) else {
        return Vec::new();
    };
    let is_secret = is_secret(live);
    let found = ownership::foreign_fields(live).into_iter().filter_map(|it| {
        let (from, to) = (it.path.find(live)?, it.path.find(becomes));
        let show = |value: &Value| if is_secret { "(hidden)".into() } else { value.clone() };
        (Some(from) != to).then(|| LostChange {
            object: change.object.clone(),
            field: it.path.to_string(),
            manager: it.manager,
            from: show(from),
            to: to.map(show),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(api_version: &str, kind: &str, live: &Value, becomes: &Value) -> Change {
        let object = ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "x".to_owned(),
        };
        let some = |value: &Value| Some(value.clone()).filter(|it| !it.is_null());
        Change { object, live: some(live), becomes: some(becomes) }
    }

    #[test]
    fn versions_of_crds_come_and_go() {
        let versions = |names: &[(&str, bool)]| {
            let versions = names.iter().map(|(name, served)| json!({"name": name, "served": served}));
            json!({"spec": {"versions": versions.collect::<Vec<_>>()}})
        };
        let both = versions(&[("v1", true), ("v2", true)]);
        let old = versions(&[("v1", true), ("v2", false)]);
        for (live, becomes, expected) in [
            (&old, &both, Some((Action::Changed, vec!["v2"], vec![]))),
            (&both, &old, Some((Action::Changed, vec![], vec!["v2"]))),
            (&both, &both, None),
            (&Value::Null, &old, Some((Action::Created, vec!["v1"], vec![]))),
            (&old, &Value::Null, Some((Action::Deleted, vec![], vec!["v1"]))),
        ] {
            let change = change("apiextensions.k8s.io/v1", "CustomResourceDefinition", live, becomes);
            let found = summarize(&[change]).crds;
            let found: Vec<_> = found
                .iter()
                .map(|it| {
                    let texts = |list: &[String]| list.to_vec();
                    (it.action, texts(&it.versions_added), texts(&it.versions_removed))
                })
                .collect();
            let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
            let expected = expected.map(|(action, a, b)| (action, owned(a), owned(b)));
            assert_eq!(found, Vec::from_iter(expected), "{live} {becomes}");
        }
    }

    #[test]
    fn containers_are_summed_up_by_image_and_arguments() {
        let workload = |image: &str, args: &[&str]| {
            json!({"spec": {"template": {"spec": {"containers": [
                {"name": "manager", "image": image, "args": args}]}}}})
        };
        let (old, new) = (workload("i:1", &["--a", "--v=5"]), workload("i:2", &["--a", "--v=0", "--b"]));
        let summary = summarize(&[change("apps/v1", "Deployment", &old, &new)]);
        assert_eq!(summary.images.len(), 1);
        assert_eq!(
            (summary.images[0].from.as_deref(), summary.images[0].to.as_deref()),
            (Some("i:1"), Some("i:2"))
        );
        assert_eq!(summary.arguments[0].added, ["--v=0", "--b"]);
        assert_eq!(summary.arguments[0].removed, ["--v=5"]);
        // What comes as a whole has an image, but no change of arguments.
        let summary = summarize(&[change("apps/v1", "Deployment", &Value::Null, &new)]);
        assert_eq!(summary.images[0].from, None);
        assert_eq!(summary.arguments, []);
        // The same word in another group is another kind.
        assert_eq!(summarize(&[change("example.com/v1", "Deployment", &old, &new)]), Summary::default());
    }

    #[test]
    fn webhooks_come_and_go_by_name() {
        let configuration = |names: &[&str]| {
            let webhooks: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"webhooks": webhooks})
        };
        let kind = "ValidatingWebhookConfiguration";
        let (old, new) = (configuration(&["a", "b"]), configuration(&["b", "c"]));
        let summary = summarize(&[change("admissionregistration.k8s.io/v1", kind, &old, &new)]);
        assert_eq!(
            (summary.webhooks_added, summary.webhooks_removed),
            (vec!["x: c".into()], vec!["x: a".into()])
        );
    }

    #[test]
    fn what_was_changed_by_hand_is_lost_only_where_it_changes() {
        let live = |kind: &str| {
            json!({
                "apiVersion": "v1", "kind": kind,
                "metadata": {"managedFields": [{"manager": "kubectl-edit", "fieldsV1":
                    {"f:data": {"f:kept": {}, "f:other": {}, "f:gone": {}}}}]},
                "data": {"kept": "1", "other": "2", "gone": "3", "installed": "4"},
            })
        };
        let becomes = json!({"data": {"kept": "1", "other": "9", "installed": "5"}});
        let lost = |kind: &str, to: &Value| {
            let found = summarize(&[change("v1", kind, &live(kind), to)]).lost;
            found.into_iter().map(|it| (it.field, it.from, it.to)).collect::<Vec<_>>()
        };
        let field = |name: &str| format!("data.{name}");
        assert_eq!(
            lost("ConfigMap", &becomes),
            [(field("gone"), json!("3"), None), (field("other"), json!("2"), Some(json!("9")))]
        );
        let hidden = json!("(hidden)");
        assert_eq!(
            lost("Secret", &becomes),
            [(field("gone"), hidden.clone(), None), (field("other"), hidden.clone(), Some(hidden))]
        );
        assert_eq!(lost("ConfigMap", &Value::Null), []);
    }

    #[test]
    fn roles_gain_and_lose() {
        let role =
            |verbs: &[&str]| json!({"rules": [{"apiGroups": ["g"], "resources": ["r"], "verbs": verbs}]});
        let kind = ("rbac.authorization.k8s.io/v1", "ClusterRole");
        let found =
            summarize(&[change(kind.0, kind.1, &role(&["get", "list"]), &role(&["get", "watch"]))]).roles;
        assert_eq!(found[0].gained, ["watch: r.g"]);
        assert_eq!(found[0].lost, ["list: r.g"]);
        // A role that a controller fills says nothing by itself.
        let gathered = json!({"aggregationRule": {}, "rules": []});
        assert_eq!(summarize(&[change(kind.0, kind.1, &gathered, &role(&["get"]))]).roles, []);
    }
}
