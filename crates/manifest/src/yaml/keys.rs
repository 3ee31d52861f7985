//! The order of the keys of a map: `a2` before `a10`, signs before digits before letters.
//!
//! It is Go's for ASCII and for the letters of all languages. Beyond that, what counts as a letter or a digit
//! differs a little: combining marks, Roman numerals, the digits of other scripts.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// The entries of a map in the order they are written in.
pub(super) fn in_order(map: &Map<String, Value>) -> Vec<(&str, &Value)> {
    // `compare` is no total order (0b < 1 < 08 < 0b), so `sort_by` could panic, and Go's answer for such keys
    // changes from run to run. Ours depends on the keys alone.
    let mut keys: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    let mut sorted: Vec<(&str, &Value)> = Vec::with_capacity(keys.len());
    for (key, value) in keys {
        let at = sorted.partition_point(|(other, _)| compare(other, key) == Ordering::Less);
        sorted.insert(at, (key, value));
    }
    sorted
}

fn compare(a: &str, b: &str) -> Ordering {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let (Some(x), Some(y)) = (a.chars().nth(common), b.chars().nth(common)) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero counts only behind another digit: 10 is more than 1-, but 0- and 00 are both nothing.
    let follows_number = |seen: bool, c: char| c.is_ascii_digit() && (seen || c != '0');
    let zero_counts = (x == '0' || y == '0') && a.chars().take(common).fold(false, follows_number);
    let (a_number, a_digits) = number(a, common, zero_counts);
    let (b_number, b_digits) = number(b, common, zero_counts);
    a_number.cmp(&b_number).then(a_digits.cmp(&b_digits)).then(x.cmp(&y))
}

/// The number that begins at a place, after an implied 1 where zeros count, and how many digits it has.
fn number(text: &str, from: usize, zero_counts: bool) -> (i64, usize) {
    text.chars()
        .skip(from)
        .map_while(|c| c.to_digit(10))
        .fold((i64::from(zero_counts), 0), |(number, digits), digit| {
            (number.wrapping_mul(10).wrapping_add(i64::from(digit)), digits + 1)
        })
}
