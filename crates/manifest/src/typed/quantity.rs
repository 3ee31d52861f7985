//! Quantities: `0.1` is `100m`, `1024Mi` is `1Gi`.

/// The suffixes of powers of ten, beginning with the ninth negative one, each a thousand times the one before.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The suffixes of powers of 1024, beginning with the first.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i32 = -9;
const EXA: i32 = 18;
/// Up to so many digits a number surely fits 64 bits.
const SAFE_DIGITS: usize = 18;

/// A quantity as Go writes it after reading it; nothing where it is none.
///
/// Go keeps the text where a quick look says that it is canonical, even where it is not (`1.500`, `007`), and loses
/// the suffix of what is beyond `E`; we copy the first, which is only a matter of taste, but not the second.
pub(super) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let parts = Parts::of(text)?;
    let suffix = Suffix::of(parts.suffix)?;
    if parts.looks_canonical(suffix) {
        return Some(text.to_owned());
    }
    let fraction = i32::try_from(parts.fraction.len()).ok()?;
    let exponent = suffix.power_of_ten().checked_sub(fraction)?;
    let mut amount = Amount::new(&format!("{}{}", parts.whole, parts.fraction), exponent);
    if let Suffix::Binary(power) = suffix {
        (0..power).for_each(|_| amount.double());
    }
    amount.round_up_to(NANO);
    if amount.digits.is_empty() {
        return Some("0".to_owned());
    }
    let sign = if parts.is_negative { "-" } else { "" };
    let text = match suffix {
        Suffix::Binary(_) => amount.in_binary().unwrap_or_else(|| amount.in_decimal()),
        Suffix::Decimal(_) => amount.in_decimal(),
        Suffix::Exponent(_) => amount.with_exponent(),
    };
    Some(format!("{sign}{text}"))
}

/// The parts of a quantity's text, without leading zeros.
struct Parts<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (is_negative, number) = match text.strip_prefix(['+', '-']) {
            Some(number) => (text.starts_with('-'), number),
            None => (false, text),
        };
        let (whole, rest) = split_digits(number.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let (_, rest) = split_digits(letters.strip_prefix(['+', '-']).unwrap_or(letters));
        rest.is_empty().then_some(Self { is_negative, whole, fraction, suffix })
    }

    /// Go's quick look.
    fn looks_canonical(&self, suffix: Suffix) -> bool {
        let digits = self.whole.len().max(1) + self.fraction.len();
        match suffix {
            Suffix::Binary(power) => {
                let fits = digits + usize::try_from(power * 3 / 10).unwrap_or(usize::MAX) < 15;
                let is_odd_enough = self.whole.parse::<u64>().is_ok_and(|whole| whole % 8 != 0);
                self.fraction.is_empty() && fits && is_odd_enough
            }
            Suffix::Decimal(power) | Suffix::Exponent(power) => {
                let scale =
                    i32::try_from(self.fraction.len()).ok().and_then(|places| power.checked_sub(places));
                let ends_in_thousands = {
                    let (in_whole, in_fraction) = (self.whole.as_bytes(), self.fraction.as_bytes());
                    let last = in_whole.iter().chain(in_fraction).rev().take(3);
                    last.clone().count() == 3 && last.copied().all(|digit| digit == b'0')
                };
                digits <= SAFE_DIGITS
                    && scale.is_some_and(|scale| scale >= NANO && scale % 3 == 0)
                    && !self.whole.is_empty()
                    && !ends_in_thousands
            }
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[derive(Clone, Copy)]
enum Suffix {
    /// A power of two.
    Binary(i32),
    /// A power of ten, by a letter.
    Decimal(i32),
    /// A power of ten, after an `e`.
    Exponent(i32),
}

impl Suffix {
    fn of(text: &str) -> Option<Self> {
        let place = |suffixes: &[&str]| {
            let at = suffixes.iter().position(|it| *it == text)?;
            i32::try_from(at).ok()
        };
        if let Some(at) = place(&DECIMAL) {
            return Some(Self::Decimal(NANO + 3 * at));
        }
        if let Some(at) = place(&BINARY) {
            return Some(Self::Binary(10 * (at + 1)));
        }
        text.strip_prefix(['e', 'E'])?.parse().ok().map(Self::Exponent)
    }

    const fn power_of_ten(self) -> i32 {
        match self {
            Self::Binary(_) => 0,
            Self::Decimal(power) | Self::Exponent(power) => power,
        }
    }
}

/// A positive decimal number of any length: digits (the last one first) and a power of ten.
struct Amount {
    digits: Vec<u8>,
    exponent: i32,
}

impl Amount {
    fn new(digits: &str, exponent: i32) -> Self {
        let digits = digits.bytes().rev().map(|digit| digit.wrapping_sub(b'0')).collect();
        let mut amount = Self { digits, exponent };
        amount.trim();
        amount
    }

    /// Takes zeros off both ends.
    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.exponent = self.exponent.saturating_add(i32::try_from(zeros).unwrap_or(i32::MAX));
    }

    fn double(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits {
            let doubled = *digit * 2 + carry;
            *digit = doubled % 10;
            carry = doubled / 10;
        }
        self.digits.extend((carry > 0).then_some(carry));
    }

    /// Rounds away from zero to a power of ten.
    fn round_up_to(&mut self, power: i32) {
        self.trim();
        let Ok(surplus) = usize::try_from(power.saturating_sub(self.exponent)) else { return };
        if surplus == 0 || self.digits.is_empty() {
            return;
        }
        // After trimming the last digit is no zero, so that there is always something to round.
        self.digits.drain(..surplus.min(self.digits.len()));
        self.exponent = power;
        for digit in &mut self.digits {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return self.trim();
            }
        }
        self.digits.push(1);
        self.trim();
    }

    /// In powers of 1024, at most what 63 bits hold; nothing for other fractions and for what is less than 1024.
    fn in_binary(&self) -> Option<String> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        let places = usize::try_from(self.exponent.saturating_neg()).unwrap_or_default();
        let zeros = u32::try_from(self.exponent).unwrap_or_default();
        let whole = self
            .digits
            .iter()
            .skip(places)
            .rev()
            .try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(*digit)));
        let whole =
            whole.and_then(|whole| whole.checked_mul(10_u64.checked_pow(zeros)?)).filter(|it| *it < MOST);
        let mut amount = match whole {
            Some(whole) if places > 0 || whole < 1024 => return None,
            Some(whole) => whole,
            None => MOST,
        };
        let mut suffix = "";
        for next in BINARY {
            if amount % 1024 != 0 {
                break;
            }
            amount /= 1024;
            suffix = next;
        }
        Some(format!("{amount}{suffix}"))
    }

    fn in_decimal(&self) -> String {
        let exponent = self.exponent.min(EXA);
        let (digits, exponent) = self.in_thousands(exponent);
        let at = usize::try_from((exponent - NANO) / 3).unwrap_or_default();
        format!("{digits}{}", DECIMAL.get(at).copied().unwrap_or_default())
    }

    fn with_exponent(&self) -> String {
        match self.in_thousands(self.exponent) {
            (digits, 0) => digits,
            (digits, exponent) => format!("{digits}e{exponent}"),
        }
    }

    /// The digits for the next lower power of a thousand, and its power of ten.
    fn in_thousands(&self, exponent: i32) -> (String, i32) {
        let exponent = exponent - exponent.rem_euclid(3);
        let zeros = usize::try_from(self.exponent - exponent).unwrap_or_default();
        let digits = self.digits.iter().rev().map(|digit| char::from(b'0' + digit));
        (digits.chain(std::iter::repeat_n('0', zeros)).collect(), exponent)
    }
}
