//! The upgrade of one provider, as it is decided before anything is stopped.

use std::collections::HashSet;

use kube::{api::DynamicObject, core::ObjectMeta};
use serde_json::Value;

use super::{
    UpgradeError,
    prune::{self, Coming, Leftovers},
    rules::Target,
    storage::{self, Migration},
};
use crate::{
    instance::{self, Instances, Owner},
    release::Prepared,
};
use capstan_management::{
    ManagementCluster, ObjectRef, adoption,
    dry_run::{Outcome, Trial},
    inventory::Installed,
    sweep::Component,
};

/// The upgrade of one provider.
#[derive(Debug)]
pub struct Step {
    /// The provider as it is.
    pub from: Installed,
    /// The release that it gets.
    pub to: Prepared,
    /// Whether the same version is applied again, while the controllers run.
    pub is_reapply: bool,
    /// Objects of the release that all instances share and a newer instance has written.
    pub(super) left_out: HashSet<ObjectRef>,
    /// Whether the provider has other instances.
    pub(super) has_others: bool,
    /// What is installed for it now.
    pub installed: Vec<Component>,
    /// What the release does not have any more.
    pub leftovers: Leftovers,
    /// Objects that have to be recreated, since a field cannot be changed.
    pub replaced: Vec<ObjectRef>,
    /// Objects that are as they should be.
    pub unchanged: HashSet<ObjectRef>,
    /// Kinds whose objects have to be stored in another version first.
    pub migrations: Vec<Migration>,
    /// Objects that the server would refuse, and why.
    pub refusals: Vec<(ObjectRef, String)>,
    /// What the server could not be asked.
    pub notes: Vec<String>,
}

impl Step {
    /// The provider's label.
    pub fn label(&self) -> String {
        self.from.label()
    }

    /// The objects that a run writes or deletes.
    pub fn changes(&self) -> Vec<ObjectRef> {
        let written = self.wanted().map(ObjectRef::of).filter(|it| !self.unchanged.contains(it));
        written.chain(self.leftovers.gone.iter().map(|it| it.id.clone())).collect()
    }

    /// The objects of the release that this instance is to have.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Value> {
        self.to.components.objects().iter().filter(|it| !self.left_out.contains(&ObjectRef::of(it)))
    }
}

/// What concerns all steps.
pub(super) struct Surroundings<'a> {
    /// What is there.
    pub(super) installed: &'a [Component],
    /// What is in the new releases.
    pub(super) coming: &'a Coming,
    /// The inventory as it will be.
    pub(super) after: &'a [Installed],
    /// The part of it that this run upgrades.
    pub(super) upgraded: &'a [Installed],
}

/// Compares what is there with what is to come, and with what the server says to it.
pub(super) async fn decide(
    cluster: &ManagementCluster,
    Target { provider, version }: Target,
    release: Prepared,
    mut trials: Vec<Trial>,
    Surroundings { installed, coming, after, upgraded }: Surroundings<'_>,
) -> Result<Step, UpgradeError> {
    let label = provider.label();
    let others: Vec<&Installed> = instance::others(&provider, after).collect();
    let of_provider: Vec<&Component> = installed.iter().filter(|it| it.provider() == Some(&label)).collect();
    let namespaces = others.iter().map(|it| it.namespace.as_str());
    let instances = Instances::new(&provider.namespace, namespaces, of_provider.iter().map(|it| &it.id));
    // Of several instances that get the same version at the same time, one writes what they share.
    let is_first = |it: &Installed| it.namespace < provider.namespace && it.version == version;
    let is_led = instance::others(&provider, upgraded).any(is_first);
    let writes_shared = !is_led && instance::is_newest(&version, others.iter().copied());
    let is_own = |it: &&&Component| match instances.owner(&it.id) {
        Owner::This => true,
        // Roles without a prefix may be another instance's.
        Owner::All => writes_shared && instance::is_shared(&it.id),
        Owner::Another => false,
    };
    let own: Vec<Component> = of_provider.iter().filter(is_own).copied().cloned().collect();
    let release_objects = release.components.objects();
    let is_left_out = |it: &ObjectRef| !writes_shared && instances.owner(it) == Owner::All;
    let left_out: HashSet<ObjectRef> =
        release_objects.iter().map(ObjectRef::of).filter(is_left_out).collect();
    trials.retain(|it| !left_out.contains(&it.object));
    let objects: Vec<&Value> =
        release_objects.iter().filter(|it| !left_out.contains(&ObjectRef::of(it))).collect();
    let leftovers = prune::find(cluster, &own, &label, coming).await?;
    let migrations = storage::find(cluster, &label, &version, &objects, &mut trials).await?;
    let (replaced, refusals) = judge(&trials);
    let is_reapply = provider.version == version && provider.upgrading_to.is_none();
    let mut unchanged = unchanged(&trials, &own, is_reapply);
    // Of several that write an object the last one counts, and a trial of a migrated CRD is not of the new one.
    unchanged.retain(|id| !coming.is_shared(id) && !migrations.iter().any(|it| it.is_of(id)));
    let not_installed = leftovers.not_installed.iter().map(|id| {
        format!(
            "{id} stays: labelled as {label}, but neither capstan nor clusterctl nor the operator installed it"
        )
    });
    let notes = trials.into_iter().filter_map(|it| it.note).chain(not_installed).collect();
    let has_others = !others.is_empty();
    Ok(Step {
        from: provider,
        to: release,
        is_reapply,
        left_out,
        has_others,
        installed: own,
        leftovers,
        replaced,
        unchanged,
        migrations,
        refusals,
        notes,
    })
}

/// What need not be written, since the server says that it would change nothing; but for what is stopped or adopted
/// meanwhile.
fn unchanged(trials: &[Trial], installed: &[Component], keeps_running: bool) -> HashSet<ObjectRef> {
    let is_same = |trial: &&Trial| {
        let Outcome::Stored(stored) = &trial.outcome else { return false };
        let Some(component) = installed.iter().find(|it| it.id == trial.object) else { return false };
        let is_stopped = trial.object.kind == "Deployment" && !keeps_running;
        let is_left_alone = !is_stopped && !adoption::is_needed(component);
        is_left_alone && is_as_stored(component, stored)
    };
    trials.iter().filter(is_same).map(|it| it.object.clone()).collect()
}

/// Whether an object is what the server would store. Where it has a generation, that counts the changes of everything but
/// its metadata; elsewhere all of it has to be compared.
fn is_as_stored(component: &Component, stored: &Value) -> bool {
    let metadata: Option<ObjectMeta> = serde_json::from_value(stored["metadata"].clone()).ok();
    let is_counted = component.metadata.generation.is_some();
    metadata.as_ref() == Some(&component.metadata)
        && (is_counted
            || component.content.as_ref().is_some_and(|it| content_of(stored).as_ref() == Some(it)))
}

fn content_of(stored: &Value) -> Option<Value> {
    Some(serde_json::from_value::<DynamicObject>(stored.clone()).ok()?.data)
}

/// The objects that have to be recreated, and those that the server would refuse for another reason.
fn judge(trials: &[Trial]) -> (Vec<ObjectRef>, Vec<(ObjectRef, String)>) {
    let (mut replaced, mut refused) = (Vec::new(), Vec::new());
    for trial in trials {
        let Some((object, reason)) = refusal(trial) else { continue };
        if may_be_replaced(&object) && is_about_change(&reason) {
            replaced.push(object);
        } else {
            refused.push((object, reason));
        }
    }
    (replaced, refused)
}

/// Whether nothing of the user's is lost with an object.
fn may_be_replaced(object: &ObjectRef) -> bool {
    let holds = matches!(
        object.kind.as_str(),
        "Namespace" | "CustomResourceDefinition" | "PersistentVolumeClaim" | "PersistentVolume" | "Secret"
    );
    !holds
}

/// Whether a server refuses the change rather than what would come of it.
fn is_about_change(reason: &str) -> bool {
    ["field is immutable", "cannot change roleRef", "may not be changed", "updates to statefulset spec"]
        .iter()
        .any(|words| reason.contains(words))
}

pub(super) fn refusal(trial: &Trial) -> Option<(ObjectRef, String)> {
    match &trial.outcome {
        Outcome::Refused(refusal) => Some((refusal.object.clone(), refusal.reason.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::{core::GroupVersionKind, discovery::ApiResource};
    use serde_json::json;

    use super::*;
    use capstan_management::{Kind, dry_run::Refusal};

    fn refused(kind: &str, reason: &str) -> Trial {
        let object = ObjectRef {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "it".to_owned(),
        };
        let refusal = Refusal { object: object.clone(), reason: reason.to_owned() };
        Trial { object, outcome: Outcome::Refused(refusal), note: None }
    }

    #[test]
    fn what_the_server_would_leave_as_it_is_need_not_be_written() {
        let object = |generation: Option<i64>, label: &str, data: Option<&str>| json!({"apiVersion": "v1", "metadata": {"name": "it", "generation": generation, "labels": {"a": label}}, "data": data});
        let case_while = |keeps_running: bool, kind: &str, live: Value, is_whole: bool, stored: Value| {
            let live: DynamicObject = serde_json::from_value(live).unwrap();
            let object = refused(kind, "").object;
            let component = Component {
                kind: Kind {
                    resource: ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind)),
                    is_namespaced: false,
                    is_managed: true,
                    is_preferred: true,
                },
                id: object.clone(),
                metadata: live.metadata,
                content: is_whole.then_some(live.data),
            };
            let outcome = Outcome::Stored(Box::new(stored));
            !unchanged(&[Trial { object, outcome, note: None }], &[component], keeps_running).is_empty()
        };
        let case = |kind: &str, live: Value, is_whole: bool, stored: Value| {
            case_while(false, kind, live, is_whole, stored)
        };
        let one = || object(Some(1), "b", None);
        assert!(case("CustomResourceDefinition", one(), false, one()));
        assert!(!case("CustomResourceDefinition", one(), false, object(Some(2), "b", None)));
        assert!(!case("CustomResourceDefinition", one(), false, object(Some(1), "c", None)));
        assert!(!case("Deployment", one(), false, one()), "it is stopped meanwhile");
        assert!(case_while(true, "Deployment", one(), false, one()), "nothing is stopped");
        let theirs = || {
            let mut object = one();
            let fields = json!({"manager": "clusterctl", "operation": "Update", "fieldsV1": {"f:spec": {}}});
            object["metadata"]["managedFields"] = json!([fields]);
            object
        };
        assert!(!case("CustomResourceDefinition", theirs(), false, theirs()), "it is taken over meanwhile");
        let uncounted = |data: &str| object(None, "b", Some(data));
        assert!(case("ConfigMap", uncounted("x"), true, uncounted("x")));
        assert!(!case("ConfigMap", uncounted("x"), true, uncounted("y")));
        assert!(!case("ConfigMap", uncounted("x"), true, object(None, "c", Some("x"))));
        assert!(!case("ConfigMap", uncounted("x"), false, uncounted("x")), "nobody knows what it says");
    }

    #[test]
    fn what_cannot_be_changed_is_recreated_unless_something_would_be_lost() {
        for (kind, reason, is_replaced) in [
            ("Deployment", "spec.selector: Invalid value: {}: field is immutable", true),
            ("ClusterRoleBinding", "roleRef: Invalid value: {}: cannot change roleRef", true),
            ("Service", "spec.clusterIPs[0]: Invalid value: []: may not change once set", false),
            ("Deployment", "spec.template.spec.containers: Required value", false),
            ("CustomResourceDefinition", "spec.scope: Invalid value: field is immutable", false),
            ("Secret", "data: Forbidden: field is immutable when `immutable` is set", false),
        ] {
            let (replaced, refused) = judge(&[refused(kind, reason)]);
            assert_eq!(
                (replaced.len(), refused.len()),
                (usize::from(is_replaced), usize::from(!is_replaced))
            );
        }
    }
}
