//! Patterns with `*`, `?` and `[...]`.
//!
//! They are matched lazily: a mistake in a pattern counts only if the match gets as far as there.

use super::decode::first_char;

/// The pattern cannot be understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadPattern;

/// Whether the pattern fits all of the name.
pub(super) fn matches(mut pattern: &[u8], mut name: &[u8]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let (has_star, chunk, rest) = split_chunk(pattern);
        if has_star && chunk.is_empty() {
            return Ok(true);
        }
        let last_start = if has_star { name.len() } else { 0 };
        let mut found = None;
        for start in 0..=last_start {
            let tail = name.get(start..).unwrap_or_default();
            // The last chunk must reach the end of the name.
            found = match_chunk(chunk, tail)?.filter(|after| after.is_empty() || !rest.is_empty());
            if found.is_some() {
                break;
            }
        }
        let Some(after) = found else { return Ok(false) };
        (pattern, name) = (rest, after);
    }
    Ok(name.is_empty())
}

/// Stars, what stands between them and the next star outside of brackets, and the rest.
fn split_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|b| **b == b'*').count();
    let (_, pattern) = pattern.split_at(stars);
    let mut is_in_class = false;
    let mut is_escaped = false;
    let end = pattern.iter().position(|byte| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        match byte {
            b'\\' => is_escaped = true,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'*' => return !is_in_class,
            _ => {}
        }
        false
    });
    let (chunk, rest) = pattern.split_at(end.unwrap_or(pattern.len()));
    (stars > 0, chunk, rest)
}

/// What remains of the name behind a chunk that fits its beginning.
fn match_chunk<'a>(mut chunk: &[u8], mut name: &'a [u8]) -> Result<Option<&'a [u8]>, BadPattern> {
    while let Some((operator, operands)) = chunk.split_first() {
        let Some((byte, after_byte)) = name.split_first() else { return Ok(None) };
        match operator {
            b'?' | b'[' => {
                let (c, length) = first_char(name).unwrap_or_default();
                name = name.get(length..).unwrap_or_default();
                chunk = operands;
                if *operator == b'[' && !match_class(&mut chunk, c)? {
                    return Ok(None);
                }
            }
            _ => {
                let literal = if *operator == b'\\' { operands } else { chunk };
                let (literal, after_literal) = literal.split_first().ok_or(BadPattern)?;
                if literal != byte {
                    return Ok(None);
                }
                (chunk, name) = (after_literal, after_byte);
            }
        }
    }
    Ok(Some(name))
}

/// Reads a class up to behind its `]`.
fn match_class(chunk: &mut &[u8], c: char) -> Result<bool, BadPattern> {
    let is_negated = take_if(chunk, b'^');
    let mut is_in_class = false;
    let mut is_first = true;
    while is_first || !take_if(chunk, b']') {
        let low = class_char(chunk)?;
        let high = if take_if(chunk, b'-') { class_char(chunk)? } else { low };
        is_in_class |= (low..=high).contains(&c);
        is_first = false;
    }
    Ok(is_in_class != is_negated)
}

/// A character of a class; there must be more behind it.
fn class_char(chunk: &mut &[u8]) -> Result<char, BadPattern> {
    if matches!(chunk.first(), Some(b'-' | b']')) {
        return Err(BadPattern);
    }
    take_if(chunk, b'\\');
    let (c, length) = first_char(chunk).ok_or(BadPattern)?;
    let is_broken = c == char::REPLACEMENT_CHARACTER && length == 1;
    *chunk = chunk.get(length..).filter(|rest| !rest.is_empty() && !is_broken).ok_or(BadPattern)?;
    Ok(c)
}

fn take_if(chunk: &mut &[u8], byte: u8) -> bool {
    let rest = chunk.strip_prefix(&[byte]);
    *chunk = rest.unwrap_or(chunk);
    rest.is_some()
}
