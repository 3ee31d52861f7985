use super::*;
use crate::dynamic::history::{Mark, testing::history};
use ContractVersion::{V1Beta1, V1Beta2};

const WAITED: Duration = Duration::from_secs(5);

fn ready(provisioned: bool) -> Value {
    json!({"status": {"initialization": {"provisioned": provisioned}}})
}

fn at(host: &str, port: u16, provisioned: bool) -> Value {
    let mut object = ready(provisioned);
    object["spec"] = json!({"controlPlaneEndpoint": {"host": host, "port": port}});
    object
}

/// What an outcome says, or its name where it says nothing.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed { seen, repair } => {
            assert!(!repair.is_empty());
            seen.clone()
        }
        Outcome::NotChecked { why } => format!("not checked: {why}"),
        Outcome::NotApplicable { why } => format!("not applicable: {why}"),
    }
}

#[track_caller]
fn says(outcome: &Outcome, expected: &str) {
    let words = words(outcome);
    assert!(words.contains(expected), "{words:?} does not say {expected:?}");
}

#[test]
fn provisioned_is_a_boolean_of_the_picked_contract() {
    for (contract, object, expected) in [
        (V1Beta2, ready(true), "passed"),
        (V1Beta2, ready(false), "did not become true within 5.0s; its status is"),
        (V1Beta2, json!({"status": {"initialization": {"provisioned": "true"}}}), "must be a boolean"),
        (V1Beta2, json!({"status": {"ready": true}}), "that is the field of contract v1beta1"),
        (V1Beta1, json!({"status": {"ready": true}}), "passed"),
        (V1Beta1, ready(true), "that is the field of contract v1beta2"),
        (V1Beta1, json!({"status": {"ready": 1}}), "must be a boolean"),
    ] {
        says(&provisioned(&history(&[json!({}), object], &[0]), contract, WAITED), expected);
    }
    says(&provisioned(&history(&[json!({})], &[0]), V1Beta2, WAITED), "wrote nothing at all");
}

#[test]
fn provisioned_is_never_taken_back() {
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for (states, expected) in [
        (vec![ready(false), ready(true), ready(true)], "passed"),
        (vec![ready(true), ready(false), ready(true)], "no longer true"),
        (vec![ready(true), json!({})], "no longer true"),
        (vec![ready(true), deleting], "passed"),
        (vec![ready(false)], "not checked"),
    ] {
        says(&steady(&history(&states, &[]), V1Beta2), expected);
    }
}

#[test]
fn the_endpoint_is_whole_in_time_and_stays() {
    for (states, waits, expected) in [
        (vec![at("h", 1, false), at("h", 1, true)], false, "passed"),
        (vec![at("h", 1, true)], true, "not applicable: the provider waits"),
        (vec![ready(true)], false, "not applicable: the provider makes no endpoint"),
        (vec![ready(true), at("h", 1, true)], false, "was true before spec.controlPlaneEndpoint was whole"),
        (vec![at("h", 0, true)], false, "has host \"h\" but no port"),
        (vec![at("", 1, true)], false, "has port 1 but no host"),
        (vec![at(&"h".repeat(513), 1, true)], false, "at most 512 characters"),
        (vec![at("h", 1, true), at("h", 2, true)], false, "was h:1 and became h:2"),
        (vec![at("h", 1, true), ready(true)], false, "was h:1 and became none"),
        (vec![at("h", 1, false)], false, "not checked"),
    ] {
        says(&endpoint_in_time(&history(&states, &[]), V1Beta2, waits), expected);
    }
    let text =
        json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": "1"}}, "status": {"ready": true}});
    says(&endpoint_in_time(&history(&[text], &[]), V1Beta1, false), "an integer between 1 and 65535");
}

#[test]
fn who_makes_no_endpoint_waits_for_one() {
    for (state, waits, given, expected) in [
        (ready(true), false, false, "neither it nor its Cluster has an endpoint"),
        (ready(true), true, false, "passed"),
        (at("h", 1, true), false, false, "not applicable: the provider makes the endpoint"),
        (at("h", 1, true), false, true, "not applicable: the manifest names the endpoint"),
        (ready(false), false, false, "not checked"),
    ] {
        says(&waited_for_endpoint(&history(&[state], &[]), V1Beta2, waits, given), expected);
    }
}

#[test]
fn the_finalizer_comes_first() {
    let held = |provisioned| {
        let mut object = ready(provisioned);
        object["metadata"] = json!({"finalizers": ["f"]});
        object
    };
    for (states, expected) in [
        (vec![held(false), held(true)], "passed"),
        (vec![ready(true), held(true)], "one came only after 1.0 s"),
        (vec![ready(true)], "none came later"),
        (vec![held(false)], "not checked"),
    ] {
        says(&finalizer_first(&history(&states, &[]), V1Beta2), expected);
    }
}

#[test]
fn a_pause_lets_only_its_condition_through() {
    let paused = json!({"status": {"conditions": [{"type": "Paused", "status": "True"}]}});
    let mut finalizer = paused.clone();
    finalizer["metadata"] = json!({"finalizers": ["f"]});
    let mut more = paused.clone();
    more["status"]["conditions"] = json!([{"type": "Paused"}, {"type": "Ready"}]);
    for (states, expected) in [
        (vec![json!({}), paused.clone()], "passed"),
        (vec![json!({}), json!({"status": {"observedGeneration": 1}})], "passed"),
        (vec![json!({}), finalizer], "metadata.finalizers = [\"f\"]"),
        (vec![json!({}), more], "status.conditions[Ready]"),
        (vec![json!({}), ready(true)], "status.initialization"),
    ] {
        says(&only_the_pause(&history(&states, &[0]), 0, "a test"), expected);
    }
}

#[test]
fn silence_is_no_write_of_anybody_else() {
    let states = [json!({}), json!({"spec": {"a": 1}}), ready(true)];
    says(&untouched(&history(&states, &[0, 1, 2]), 0, WAITED, "idle", "r"), "passed");
    says(&untouched(&history(&states, &[0]), 0, WAITED, "idle", "r"), "written twice while idle");
    says(&untouched(&history(&states, &[0]), 1, WAITED, "idle", "r"), "written once");
    // A write that changes nothing but the version is a write, too.
    says(
        &untouched(&history(&[json!({}), json!({})], &[0]), 0, WAITED, "idle", "r"),
        "nothing but its resourceVersion",
    );
}

#[test]
fn conditions_failures_and_domains_are_read_as_core_reads_them() {
    let status = |status: Value| vec![history(&[json!({ "status": status })], &[])];
    for (given, expected) in [
        (json!({}), "not applicable"),
        (json!({"conditions": [{"type": "Ready", "status": "True"}]}), "passed"),
        (json!({"conditions": [{"type": "Ready"}]}), "status.conditions[0].status"),
        (json!({"conditions": [{"type": "Ready", "status": "Maybe"}]}), "one of True, False, Unknown"),
        (json!({"conditions": [{"type": "A", "status": "True", "lastTransitionTime": "x"}]}), "a time like"),
    ] {
        says(&conditions_readable(&status(given)), expected);
    }
    for (given, expected) in [
        (json!({}), "not applicable"),
        (json!({"failureReason": "A", "failureMessage": "b"}), "passed"),
        (json!({"failureMessage": {"a": 1}}), "status.failureMessage must be a string"),
    ] {
        says(&failures_are_text(&status(given)), expected);
    }
    for (contract, domains, expected) in [
        (V1Beta2, json!(null), "not applicable"),
        (V1Beta2, json!([{"name": "a"}]), "passed"),
        (V1Beta2, json!({"a": {}}), "must be a list"),
        (V1Beta2, json!([{"name": "a"}, {"name": "a"}]), "unique names"),
        (V1Beta1, json!({"a": {"controlPlane": true}}), "passed"),
        (V1Beta1, json!([{"name": "a"}]), "must be a map"),
    ] {
        says(&failure_domains(&status(json!({ "failureDomains": domains })), contract), expected);
    }
}

#[test]
fn ready_is_there_from_the_first_report_on() {
    let with = |types: &[&str], provisioned: Option<bool>| {
        let conditions: Vec<_> = types.iter().map(|it| json!({"type": it, "status": "True"})).collect();
        let mut object = json!({"status": {"conditions": conditions}});
        if let Some(provisioned) = provisioned {
            object["status"]["initialization"] = json!({"provisioned": provisioned});
        }
        object
    };
    let mut deleting = with(&[], Some(true));
    deleting["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    for (states, expected) in [
        (vec![json!({}), with(&["Ready"], Some(true))], "passed"),
        // Whether it is paused may be said before anything else.
        (vec![with(&["Paused"], None), with(&["Paused", "Ready"], Some(true))], "passed"),
        (vec![with(&["Paused"], Some(false)), with(&["Ready"], Some(true))], "has no condition Ready after"),
        (vec![with(&["Ready"], Some(true)), deleting], "has no condition Ready during deletion"),
        (vec![json!({})], "not checked"),
    ] {
        says(&always_ready_condition(&history(&states, &[0])), expected);
    }
}

#[test]
fn owner_and_label_stay_from_adoption_to_release() {
    let owned = json!({"metadata": {
        "ownerReferences": [{"uid": "u"}], "labels": {"cluster.x-k8s.io/cluster-name": "c"},
    }});
    let mut unlabelled = owned.clone();
    unlabelled["metadata"]["labels"] = json!({});
    let judged = |states: &[Value], marks: &[(&str, Mark)]| {
        let mut history = history(states, &[0]);
        history.marks = marks.iter().map(|(version, mark)| ((*version).to_owned(), mark.clone())).collect();
        ownership_kept(&[history])
    };
    let adopted = ("1", Mark::Adopted { uid: "u".to_owned() });
    says(&judged(&[json!({}), owned.clone(), owned.clone()], std::slice::from_ref(&adopted)), "passed");
    says(&judged(&[json!({}), owned.clone(), json!({})], std::slice::from_ref(&adopted)), "owner reference");
    says(&judged(&[json!({}), owned.clone(), unlabelled], std::slice::from_ref(&adopted)), "the label");
    says(&judged(&[json!({}), owned, json!({})], &[adopted, ("2", Mark::Released)]), "passed");
    says(&judged(&[json!({})], &[]), "not checked");
}

#[test]
fn what_was_provisioned_is_so_again_at_the_same_place() {
    let expected = ApiEndpoint { host: "h".to_owned(), port: 1 };
    let wiped = json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}});
    for (last, words) in [
        (at("h", 1, true), "passed"),
        (at("h", 1, false), "is not true again within 5s after its status was emptied"),
        (at("h", 2, true), "was h:1 before its status was emptied and is h:2 since"),
    ] {
        let history = history(&[at("h", 1, true), wiped.clone(), last], &[1]);
        says(
            &provisioned_again(&history, 1, Some(&expected), V1Beta2, "its status was emptied", WAITED),
            words,
        );
    }
}

#[test]
fn a_restart_loses_nothing() {
    let expected = ApiEndpoint { host: "h".to_owned(), port: 1 };
    let mut held = at("h", 1, true);
    held["metadata"] = json!({"finalizers": ["f"]});
    for (last, words) in [
        (held.clone(), "passed"),
        (ready(false), "lost status.initialization.provisioned"),
        (at("h", 1, true), "lost its finalizer"),
        (
            json!({
                "metadata": {"finalizers": ["f"]}, "spec": {"controlPlaneEndpoint": {"host": "h", "port": 2}},
                "status": {"initialization": {"provisioned": true}},
            }),
            "became h:2 after the restart",
        ),
    ] {
        let history = history(&[held.clone(), last], &[]);
        says(&nothing_lost(&history, 0, Some(&expected), V1Beta2, "the restart"), words);
    }
}

#[test]
fn a_pause_is_shown_and_ends() {
    for (during, afterwards, expected) in [
        (Some("True"), Some("False"), "passed"),
        (Some("True"), None, "passed"),
        (Some("True"), Some("True"), "still has the condition Paused"),
        (Some("False"), None, "its condition Paused is False"),
        (None, None, "has no condition Paused"),
    ] {
        says(&pause_shown("c", during, afterwards, "a test"), expected);
    }
}
