//! Whether a provider object is as it was asked to be, by what the operator says about it.

use capstan_api::{
    conditions::{Condition, ConditionStatus},
    operator::{condition, reason},
};
use capstan_repository::Version;

use super::ProviderObject;

/// Reasons that pass only when the object, a role or a release is changed.
const FINAL: [&str; 10] = [
    reason::INVALID_SPEC,
    reason::INCORRECT_NAME,
    reason::INCORRECT_VERSION_FORMAT,
    reason::UNSUPPORTED_DOWNGRADE,
    reason::FETCH_CONFIG_INVALID,
    reason::MORE_THAN_ONE_EXISTS,
    reason::CONTRACT_MISMATCH,
    reason::DEBUG_LOCKED,
    reason::COMPONENTS_CUSTOMIZATION,
    reason::FORBIDDEN,
];
/// The conditions that say what keeps a version from being installed, in the order in which they come about.
const STEPS: [&str; 3] = [condition::PREFLIGHT, condition::INSTALLED, condition::UPGRADED];

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is as it should be.
    Done,
    /// Not yet, for this reason.
    Waiting(String),
    /// It will not be before somebody changes something.
    Stuck(String),
}

/// Whether a version is installed.
pub(crate) fn at_version(object: &ProviderObject, version: &str) -> Look {
    if object.is_deleting {
        return Look::Stuck("it is being deleted".to_owned());
    }
    let is_installed = object.installed_version.as_deref().is_some_and(|it| is_same(it, version));
    let is_fine = STEPS.iter().all(|it| !object.has(it, ConditionStatus::False))
        && object.has(condition::INSTALLED, ConditionStatus::True);
    if is_seen(object) && is_installed && is_fine {
        return Look::Done;
    }
    complaint(object).unwrap_or_else(|| {
        Look::Waiting(match (is_seen(object), &object.installed_version) {
            (false, _) => unseen(),
            (true, None) => "it is being installed".to_owned(),
            (true, Some(installed)) => format!("{installed} is installed"),
        })
    })
}

/// Whether the provider runs.
pub(crate) fn ready(object: &ProviderObject) -> Look {
    if object.is_deleting {
        return Look::Stuck("it is being deleted".to_owned());
    }
    if is_seen(object) && object.has(condition::READY, ConditionStatus::True) {
        return Look::Done;
    }
    complaint(object).unwrap_or_else(|| {
        let ready = object.condition(condition::READY).filter(|it| is_current(it, object));
        Look::Waiting(match ready.filter(|_| is_seen(object)) {
            Some(condition) => words(condition),
            None if is_seen(object) => "it is being installed".to_owned(),
            None => unseen(),
        })
    })
}

/// Whether the operator has paused or unpaused the provider.
pub(crate) fn paused(object: &ProviderObject, is_wanted: bool) -> Look {
    let found = object.condition(condition::PAUSED).filter(|it| is_current(it, object));
    let is_paused = found.is_some_and(|it| it.status == ConditionStatus::True);
    if is_seen(object) && is_paused == is_wanted {
        return Look::Done;
    }
    Look::Waiting(match found {
        Some(condition) if is_seen(object) && !condition.message.is_empty() => words(condition),
        _ if is_seen(object) => "its Deployments are being scaled".to_owned(),
        _ => unseen(),
    })
}

/// What keeps the provider from being deleted, if the operator says so.
pub(crate) fn deletion_blocked(object: &ProviderObject) -> Option<String> {
    let found = object.condition(condition::DELETION_BLOCKED)?;
    (object.is_deleting && found.status == ConditionStatus::True).then(|| words(found))
}

/// Whether two texts are the same version.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    match (Version::parse(one), Version::parse(other)) {
        (Ok(first), Ok(second)) => first.is_same_release(&second),
        _ => one == other,
    }
}

/// Whether the operator has looked at the object as it is now.
fn is_seen(object: &ProviderObject) -> bool {
    let conditions = object.conditions.iter().filter_map(|it| it.observed_generation);
    object.observed_generation.into_iter().chain(conditions).any(|it| it >= object.generation)
}

/// Whether a condition is about the object as it is now.
fn is_current(condition: &Condition, object: &ProviderObject) -> bool {
    condition.observed_generation.is_none_or(|it| it >= object.generation)
}

fn complaint(object: &ProviderObject) -> Option<Look> {
    let said = STEPS.iter().filter_map(|it| object.condition(it));
    let mut said = said.filter(|it| it.status == ConditionStatus::False && is_current(it, object));
    let found = said.next().filter(|_| is_seen(object))?;
    Some(if FINAL.contains(&found.reason.as_str()) {
        Look::Stuck(words(found))
    } else {
        Look::Waiting(words(found))
    })
}

fn words(condition: &Condition) -> String {
    if condition.message.is_empty() {
        format!("{} is {:?}: {}", condition.type_, condition.status, condition.reason)
    } else {
        format!("{}: {}", condition.reason, condition.message)
    }
}

fn unseen() -> String {
    "the operator has not acted on it yet".to_owned()
}

#[cfg(test)]
mod tests {
    use capstan_api::provider::ProviderType;
    use serde_json::{Value, json};

    use super::{super::state::tests::object, *};

    fn condition(kind: &str, status: &str, reason: &str, message: &str, generation: i64) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// An object of generation 2 whose status was last written at a generation.
    fn with(installed: Option<&str>, seen: i64, conditions: &[Value]) -> ProviderObject {
        let status =
            json!({"installedVersion": installed, "observedGeneration": seen, "conditions": conditions});
        object(ProviderType::Infrastructure, "acme", json!({"version": "v1.1.0"}), status)
    }

    #[test]
    fn a_version_is_there_once_the_operator_says_so_about_this_generation() {
        let installed =
            |generation| condition("ProviderInstalled", "True", "ProviderInstalled", "", generation);
        let failed =
            |kind: &str, reason: &str, generation| condition(kind, "False", reason, "why", generation);
        let waiting = |text: &str| Look::Waiting(text.to_owned());
        let stuck = |text: &str| Look::Stuck(text.to_owned());
        let unseen = "the operator has not acted on it yet";
        for (found, expected) in [
            (with(Some("v1.1.0"), 2, &[installed(2)]), Look::Done),
            (with(Some("1.1.0"), 2, &[installed(2)]), Look::Done),
            (with(Some("v1.1.0"), 1, &[installed(1)]), waiting(unseen)),
            (with(None, 0, &[]), waiting(unseen)),
            (with(None, 2, &[]), waiting("it is being installed")),
            (with(Some("v1.0.0"), 2, &[installed(2)]), waiting("v1.0.0 is installed")),
            (with(Some("v1.1.0"), 2, &[]), waiting("v1.1.0 is installed")),
            (
                with(
                    Some("v1.0.0"),
                    2,
                    &[installed(2), failed("ProviderUpgraded", "ComponentsUpgradeError", 2)],
                ),
                waiting("ComponentsUpgradeError: why"),
            ),
            // What was said about an older generation may have passed.
            (with(Some("v1.0.0"), 1, &[failed("ProviderInstalled", "InstallFailed", 1)]), waiting(unseen)),
            (
                with(
                    Some("v1.0.0"),
                    2,
                    &[failed("PreflightCheckPassed", "UnsupportedProviderDowngradeReason", 2)],
                ),
                stuck("UnsupportedProviderDowngradeReason: why"),
            ),
            (with(None, 2, &[failed("PreflightCheckPassed", "InvalidSpec", 2)]), stuck("InvalidSpec: why")),
            (
                with(None, 2, &[failed("PreflightCheckPassed", "IncorrectProviderName", 2)]),
                stuck("IncorrectProviderName: why"),
            ),
            (
                with(None, 2, &[failed("PreflightCheckPassed", "WaitingForCoreProviderReady", 2)]),
                waiting("WaitingForCoreProviderReady: why"),
            ),
        ] {
            assert_eq!(at_version(&found, "v1.1.0"), expected, "{:?}", found.conditions);
        }
        let deleting = ProviderObject { is_deleting: true, ..with(Some("v1.1.0"), 2, &[installed(2)]) };
        assert_eq!(at_version(&deleting, "v1.1.0"), stuck("it is being deleted"));
        assert_eq!(ready(&deleting), stuck("it is being deleted"));
    }

    #[test]
    fn a_provider_runs_when_it_is_ready() {
        let ready_is = |status: &str, message: &str| condition("Ready", status, "Because", message, 2);
        let missing = condition("ProviderInstalled", "False", "ComponentsFetchError", "no AWS_REGION", 2);
        let waiting = |text: &str| Look::Waiting(text.to_owned());
        for (found, expected) in [
            (with(None, 2, &[ready_is("True", "")]), Look::Done),
            (with(None, 1, &[ready_is("True", "")]), Look::Done),
            (with(None, 2, &[ready_is("False", "Deployment x")]), waiting("Because: Deployment x")),
            (with(None, 2, &[ready_is("False", "")]), waiting("Ready is False: Because")),
            (with(None, 2, &[]), waiting("it is being installed")),
            (
                with(None, 2, &[ready_is("False", "x"), missing]),
                waiting("ComponentsFetchError: no AWS_REGION"),
            ),
        ] {
            assert_eq!(ready(&found), expected, "{:?}", found.conditions);
        }
    }

    #[test]
    fn a_pause_is_over_when_the_condition_says_so() {
        let is = |status: &str, generation| condition("Paused", status, "Paused", "waits for x", generation);
        let waiting = |text: &str| Look::Waiting(text.to_owned());
        for (found, on, off) in [
            (with(None, 2, &[is("True", 2)]), Look::Done, waiting("Paused: waits for x")),
            (with(None, 2, &[is("False", 2)]), waiting("Paused: waits for x"), Look::Done),
            // Without the condition it is not paused.
            (with(None, 2, &[]), waiting("its Deployments are being scaled"), Look::Done),
            (
                with(None, 1, &[is("True", 1)]),
                waiting("the operator has not acted on it yet"),
                waiting("the operator has not acted on it yet"),
            ),
        ] {
            assert_eq!((paused(&found, true), paused(&found, false)), (on, off), "{:?}", found.conditions);
        }
    }

    #[test]
    fn a_blocked_deletion_says_by_what() {
        let blocked = |status: &str| condition("DeletionBlocked", status, "ProviderInUse", "Cluster a/b", 1);
        let deleting = |found| ProviderObject { is_deleting: true, ..found };
        assert_eq!(deletion_blocked(&with(None, 2, &[blocked("True")])), None, "not asked for");
        let found = deleting(with(None, 2, &[blocked("True")]));
        assert_eq!(deletion_blocked(&found).as_deref(), Some("ProviderInUse: Cluster a/b"));
        assert_eq!(deletion_blocked(&deleting(with(None, 2, &[blocked("False")]))), None);
    }
}
