use std::sync::Arc;

use capstan_api::{
    conditions::ConditionStatus,
    operator::{FINALIZER, annotation},
    provider::ProviderType,
};
use capstan_management::inventory::Installed;
use serde_json::{Value, json};

use super::*;
use crate::record::DeploymentRecord;

/// A provider object, with its finalizer.
struct Object {
    kind: ProviderType,
    namespace: &'static str,
    name: &'static str,
    value: Value,
}

fn object(kind: ProviderType, name: &'static str) -> Object {
    let namespace = if kind == ProviderType::Core { "capi-system" } else { "capa-system" };
    let value = json!({
        "metadata": {"finalizers": [FINALIZER], "uid": name, "generation": 1,
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {}, "status": {},
    });
    Object { kind, namespace, name, value }
}

fn core() -> Object {
    object(ProviderType::Core, "cluster-api")
}

fn aws() -> Object {
    object(ProviderType::Infrastructure, "aws")
}

impl Object {
    fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        self.value.pointer_mut(parent).unwrap()[field] = value;
        self
    }

    fn version(self, version: &str) -> Self {
        self.with("/spec/version", json!(version))
    }

    fn paused(self) -> Self {
        self.with("/spec/paused", json!(true))
    }

    /// The status says so: installed, the contract, and the generation that was applied.
    fn installed(self, version: &str, contract: &str) -> Self {
        let conditions = [condition(condition::INSTALLED, "True", 1), condition(condition::READY, "True", 1)];
        self.with(
            "/status",
            json!({"installedVersion": version, "contract": contract, "conditions": conditions}),
        )
    }

    /// The status has a condition of this status and reason, in place of any before.
    fn condition(mut self, type_: &str, status: &str, reason: &str) -> Self {
        let mut new = condition(type_, status, 1);
        new["reason"] = json!(reason);
        let conditions = self.value["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|it| it["type"] != type_);
        conditions.push(new);
        self
    }

    fn scaled_down(mut self) -> Self {
        let conditions = self.value["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(condition(condition::PAUSED, "True", 1));
        self
    }

    fn deleting(self) -> Self {
        self.with("/metadata/deletionTimestamp", json!("2026-01-02T00:00:00Z"))
    }

    fn record(&self) -> Arc<ProviderRecord> {
        let mut value = self.value.clone();
        value["metadata"]["namespace"] = json!(self.namespace);
        value["metadata"]["name"] = json!(self.name);
        Arc::new(ProviderRecord::new(self.kind, serde_json::from_value(value).unwrap()))
    }
}

fn condition(type_: &str, status: &str, generation: i64) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": "m", "observedGeneration": generation,
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn deployment(provider: &str, namespace: &str, is_available: bool) -> Arc<DeploymentRecord> {
    named_deployment("manager", provider, namespace, is_available, None)
}

fn named_deployment(
    name: &str,
    provider: &str,
    namespace: &str,
    is_available: bool,
    original: Option<&str>,
) -> Arc<DeploymentRecord> {
    let status = if is_available { "True" } else { "False" };
    let value = json!({
        "metadata": {"name": name, "namespace": namespace, "labels": {"cluster.x-k8s.io/provider": provider},
                     "annotations": original.map(|it| json!({annotation::ORIGINAL_REPLICAS: it}))},
        "status": {"conditions": [{"type": "Available", "status": status}]},
    });
    Arc::new(DeploymentRecord::new(serde_json::from_value(value).unwrap()))
}

/// A snapshot in which the inventory agrees with every status.
fn snapshot(provider: &Object, others: &[Object]) -> Snapshot {
    let (provider, others) = (provider.record(), others.iter().map(Object::record).collect::<Vec<_>>());
    let entry = |it: &Arc<ProviderRecord>| {
        Some(Installed {
            namespace: it.key.namespace.to_string(),
            name: it.key.name.to_string(),
            kind: it.kind,
            version: it.status.installed_version.clone()?,
            watched_namespace: None,
            upgrading_to: None,
        })
    };
    let inventory = [&provider].into_iter().chain(&others).filter_map(entry).collect();
    let deployment = |it: &Arc<ProviderRecord>| {
        let original = it.is_scaled_down().then_some("1");
        named_deployment("manager", &it.label(), &it.key.namespace, true, original)
    };
    let deployments = [&provider].into_iter().chain(&others).map(deployment).collect();
    Snapshot {
        provider,
        others,
        inventory,
        deployments,
        expected_deployments: None,
        wanted_contract: None,
        applied: None,
        is_unverified: false,
    }
}

fn ready_core() -> Object {
    core().version("v1.10.0").installed("v1.10.0", "v1beta1")
}

/// The step, and the conditions that the plan reports as `Type=Status/Reason`.
fn decided(snapshot: &Snapshot) -> (Step, Vec<String>) {
    let plan = decide(snapshot);
    let reports = plan.reports.iter().map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect();
    (plan.step, reports)
}

fn message(snapshot: &Snapshot, type_: &str) -> String {
    decide(snapshot).reports.into_iter().find(|it| it.type_ == type_).map(|it| it.message).unwrap_or_default()
}

const PASSED: &str = "PreflightCheckPassed=True/PreflightChecksPassed";

#[test]
fn a_provider_is_installed_once_core_serves() {
    let version = || "v2.1.0".to_owned();
    let held_back = "PreflightCheckPassed=False/WaitingForCoreProviderReady";
    for (what, provider, others, step, reports) in [
        ("no finalizer", aws().with("/metadata/finalizers", json!([])), vec![], Step::Hold, vec![]),
        ("no core", aws().version("v2.1.0"), vec![], Step::Rest, vec![held_back]),
        ("core is not installed", aws().version("v2.1.0"), vec![core()], Step::Rest, vec![held_back]),
        ("core is paused", aws().version("v2.1.0"), vec![ready_core().paused()], Step::Rest, vec![held_back]),
        (
            "core is not ready",
            aws().version("v2.1.0"),
            vec![ready_core().condition(condition::READY, "False", reason::NOT_AVAILABLE)],
            Step::Rest,
            vec![held_back],
        ),
        (
            "core serves",
            aws().version("v2.1.0"),
            vec![ready_core()],
            Step::Install { version: version() },
            vec![],
        ),
        ("no version", aws(), vec![ready_core()], Step::FindVersion, vec![]),
        (
            "core itself",
            core().version("v1.10.0"),
            vec![],
            Step::Install { version: "v1.10.0".to_owned() },
            vec![],
        ),
        (
            "created paused",
            aws().version("v2.1.0").paused(),
            vec![ready_core()],
            Step::Rest,
            vec!["PreflightCheckPassed=False/Paused", "Paused=True/Paused"],
        ),
        (
            "no v",
            aws().version("2.1.0"),
            vec![ready_core()],
            Step::Rest,
            vec!["PreflightCheckPassed=False/IncorrectVersionFormat"],
        ),
    ] {
        assert_eq!(
            decided(&snapshot(&provider, &others)),
            (step, reports.iter().map(ToString::to_string).collect()),
            "{what}"
        );
    }
    let mut unavailable = snapshot(&aws().version("v2.1.0"), &[ready_core()]);
    unavailable.deployments = vec![deployment("cluster-api", "capi-system", false)];
    assert_eq!(decided(&unavailable).0, Step::Rest, "core's Deployment is not available");
}

#[test]
fn of_two_objects_for_a_provider_the_installed_one_counts_and_then_the_older_one() {
    let other = || aws().within("elsewhere").version("v2.1.0");
    let younger = |it: Object| it.with("/metadata/creationTimestamp", json!("2026-02-01T00:00:00Z"));
    for (what, provider, other, goes_on) in [
        ("the same age, by namespace", aws().version("v2.1.0"), other(), true),
        ("the other is installed", aws().version("v2.1.0"), other().installed("v2.1.0", "v1beta1"), false),
        ("younger", younger(aws().version("v2.1.0")), other(), false),
        ("older", aws().version("v2.1.0"), younger(other()), true),
        ("another core of any name", core().version("v1.10.0"), ready_core().within("a"), false),
        ("another name", aws().version("v2.1.0"), object(ProviderType::Infrastructure, "azure"), true),
    ] {
        let snapshot = snapshot(&provider, &[other, ready_core()]);
        let refusal = gates::duplicate(&snapshot);
        assert_eq!(refusal.is_none(), goes_on, "{what}: {refusal:?}");
    }
    let refused = snapshot(&aws().version("v2.1.0"), &[other().installed("v2.1.0", "v1beta1"), ready_core()]);
    assert_eq!(
        decided(&refused),
        (Step::Rest, vec!["PreflightCheckPassed=False/MoreThanOneExists".to_owned()])
    );
    assert_eq!(
        message(&refused, condition::PREFLIGHT),
        "InfrastructureProvider aws exists already in namespace elsewhere: delete one of the two"
    );
}

#[test]
fn what_is_installed_is_kept_as_the_spec_says() {
    let aws = || aws().version("v2.1.0").installed("v2.1.0", "v1beta1");
    let version = || "v2.1.0".to_owned();
    for (what, provider, step, reports) in [
        ("all is well", aws(), Step::Rest, vec![PASSED]),
        (
            "the version was cleared",
            aws().with("/spec/version", json!(null)),
            Step::SetVersion(version()),
            vec![],
        ),
        (
            "the spec changed",
            aws().with("/metadata/generation", json!(2)),
            Step::Apply { version: version() },
            vec![PASSED],
        ),
        ("a newer version", aws().version("v2.2.0"), Step::Upgrade { version: "v2.2.0".to_owned() }, vec![]),
        (
            "an older patch",
            aws().installed("v2.1.1", "v1beta1"),
            Step::Upgrade { version: version() },
            vec![],
        ),
        (
            "an older minor version",
            aws().version("v2.0.9"),
            Step::Rest,
            vec!["PreflightCheckPassed=False/UnsupportedProviderDowngradeReason"],
        ),
        ("pausing", aws().paused(), Step::Pause, vec![]),
        ("pausing, with a downgrade", aws().paused().version("v2.0.0"), Step::Pause, vec![]),
        ("pausing, with a mistake", aws().paused().version("2.0.0"), Step::Pause, vec![]),
        ("paused", aws().paused().scaled_down(), Step::Rest, vec![PASSED, "Paused=True/Paused"]),
        (
            "paused, and something else changed",
            aws().paused().scaled_down().with("/metadata/generation", json!(2)),
            Step::Rest,
            vec![PASSED, "Paused=True/Paused"],
        ),
        (
            "paused, and another version",
            aws().paused().scaled_down().version("v2.2.0"),
            Step::Upgrade { version: "v2.2.0".to_owned() },
            vec![],
        ),
        ("unpausing", aws().scaled_down(), Step::Unpause { version: version() }, vec![PASSED]),
        (
            "a broken edit",
            aws().with(
                "/spec/fetchConfig",
                json!({"url": "https://a.b/c/d/releases", "selector": {"matchLabels": {"a": "b"}}}),
            ),
            Step::Rest,
            vec!["PreflightCheckPassed=False/FetchConfigValidationError"],
        ),
    ] {
        let snapshot = snapshot(&provider, &[ready_core()]);
        assert_eq!(decided(&snapshot), (step, reports.iter().map(ToString::to_string).collect()), "{what}");
    }
    let mut unverified = snapshot(&aws(), &[ready_core()]);
    unverified.is_unverified = true;
    assert_eq!(decided(&unverified).0, Step::Verify { version: version() });
    let mut overtaken = snapshot(&aws(), &[ready_core()]);
    overtaken.deployments =
        vec![named_deployment("manager", "infrastructure-aws", "capa-system", true, Some("1"))];
    assert_eq!(
        decided(&overtaken).0,
        Step::Unpause { version: version() },
        "unpaused before the status said paused"
    );
    let mut locked =
        snapshot(&aws().with("/spec/manager", json!({"debug": true, "verbosity": 3})), &[ready_core()]);
    locked.applied = Some(Arc::new(serde_json::from_value(json!({"manager": {"debug": true}})).unwrap()));
    assert_eq!(
        decided(&locked),
        (Step::Rest, vec!["PreflightCheckPassed=False/ManagerLockedByDebug".to_owned()])
    );
    assert!(message(&locked, condition::PREFLIGHT).contains("debug"), "{locked:?}");
    let mut adopted = snapshot(&aws(), &[ready_core()]);
    adopted.inventory[0].version = "v2.2.0".to_owned();
    assert_eq!(decided(&adopted).0, Step::Adopt { version: "v2.2.0".to_owned() });
    let mut half = snapshot(&aws(), &[ready_core()]);
    half.inventory[0].upgrading_to = Some("v2.2.0".to_owned());
    assert_eq!(
        decided(&half).0,
        Step::Upgrade { version: version() },
        "an upgrade was cut off and taken back"
    );
}

#[test]
fn a_contract_changes_while_all_are_paused_and_core_comes_first() {
    let paused = |it: Object| it.paused().scaled_down();
    let aws = || aws().version("v2.1.0").installed("v2.1.0", "v1beta1");
    let gate = |provider: &Object, others: &[Object], contract: &str| {
        gates::contract_upgrade(&snapshot(provider, others), contract).map(|it| it.reason)
    };
    let core = || ready_core();
    let upgraded = || core().version("v1.11.0").installed("v1.11.0", "v1beta2");
    for (what, provider, other, contract, expected) in [
        ("the same contract", core(), aws(), "v1beta1", None),
        ("none is paused", core(), aws(), "v1beta2", Some(reason::WAITING_FOR_PAUSE)),
        ("only core is paused", paused(core()), aws(), "v1beta2", Some(reason::WAITING_FOR_PAUSE)),
        ("only the other is paused", core(), paused(aws()), "v1beta2", Some(reason::WAITING_FOR_PAUSE)),
        ("all are paused", paused(core()), paused(aws()), "v1beta2", None),
        (
            "core was not upgraded yet",
            paused(aws()),
            paused(core()),
            "v1beta2",
            Some(reason::CONTRACT_MISMATCH),
        ),
        ("core was upgraded", paused(aws()), paused(upgraded()), "v1beta2", None),
    ] {
        assert_eq!(gate(&provider, &[other], contract), expected, "{what}");
    }
    let refused = snapshot(&core(), &[aws()]);
    let message = gates::contract_upgrade(&refused, "v1beta2").unwrap().message;
    assert!(
        message.contains("CoreProvider capi-system/cluster-api, InfrastructureProvider capa-system/aws"),
        "{message}"
    );
    // What a spec asks for, and what a status says, is not enough: something runs until its Deployments are scaled to 0.
    let pausing = snapshot(&paused(core()), &[aws().paused()]);
    let refusal = gates::contract_upgrade(&pausing, "v1beta2").unwrap().message;
    assert!(
        refusal.ends_with("wait until nothing runs any more of InfrastructureProvider capa-system/aws"),
        "{refusal}"
    );
    let mut half = snapshot(&paused(core()), &[paused(aws())]);
    half.deployments.push(named_deployment("webhook", "infrastructure-aws", "capa-system", true, None));
    assert!(gates::contract_upgrade(&half, "v1beta2").is_some());
    // Its deletion is blocked, and it runs.
    assert!(gate(&paused(core()), &[aws().deleting()], "v1beta2").is_some());
    assert_eq!(gate(&paused(core()), &[paused(aws()).deleting()], "v1beta2"), None);
    // An instance without an object cannot be paused.
    let mut orphan = snapshot(&paused(core()), &[paused(aws())]);
    orphan.others.clear();
    let refusal = gates::contract_upgrade(&orphan, "v1beta2").unwrap().message;
    assert!(
        refusal.ends_with(
            "create the missing provider objects, paused, of InfrastructureProvider capa-system/aws"
        ),
        "{refusal}"
    );
    // A provider that does not say which contract it implements goes along with core.
    let silent = || aws().with("/status/contract", json!(null));
    assert_eq!(gate(&silent(), &[core()], "v1beta1"), None);
    assert_eq!(gate(&silent(), &[core()], "v1beta2"), Some(reason::CONTRACT_MISMATCH));
    assert_eq!(gate(&paused(core()), &[paused(silent())], "v1beta2"), None);
    // The gate is asked once the contract of the wanted version is known.
    let mut upgrade = snapshot(&core().version("v1.11.0"), &[aws()]);
    assert_eq!(decided(&upgrade).0, Step::Upgrade { version: "v1.11.0".to_owned() });
    upgrade.wanted_contract = Some("v1beta2".to_owned());
    assert_eq!(
        decided(&upgrade),
        (Step::Rest, vec!["PreflightCheckPassed=False/WaitingForProvidersToBePaused".to_owned()])
    );
    // Never installed providers hold nothing up.
    let azure = object(ProviderType::Infrastructure, "azure").version("v1.0.0");
    assert_eq!(gate(&paused(core()), &[paused(aws()), azure], "v1beta2"), None);
}

#[test]
fn no_provider_runs_again_while_a_paused_one_is_on_the_old_contract() {
    let scaled_down = |it: Object| it.scaled_down();
    let old = |it: Object| it.version("v2.1.0").installed("v2.1.0", "v1beta1");
    let new = |it: Object| it.version("v2.2.0").installed("v2.2.0", "v1beta2");
    let waits = "Paused=True/WaitingForProvidersToBeUpgraded";
    for (what, provider, other, is_refused) in [
        (
            "core on the new contract, the other not",
            scaled_down(new(core())),
            scaled_down(old(aws())).paused(),
            true,
        ),
        ("the other itself", scaled_down(old(aws())), scaled_down(new(core())).paused(), true),
        ("both unpause", scaled_down(old(aws())), scaled_down(new(core())), true),
        ("both on the new contract", scaled_down(new(aws())), scaled_down(new(core())).paused(), false),
        ("both on the old contract", scaled_down(old(aws())), scaled_down(old(core())).paused(), false),
        ("the other runs", scaled_down(new(core())), old(aws()), false),
    ] {
        let snapshot = snapshot(&provider, &[other]);
        let (step, reports) = decided(&snapshot);
        if is_refused {
            assert_eq!((step, reports), (Step::Rest, vec![PASSED.to_owned(), waits.to_owned()]), "{what}");
        } else {
            assert!(matches!(step, Step::Unpause { .. }), "{what}: {step:?}");
        }
    }
}

#[test]
fn what_was_begun_with_a_pause_is_ended() {
    let aws = || aws().version("v2.1.0").installed("v2.1.0", "v1beta1");
    let unpause = || Step::Unpause { version: "v2.1.0".to_owned() };
    let (up, down) = (None, Some("3"));
    for (what, provider, originals, step) in [
        ("everything runs", aws(), vec![up, up], Step::Rest),
        ("the pause was cut off", aws().paused(), vec![up, down], Step::Pause),
        ("and then taken back", aws(), vec![up, down], unpause()),
        ("the status does not say so yet", aws().paused(), vec![down, down], Step::Pause),
        ("paused", aws().paused().scaled_down(), vec![down, down], Step::Rest),
        ("the end of the pause was cut off", aws().scaled_down(), vec![up, down], unpause()),
        ("the status still says paused", aws().scaled_down(), vec![up, up], unpause()),
        ("and it is paused again", aws().paused().scaled_down(), vec![up, down], Step::Pause),
        ("nothing can be scaled", aws().paused().scaled_down(), vec![], Step::Rest),
        ("nothing can be scaled, and it is paused", aws().paused(), vec![], Step::Pause),
        ("nothing could be scaled", aws().scaled_down(), vec![], unpause()),
        ("it is to be deleted", aws().paused().deleting(), vec![up, up], Step::Pause),
        (
            "it is to be deleted, and is paused",
            aws().paused().scaled_down().deleting(),
            vec![down],
            Step::Delete,
        ),
    ] {
        let mut snapshot = snapshot(&provider, &[ready_core()]);
        let name = ["one", "two"];
        let deployment =
            |(at, original)| named_deployment(name[at], "infrastructure-aws", "capa-system", true, original);
        snapshot.deployments = originals.into_iter().enumerate().map(deployment).collect();
        assert_eq!(decided(&snapshot).0, step, "{what}");
    }
    // What runs already is not held back by another contract: its status only has to say so.
    let mut begun = snapshot(
        &aws().scaled_down(),
        &[core().version("v1.11.0").installed("v1.11.0", "v1beta2").scaled_down()],
    );
    assert_eq!(decided(&begun).0, Step::Rest);
    begun.deployments = vec![deployment("infrastructure-aws", "capa-system", true)];
    assert_eq!(decided(&begun).0, unpause());
}

#[test]
fn nothing_runs_again_before_upgrades_have_ended() {
    let old = || aws().version("v2.1.0").installed("v2.1.0", "v1beta1").scaled_down();
    let core = || ready_core().scaled_down().paused();
    let waits = "Paused=True/WaitingForProvidersToBeUpgraded";
    // Core was upgraded, and its status does not say so yet.
    let mut unreported = snapshot(&old(), &[core()]);
    let entry = unreported.inventory.iter_mut().find(|it| it.kind == ProviderType::Core).unwrap();
    entry.version = "v1.11.0".to_owned();
    assert_eq!(decided(&unreported), (Step::Rest, vec![PASSED.to_owned(), waits.to_owned()]));
    let mut half = snapshot(&old(), &[core()]);
    half.inventory.iter_mut().find(|it| it.kind == ProviderType::Core).unwrap().upgrading_to =
        Some("v1.11.0".to_owned());
    assert_eq!(decided(&half).0, Step::Rest);
    assert!(message(&half, condition::PAUSED).contains("CoreProvider capi-system/cluster-api"));
}

#[test]
fn a_refusal_leaves_no_progress() {
    let under_way = |preflight: &str, upgraded: &str| {
        let all = aws()
            .installed("v1.0.0", "v1beta1")
            .condition(condition::PREFLIGHT, preflight, "R")
            .condition(condition::UPGRADED, "False", upgraded);
        let mut conditions = all.record().status.conditions.clone();
        forget_progress(&mut conditions);
        conditions.iter().any(|it| it.type_ == condition::UPGRADED)
    };
    assert!(under_way("True", reason::IN_PROGRESS));
    assert!(!under_way("False", reason::IN_PROGRESS));
    assert!(under_way("False", reason::COMPONENTS_UPGRADE), "what failed is not under way");
}

#[test]
fn an_upgrade_whose_end_was_not_reported_is_known() {
    let aws = |status: &str, reason: &str| {
        let it = aws().version("v2.2.0").installed("v2.1.0", "v1beta1").condition(
            condition::UPGRADED,
            status,
            reason,
        );
        ended_upgrade(&it.record(), "v2.2.0")
    };
    assert!(aws("False", reason::IN_PROGRESS));
    assert!(aws("False", reason::COMPONENTS_UPGRADE), "tried again");
    assert!(!aws("True", reason::UPGRADED));
    assert!(!ended_upgrade(&self::aws().version("v2.2.0").record(), "v2.2.0"), "never upgraded");
    assert!(
        !ended_upgrade(
            &self::aws()
                .version("v2.2.0")
                .installed("v2.1.0", "v1beta1")
                .condition(condition::UPGRADED, "False", "R")
                .record(),
            "v2.1.0"
        ),
        "another version"
    );
}

#[test]
fn what_is_used_is_not_deleted() {
    let aws = || aws().version("v2.1.0").installed("v2.1.0", "v1beta1");
    let blocked = vec!["DeletionBlocked=True/ProviderInUse".to_owned()];
    let core = || ready_core().deleting();
    let force = |value: &str| core().with("/metadata/annotations", json!({annotation::FORCE_DELETE: value}));
    for (what, provider, others, step, reports) in [
        ("a provider", aws().deleting(), vec![ready_core()], Step::Delete, vec![]),
        ("core with another provider", core(), vec![aws()], Step::Rest, blocked.clone()),
        (
            "core with a provider that is being deleted",
            core(),
            vec![aws().deleting()],
            Step::Rest,
            blocked.clone(),
        ),
        ("core alone", core(), vec![], Step::Delete, vec![]),
        ("core with another core", core(), vec![ready_core().within("b")], Step::Delete, vec![]),
        ("forced", force("true"), vec![aws()], Step::Delete, vec![]),
        ("not forced", force("yes"), vec![aws()], Step::Rest, blocked),
        (
            "a second object",
            aws().within("b").with("/status", json!({})).deleting(),
            vec![aws(), ready_core()],
            Step::Release,
            vec![],
        ),
        (
            "nothing of ours",
            aws().with("/metadata/finalizers", json!(["other"])).deleting(),
            vec![],
            Step::Rest,
            vec![],
        ),
        ("never installed", self::aws().deleting(), vec![], Step::Delete, vec![]),
    ] {
        assert_eq!(decided(&snapshot(&provider, &others)), (step, reports), "{what}");
    }
    // What is installed without an object needs core as well.
    let mut orphan = snapshot(&core(), &[aws()]);
    orphan.others.clear();
    assert_eq!(decided(&orphan).0, Step::Rest);
    assert!(message(&orphan, condition::DELETION_BLOCKED).contains("InfrastructureProvider capa-system/aws"));
}

#[test]
fn ready_says_the_first_thing_that_is_wrong() {
    let conditions = |list: &[(&str, &str)]| {
        let all: Vec<Value> = list.iter().map(|(type_, status)| condition(type_, status, 1)).collect();
        serde_json::from_value::<Vec<Condition>>(json!(all)).unwrap()
    };
    let installed = (condition::INSTALLED, "True");
    let all_well = snapshot(&aws(), &[]);
    let mut down = snapshot(&aws(), &[]);
    down.deployments = vec![deployment("infrastructure-aws", "capa-system", false)];
    let mut missing = snapshot(&aws(), &[]);
    missing.expected_deployments = Some(vec!["manager".to_owned(), "other".to_owned()]);
    let mut unknown = snapshot(&aws(), &[]);
    unknown.deployments.clear();
    let mut without_any = unknown.clone();
    without_any.expected_deployments = Some(Vec::new());
    for (what, snapshot, list, expected) in [
        ("all is well", &all_well, vec![installed], (ConditionStatus::True, "All Deployments are available")),
        ("not installed", &all_well, vec![], (ConditionStatus::False, "The provider is not installed yet")),
        (
            "a False condition",
            &all_well,
            vec![(condition::PREFLIGHT, "False"), installed],
            (ConditionStatus::False, "m"),
        ),
        ("paused", &all_well, vec![(condition::PAUSED, "True"), installed], (ConditionStatus::False, "m")),
        (
            "not available",
            &down,
            vec![installed],
            (ConditionStatus::False, "Deployment manager is not available"),
        ),
        (
            "none is known",
            &unknown,
            vec![installed],
            (ConditionStatus::False, "No Deployment of the provider exists"),
        ),
        (
            "it has none",
            &without_any,
            vec![installed],
            (ConditionStatus::True, "All Deployments are available"),
        ),
        ("missing", &missing, vec![installed], (ConditionStatus::False, "Deployment other does not exist")),
    ] {
        let report = ready(snapshot, &conditions(&list));
        assert_eq!((report.status, report.message.as_str()), expected, "{what}");
    }
}
