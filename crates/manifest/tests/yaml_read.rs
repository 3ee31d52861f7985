//! What is read is what Go reads.

use std::{fmt::Write as _, thread};

use capstan_manifest::{
    Place,
    yaml::{Problem, read, read_one, to_string},
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One JSON object a line: a name for the case, a text of our making, and the documents that Go read in it.
const READ_BY_GO: &str = include_str!("fixtures/read-by-go.jsonl");

fn values(text: &str) -> Result<Value, String> {
    let documents = read(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

#[test]
fn reads_what_go_reads() {
    let mut wrong = Vec::new();
    for line in READ_BY_GO.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["yaml"].as_str().unwrap();
        let ours = values(text);
        let is_right = match &ours {
            Ok(documents) => *documents == case["json"],
            Err(_) => case["error"] == true,
        };
        if !is_right {
            wrong.push(format!("{}: {text:?}\n  Go: {}\n  we: {ours:?}", case["case"], case["json"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Go takes line separators for line breaks, refuses some letters that it writes itself, and knows no pairs of
/// surrogates, which JSON is full of.
#[test]
fn reads_what_go_spoils() {
    for (text, value) in [
        ("k: a\u{85}b\n", json!("a\u{85}b")),
        ("k: a\u{2028}b\n", json!("a\u{2028}b")),
        ("k: 'a\u{2029}b'\n", json!("a\u{2029}b")),
        ("k: |\n  a\u{2028}b\n", json!("a\u{2028}b\n")),
        ("k: \"\\x7F\\x85\\x9F\"\n", json!("\u{7f}\u{85}\u{9f}")),
        ("k: \"\\/\"\n", json!("/")),
        ("k: \"\\ud83d\\ude00\"\n", json!("😀")),
    ] {
        assert_eq!(values(text), Ok(json!([{"k": value}])), "{text:?}");
    }
}

/// Go drops the rest without a word.
#[test]
fn what_follows_a_value_is_an_error() {
    for text in ["{a: 1}\n{b: 2}\n", " a: 1\nb: 2\n", "a: 1\n%b: 2\nc: 3\n", "'a'\nb: 1\n"] {
        assert!(read(text).is_err(), "{text:?}");
        assert!(read_one(text).is_err(), "{text:?}");
    }
}

#[test]
fn one_document_is_the_first() {
    for (text, value) in [
        ("", Value::Null),
        ("# nothing\n", Value::Null),
        ("a: 1\n---\n[\n", json!({"a": 1})),
        ("a: |\n  b", json!({"a": "b"})),
        ("--- b\n", json!("b")),
        ("---x\n", json!("---x")),
        ("%YAML 1.1\n---\na: yes\n", json!({"a": true})),
        ("%TAG !e! tag:yaml.org,2002:\n---\na: !e!str yes\n", json!({"a": "yes"})),
    ] {
        assert_eq!(read_one(text).unwrap(), value, "{text:?}");
    }
    assert_eq!(
        read_one("%YAML 1.2\n---\na: 1\n").unwrap_err().problem(),
        &Problem::Version { major: 1, minor: 2 }
    );
}

#[test]
fn documents_know_their_lines() {
    let lines = |text| read(text).unwrap().iter().map(|document| document.line).collect::<Vec<_>>();
    assert_eq!(lines("a: 1\n"), [1]);
    assert_eq!(lines("---\na: 1\n---\nb: 1\n"), [2, 4]);
    assert_eq!(lines("# one\n\n---\n# two\n\n  a: 1\n---\n---\n\n---\n- b\n"), [6, 11]);
    assert_eq!(lines("a: 1\r\n---\r\n# two\r\nb: 1\r\n"), [1, 4]);
}

#[test]
fn errors_say_where_and_what() {
    for (text, message) in [
        (
            "a: 1\n--- b\n",
            "document 1, line 2, column 1: only a comment may follow the three dashes that separate documents, not \"b\"",
        ),
        ("a: 1\n---\n# two\nb:\n  - [\n", "document 2, line 5, column 5: unclosed bracket '['"),
        (
            "---\n---\na: 1\n---\nb: .inf\n",
            "document 2, line 5, column 4: infinity is a number that JSON does not have; put it in quotes if it is meant as text",
        ),
        ("a:\n  b: 1\n c: 2\n", "document 1, line 3, column 2: "),
        (
            "a:\n  - b\n  c: 2\n",
            "document 1, line 3, column 3: a list item was expected here; is the line indented as the others of its list are?",
        ),
        (
            "a: b: c\n",
            "document 1, line 1, column 5: a colon is not allowed here; text that contains a colon and a space needs quotes",
        ),
        ("a:\n\tb: 1\n", "document 1, line 2, column "),
        ("a: \"b\n", "document 1, line 1, column 4: the quoted text that begins here never ends"),
        (
            "a: *b\n",
            "document 1, line 1, column 4: the alias stands for nothing: no anchor of this name comes before it",
        ),
        (
            "a: &b [*b]\n",
            "document 1, line 1, column 8: an alias cannot stand for a value that it is a part of",
        ),
        (
            "a: &b.c 1\n",
            "document 1, line 1, column 4: the anchor &b.c may be named by letters, digits, dashes and underscores only",
        ),
        ("a: 1\n~: 2\n", "document 1, line 2, column 1: null cannot be the key of a map"),
        ("? [a]\n: 1\n", "document 1, line 1, column 3: a list cannot be the key of a map"),
        ("a:\n  <<: 1\n", "document 1, line 2, column 7: the merge key << needs a map or a list of maps"),
        ("a: !!int b\n", "document 1, line 1, column 10: \"b\" is not of the type that its tag !!int says"),
        ("a: !!binary '*'\n", "document 1, line 1, column 13: the value tagged !!binary is not valid Base64"),
        (
            "%YAML 1.1\n---\na: 1\n",
            "document 1, line 2, column 1: the directive before this line belongs to no document; leave it out",
        ),
        (
            "a: 1\n---\nb: 1\nc: \u{1}\n",
            "document 2, line 4, column 4: the control character U+0001 is not allowed",
        ),
        (
            " a: 1\nb: 1\n",
            "document 1, line 2, column 1: the document has ended before this line; is the line indented as the first one is?",
        ),
        ("é: 'x\ny' z\n", "document 1, line 2, column 4: "),
    ] {
        let error = read(text).unwrap_err().to_string();
        let is_right = if message.ends_with(' ') { error.starts_with(message) } else { error == message };
        assert!(is_right, "{text:?}\n  expected: {message}\n  is: {error}");
    }
    let error = read("a: 1\n---\n  b: ]\n").unwrap_err();
    assert_eq!((error.document(), error.place()), (2, Place { line: 3, column: 6 }));
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    let maps = |depth: usize| {
        (0..depth).fold(String::new(), |mut text, at| {
            writeln!(text, "{}a:", " ".repeat(at)).unwrap();
            text
        })
    };
    // Half of the default stack of a thread.
    let small = thread::Builder::new().stack_size(1 << 20);
    let test = small.spawn(move || {
        for text in [nested(500), "- ".repeat(500), maps(500)] {
            let value = read_one(&text).unwrap();
            assert_eq!(read_one(&to_string(&value)).unwrap(), value.clone());
        }
        let halves = format!("a: &a {}\nb: {}*a{}\n", nested(250), "[".repeat(249), "]".repeat(249));
        assert!(read_one(&halves).is_ok());
        let too_much = format!("a: &a {}\nb: {}*a{}\n", nested(250), "[".repeat(250), "]".repeat(250));
        for text in
            [nested(501), "- ".repeat(501), maps(501), nested(1_000_000), "{a: ".repeat(100_000), too_much]
        {
            assert_eq!(read_one(&text).unwrap_err().problem(), &Problem::TooDeep { limit: 500 });
        }
    });
    test.unwrap().join().unwrap();
}

#[test]
fn aliases_have_a_limit() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let alias = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", [alias.as_str(); 9].join(", ")).unwrap();
    }
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    let nest = (0..400).fold(format!("'{}'", "x".repeat(1 << 20)), |inner, at| format!("&a{at} [{inner}]"));
    for text in [bomb, text, nest] {
        let error = read_one(&text).unwrap_err();
        assert!(matches!(error.problem(), Problem::TooManyAliases { .. }), "{error}");
    }
    let fine = format!("a: &a {{b: [1, 2, 3]}}\nc: [{}]\n", "*a, ".repeat(10_000));
    assert_eq!(read_one(&fine).unwrap()["c"].as_array().unwrap().len(), 10_000);
}

fn yaml() -> impl Strategy<Value = String> {
    let bit = prop::sample::select(vec![
        " ", "  ", "\n", "\n  ", "\t", "a", "b", "1", "yes", "~", ": ", ":", "- ", "-", "? ", "#", " #", "'",
        "\"", "[", "]", "{", "}", ",", "&a ", "*a", "!", "!!str ", "!!int ", "|", ">-", "|2", "%", "@", "<<",
        "<<: ", "---", "...", "\\", "\r\n", "\r", "\u{feff}", "\u{85}", "\u{0}", "é", "😀", "\n---\n", "a: ",
        "\"\\u12", "!<",
    ]);
    prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
}

/// A text that Go knows, with a part of it gone or in another place.
fn mutated() -> impl Strategy<Value = String> {
    let texts: Vec<String> = READ_BY_GO
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["yaml"].as_str().map(str::to_owned))
        .collect();
    (
        prop::sample::select(texts.clone()),
        prop::sample::select(texts),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(one, other, end, begin)| {
            let head = one.chars().take(end.index(one.chars().count() + 1));
            let tail = other.chars().skip(begin.index(other.chars().count() + 1));
            head.chain(tail).collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn reading_never_panics(text in prop_oneof![any::<String>(), yaml(), mutated()]) {
        let lines = text.lines().count().max(text.split(['\r', '\n']).count());
        match read(&text) {
            Ok(documents) => prop_assert!(documents.iter().all(|document| document.line <= lines)),
            Err(error) => {
                prop_assert!(error.place().line <= lines + 1, "{}", error);
                prop_assert!(!error.problem().to_string().is_empty());
            }
        }
        let _ = read_one(&text);
    }

    #[test]
    fn documents_are_read_one_by_one(texts in prop::collection::vec(mutated(), 1..4)) {
        let bodies: Vec<String> = texts
            .iter()
            .map(|text| text.replace("---", "").replace('\r', ""))
            .filter(|text| !text.is_empty())
            .map(|text| if text.ends_with('\n') { text } else { text + "\n" })
            .collect();
        let each: Result<Vec<Value>, String> = bodies.iter().map(|body| values(body)).collect();
        let expected = each.map(|values| values.iter().filter_map(Value::as_array).flatten().cloned().collect::<Value>());
        prop_assert_eq!(values(&bodies.join("---\n")).ok(), expected.ok());
    }
}
