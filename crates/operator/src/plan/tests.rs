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
        let installed = condition(condition::INSTALLED, "True", 1);
        self.with(
            "/status",
            json!({"installedVersion": version, "contract": contract, "conditions": [installed]}),
        )
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
    let status = if is_available { "True" } else { "False" };
    let value = json!({
        "metadata": {"name": "manager", "namespace": namespace, "labels": {"cluster.x-k8s.io/provider": provider}},
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
    let deployments = vec![
        deployment("cluster-api", "capi-system", true),
        deployment("infrastructure-aws", "capa-system", true),
    ];
    let is_scaled_down = provider.is_scaled_down();
    Snapshot {
        provider,
        others,
        inventory,
        deployments,
        expected_deployments: None,
        is_scaled_down,
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
        ("pausing", aws().paused(), Step::Pause, vec![PASSED]),
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
    overtaken.is_scaled_down = true;
    assert_eq!(
        decided(&overtaken).0,
        Step::Unpause { version: version() },
        "unpaused before the status said paused"
    );
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
        ("missing", &missing, vec![installed], (ConditionStatus::False, "Deployment other does not exist")),
    ] {
        let report = ready(snapshot, &conditions(&list));
        assert_eq!((report.status, report.message.as_str()), expected, "{what}");
    }
}
