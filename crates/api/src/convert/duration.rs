//! Durations as Go writes them in text, and as whole seconds.

/// The nanoseconds of every unit that Go knows.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];
pub(crate) const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// Go keeps a duration in 64 bits with a sign.
const MAX_NANOS: u128 = i64::MAX as u128;

/// Reads a text such as `1h30m` as seconds: cut to whole ones, and to the range of the field.
pub(crate) fn seconds(text: &str) -> Option<i32> {
    let seconds = nanoseconds(text)? / NANOS_PER_SECOND.cast_signed();
    i32::try_from(seconds.clamp(i32::MIN.into(), i32::MAX.into())).ok()
}

/// Reads a text such as `1h30m` as nanoseconds; they fit into 64 bits with a sign, as Go keeps them.
pub(crate) fn nanoseconds(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let nanos = nanos(digits)?.cast_signed();
    Some(if negative { -nanos } else { nanos })
}

/// Writes seconds as Go does: `0s`, `59s`, `1m0s`, `1h0m0s`.
pub(crate) fn text(seconds: i32) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let seconds = seconds.unsigned_abs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{sign}{s}s"),
        (0, m, s) => format!("{sign}{m}m{s}s"),
        (h, m, s) => format!("{sign}{h}h{m}m{s}s"),
    }
}

fn nanos(mut text: &str) -> Option<u128> {
    if text == "0" {
        return Some(0);
    }
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u128;
    while !text.is_empty() {
        let (whole, rest) = split(text, |c| !c.is_ascii_digit());
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => split(rest, |c| !c.is_ascii_digit()),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, rest) = split(rest, |c| c == '.' || c.is_ascii_digit());
        let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        total = total.checked_add(share(fraction, unit))?;
        if total > MAX_NANOS {
            return None;
        }
        text = rest;
    }
    Some(total)
}

/// What a fraction of a unit comes to. Digits too small to matter are left out.
fn share(fraction: &str, unit: u128) -> u128 {
    let (mut value, mut scale) = (0, 1);
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    value * unit / scale
}

fn split(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("+0", Some(0)),
            ("5s", Some(5)),
            ("10m", Some(600)),
            ("1h30m", Some(5400)),
            ("1h0m0s", Some(3600)),
            ("1.5s", Some(1)),
            ("1.5h", Some(5400)),
            (".5h", Some(1800)),
            ("1.h", Some(3600)),
            ("999ms", Some(0)),
            ("1500ms", Some(1)),
            ("1s999999999ns", Some(1)),
            ("2000000\u{b5}s", Some(2)),
            ("2000000\u{3bc}s", Some(2)),
            ("2000000us", Some(2)),
            ("-5s", Some(-5)),
            ("-1500ms", Some(-1)),
            ("0.999999999999999999999999s", Some(0)),
            ("2147483647s", Some(i32::MAX)),
            ("2147483648s", Some(i32::MAX)),
            ("2562047h47m16s", Some(i32::MAX)),
            ("2562048h", None),
            ("99999999999999999999999999999999999999999h", None),
            ("", None),
            ("-", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("5 s", None),
            ("5d", None),
            ("5s5", None),
            ("1e3s", None),
            ("ä", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn writes_as_go_writes() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m0s"),
            (600, "10m0s"),
            (3600, "1h0m0s"),
            (5401, "1h30m1s"),
            (-90, "-1m30s"),
            (i32::MAX, "596523h14m7s"),
            (i32::MIN, "-596523h14m8s"),
        ] {
            assert_eq!(text(seconds), expected);
            assert_eq!(super::seconds(expected), Some(seconds), "{expected}");
        }
    }
}
