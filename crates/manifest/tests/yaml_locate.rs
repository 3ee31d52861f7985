//! Every value has a place, and it is the one where it is written.

use capstan_manifest::yaml::{locate, read, to_multi_document};
use proptest::prelude::*;
use serde_json::{Value, json};

const TEXT: &str = "\
# a comment
kind: Cluster
metadata: {name: a, labels: {b/c: d, e~f: g}}
---
---
- x
-   y: 1
    z: [1, 'two
three']
---
base: &base
  a: 1
  b: [2]
copy: *base
merged:
  <<: *base
  c: 3
a: 1
a: 2
";

#[test]
fn values_are_found_where_they_stand() {
    for (document, pointer, place) in [
        (0, "", Some((2, 1))),
        (0, "/kind", Some((2, 7))),
        (0, "/metadata", Some((3, 11))),
        (0, "/metadata/labels/b~1c", Some((3, 35))),
        (0, "/metadata/labels/e~0f", Some((3, 43))),
        (0, "/metadata/none", None),
        (0, "metadata", None),
        (1, "", Some((6, 1))),
        (1, "/0", Some((6, 3))),
        (1, "/1", Some((7, 5))),
        (1, "/1/z/1", Some((8, 12))),
        (1, "/2", None),
        (1, "/01", None),
        (1, "/x", None),
        // An alias is where it is, and what is in it is where the anchor is.
        (2, "/copy", Some((14, 7))),
        (2, "/copy/b/0", Some((13, 7))),
        (2, "/merged/a", Some((12, 6))),
        (2, "/merged/c", Some((17, 6))),
        // The last of equal keys counts.
        (2, "/a", Some((19, 4))),
        (3, "", None),
    ] {
        let found = locate(TEXT, document, pointer).map(|place| (place.line, place.column));
        assert_eq!(found, place, "{document} {pointer}");
    }
}

#[test]
fn columns_are_those_of_the_text_and_not_of_what_we_made_of_it() {
    let text = "a:\n  b: [é, \"x\ny\", z]\n  c: 'x\ny' #\nd: 'x'#\n";
    let column = |pointer| locate(text, 0, pointer).unwrap().to_string();
    assert_eq!(column("/a/b/2"), "line 3, column 5");
    assert_eq!(column("/a/c"), "line 4, column 6");
    assert_eq!(column("/d"), "line 6, column 4");
    // The parser stops here behind two patches, in the same line.
    assert_eq!(read("a: \"x\ny\"#\nb: \"x\ny\" z\n").unwrap_err().place().to_string(), "line 4, column 4");
}

#[test]
fn nothing_is_found_in_what_cannot_be_read() {
    assert_eq!(locate("a: [\n", 0, ""), None);
    assert_eq!(locate("", 0, ""), None);
    assert_eq!(locate("--- a\n", 0, ""), None);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-z ]{0,8}".prop_map(Value::from),
        Just(json!("two\nlines"))
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z/~]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The pointers to all values in a value.
fn pointers(value: &Value, to: &str, all: &mut Vec<String>) {
    all.push(to.to_owned());
    let items: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, item)| (key.replace('~', "~0").replace('/', "~1"), item)).collect()
        }
        _ => Vec::new(),
    };
    for (step, item) in items {
        pointers(item, &format!("{to}/{step}"), all);
    }
}

proptest! {
    #[test]
    fn what_is_read_is_found(values in prop::collection::vec(value(), 1..4)) {
        let text = to_multi_document(&values);
        for (index, document) in read(&text).unwrap().iter().enumerate() {
            let mut all = Vec::new();
            pointers(&document.value, "", &mut all);
            for pointer in all {
                let place = locate(&text, index, &pointer);
                prop_assert!(place.is_some(), "{}\n{}", pointer, text);
                // What stands there is the value, up to the end of the line.
                if let (Some(place), Some(Value::Number(number))) = (place, document.value.pointer(&pointer)) {
                    let line = text.lines().nth(place.line - 1).unwrap_or_default();
                    let rest: String = line.chars().skip(place.column - 1).collect();
                    prop_assert_eq!(rest, number.to_string());
                }
            }
            prop_assert_eq!(locate(&text, index, "").map(|place| place.line), Some(document.line));
        }
    }
}
