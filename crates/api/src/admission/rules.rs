//! Rules of Kubernetes for values that appear in many kinds. Each gives what would be right where it is broken.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{Errors, Field};

/// The longest name, label value, or name part of a key.
const LONGEST_NAME: usize = 63;
/// The longest prefix of a key.
const LONGEST_PREFIX: usize = 253;
/// The size of all annotations together.
pub(crate) const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Whether a text can be the value of a label.
pub fn label_value(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Ok(());
    }
    name_part(text)
}

fn name_part(text: &str) -> Result<(), &'static str> {
    if text.len() > LONGEST_NAME {
        return Err("must be at most 63 characters long");
    }
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let edges = ends.iter().flatten().all(u8::is_ascii_alphanumeric);
    let inside = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if edges && inside {
        Ok(())
    } else {
        Err("must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit")
    }
}

/// Whether a text can be the key of a label, annotation or taint: a name, with a DNS prefix or without.
pub fn qualified_name(text: &str) -> Result<(), &'static str> {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, _)) if !is_dns_subdomain(prefix) => {
            return Err("the part before '/' must be a DNS subdomain of at most 253 characters");
        }
        Some((_, name)) => name,
    };
    if name.is_empty() {
        return Err("must have a name (after '/', if there is one)");
    }
    name_part(name)
}

/// Whether a text can be the name of most objects: labels of DNS with dots between them.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= LONGEST_PREFIX && text.split('.').all(has_dns_letters)
}

/// Whether a text can be the name of a namespace: one label of DNS.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LONGEST_NAME && has_dns_letters(text)
}

fn has_dns_letters(label: &str) -> bool {
    let edges = [label.bytes().next(), label.bytes().next_back()];
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    edges.iter().all(|edge| edge.is_some_and(plain)) && label.bytes().all(|it| plain(it) || it == b'-')
}

/// Whether a text is a network in CIDR notation.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= bits)
}

/// Reads a number or a percentage; it may not be negative.
pub fn int_or_percent(field: &Field<'_>, errors: &mut Errors) -> Option<u64> {
    let number = match field.value {
        Value::Null => return None,
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            text.strip_suffix('%').filter(|it| plain_digits(it)).and_then(|it| it.parse().ok())
        }
        _ => None,
    };
    if number.is_none() {
        errors.invalid(&field.path, field.value, "must be a whole number or a percentage, and not negative");
    }
    number
}

fn plain_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks the labels and annotations of an object that is yet to be made.
pub fn metadata(field: &Field<'_>, errors: &mut Errors) {
    let labels = field.child("labels");
    for (key, value) in entries(&labels, errors) {
        let path = labels.path_to_key(key);
        if let Err(detail) = qualified_name(key) {
            errors.invalid(&labels.path, &Value::from(key.as_str()), detail);
        }
        let value = Field { path, value };
        if let Some(text) = value.text(errors)
            && let Err(detail) = label_value(text)
        {
            errors.invalid(&value.path, value.value, detail);
        }
    }
    let annotations = field.child("annotations");
    let mut size = 0;
    for (key, value) in entries(&annotations, errors) {
        // Unlike labels', annotations' keys may have a prefix in capitals.
        if let Err(detail) = qualified_name(&key.to_lowercase()) {
            errors.invalid(&annotations.path, &Value::from(key.as_str()), detail);
        }
        let value = Field { path: annotations.path_to_key(key), value };
        size += key.len() + value.text(errors).map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        let detail = format!("must be at most {ANNOTATIONS_LIMIT} bytes in all, but are {size}");
        errors.invalid(&annotations.path, annotations.value, detail);
    }
}

fn entries<'a>(
    field: &Field<'a>,
    errors: &mut Errors,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    field.object(errors).into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_values_and_keys() {
        for (text, value, key) in [
            ("", true, false),
            ("a", true, true),
            ("A-b_c.9", true, true),
            ("-a", false, false),
            ("a.", false, false),
            ("a b", false, false),
            ("ä", false, false),
            ("x.io/a", false, true),
            ("X.io/a", false, false),
            ("x..io/a", false, false),
            ("/a", false, false),
            ("x.io/", false, false),
            ("x.io/a/b", false, false),
        ] {
            assert_eq!(label_value(text).is_ok(), value, "{text:?} as a value");
            assert_eq!(qualified_name(text).is_ok(), key, "{text:?} as a key");
        }
        assert!(label_value(&"a".repeat(63)).is_ok() && label_value(&"a".repeat(64)).is_err());
        assert!(qualified_name(&format!("{}/a", "a".repeat(254))).is_err());
    }

    #[test]
    fn networks() {
        for (text, expected) in [
            ("192.168.0.0/16", true),
            ("192.168.3.4/0", true),
            ("fd00:10::/48", true),
            ("::ffff:10.0.0.0/104", true),
            ("abc", false),
            ("192.168.0.0", false),
            ("192.168.0.0/33", false),
            ("192.168.0.0/+8", false),
            ("192.168.0.0/", false),
            ("192.168.00.0/16", false),
            ("fd00::/129", false),
            ("fe80::1%eth0/64", false),
            ("10.0.0.0/8/8", false),
            ("10.0.0.0/99999999999999999999", false),
        ] {
            assert_eq!(is_cidr(text), expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_and_percentages() {
        for (value, expected) in [
            (json!(1), Some(1)),
            (json!("25%"), Some(25)),
            (json!("0%"), Some(0)),
            (json!(-1), None),
            (json!("1"), None),
            (json!("-1%"), None),
            (json!("+1%"), None),
            (json!("%"), None),
            (json!(1.5), None),
            (json!([]), None),
        ] {
            let mut errors = Errors::default();
            let field = Field { path: "f".into(), value: &value };
            assert_eq!(int_or_percent(&field, &mut errors), expected, "{value}");
            assert_eq!(errors.is_empty(), expected.is_some(), "{value}");
        }
    }

    #[test]
    fn labels_and_annotations() {
        let fits = |value: Value| {
            let mut errors = Errors::default();
            metadata(&Field::root(&value), &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(fits(json!({})), Vec::<String>::new());
        let good = json!({"labels": {"x.io/a": "b"}, "annotations": {"X.io/a": "any text: 100%"}});
        assert_eq!(fits(good), Vec::<String>::new());
        let bad =
            fits(json!({"labels": {"a b": "c d", "e": 1}, "annotations": {"-": "", "f": [], "g": null}}));
        assert_eq!(bad.len(), 5, "{bad:#?}");
        assert!(bad[1].starts_with("labels[a b]: Invalid value: \"c d\""), "{bad:#?}");
        let large = fits(json!({"annotations": {"a": "x".repeat(ANNOTATIONS_LIMIT)}}));
        assert!(large[0].contains("must be at most 262144 bytes"), "{large:?}");
        assert_eq!(fits(json!({"labels": "x", "annotations": [1]})).len(), 2);
    }
}
