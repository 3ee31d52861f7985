//! Whatever the objects, there is a verdict of bounded length; what is stored can be stored again, finalizers can be
//! removed, and what is filled in is filled in once.
//!
//! The input is a list of the new and of the old object; without the old one, the new one is created.

#![no_main]

use capstan_api::{
    admission::{Verdict, invalid_message},
    cluster::admission::{default, validate},
};
use capstan_fuzz::{
    json,
    schema::{CLUSTER, grow},
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Value, json};

/// No message may be longer than this, whatever it is about.
const LONGEST_MESSAGE: usize = 32 << 10;
/// Nor may one warning or violation.
const LONGEST_SENTENCE: usize = 4 << 10;
const MOST_WARNINGS: usize = 8;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    json::mutate(data, size, max_size, seed, &CLUSTER.names, |value, rng| {
        let Value::Array(objects) = value else { return };
        match (objects.as_mut_slice(), rng.u8(..8)) {
            // An update is a small change of something.
            ([new, .., old], 0) => *old = new.clone(),
            ([only], 0) => {
                let old = only.clone();
                objects.push(old);
            }
            (objects, _) if !objects.is_empty() => {
                let at = rng.usize(..objects.len());
                grow(&mut objects[at], &CLUSTER.v1beta2, rng);
            }
            _ => {}
        }
    })
});

fuzz_target!(|text: &str| {
    let Ok(Value::Array(objects)) = serde_json::from_str(text) else { return };
    let Some(new) = objects.first() else { return };
    let old = objects.get(1);
    for verdict in [default(new, old), validate(new, old)] {
        check_words(&verdict);
    }
    check_defaults(new, old);
    check_again(new);

    let mut deleting = new.clone();
    json::members(json::members(&mut deleting).entry("metadata").or_insert(Value::Null))
        .insert("deletionTimestamp".to_owned(), json!("2026-01-01T00:00:00Z"));
    assert!(default(&deleting, old).errors.is_empty(), "a Cluster that goes is not defaulted");
    assert!(validate(&deleting, None).errors.is_empty(), "a Cluster that goes is not judged");
    check_again(&deleting);
});

/// Whatever is stored may be written again, and its finalizers removed.
fn check_again(stored: &Value) {
    let mut new = stored.clone();
    if let Some(Value::Object(metadata)) = new.get_mut("metadata") {
        metadata.remove("finalizers");
    }
    for verdict in [default(&new, Some(stored)), validate(&new, Some(stored))] {
        // Lists that were cut short cannot be compared.
        let errors = verdict.errors;
        assert!(errors.is_empty() || errors.is_full(), "{stored} cannot be stored again: {errors:?}");
        assert!(verdict.warnings.is_empty(), "nothing changed: {:?}", verdict.warnings);
    }
}

/// Defaults can be set, and then nothing is left to set.
fn check_defaults(new: &Value, old: Option<&Value>) {
    let mut set = new.clone();
    for operation in default(new, old).patch {
        assert_eq!(operation["op"], "add");
        let pointer = operation["path"].as_str().expect("an operation has a path");
        let (parent, name) = pointer.rsplit_once('/').expect("a path has a parent");
        let parent = set.pointer_mut(parent).and_then(Value::as_object_mut);
        let parent = parent.unwrap_or_else(|| panic!("{operation} has no place in {new}"));
        parent.insert(name.to_owned(), operation["value"].clone());
    }
    assert!(default(&set, old).patch.is_empty(), "{set} is not complete");
}

fn check_words(verdict: &Verdict) {
    assert!(verdict.warnings.len() <= MOST_WARNINGS, "{:?}", verdict.warnings);
    for words in &verdict.warnings {
        assert!(!words.is_empty() && words.len() <= LONGEST_SENTENCE, "{words}");
    }
    for error in &verdict.errors {
        let words = error.to_string();
        assert!(!error.detail.is_empty() && words.len() <= LONGEST_SENTENCE, "{words}");
    }
    let message = invalid_message("Cluster.cluster.x-k8s.io", "c", &verdict.errors);
    assert!(message.len() <= LONGEST_MESSAGE, "{message}");
}
