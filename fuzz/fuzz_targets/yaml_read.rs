//! Whatever is read is the same after it has been written and read again.

#![no_main]

use capstan_manifest::yaml::{read, to_multi_document};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(documents) = read(text) else { return };
    let values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    // Go writes a merge key without quotes, and so do we: it cannot be read back.
    if values.iter().any(has_merge_key) {
        return;
    }
    let written = to_multi_document(&values);
    let again: Vec<Value> = match read(&written) {
        Ok(documents) => documents.into_iter().map(|document| document.value).collect(),
        Err(error) => panic!("{error}\n{written}"),
    };
    assert_eq!(again, values, "{written}");
});

fn has_merge_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| key == "<<" || has_merge_key(value)),
        Value::Array(items) => items.iter().any(has_merge_key),
        _ => false,
    }
}
