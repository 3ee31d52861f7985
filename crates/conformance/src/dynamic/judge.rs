//! Judgements over histories. Pure: no server, no clock.

mod endpoint;

use std::time::Duration;

use capstan_api::{
    cluster::v1beta2::ApiEndpoint,
    conditions,
    contract::{ContractVersion, InfraCluster},
    names::label,
};
use serde_json::{Value, json};

pub(crate) use endpoint::{EndpointStory, endpoint_in_time, endpoint_story, waited_for_endpoint};
use endpoint::{other_endpoint, text};

use super::history::{History, State, condition, difference, finalizers, is_deleting, is_provisioned};
use crate::report::Outcome;

/// The rule is broken.
pub(crate) fn failed(seen: impl Into<String>, repair: impl Into<String>) -> Outcome {
    Outcome::Failed { seen: seen.into(), repair: repair.into() }
}

/// The rule could not be checked.
pub(crate) fn not_checked(why: impl Into<String>) -> Outcome {
    Outcome::NotChecked { why: why.into() }
}

/// The rule does not bind this provider.
pub(crate) fn not_applicable(why: impl Into<String>) -> Outcome {
    Outcome::NotApplicable { why: why.into() }
}

/// Only the fake core wrote after a state, for a time.
pub(crate) fn untouched(
    history: &History,
    from: usize,
    watched: Duration,
    when: &str,
    repair: &str,
) -> Outcome {
    let changes = history.changes(from);
    match changes.first() {
        None => Outcome::Passed,
        Some(first) => failed(
            format!(
                "{} was written {} while {when} (watched for {watched:?}): {}",
                history.name,
                times(changes.len()),
                first.describe()
            ),
            repair,
        ),
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

/// While paused only the Paused condition changes.
pub(crate) fn only_the_pause(history: &History, from: usize, how: &str) -> Outcome {
    let allowed = |path: &String| path.ends_with("conditions[Paused]") || path == "status.observedGeneration";
    let change = history.changes(from).into_iter().find(|change| !change.paths.iter().all(allowed));
    match change {
        None => Outcome::Passed,
        Some(change) => failed(
            format!("{} was written while paused by {how}: {}", history.name, change.describe()),
            "look at Cluster spec.paused and at the annotation cluster.x-k8s.io/paused before anything else, \
             deletion included, and return after setting the condition Paused",
        ),
    }
}

/// What the provisioned field came to.
pub(crate) fn provisioned(history: &History, contract: ContractVersion, waited: Duration) -> Outcome {
    if history.provisioned_at(contract).is_some() {
        return Outcome::Passed;
    }
    let path = InfraCluster::provisioned_path(contract);
    let repair = format!("set {path} to true (a boolean) once the infrastructure exists");
    let error = history
        .states
        .iter()
        .find_map(|state| InfraCluster::new(&state.object, contract).provisioned().err());
    if let Some(error) = error {
        return failed(format!("{}: {error}", history.name), repair);
    }
    let other = match contract {
        ContractVersion::V1Beta1 => ContractVersion::V1Beta2,
        ContractVersion::V1Beta2 => ContractVersion::V1Beta1,
    };
    let why = if history.provisioned_at(other).is_some() {
        let field = InfraCluster::provisioned_path(other);
        format!(
            "{field} is true, but that is the field of contract {other}, and the CRD's labels say {contract}"
        )
    } else if history.changes(0).is_empty() {
        "the provider wrote nothing at all: does it run, and does it watch this namespace?".to_owned()
    } else {
        format!("its status is {}", history.current().map_or_else(|| "gone".to_owned(), status_text))
    };
    let seen = format!("{}: {path} did not become true within {waited:.1?}; {why}", history.name);
    failed(seen, repair)
}

fn status_text(object: &Value) -> String {
    object.get("status").map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// Once provisioned, it stays so until deletion.
pub(crate) fn steady(history: &History, contract: ContractVersion) -> Outcome {
    let Some(first) = history.provisioned_at(contract) else {
        return not_checked("the InfraCluster was never provisioned");
    };
    let path = InfraCluster::provisioned_path(contract);
    let lost = history.states[first..]
        .iter()
        .find(|state| !state.gone && !is_deleting(&state.object) && !is_provisioned(&state.object, contract));
    match lost {
        None => Outcome::Passed,
        Some(state) => failed(
            format!(
                "{}: {path} was true after {:.1} s and no longer true after {:.1} s, although nothing changed",
                history.name,
                history.states[first].at.as_secs_f64(),
                state.at.as_secs_f64()
            ),
            format!("never take {path} back; report what is wrong in the condition Ready"),
        ),
    }
}

/// A finalizer is there when provisioned is reported.
pub(crate) fn finalizer_first(history: &History, contract: ContractVersion) -> Outcome {
    let Some(first) = history.provisioned_at(contract) else {
        return not_checked("the InfraCluster was never provisioned");
    };
    if !finalizers(&history.states[first].object).is_empty() {
        return Outcome::Passed;
    }
    let later = history.states[first..].iter().find(|state| !finalizers(&state.object).is_empty());
    let when = later.map_or_else(
        || "and none came later".to_owned(),
        |state| format!("and one came only after {:.1} s", state.at.as_secs_f64()),
    );
    failed(
        format!("{} had no finalizer when it was reported as provisioned, {when}", history.name),
        "add the provider's finalizer before anything is created outside of the API server",
    )
}

/// Every condition can be read.
pub(crate) fn conditions_readable(histories: &[History]) -> Outcome {
    let errors = each_state(histories).find_map(|(name, state)| {
        let error = conditions::read_from(name, &state.object).err()?;
        Some(error.to_string())
    });
    let any = || {
        each_state(histories).any(|(_, state)| {
            ["/status/conditions", "/status/v1beta2/conditions"]
                .iter()
                .any(|pointer| state.object.pointer(pointer).is_some())
        })
    };
    match errors {
        Some(seen) => failed(
            seen,
            "give every condition a type, a status of True, False or Unknown, and a lastTransitionTime in RFC 3339",
        ),
        None if any() => Outcome::Passed,
        None => not_applicable("the provider reports no conditions"),
    }
}

/// What is said of terminal failures are strings.
pub(crate) fn failures_are_text(histories: &[History]) -> Outcome {
    let mut any = false;
    for (name, state) in each_state(histories) {
        for field in ["failureReason", "failureMessage"] {
            match state.object.get("status").and_then(|status| status.get(field)) {
                None | Some(Value::Null) => {}
                Some(Value::String(_)) => any = true,
                Some(other) => {
                    let seen = format!("{name}: status.{field} must be a string, but is {other}");
                    return failed(seen, format!("write status.{field} as a string, or leave it out"));
                }
            }
        }
    }
    if any {
        Outcome::Passed
    } else {
        not_applicable("the provider reported no terminal failure in this run")
    }
}

/// Failure domains have the shape of the contract.
pub(crate) fn failure_domains(histories: &[History], contract: ContractVersion) -> Outcome {
    let mut any = false;
    for (name, state) in each_state(histories) {
        match InfraCluster::new(&state.object, contract).failure_domains() {
            Err(error) => {
                return failed(
                    format!("{name}: {error}"),
                    match contract {
                        ContractVersion::V1Beta1 => "write a map from name to {controlPlane, attributes}",
                        ContractVersion::V1Beta2 => {
                            "write a list of {name, controlPlane, attributes} with unique names"
                        }
                    },
                );
            }
            Ok(domains) => any |= !domains.is_empty(),
        }
    }
    if any { Outcome::Passed } else { not_applicable("the provider reported no failure domains in this run") }
}

fn each_state(histories: &[History]) -> impl Iterator<Item = (&str, &State)> {
    histories
        .iter()
        .flat_map(|history| history.states.iter().map(move |state| (history.name.as_str(), state)))
}

/// The Ready condition is there from the first status on.
pub(crate) fn always_ready_condition(history: &History) -> Outcome {
    // A status that holds nothing but the Paused condition is the answer to "are we paused?", not yet a report.
    let speaks = |state: &State| {
        let status = state.object.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        difference(&json!({"status": {}}), &json!({ "status": status }))
            .iter()
            .any(|path| !path.ends_with("conditions[Paused]") && path != "status.observedGeneration")
    };
    let Some(first) = history.states.iter().position(speaks) else {
        return not_checked("the provider never wrote a status");
    };
    match history.states[first..].iter().find(|state| condition(&state.object, "Ready").is_none()) {
        None => Outcome::Passed,
        Some(state) => {
            let when = if is_deleting(&state.object) { " during deletion" } else { "" };
            let status = status_text(&state.object);
            failed(
                format!(
                    "{} has no condition Ready{when} after {:.1} s; its status is {status}",
                    history.name,
                    state.at.as_secs_f64()
                ),
                "set the condition Ready with the first status, False with the reason while provisioning and deleting",
            )
        }
    }
}

/// Core's owner reference and label are there from adoption on.
pub(crate) fn ownership_kept(histories: &[History]) -> Outcome {
    let mut any = false;
    for history in histories {
        let Some((uid, states)) = history.adopted() else { continue };
        for state in states.iter().filter(|state| !state.gone) {
            any = true;
            let metadata = &state.object["metadata"];
            let owners = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
            let owned = owners.iter().any(|owner| owner["uid"].as_str() == Some(uid));
            let labelled = metadata["labels"][label::CLUSTER_NAME].as_str() == Some(history.name.as_str());
            let lost = match (owned, labelled) {
                (true, true) => continue,
                (false, _) => "the owner reference to its Cluster",
                (true, false) => "the label cluster.x-k8s.io/cluster-name",
            };
            return failed(
                format!("{}: {lost} was lost after {:.1} s", history.name, state.at.as_secs_f64()),
                "patch only the fields that the provider owns; never write back owner references and labels",
            );
        }
    }
    if any { Outcome::Passed } else { not_checked("no InfraCluster could be given to a Cluster") }
}

/// Provisioned is reported again from a state on, with the endpoint from before.
pub(crate) fn provisioned_again(
    history: &History,
    from: usize,
    expected: Option<&ApiEndpoint>,
    contract: ContractVersion,
    after: &str,
    waited: Duration,
) -> Outcome {
    let repair = "work out what is provisioned from the infrastructure and from spec, never from status alone \
                  or from memory, and keep spec.controlPlaneEndpoint";
    let path = InfraCluster::provisioned_path(contract);
    let since = history.states.get(from..).unwrap_or_default();
    if !since.iter().any(|state| is_provisioned(&state.object, contract)) {
        let seen = format!("{}: {path} is not true again within {waited:?} after {after}", history.name);
        return failed(seen, repair);
    }
    match expected.and_then(|expected| Some((expected, other_endpoint(history, from, expected, contract)?))) {
        None => Outcome::Passed,
        Some((expected, other)) => failed(
            format!(
                "{}: spec.controlPlaneEndpoint was {} before {after} and is {other} since",
                history.name,
                text(expected)
            ),
            repair,
        ),
    }
}

/// Provisioned, endpoint and finalizers were there all the time.
pub(crate) fn nothing_lost(
    history: &History,
    from: usize,
    expected: Option<&ApiEndpoint>,
    contract: ContractVersion,
    after: &str,
) -> Outcome {
    let repair = "derive the state from the infrastructure and from the object, not from memory";
    let states = history.states.get(from..).unwrap_or_default();
    for state in states.iter().filter(|state| !is_deleting(&state.object)) {
        let lost = if !is_provisioned(&state.object, contract) {
            InfraCluster::provisioned_path(contract)
        } else if finalizers(&state.object).is_empty() && !finalizers(&states[0].object).is_empty() {
            "its finalizer"
        } else {
            continue;
        };
        let seen = format!(
            "{} lost {lost} {:.1} s into the run, after {after}",
            history.name,
            state.at.as_secs_f64()
        );
        return failed(seen, repair);
    }
    match expected.and_then(|expected| other_endpoint(history, from, expected, contract)) {
        None => Outcome::Passed,
        Some(other) => failed(
            format!("{}: spec.controlPlaneEndpoint became {other} after {after}", history.name),
            repair,
        ),
    }
}

/// The Paused condition was True when the pause was watched, and is not True afterwards.
pub(crate) fn pause_shown(name: &str, during: Option<&str>, afterwards: Option<&str>, how: &str) -> Outcome {
    let repair = "set the condition Paused to True with every pause and to False when it is over";
    match (during, afterwards) {
        (Some("True"), Some("True")) => {
            failed(format!("{name} still has the condition Paused with status True after the pause"), repair)
        }
        (Some("True"), _) => Outcome::Passed,
        (Some(other), _) => {
            failed(format!("{name} is paused by {how}, but its condition Paused is {other}"), repair)
        }
        (None, _) => failed(format!("{name} is paused by {how}, but has no condition Paused"), repair),
    }
}

#[cfg(test)]
mod tests;
