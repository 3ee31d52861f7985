//! Semantic versions, as far as Kubernetes versions need them.

use std::fmt;

/// A version without what comes after its patch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u64,
    /// Minor.
    pub minor: u64,
    /// Patch.
    pub patch: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads a semantic version, without a leading `v`. Pre-release and build must be well-formed and are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (core, pre_release) =
            rest.split_once('-').map_or((rest, None), |(core, pre_release)| (core, Some(pre_release)));
        let identifiers = |text: &str, plain_numbers: bool| {
            text.split('.').all(|part| {
                let all = |fits: fn(&u8) -> bool| part.as_bytes().iter().all(fits);
                let allowed = !part.is_empty() && all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
                let number = all(u8::is_ascii_digit);
                allowed && !(plain_numbers && number && part.len() > 1 && part.starts_with('0'))
            })
        };
        let well_formed = build.is_none_or(|build| identifiers(build, false))
            && pre_release.is_none_or(|pre_release| identifiers(pre_release, true));
        let mut numbers = core.split('.').map(number);
        let version = Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        (well_formed && numbers.next().is_none()).then_some(version)
    }
}

fn number(text: &str) -> Option<u64> {
    let plain = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_strictly() {
        for (text, expected) in [
            ("1.30.0", Some((1, 30, 0))),
            ("1.30.0-rc.1+build.07", Some((1, 30, 0))),
            ("1.30.0+vmware.1-x", Some((1, 30, 0))),
            ("0.0.0", Some((0, 0, 0))),
            ("v1.30.0", None),
            ("1.30", None),
            ("1.30.0.0", None),
            ("1.030.0", None),
            ("1.30.0-rc.01", None),
            ("1.30.0-", None),
            ("1.30.0+", None),
            ("1.30.0-ä", None),
            ("1.+3.0", None),
            ("", None),
            ("..", None),
            ("99999999999999999999.0.0", None),
        ] {
            let read = Version::parse(text).map(|it| (it.major, it.minor, it.patch));
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
