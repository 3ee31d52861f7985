//! What the functions make of a value. Positions and lengths count bytes, as they do upstream.

use std::borrow::Cow;

use super::decode::reverse;
use super::error::EvaluationProblem;
use super::glob;
use super::render::Room;
use super::tree::{End, Function, Occurrence};

/// The longest pattern in bytes. Each is tried at every position of the value, so that a long one takes minutes.
const LONGEST_PATTERN: usize = 4096;

/// The value after the function, which may have cut a character in two. What would not fit is not made.
pub(super) fn apply<'a>(
    function: Function,
    value: &'a str,
    arguments: &[Vec<u8>],
    room: &Room,
) -> Result<Cow<'a, [u8]>, EvaluationProblem> {
    let bytes = value.as_bytes();
    let unchanged = Cow::Borrowed(bytes);
    Ok(match (function, arguments) {
        (Function::Default, words) if value.is_empty() => Cow::Owned(words.concat()),
        (Function::Length, _) => Cow::Owned(value.len().to_string().into_bytes()),
        (Function::Lower, _) => Cow::Owned(value.chars().map(lower).collect::<String>().into_bytes()),
        (Function::Upper, _) => Cow::Owned(value.chars().map(upper).collect::<String>().into_bytes()),
        (Function::LowerFirst, _) => Cow::Owned(change_first(value, lower)),
        (Function::UpperFirst, _) => Cow::Owned(change_first(value, upper)),
        (Function::Substring, [position, lengths @ ..]) => {
            Cow::Borrowed(substring(bytes, position, lengths.first())?)
        }
        (Function::Trim { .. }, [pattern]) if pattern.len() > LONGEST_PATTERN => {
            return Err(EvaluationProblem::LongPattern { limit: LONGEST_PATTERN });
        }
        (Function::Trim { end: End::Prefix, longest }, [pattern]) => {
            Cow::Borrowed(trim(bytes, pattern, longest))
        }
        // Pattern and value are turned around as they are, so that classes and escapes lose their meaning.
        (Function::Trim { end: End::Suffix, longest }, [pattern]) => {
            Cow::Owned(reverse(trim(&reverse(bytes), &reverse(pattern), longest)))
        }
        (Function::Replace(Occurrence::First), [old, new @ ..]) => {
            Cow::Owned(replace_first(value, old, &new.concat()))
        }
        (Function::Replace(Occurrence::All), [old, new @ ..]) => {
            Cow::Owned(replace_all(value, old, &new.concat(), room)?)
        }
        // Without a new text, an end is not removed but kept.
        (Function::Replace(Occurrence::At(End::Prefix)), [old, new]) => {
            match bytes.strip_prefix(old.as_slice()) {
                Some(rest) => Cow::Owned([new, rest].concat()),
                None => unchanged,
            }
        }
        (Function::Replace(Occurrence::At(End::Suffix)), [old, new]) => {
            match bytes.strip_suffix(old.as_slice()) {
                Some(rest) => Cow::Owned([rest, new].concat()),
                None => unchanged,
            }
        }
        _ => unchanged,
    })
}

fn change_first(value: &str, change: fn(char) -> char) -> Vec<u8> {
    let mut rest = value.chars();
    let first = rest.next().map(change);
    first.into_iter().chain(rest).collect::<String>().into_bytes()
}

/// One character for one: where Unicode has no single capital letter, the letter stays.
fn upper(c: char) -> char {
    let shifted = |by| char::from_u32(u32::from(c) + by).unwrap_or(c);
    match c {
        // Greek letters with a small iota have one with a capital iota.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => shifted(8),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => shifted(9),
        _ => only(c.to_uppercase()).unwrap_or(c),
    }
}

fn lower(c: char) -> char {
    match c {
        'İ' => 'i',
        _ => only(c.to_lowercase()).unwrap_or(c),
    }
}

fn only(mut chars: impl ExactSizeIterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.len() == 0)
}

/// A position or a length that is no number leaves the value as it is.
fn substring<'a>(
    value: &'a [u8],
    position: &[u8],
    length: Option<&Vec<u8>>,
) -> Result<&'a [u8], EvaluationProblem> {
    let Some(position) = number(position) else { return Ok(value) };
    let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
    // A negative position counts from the end.
    let start = if position < 0 { size.saturating_add(position).max(0) } else { position };
    let end = match length {
        None => size,
        Some(length) => match number(length) {
            None => return Ok(value),
            Some(length) if length < 0 && start + length < size => {
                return Err(EvaluationProblem::NegativeLength { length });
            }
            Some(length) => start.saturating_add(length).min(size),
        },
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    Ok(range.and_then(|(start, end)| value.get(start..end)).unwrap_or_default())
}

fn number(bytes: &[u8]) -> Option<i64> {
    str::from_utf8(bytes).ok()?.parse().ok()
}

/// The value without the beginning that the pattern fits. An empty beginning never counts, and a pattern
/// that cannot be understood fits nothing.
fn trim<'a>(value: &'a [u8], pattern: &[u8], longest: bool) -> &'a [u8] {
    let mut trimmed = value;
    for end in (1..=value.len()).rev() {
        let (beginning, rest) = value.split_at(end);
        match glob::matches(pattern, beginning) {
            Err(glob::BadPattern) => return value,
            Ok(true) if longest => return rest,
            Ok(true) => trimmed = rest,
            Ok(false) => {}
        }
    }
    trimmed
}

fn replace_first(value: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    match split_at_first(value.as_bytes(), old) {
        Some((before, after)) => [before, new, after].concat(),
        None => value.as_bytes().to_vec(),
    }
}

fn replace_all(value: &str, old: &[u8], new: &[u8], room: &Room) -> Result<Vec<u8>, EvaluationProblem> {
    let fits = |times: usize| room.check(new.len().checked_mul(times));
    if old.is_empty() {
        fits(value.chars().count() + 1)?;
        return Ok(put_between_all(value, new));
    }
    fits(count(value.as_bytes(), old))?;
    let mut replaced = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((before, after)) = split_at_first(rest, old) {
        replaced.extend_from_slice(before);
        replaced.extend_from_slice(new);
        rest = after;
    }
    replaced.extend_from_slice(rest);
    Ok(replaced)
}

fn count(value: &[u8], old: &[u8]) -> usize {
    std::iter::successors(split_at_first(value, old), |(_, rest)| split_at_first(rest, old)).count()
}

/// An empty text stands before, between and behind the characters.
fn put_between_all(value: &str, new: &[u8]) -> Vec<u8> {
    let mut text = new.to_vec();
    for c in value.chars() {
        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        text.extend_from_slice(new);
    }
    text
}

fn split_at_first<'a>(value: &'a [u8], old: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let start = match old.len() {
        0 => 0,
        length => value.windows(length).position(|window| window == old)?,
    };
    let (before, rest) = value.split_at(start);
    Some((before, rest.strip_prefix(old)?))
}
