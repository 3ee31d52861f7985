//! From when to when a certificate is valid, read from its DER form.

use jiff::{Timestamp, civil::DateTime, tz::Offset};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first and the last moment at which a certificate is valid.
pub(super) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (outer, _) = take(certificate, SEQUENCE)?;
    let (mut rest, _) = take(outer, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = skip(rest)?;
    }
    // The serial number, the algorithm and the issuer come first.
    for _ in 0..3 {
        rest = skip(rest)?;
    }
    let (validity, _) = take(rest, SEQUENCE)?;
    let (not_before, validity) = time(validity)?;
    let (not_after, _) = time(validity)?;
    Some((not_before, not_after))
}

/// The contents of the element at the beginning, if it has this tag, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = element(bytes)?;
    (found == tag).then_some((contents, rest))
}

fn skip(bytes: &[u8]) -> Option<&[u8]> {
    element(bytes).map(|(_, _, rest)| rest)
}

fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDhhmmssZ` (the years from 1950 to 2049) or `YYYYMMDDhhmmssZ`.
fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (tag, contents, rest) = element(bytes)?;
    let text = std::str::from_utf8(contents).ok()?.strip_suffix('Z')?;
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some((Offset::UTC.to_timestamp(civil).ok()?, rest))
}
