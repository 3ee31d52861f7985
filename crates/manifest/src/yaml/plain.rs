//! What must not be written without quotes: the rules of YAML 1.1 as go-yaml has them.

use super::resolve;

/// Whether the text, written without quotes, is read as a string and as nothing else.
pub(super) fn is_string(text: &str) -> bool {
    resolve::untagged(text).is_none() && !is_timestamp(text.as_bytes()) && !is_base60(text)
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
pub(super) fn is_timestamp(text: &[u8]) -> bool {
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
