//! What a scalar means: the rules of YAML 1.1 as go-yaml has them.

use base64::{
    Engine as _, alphabet,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig},
};

use super::{error::Problem, plain};

/// A scalar once its meaning is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Only what does not fit an `Int`.
    Uint(u64),
    Float(f64),
    Text(String),
}

/// What a text without quotes and tag means, if it is anything but text.
pub(super) fn untagged(text: &str) -> Option<Scalar> {
    match text.as_bytes().first() {
        None => Some(Scalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => word(text).or_else(|| fraction(text)),
        Some(b'+' | b'-' | b'0'..=b'9') => word(text).or_else(|| number(text)),
        Some(_) => None,
    }
}

fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// A number that begins with its point. An underscore may stand between two digits.
fn fraction(text: &str) -> Option<Scalar> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let separates = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    let underscores_are_fine =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(|(at, _)| separates(at));
    if underscores_are_fine { decimal(&text.replace('_', "")) } else { None }
}

/// A number that begins with a digit or a sign. Underscores may be anywhere.
fn number(text: &str) -> Option<Scalar> {
    if !text.contains('_') {
        return integer(text).or_else(|| decimal(text));
    }
    let text = text.replace('_', "");
    integer(&text).or_else(|| decimal(&text))
}

fn integer(text: &str) -> Option<Scalar> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'+' | b'-' => text.split_at(1),
        _ => ("", text),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)?),
        // go-yaml also takes a sign behind the prefix, if there is none before it.
        [b'0', b'b', b'+' | b'-', ..] if sign.is_empty() => {
            return i64::from_str_radix(unsigned.get(2..)?, 2).ok().map(Scalar::Int);
        }
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    match sign {
        "-" => 0_i64.checked_sub_unsigned(size).map(Scalar::Int),
        "+" => i64::try_from(size).ok().map(Scalar::Int),
        _ => Some(i64::try_from(size).map_or(Scalar::Uint(size), Scalar::Int)),
    }
}

/// A decimal number, with or without sign, fraction and exponent, that is not too large for a float.
fn decimal(text: &str) -> Option<Scalar> {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = split_digits(rest);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let rest = match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let (digits, rest) = split_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
            if digits.is_empty() {
                return None;
            }
            rest
        }
        None => rest,
    };
    let float = text.parse().ok().filter(|float: &f64| rest.is_empty() && float.is_finite())?;
    Some(Scalar::Float(float))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// What a tag makes of a text, whether or not that is in quotes.
pub(super) fn tagged(tag: &str, text: String) -> Result<Scalar, Problem> {
    let meaning = |tag: &'static str, text: String| match (tag, untagged(&text)) {
        ("null", Some(scalar @ Scalar::Null))
        | ("bool", Some(scalar @ Scalar::Bool(_)))
        | ("int", Some(scalar @ (Scalar::Int(_) | Scalar::Uint(_))))
        | ("float", Some(scalar @ Scalar::Float(_))) => Ok(scalar),
        #[expect(clippy::cast_precision_loss, reason = "as Go does it")]
        ("float", Some(Scalar::Int(int))) => Ok(Scalar::Float(int as f64)),
        ("timestamp", _) if plain::is_timestamp(text.as_bytes()) => Ok(Scalar::Text(text)),
        _ => Err(Problem::Tag { tag, text }),
    };
    match tag {
        "tag:yaml.org,2002:null" => meaning("null", text),
        "tag:yaml.org,2002:bool" => meaning("bool", text),
        "tag:yaml.org,2002:int" => meaning("int", text),
        "tag:yaml.org,2002:float" => meaning("float", text),
        "tag:yaml.org,2002:timestamp" => meaning("timestamp", text),
        "tag:yaml.org,2002:binary" => decode(&text).map(Scalar::Text),
        _ => Ok(Scalar::Text(text)),
    }
}

/// As lenient as Go's: the last letter may carry bits that are not used.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Base64 with line breaks, as text. Bytes that are no UTF-8 are lost, as they are in Go.
fn decode(text: &str) -> Result<String, Problem> {
    let bytes = BASE64.decode(text.replace(['\r', '\n'], "")).map_err(|_| Problem::Base64)?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}
