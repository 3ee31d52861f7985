//! What a plain scalar means to `go.yaml.in/yaml/v3`, which viper reads with.

use crate::config::value::Value;

/// The meaning of a plain scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Float(f64::NEG_INFINITY),
        _ => number_or_time(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

fn number_or_time(text: &str) -> Option<Value> {
    match text.bytes().next()? {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            if let Some(time) = timestamp(text) {
                return Some(Value::Text(time));
            }
            let digits = text.replace('_', "");
            integer(&digits).map(Value::Integer).or_else(|| float(&digits))
        }
        _ => None,
    }
}

/// An integer that fits 64 bits, with or without sign; a leading zero means octal.
fn integer(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, radix) = match unsigned.get(..2) {
        Some("0x" | "0X") => (unsigned.get(2..)?, 16),
        Some("0o" | "0O") => (unsigned.get(2..)?, 8),
        Some("0b" | "0B") => (unsigned.get(2..)?, 2),
        Some(other) if other.starts_with('0') => (unsigned.get(1..)?, 8),
        _ => (unsigned, 10),
    };
    if !digits.starts_with(|it: char| it.is_ascii_hexdigit()) {
        return None;
    }
    let number = i128::from(u64::from_str_radix(digits, radix).ok()?);
    match (text.starts_with('-'), text.starts_with('+')) {
        (true, _) => (number <= -i128::from(i64::MIN)).then_some(-number),
        (_, true) => (number <= i128::from(i64::MAX)).then_some(number),
        _ => Some(number),
    }
}

/// A decimal number; one that is too great for a float stays text.
fn float(text: &str) -> Option<Value> {
    let decimal = text.bytes().all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
    let number = text.parse::<f64>().ok().filter(|it| decimal && it.is_finite())?;
    Some(Value::Float(number))
}

/// A point in time as Go writes it, if the text is one of the forms that Go's YAML takes for it.
pub(crate) fn timestamp(text: &str) -> Option<String> {
    let mut rest = text;
    if text.bytes().take_while(u8::is_ascii_digit).count() != 4 {
        return None;
    }
    let year = take_number(&mut rest, 4)?;
    let month = take_after(&mut rest, '-')?;
    let day = take_after(&mut rest, '-')?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.is_empty() {
        return Some(format!("{date} 00:00:00 +0000 UTC"));
    }
    let with_zone = !rest.starts_with(' ');
    rest = rest.strip_prefix(['T', 't', ' '])?;
    let hour = take_number(&mut rest, 2)?;
    let minute = take_after(&mut rest, ':')?;
    let second = take_after(&mut rest, ':')?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = take_fraction(&mut rest);
    let zone = match (with_zone, rest) {
        (true, "Z") | (false, "") => "+0000 UTC".to_owned(),
        (true, _) => offset(rest)?,
        (false, _) => return None,
    };
    Some(format!("{date} {hour:02}:{minute:02}:{second:02}{fraction} {zone}"))
}

fn take_number(rest: &mut &str, most_digits: usize) -> Option<u32> {
    let length = rest.bytes().take(most_digits).take_while(u8::is_ascii_digit).count();
    let (digits, others) = rest.split_at_checked(length)?;
    *rest = others;
    digits.parse().ok()
}

fn take_after(rest: &mut &str, separator: char) -> Option<u32> {
    *rest = rest.strip_prefix(separator)?;
    take_number(rest, 2)
}

/// The fraction with its point and without zeros at its end, to the nanosecond.
fn take_fraction(rest: &mut &str) -> String {
    let Some(after) = rest.strip_prefix(['.', ',']) else { return String::new() };
    let length = after.bytes().take_while(u8::is_ascii_digit).count();
    let Some((digits, others)) = after.split_at_checked(length).filter(|_| length > 0) else {
        return String::new();
    };
    *rest = others;
    let digits = digits.get(..9).unwrap_or(digits).trim_end_matches('0');
    if digits.is_empty() { String::new() } else { format!(".{digits}") }
}

/// `+02:00` as `+0200 +0200`: Go has no better name for a zone.
fn offset(text: &str) -> Option<String> {
    let sign = text.chars().next().filter(|it| matches!(it, '+' | '-'))?;
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let two_digits = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
    if !two_digits(hours) || !two_digits(minutes) || hours > "24" || minutes > "60" {
        return None;
    }
    if hours == "00" && minutes == "00" {
        return Some("+0000 UTC".to_owned());
    }
    Some(format!("{sign}{hours}{minutes} {sign}{hours}{minutes}"))
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}
