//! What a JSON text takes once it is read, known before it is.
//!
//! Strings may hold JSON of their own: conversions park what a version cannot say in annotations, and read it again. So
//! what looks like JSON in a string counts as such.

/// An entry of a JSON object: its part of a tree node, which holds up to eleven but may be half empty.
const ENTRY: usize = 128;
/// What an object takes beyond its entries: a node of the tree is allocated whole.
const OBJECT: usize = 512;
/// An element of an array that grows by doubling.
const ELEMENT: usize = 96;
/// An array has room for four from its first element on.
const ARRAY: usize = 160;
/// What the allocator adds to a string.
const STRING: usize = 32;
/// Structure may be written as an escape, such as `\u007b` for an opening brace.
const ESCAPE: usize = 5;

/// What reading a JSON text would take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measure {
    /// How deeply objects and arrays are nested.
    pub(super) depth: usize,
    /// At most how many bytes a `serde_json::Value` of it takes.
    pub(super) tree: usize,
}

/// Measures a text, until it is deeper or would take more than is of interest. Nothing is checked: of what is not JSON,
/// the figures mean nothing, and reading it fails anyway.
pub(super) fn measure(text: &[u8], most: Measure) -> Measure {
    let mut found = Measure { depth: 0, tree: text.len() };
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, &byte) in text.iter().enumerate() {
        if quoted {
            if escaped {
                found.tree += match byte {
                    b'u' => text.get(at + 1..at + ESCAPE).and_then(escaped_byte).map_or(0, cost),
                    byte => cost(byte),
                };
            } else if byte != b'"' {
                found.tree += cost(byte);
            }
            quoted = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
        } else {
            found.tree += cost(byte);
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => {
                    depth += 1;
                    found.depth = found.depth.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if found.depth > most.depth || found.tree > most.tree {
            break;
        }
    }
    found
}

/// What a byte of JSON adds to what reading it takes.
fn cost(byte: u8) -> usize {
    match byte {
        b'"' => STRING,
        b':' => ENTRY,
        b',' => ELEMENT,
        b'{' => OBJECT,
        b'[' => ARRAY,
        _ => 0,
    }
}

/// The byte that four hexadecimal digits stand for, if it is one of ASCII.
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?.strip_prefix("00")?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const ALL: Measure = Measure { depth: usize::MAX, tree: usize::MAX };

    #[test]
    fn it_ends_where_it_is_enough() {
        let (deep, long) = ("[".repeat(1000), "0,".repeat(1000));
        assert_eq!(measure(deep.as_bytes(), Measure { depth: 10, ..ALL }).depth, 11);
        let found = measure(long.as_bytes(), Measure { tree: 3000, ..ALL }).tree;
        assert!((3001..3001 + ELEMENT).contains(&found), "{found}");
    }

    #[test]
    fn depth_is_that_of_brackets_outside_strings() {
        for (text, depth) in [
            ("7", 0),
            ("{}", 1),
            (r#"{"a":[{}],"b":[]}"#, 3),
            (r#"["[[[[\"[[[", "\\", []]"#, 2),
            ("[[[[", 4),
            ("]]]][", 1),
            ("", 0),
        ] {
            assert_eq!(measure(text.as_bytes(), ALL).depth, depth, "{text}");
        }
    }

    /// What a value takes, as the standard library lays it out.
    fn taken(value: &Value) -> usize {
        let string = |text: &String| if text.is_empty() { 0 } else { text.capacity().max(24) + 8 };
        match value {
            Value::String(text) => string(text),
            Value::Array(list) => {
                let room = if list.is_empty() { 0 } else { list.capacity() * size_of::<Value>() + 16 };
                room + list.iter().map(taken).sum::<usize>()
            }
            Value::Object(map) => {
                // Nodes of eleven entries, at least five of them in use but in the root.
                let node = 11 * (size_of::<String>() + size_of::<Value>()) + 32;
                let nodes = map.len().div_ceil(5) + map.len() / 25;
                nodes * node + map.iter().map(|(key, value)| string(key) + taken(value)).sum::<usize>()
            }
            _ => 0,
        }
    }

    #[test]
    fn the_worst_shapes_are_not_underrated() {
        let many = |part: &str, count: usize| format!("[{}0]", part.repeat(count));
        let wide: Vec<_> = (0..1000).map(|it| format!(r#""{it}":0"#)).collect();
        for text in [
            many(r#"{"":0},"#, 1000),
            many("0,", 1025),
            many("[0],", 1000),
            many(r#""","#, 1000),
            many(r#""a","#, 1000),
            many(r#"{"a":{"b":""}},"#, 1000),
            many("{},", 1000),
            format!("{{{}}}", wide.join(",")),
        ] {
            let value: Value = serde_json::from_str(&text).unwrap();
            let (expected, found) = (taken(&value), measure(text.as_bytes(), ALL).tree);
            assert!(expected <= found, "{}: {expected} and not {found}", &text[..20]);
        }
    }

    #[test]
    fn json_in_a_string_counts_like_json() {
        let inner = r#"[{"a":[0,{"":1}]},"x"]"#;
        let plain = measure(inner.as_bytes(), ALL).tree - inner.len();
        let quoted = Value::from(inner).to_string();
        let escaped: Vec<_> = inner.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        for text in [
            quoted,
            format!("\"{}\"", escaped.concat()),
            format!("\"{}\"", escaped.concat().to_uppercase().replace("\\U", "\\u")),
        ] {
            let found = measure(text.as_bytes(), ALL);
            assert!(found.tree >= plain + text.len(), "{text}: {} and {plain}", found.tree);
            assert_eq!(found.depth, 0, "{text}");
        }
        assert_eq!(measure(br#""a < b \u003c \ud83d""#, ALL).tree, 21 + STRING);
    }

    proptest! {
        #[test]
        fn nothing_takes_more_than_was_measured(
            value in any::<u32>().prop_map(Value::from).boxed().prop_recursive(6, 200, 12, |inner| prop_oneof![
                ".{0,20}".prop_map(Value::from),
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::btree_map(".{0,8}", inner, 0..12)
                    .prop_map(|map| Value::from(serde_json::Map::from_iter(map))),
            ])
        ) {
            let text = value.to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(taken(&read) <= measure(text.as_bytes(), ALL).tree);
        }
    }
}
