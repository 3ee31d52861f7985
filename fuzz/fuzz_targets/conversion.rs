//! A Cluster that its clients can read survives the way to the other version and back, whatever else is in it, and
//! clients of the other version can read it on the way. All others are converted or refused in words.

#![no_main]

use capstan_api::{
    cluster::{
        conversion::{CONVERSION_DATA, V1BETA1_DATA, to_v1beta1, to_v1beta2},
        v1beta1, v1beta2,
    },
    convert::{self, Converted},
};
use capstan_fuzz::{
    json,
    schema::{CLUSTER, fits, grow},
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Value, json};

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    json::mutate(data, size, max_size, seed, &CLUSTER.names, |value, rng| grow(value, CLUSTER.of(value), rng))
});

fuzz_target!(|text: &str| {
    let Ok(object) = serde_json::from_str::<Value>(text) else { return };
    check_file(&object);
    let there = match converted(&object) {
        Ok(there) => there,
        Err(words) => return assert!(!words.is_empty()),
    };
    if !is_readable(&object) {
        return;
    }
    assert!(is_readable(&there), "no client can read {there}");
    let back = converted(&there).unwrap_or_else(|error| panic!("{there} cannot come back: {error}"));
    assert!(is_readable(&back), "no client can read {back}");
    let again = converted(&back).and_then(|there| converted(&there)).expect("it went there and back before");
    assert_eq!(again, back, "the second round trip changed {back}");
    // A value that a client wrote into our annotations counts as an edit.
    if !is_annotated(&object) {
        assert_eq!(normalised(back), normalised(object), "by way of {there}");
    }
});

/// The object in the other version.
fn converted(object: &Value) -> Result<Value, String> {
    let result = match object["apiVersion"].as_str() {
        Some(OLD) => to_v1beta2(object.clone()),
        _ => to_v1beta1(object.clone(), &|_: &str, _: &str| None),
    };
    result.map_err(|error| error.to_string())
}

/// Whether clients that know the version can decode the object, as far as they look at it.
fn is_readable(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object();
    let is_plain = (metadata.is_null() || metadata.is_object())
        && metadata.get("annotations").is_none_or(Value::is_object)
        && annotations.into_iter().flatten().all(|(_, value)| value.is_string());
    let mut body = object.clone();
    body["metadata"] = json!({});
    if body["spec"].is_null() {
        body["spec"] = json!({});
    }
    let is_decoded = match object["apiVersion"].as_str() {
        Some(OLD) => serde_json::from_value::<v1beta1::Cluster>(body.clone()).is_ok(),
        Some(NEW) => serde_json::from_value::<v1beta2::Cluster>(body.clone()).is_ok(),
        _ => false,
    };
    is_plain
        && is_decoded
        && fits(&body, CLUSTER.of(object))
        && strays_fit(&body, CLUSTER.of(object), CLUSTER.other(object))
        && !has_impossible_group(&body)
        && object.get("spec") != Some(&Value::Null)
}

/// Whether fields that only the other version knows are as it knows them. The API server removes what the version of
/// a request does not know before it asks for a conversion.
fn strays_fit(value: &Value, own: &Value, other: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(name, member)| {
            let theirs = &other["properties"][name];
            match own["properties"].get(name) {
                Some(own) => strays_fit(member, own, theirs),
                None => !theirs.is_object() || fits(member, theirs),
            }
        }),
        Value::Array(items) => items.iter().all(|item| strays_fit(item, &own["items"], &other["items"])),
        _ => true,
    }
}

/// Whether a reference names a group with a slash. The schema of v1beta2 lets none be stored, and v1beta1 cannot write
/// it: its group ends at the slash.
fn has_impossible_group(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get("apiGroup").and_then(Value::as_str).is_some_and(|group| group.contains('/'))
                || members.values().any(has_impossible_group)
        }
        Value::Array(items) => items.iter().any(has_impossible_group),
        _ => false,
    }
}

fn is_annotated(object: &Value) -> bool {
    [CONVERSION_DATA, V1BETA1_DATA].iter().any(|name| object["metadata"]["annotations"].get(name).is_some())
}

/// The object without what a conversion may add: its own annotations, metadata where there was none, and the fields
/// that v1beta1 always shows.
fn normalised(mut object: Value) -> Value {
    let metadata = json::members(&mut object["metadata"]);
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(CONVERSION_DATA);
        annotations.remove(V1BETA1_DATA);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if object["apiVersion"] == OLD {
        if let Some(spec) = object["spec"].as_object_mut() {
            let endpoint = json::members(spec.entry("controlPlaneEndpoint").or_insert(Value::Null));
            endpoint.entry("host").or_insert(json!(""));
            endpoint.entry("port").or_insert(json!(0));
        }
        if let Some(status) = object["status"].as_object_mut() {
            for flag in ["infrastructureReady", "controlPlaneReady"] {
                status.entry(flag).or_insert(json!(false));
            }
        }
    }
    // Reading what is absent by its index adds it.
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, value| !value.is_null() || !["spec", "status"].contains(&name.as_str()));
    }
    object
}

/// Converting a file twice is converting it once.
fn check_file(object: &Value) {
    match convert::to_v1beta2(object.clone()) {
        Ok(Converted::Changed { object: once, .. }) => {
            assert_eq!(convert::to_v1beta2(once.clone()), Ok(Converted::Unchanged(once)));
        }
        Ok(Converted::Unchanged(same)) => assert_eq!(&same, object),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
