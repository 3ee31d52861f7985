use super::*;

fn text_of(yaml: &str) -> Option<String> {
    match read(&format!("V: {yaml}\n")) {
        Ok(Value::Map(entries)) => entries.into_iter().next().and_then(|(_, value)| value.text()),
        other => panic!("{yaml}: {other:?}"),
    }
}

/// Each pair was seen with `clusterctl generate yaml`.
#[test]
fn scalars_become_the_text_that_viper_makes_of_them() {
    for (yaml, expected) in [
        ("1.10", Some("1.1")),
        ("010", Some("8")),
        ("-010", Some("-8")),
        ("08", Some("8")),
        ("0777", Some("511")),
        ("0o17", Some("15")),
        ("0x1F", Some("31")),
        ("0b11", Some("3")),
        ("1_000", Some("1000")),
        ("1_0.5", Some("10.5")),
        ("+12", Some("12")),
        ("-0", Some("0")),
        ("1e3", Some("1000")),
        ("1e21", Some("1000000000000000000000")),
        ("1e-7", Some("0.0000001")),
        ("0.00001", Some("0.00001")),
        ("1.0", Some("1")),
        ("123456789.5", Some("123456789.5")),
        ("12345678901234567", Some("12345678901234567")),
        ("12345678901234567890", Some("12345678901234567890")),
        ("100000000000000000000000", Some("100000000000000000000000")),
        (".inf", Some("+Inf")),
        ("-.inf", Some("-Inf")),
        (".nan", Some("NaN")),
        ("1e400", Some("1e400")),
        ("yes", Some("yes")),
        ("on", Some("on")),
        ("true", Some("true")),
        ("True", Some("true")),
        ("null", None),
        ("~", None),
        ("", None),
        ("\"\"", Some("")),
        ("\"1.10\"", Some("1.10")),
        ("'null'", Some("null")),
        ("2024-01-02", Some("2024-01-02 00:00:00 +0000 UTC")),
        ("2024-1-2", Some("2024-01-02 00:00:00 +0000 UTC")),
        ("2024-02-30", Some("2024-02-30")),
        ("2024-01-02T03:04:05Z", Some("2024-01-02 03:04:05 +0000 UTC")),
        ("2024-01-02t03:04:05.120+02:30", Some("2024-01-02 03:04:05.12 +0230 +0230")),
        ("2024-01-02 03:04:05.5", Some("2024-01-02 03:04:05.5 +0000 UTC")),
        ("2024-01-02 03:04:05.5 +2", Some("2024-01-02 03:04:05.5 +2")),
        ("190:20:30", Some("190:20:30")),
        ("!!str 12", Some("12")),
        ("!!int \"12\"", Some("12")),
        ("!foo 1", Some("1")),
        ("!foo 0x10", Some("0x10")),
        ("!!timestamp 2024-01-02", Some("2024-01-02 00:00:00 +0000 UTC")),
        (".2_3", Some(".2_3")),
        ("! 0x10", Some("16")),
        ("a #b", Some("a")),
        ("a#b", Some("a#b")),
        ("# nothing", None),
        ("!!binary aGVsbG8=", Some("hello")),
        ("v1.2.3", Some("v1.2.3")),
        ("=", Some("=")),
        ("[1, 2]", None),
        ("{a: b}", None),
    ] {
        assert_eq!(text_of(yaml).as_deref(), expected, "{yaml}");
    }
}

#[test]
fn only_the_first_document_counts_and_an_empty_file_is_nothing() {
    for (yaml, expected) in [
        ("", Value::Null),
        ("# only words\n", Value::Null),
        ("---\n", Value::Null),
        ("\u{feff}a: b\r\n", Value::Map(vec![("a".into(), Value::Text("b".into()))])),
        ("a: b\n---\na: c\nd: e\n", Value::Map(vec![("a".into(), Value::Text("b".into()))])),
        ("- a\n", Value::List(vec![Value::Text("a".into())])),
        (
            "1: x\ntrue: y\n",
            Value::Map(vec![("1".into(), Value::Text("x".into())), ("true".into(), Value::Text("y".into()))]),
        ),
    ] {
        assert_eq!(read(yaml), Ok(expected), "{yaml}");
    }
}

#[test]
fn anchors_and_merge_keys_are_followed_and_explicit_keys_win() {
    let yaml = "base: &b {x: 1, y: 2}\nmore: &m {z: 3, y: 9}\none: {<<: *b, y: 5}\ntwo:\n  <<: [*b, *m]\n";
    let Ok(Value::Map(entries)) = read(yaml) else { panic!("not a map") };
    let get = |name: &str| entries.iter().find(|(it, _)| it == name).unwrap().1.clone();
    let numbers = |pairs: &[(&str, i128)]| {
        Value::Map(pairs.iter().map(|(k, v)| ((*k).into(), Value::Integer(*v))).collect())
    };
    assert_eq!(get("one"), numbers(&[("y", 5), ("x", 1)]));
    assert_eq!(get("two"), numbers(&[("x", 1), ("y", 2), ("z", 3)]));
}

#[test]
fn what_cannot_be_read_is_told_with_its_line() {
    let level = |it: usize| format!("a{it}: &a{it} [{}]", vec![format!("*a{}", it - 1); 10].join(", "));
    let levels: Vec<_> = (1..9).map(level).collect();
    let bomb = format!("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{}\n", levels.join("\n"));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(64 << 10), "*a, ".repeat(1000));
    let anchors = format!("{}{}{}", "&a [".repeat(90), "x".repeat(1 << 20), "]".repeat(90));
    let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(60), "]".repeat(60));
    let deep_alias = format!("a: &a {}\nb: {}\n", nested("x"), nested("*a"));
    for (yaml, line, part) in [
        ("a: 1\nb: 2\na: 3\n", 3, "\"a\" occurs twice"),
        ("x:\n  a: 1\n  a: 2\n", 3, "\"a\" occurs twice"),
        ("? [a]\n: b\n", 1, "a key must be text"),
        ("a: !!int x\n", 1, "not of the type !!int"),
        ("a: !!timestamp yes\n", 1, "not of the type !!timestamp"),
        ("a: 1\n<<: 2\n", 2, "merge key"),
        ("a: [1\nb: 2\n", 2, ""),
        ("a: &x [*x]\n", 1, ""),
        (bomb.as_str(), 5, "more than 200000 values"),
        (deep.as_str(), 1, ""),
        (text.as_str(), 2, "the aliases stand for more than 16 MiB of text"),
        (anchors.as_str(), 1, "the aliases stand for more than 16 MiB of text"),
        (deep_alias.as_str(), 2, "values are nested more than 100 deep"),
    ] {
        let error = read(yaml).expect_err(yaml);
        assert!(error.problem.contains(part), "{error}");
        assert!(error.line.abs_diff(line) <= 2, "{error}: expected about line {line}");
    }
}

/// Looking through all keys for each one would take minutes here.
#[test]
fn many_keys_are_read_and_merged() {
    let many: Vec<_> = (0..90_000).map(|n| format!("  some-long-common-prefix-{n}: 1\n")).collect();
    let yaml = format!("base: &base\n{}other:\n  <<: *base\n  own: 2\n", many.concat());
    let Ok(Value::Map(entries)) = read(&yaml) else { panic!("it is a map") };
    let [_, (_, Value::Map(other))] = entries.as_slice() else { panic!("it has two keys") };
    assert_eq!(other.len(), 90_001);
}
