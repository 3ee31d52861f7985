//! What a scalar without quotes means: the rules of YAML 1.1 as go-yaml has them.

/// Whether the text, written without quotes, is read as a string and as nothing else.
pub(super) fn is_string(text: &str) -> bool {
    match text.as_bytes().first() {
        None => false,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => !is_word(text),
        Some(b'.') => !is_word(text) && !is_fraction(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            !is_word(text) && !is_timestamp(text.as_bytes()) && !is_number(text) && !is_base60(text)
        }
        Some(_) => true,
    }
}

/// The words for true, false, null, not-a-number and infinity.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON",
    "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
    "~", "null", "Null", "NULL",
    ".nan", ".NaN", ".NAN",
    ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

fn is_word(text: &str) -> bool {
    WORDS.contains(&text)
}

/// A number that begins with its point. An underscore may stand between two digits.
fn is_fraction(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let separates = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    let underscores_are_fine = (0..bytes.len()).filter(|at| bytes[*at] == b'_').all(separates);
    underscores_are_fine && is_decimal(&text.replace('_', ""))
}

fn is_number(text: &str) -> bool {
    let text = text.replace('_', "");
    if is_decimal(&text) {
        return true;
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'+' | b'-') => text.split_at(1),
        _ => ("", text.as_str()),
    };
    let limit = match sign {
        "" => u64::MAX,
        "-" => i64::MIN.unsigned_abs(),
        _ => i64::MAX.unsigned_abs(),
    };
    let fits = |digits: &str, radix: u32| {
        !digits.starts_with('+') && u64::from_str_radix(digits, radix).is_ok_and(|number| number <= limit)
    };
    match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => fits(&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => fits(&digits[2..], 8),
        // go-yaml also takes a sign behind the prefix, if there is none before it.
        [b'0', b'b', b'+' | b'-', ..] => sign.is_empty() && i64::from_str_radix(&digits[2..], 2).is_ok(),
        [b'0', b'b' | b'B', ..] => fits(&digits[2..], 2),
        _ => false,
    }
}

/// A decimal number, with or without sign, fraction and exponent, that is not too large for a float.
fn is_decimal(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |rest: &mut &str| {
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        *rest = &rest[end..];
        end
    };
    let whole = digits(&mut rest);
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        fraction = digits(&mut rest);
    }
    if whole + fraction == 0 {
        return false;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        rest = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty() && text.parse().is_ok_and(f64::is_finite)
}

/// A number in base 60, like a time of day. go-yaml does not read them, but quotes them for those who do.
fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (places, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut places = places.split(':');
    let is_run = |run: &str| run.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let is_first =
        places.next().is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()) && is_run(first));
    let mut others = 0;
    let is_place = |place: &str| {
        others += 1;
        matches!(place.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    };
    is_first && places.all(is_place) && others > 0 && is_run(fraction)
}

/// A date, or a date and a time, as Go's `time.Parse` takes it in the layouts that go-yaml tries.
fn is_timestamp(text: &[u8]) -> bool {
    let mut rest = text;
    let Some(year) = rest.split_off(..4) else {
        return false;
    };
    if !year.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let year = year.iter().fold(0, |year, digit| year * 10 + u32::from(digit - b'0'));
    let date = (|| {
        literal(&mut rest, b"-")?;
        let month = one_or_two_digits(&mut rest)?;
        literal(&mut rest, b"-")?;
        Some((month, one_or_two_digits(&mut rest)?))
    })();
    let Some((month, day)) = date else { return false };
    if day < 1 || day > days_in(year, month) {
        return false;
    }
    match rest.split_off_first() {
        None => true,
        Some(b'T' | b't') => time_of_day(&mut rest).is_some() && zone(&mut rest).is_some() && rest.is_empty(),
        Some(b' ') => {
            while literal(&mut rest, b" ").is_some() {}
            time_of_day(&mut rest).is_some() && rest.is_empty()
        }
        Some(_) => false,
    }
}

fn time_of_day(rest: &mut &[u8]) -> Option<()> {
    one_or_two_digits(rest).filter(|hour| *hour < 24)?;
    literal(rest, b":")?;
    one_or_two_digits(rest).filter(|minute| *minute < 60)?;
    literal(rest, b":")?;
    one_or_two_digits(rest).filter(|second| *second < 60)?;
    if let [b'.' | b',', b'0'..=b'9', ..] = rest {
        let end = rest.iter().skip(1).take_while(|b| b.is_ascii_digit()).count() + 1;
        *rest = &rest[end..];
    }
    Some(())
}

fn zone(rest: &mut &[u8]) -> Option<()> {
    if literal(rest, b"Z").is_some() {
        return Some(());
    }
    let [
        b'+' | b'-',
        h1 @ b'0'..=b'9',
        h2 @ b'0'..=b'9',
        b':',
        m1 @ b'0'..=b'9',
        m2 @ b'0'..=b'9',
        after @ ..,
    ] = rest
    else {
        return None;
    };
    *rest = after;
    let number = |tens: &u8, ones: &u8| (tens - b'0') * 10 + (ones - b'0');
    (number(h1, h2) <= 24 && number(m1, m2) <= 60).then_some(())
}

fn one_or_two_digits(rest: &mut &[u8]) -> Option<u32> {
    let end = rest.iter().take(2).take_while(|b| b.is_ascii_digit()).count();
    let digits = rest.split_off(..end).filter(|digits| !digits.is_empty())?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

fn literal(rest: &mut &[u8], literal: &[u8]) -> Option<()> {
    *rest = rest.strip_prefix(literal)?;
    Some(())
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    }
}
