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
    match Decimal::parse(&text) {
        Some(decimal) => decimal.whole().unwrap_or_else(|| decimal.shortest()),
        None => "0".to_owned(),
    }
}

/// A number as Go has it once JSON went through a `float64`: whole numbers that fit 64 bits are integers again,
/// with the shortest digits of the float that they were. There is none for infinity and not-a-number.
pub(super) fn from_float(float: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = Number::from_f64(float)?;
    if float.fract() != 0.0 {
        return Some(number);
    }
    if float.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
        return Some(Number::from(float as i64));
    }
    let digits = text(&number);
    let whole = digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from));
    Some(whole.unwrap_or(number))
}

/// A float as the key of a map, which Go shortens to the digits of a `float32`.
pub(super) fn key(float: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "as Go does it")]
    let short = float as f32;
    if short.is_nan() {
        return ".nan".to_owned();
    }
    if short.is_infinite() {
        return if short > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    if short == 0.0 {
        return if short.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let text = serde_json::to_string(&short).unwrap_or_else(|_| short.to_string());
    Decimal::parse(&text).map_or_else(|| text.clone(), |decimal| decimal.shortest())
}

/// A decimal number other than zero: its digits without zeros at either end, and the power of ten of the first.
struct Decimal<'text> {
    sign: &'text str,
    digits: String,
    power: i32,
}

impl<'text> Decimal<'text> {
    fn parse(text: &'text str) -> Option<Self> {
        let unsigned = text.trim_start_matches('-');
        let sign = text.strip_suffix(unsigned)?;
        let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let leading_zeros = i32::try_from(all.len() - digits.len()).ok()?;
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return None;
        }
        let power = exponent.parse::<i32>().ok()? + i32::try_from(whole.len()).ok()? - leading_zeros - 1;
        Some(Self { sign, digits: digits.to_owned(), power })
    }

    /// All digits of a whole number that fits 64 bits.
    fn whole(&self) -> Option<String> {
        let places = usize::try_from(self.power + 1).ok()?;
        let zeros = places.checked_sub(self.digits.len())?;
        // No longer number fits, and none of a length that would hurt is made.
        if places > 20 {
            return None;
        }
        let text = format!("{}{}{}", self.sign, self.digits, "0".repeat(zeros));
        (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()).then_some(text)
    }

    /// What `%g` prints: an exponent for what is below 0.0001 or has more than six places before the point.
    fn shortest(&self) -> String {
        let Self { sign, digits, power } = self;
        match usize::try_from(*power) {
            Err(_) if *power >= -4 => {
                let zeros = "0".repeat(power.unsigned_abs() as usize - 1);
                format!("{sign}0.{zeros}{digits}")
            }
            Ok(last @ ..6) => match digits.split_at_checked(last + 1) {
                Some((whole, "")) => format!("{sign}{whole}"),
                Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
                None => format!("{sign}{digits}{}", "0".repeat(last + 1 - digits.len())),
            },
            _ => {
                let (first, others) = digits.split_at(1);
                let point = if others.is_empty() { "" } else { "." };
                let direction = if *power < 0 { '-' } else { '+' };
                format!("{sign}{first}{point}{others}e{direction}{:02}", power.unsigned_abs())
            }
        }
    }
}
