//! Checksums, and the files that releases carry them in.

use std::fmt;

use ring::digest;

/// The SHA-256 of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut sum = [0; 32];
        sum.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(sum)
    }

    /// From 64 hexadecimal digits, with or without `sha256:` before them.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bytes = decode_hex(text.strip_prefix("sha256:").unwrap_or(text))?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit).try_into().ok()).collect()
}

/// The sum of `name` in a file such as `SHA256SUMS`, written by `sha256sum` or in the BSD style.
pub(crate) fn find_sum(sums: &str, name: &str) -> Option<Sha256> {
    sums.lines().filter_map(read_line).find(|(_, named)| is_same_file(named, name)).map(|(sum, _)| sum)
}

/// The sum in a file such as `components.yaml.sha256`: alone, or with the name of the file.
pub(crate) fn find_own_sum(text: &str, name: &str) -> Option<Sha256> {
    find_sum(text, name).or_else(|| Sha256::parse(text))
}

fn read_line(line: &str) -> Option<(Sha256, &str)> {
    let line = line.trim();
    if let Some((named, sum)) = line.strip_prefix("SHA256 (").and_then(|rest| rest.rsplit_once(") = ")) {
        return Some((Sha256::parse(sum)?, named));
    }
    let (sum, named) = line.split_once(char::is_whitespace)?;
    let named = named.trim_start();
    Some((Sha256::parse(sum)?, named.strip_prefix('*').unwrap_or(named)))
}

fn is_same_file(named: &str, name: &str) -> bool {
    named == name || named.strip_prefix("./") == Some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_sum_of_nothing_is_well_known() {
        assert_eq!(Sha256::of(b"").to_string(), EMPTY);
        assert_eq!(encode_hex(&Sha256::of(b"").0), EMPTY);
        assert_eq!(Sha256::parse(&format!("sha256:{}\n", EMPTY.to_uppercase())), Some(Sha256::of(b"")));
    }

    #[test]
    fn broken_sums_are_none() {
        for text in
            ["", "e3", "zz", &EMPTY[1..], &format!("{EMPTY}00"), "sha512:00", &EMPTY.replace('e', "é")]
        {
            assert_eq!(Sha256::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sums_are_found_by_name_in_every_style() {
        let other = Sha256::of(b"other");
        for line in ["X  a.yaml", "X *a.yaml", "X  ./a.yaml", "SHA256 (a.yaml) = X", "  X\ta.yaml  "] {
            let sums = format!("# sums\n{other}  b.yaml\n{}\n", line.replace('X', EMPTY));
            assert_eq!(find_sum(&sums, "a.yaml"), Some(Sha256::of(b"")), "{line}");
            assert_eq!(find_sum(&sums, "c.yaml"), None, "{line}");
            assert_eq!(find_sum(&sums, "yaml"), None, "{line}");
        }
    }

    #[test]
    fn a_file_of_its_own_may_hold_the_sum_alone() {
        assert_eq!(find_own_sum(&format!("{EMPTY}\n"), "a"), Some(Sha256::of(b"")));
        assert_eq!(find_own_sum(&format!("{EMPTY}  a\n"), "a"), Some(Sha256::of(b"")));
        assert_eq!(find_own_sum(&format!("{EMPTY}  b\n"), "a"), None);
        assert_eq!(find_own_sum("nothing", "a"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(bytes: Vec<u8>) {
            let sum = Sha256::of(&bytes);
            prop_assert_eq!(Sha256::parse(&sum.to_string()), Some(sum));
        }

        #[test]
        fn no_text_breaks_the_reader(text: String) {
            let _ = find_own_sum(&text, "a");
        }
    }
}
