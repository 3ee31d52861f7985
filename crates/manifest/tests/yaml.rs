//! What is written is what Go writes, and reads back as what it was.

use capstan_manifest::yaml::{read, read_one, to_multi_document, to_string};
use proptest::prelude::*;
use serde_json::{Number, Value, json};

/// One JSON object a line: a name for the case, a value of our making, and what Go made of it.
const WRITTEN_BY_GO: &str = include_str!("fixtures/written-by-go.jsonl");

#[test]
fn writes_what_go_writes() {
    for line in WRITTEN_BY_GO.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        assert_eq!(to_string(&case["value"]), case["yaml"].as_str().unwrap(), "case: {}", case["case"]);
    }
}

/// Go's detour through JSON fails on these, reads them as spaces, or writes them as line breaks; we keep them.
#[test]
fn writes_what_go_cannot() {
    for (text, yaml) in [
        ("a\u{2028}b", "\"a\\Lb\"\n"),
        ("a\n\u{2029}b\n", "\"a\\n\\Pb\\n\"\n"),
        ("a\u{85}b", "\"a\\Nb\"\n"),
        ("a\u{7f}", "\"a\\x7F\"\n"),
        ("\u{9f}", "\"\\x9F\"\n"),
        ("\u{ffff}", "\"\\uFFFF\"\n"),
    ] {
        assert_eq!(to_string(&json!(text)), yaml);
    }
}

#[test]
fn documents_are_separated() {
    assert_eq!(to_multi_document(&[]), "");
    assert_eq!(to_multi_document(&[json!({"a": 1})]), "a: 1\n");
    assert_eq!(
        to_multi_document(&[json!({"a": 1}), json!([2]), json!("three\n")]),
        "a: 1\n---\n- 2\n---\n|\n  three\n"
    );
}

#[test]
fn keys_without_an_order_are_written_the_same_way_every_time() {
    let keys = ["0b", "1", "08", "1.1", "0B-b", "08xa", "92233720368547758079", "92233720368547758080"];
    let written = to_string(&keys.iter().map(|key| ((*key).to_owned(), json!(1))).collect());
    let reversed = to_string(&keys.iter().rev().map(|key| ((*key).to_owned(), json!(1))).collect());
    assert_eq!(written, reversed);
}

fn text() -> impl Strategy<Value = String> {
    let letters = prop_oneof![
        8 => prop::char::range(' ', '~'),
        2 => prop::sample::select(vec!['\n', ' ', '\t', ':', '#', '-', '\'', '"', '\\', '\r', '\0', '\u{85}', '\u{2028}', '\u{feff}']),
        1 => any::<char>(),
    ];
    prop_oneof![
        prop::collection::vec(letters, 0..40).prop_map(String::from_iter),
        prop::collection::vec("[a-z:,#'\"]{1,15}", 0..40).prop_map(|words| words.join(" ")),
        prop::collection::vec("[ a-z#:-]{0,12}", 0..8).prop_map(|lines| lines.join("\n")),
        "[-+]?[0-9._:exob]{1,8}",
        "(y|n|yes|no|on|off|true|false|null|~|[.](inf|nan)|[0-9]{4}-[01]?[0-9]-[0-3]?[0-9])",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => text().prop_map(Value::String),
        // Larger ones lose digits when they are read, as they do in Go.
        1 => (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        // A float that is whole is written, as by Go, without point, and read back as an integer.
        1 => any::<f64>().prop_filter_map("not whole", |float| {
            Number::from_f64(float).filter(|_| float.fract() != 0.0).map(Value::Number)
        }),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            // Go writes the merge key without quotes, and then cannot read it back either.
            prop::collection::vec((text().prop_filter("not a merge", |key| key != "<<"), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in value()) {
        let yaml = to_string(&value);
        let read = read_one(&yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
        prop_assert_eq!(read, value, "{}", yaml);
    }

    #[test]
    fn streams_read_back(values in prop::collection::vec(value(), 0..4)) {
        let yaml = to_multi_document(&values);
        let read = read(&yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
        let read: Vec<Value> = read.into_iter().map(|document| document.value).collect();
        // A null is the same as no document.
        let expected: Vec<Value> = values.into_iter().filter(|value| !value.is_null()).collect();
        prop_assert_eq!(read, expected, "{}", yaml);
    }
}
