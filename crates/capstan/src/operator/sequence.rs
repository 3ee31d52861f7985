//! What to do next in an upgrade that the operator carries out, decided from the objects alone: a command that was killed
//! goes on where it was.

use capstan_management::ObjectRef;

use super::{
    ProviderObject,
    edit::Change,
    judge::{self, Look, is_same},
};

/// An upgrade that the operator carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// The versions that objects are to get, in this order.
    pub(crate) targets: Vec<Target>,
    /// The contract that all providers go to, if that is another one: they are paused for it.
    pub(crate) contract: Option<String>,
}

/// An object, and the version that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) object: ObjectRef,
    pub(crate) version: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// These objects are changed.
    Edit(Vec<(ObjectRef, Change)>),
    /// The operator is awaited: the objects, and what they wait for.
    Wait(Vec<(ObjectRef, String)>),
    /// The operator cannot go on with an object.
    Stuck(ObjectRef, String),
    /// Nothing is left.
    Done,
}

/// What is to be done next.
pub(crate) fn next(sequence: &Sequence, objects: &[ProviderObject]) -> Step {
    let Some(contract) = &sequence.contract else { return upgrade(&sequence.targets, objects, |_| true) };
    let find = |target: &Target| objects.iter().find(|it| it.id() == target.object);
    let is_replaced = |it: &Target| find(it).is_some_and(|object| has_version(object, &it.version));
    let steps = if sequence.targets.iter().all(is_replaced) {
        // What is unpaused again has done its part.
        [upgrade(&sequence.targets, objects, ProviderObject::is_paused), unpause(objects)]
    } else {
        [pause(contract, objects), upgrade(&sequence.targets, objects, |_| true)]
    };
    steps.into_iter().find(|it| *it != Step::Done).unwrap_or(Step::Done)
}

/// Whether a version is asked for and installed, whatever else the operator says.
fn has_version(object: &ProviderObject, version: &str) -> bool {
    [object.version(), object.installed_version.as_deref()]
        .iter()
        .all(|it| it.is_some_and(|it| is_same(it, version)))
}

/// The targets that have their version, in order.
pub(crate) fn finished<'a>(sequence: &'a Sequence, objects: &[ProviderObject]) -> Vec<&'a Target> {
    let is_done = |target: &&Target| {
        let object = objects.iter().find(|it| it.id() == target.object);
        object.is_some_and(|it| judge::at_version(it, &target.version) == Look::Done)
    };
    sequence.targets.iter().filter(is_done).collect()
}

/// One provider after the other, as far as they are meant.
fn upgrade(
    targets: &[Target],
    objects: &[ProviderObject],
    is_meant: impl Fn(&ProviderObject) -> bool,
) -> Step {
    for Target { object: id, version } in targets {
        let Some(object) = objects.iter().find(|it| it.id() == *id) else {
            return Step::Stuck(id.clone(), "it was deleted".to_owned());
        };
        if !is_meant(object) {
            continue;
        }
        if !object.version().is_some_and(|it| is_same(it, version)) {
            return Step::Edit(vec![(id.clone(), Change::Version(version.clone()))]);
        }
        match judge::at_version(object, version) {
            Look::Done => {}
            Look::Waiting(reason) => return Step::Wait(vec![(id.clone(), reason)]),
            Look::Stuck(reason) => return Step::Stuck(id.clone(), reason),
        }
    }
    Step::Done
}

/// All installed providers at the same time.
fn pause(contract: &str, objects: &[ProviderObject]) -> Step {
    let installed = || objects.iter().filter(|it| it.installed_version.is_some() && !it.is_deleting);
    let running: Vec<_> = installed()
        .filter(|it| !it.is_paused())
        .map(|it| (it.id(), Change::Pause { contract: contract.to_owned() }))
        .collect();
    if running.is_empty() { wait(installed(), true) } else { Step::Edit(running) }
}

/// Those that an upgrade paused; what a user paused stays paused.
fn unpause(objects: &[ProviderObject]) -> Step {
    let ours: Vec<_> = objects.iter().filter(|it| it.is_paused_for_upgrade()).collect();
    if !ours.is_empty() {
        return Step::Edit(ours.into_iter().map(|it| (it.id(), Change::Unpause)).collect());
    }
    let running = objects.iter();
    wait(running.filter(|it| it.installed_version.is_some() && !it.is_deleting && !it.is_paused()), false)
}

fn wait<'a>(objects: impl Iterator<Item = &'a ProviderObject>, is_paused: bool) -> Step {
    let late = objects.filter_map(|it| match judge::paused(it, is_paused) {
        Look::Done => None,
        Look::Waiting(reason) | Look::Stuck(reason) => Some((it.id(), reason)),
    });
    let late: Vec<_> = late.collect();
    if late.is_empty() { Step::Done } else { Step::Wait(late) }
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType::{self, Core, Infrastructure};
    use serde_json::{Value, json};

    use super::{super::state::tests::object, *};

    /// A cluster where the operator does at once what it is told.
    #[derive(Clone)]
    struct Cluster(Vec<ProviderObject>);

    fn provider(kind: ProviderType, name: &str, version: &str) -> ProviderObject {
        let mut object = object(kind, name, json!({"version": version}), json!({}));
        obey(&mut object);
        object
    }

    fn condition(kind: &str, is_true: bool, generation: i64) -> Value {
        json!({"type": kind, "status": if is_true { "True" } else { "False" }, "reason": "R", "message": "m",
               "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// What the operator makes of an object.
    fn obey(object: &mut ProviderObject) {
        object.installed_version = object.version().map(str::to_owned);
        object.observed_generation = Some(object.generation);
        let conditions = [("ProviderInstalled", true), ("Paused", object.is_paused())];
        let conditions = conditions.map(|(kind, is)| condition(kind, is, object.generation));
        object.conditions = conditions.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect();
    }

    impl Cluster {
        fn new() -> Self {
            Self(vec![provider(Core, "cluster-api", "v1.0.0"), provider(Infrastructure, "acme", "v2.0.0")])
        }

        fn edit(&mut self, id: &ObjectRef, change: &Change) {
            let object = self.0.iter_mut().find(|it| it.id() == *id).unwrap();
            object.generation += 1;
            match change {
                Change::Version(version) => object.spec["version"] = json!(version),
                Change::Pause { contract } => {
                    object.spec["paused"] = json!(true);
                    object.annotations.insert("capstan.dev/paused-for-upgrade".to_owned(), contract.clone());
                }
                Change::Unpause => {
                    object.spec["paused"] = json!(false);
                    object.annotations.clear();
                }
                Change::ForceDelete => {}
            }
        }

        /// Carries an upgrade out, and gives back what was done, in words. Ends before a number of edits.
        fn play(&mut self, sequence: &Sequence, edits: usize) -> Vec<String> {
            let mut told = Vec::new();
            for _ in 0..100 {
                match next(sequence, &self.0) {
                    Step::Edit(changes) => {
                        for (id, change) in changes {
                            if told.len() == edits {
                                return told;
                            }
                            let words = match &change {
                                Change::Version(version) => format!("{} to {version}", id.name),
                                Change::Pause { contract } => format!("pause {} for {contract}", id.name),
                                Change::Unpause => format!("unpause {}", id.name),
                                Change::ForceDelete => "delete".to_owned(),
                            };
                            told.push(words);
                            self.edit(&id, &change);
                        }
                    }
                    Step::Wait(late) => {
                        for (id, _) in late {
                            obey(self.0.iter_mut().find(|it| it.id() == id).unwrap());
                        }
                    }
                    Step::Stuck(id, reason) => panic!("{id}: {reason}"),
                    Step::Done => return told,
                }
            }
            panic!("no end: {told:?}");
        }
    }

    fn sequence(cluster: &Cluster, contract: Option<&str>) -> Sequence {
        let versions = [("cluster-api", "v1.1.0"), ("acme", "v2.1.0")];
        let target = |(name, version): (&str, &str)| Target {
            object: cluster.0.iter().find(|it| it.name == name).unwrap().id(),
            version: version.to_owned(),
        };
        Sequence { targets: versions.map(target).into(), contract: contract.map(str::to_owned) }
    }

    #[test]
    fn providers_go_one_after_the_other_and_are_paused_for_another_contract() {
        let mut cluster = Cluster::new();
        let told = cluster.play(&sequence(&cluster, None), 100);
        assert_eq!(told, ["cluster-api to v1.1.0", "acme to v2.1.0"]);
        let mut cluster = Cluster::new();
        let told = cluster.play(&sequence(&cluster, Some("v1beta2")), 100);
        let expected = [
            "pause cluster-api for v1beta2",
            "pause acme for v1beta2",
            "cluster-api to v1.1.0",
            "acme to v2.1.0",
            "unpause cluster-api",
            "unpause acme",
        ];
        assert_eq!(told, expected);
        assert!(cluster.0.iter().all(|it| !it.is_paused() && !it.is_paused_for_upgrade()));
    }

    #[test]
    fn what_a_user_paused_stays_paused() {
        let mut cluster = Cluster::new();
        cluster.0[1].spec["paused"] = json!(true);
        obey(&mut cluster.0[1]);
        let told = cluster.play(&sequence(&cluster, Some("v1beta2")), 100);
        let expected = [
            "pause cluster-api for v1beta2",
            "cluster-api to v1.1.0",
            "acme to v2.1.0",
            "unpause cluster-api",
        ];
        assert_eq!(told, expected);
        assert!(cluster.0[1].is_paused());
    }

    #[test]
    fn killed_at_any_edit_it_goes_on_where_it_was() {
        for is_user_paused in [false, true] {
            for contract in [None, Some("v1beta2")] {
                for edits in 0..7 {
                    let mut cluster = Cluster::new();
                    cluster.0[1].spec["paused"] = json!(is_user_paused);
                    obey(&mut cluster.0[1]);
                    let sequence = sequence(&cluster, contract);
                    let mut undisturbed = cluster.clone();
                    let all = undisturbed.play(&sequence, 100);
                    let before = cluster.play(&sequence, edits);
                    let after = cluster.play(&sequence, 100);
                    assert_eq!([before, after].concat(), all, "{contract:?} {edits}");
                    assert_eq!(cluster.0, undisturbed.0);
                }
            }
        }
    }

    #[test]
    fn nothing_is_changed_before_all_are_paused_and_nothing_while_one_is_stuck() {
        let mut cluster = Cluster::new();
        let sequence = sequence(&cluster, Some("v1beta2"));
        let Step::Edit(pauses) = next(&sequence, &cluster.0) else { panic!("no pause") };
        for (id, change) in &pauses {
            cluster.edit(id, change);
        }
        obey(&mut cluster.0[0]);
        let acme = cluster.0[1].id();
        let unseen = "the operator has not acted on it yet".to_owned();
        assert_eq!(next(&sequence, &cluster.0), Step::Wait(vec![(acme.clone(), unseen)]));
        obey(&mut cluster.0[1]);
        let core = cluster.0[0].id();
        cluster.edit(&core, &Change::Version("v1.1.0".to_owned()));
        let mut refused = condition("PreflightCheckPassed", false, cluster.0[0].generation);
        refused["reason"] = json!("UnsupportedProviderDowngradeReason");
        cluster.0[0].observed_generation = Some(cluster.0[0].generation);
        cluster.0[0].conditions = vec![serde_json::from_value(refused).unwrap()];
        // The pause is seen as over, since the condition is gone.
        assert!(matches!(next(&sequence, &cluster.0), Step::Wait(_)));
        let paused = condition("Paused", true, cluster.0[0].generation);
        cluster.0[0].conditions.push(serde_json::from_value(paused).unwrap());
        let reason = "UnsupportedProviderDowngradeReason: m".to_owned();
        assert_eq!(next(&sequence, &cluster.0), Step::Stuck(core, reason));
        cluster.0.remove(1);
        cluster.0[0].conditions.remove(0);
        obey(&mut cluster.0[0]);
        assert_eq!(next(&sequence, &cluster.0), Step::Stuck(acme, "it was deleted".to_owned()));
    }

    #[test]
    fn what_is_not_installed_needs_no_pause() {
        let mut cluster = Cluster::new();
        cluster.0.push(object(Infrastructure, "new", json!({}), json!({})));
        let told = cluster.play(&sequence(&cluster, Some("v1beta2")), 100);
        assert!(!told.iter().any(|it| it.contains("new")), "{told:?}");
        assert_eq!(finished(&sequence(&cluster, None), &cluster.0).len(), 2);
    }
}
