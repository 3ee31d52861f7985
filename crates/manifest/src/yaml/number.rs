//! Numbers as they come out of Go.

use serde_json::Number;

/// A number after Go's detour through JSON: without point or exponent where it is whole and fits 64 bits,
/// else the shortest form that Go knows.
pub(super) fn text(number: &Number) -> String {
    // Not Rust's own formatting of floats: it rounds ties in the last digit the other way.
    let text = number.to_string();
    if !number.is_f64() {
        return text;
    }
    let unsigned = text.trim_start_matches('-');
    let sign = &text[..text.len() - unsigned.len()];
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading_zeros = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let (Ok(exponent), Ok(whole), Ok(leading_zeros)) =
        (exponent.parse::<i32>(), i32::try_from(whole.len()), i32::try_from(leading_zeros))
    else {
        return text;
    };
    // The power of ten of the first digit.
    let power = exponent + whole - leading_zeros - 1;

    let before_point = usize::try_from(power + 1).unwrap_or(0);
    if let Some(zeros) = before_point.checked_sub(significant.len())
        && power < 21
    {
        let whole = format!("{sign}{significant}{}", "0".repeat(zeros));
        if whole.parse::<i64>().is_ok() || whole.parse::<u64>().is_ok() {
            return whole;
        }
    }
    if (-4..6).contains(&power) {
        return text;
    }
    let (first, others) = significant.split_at(1);
    let point = if others.is_empty() { "" } else { "." };
    let direction = if power < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{others}e{direction}{:02}", power.unsigned_abs())
}
