//! Versions of releases, by the rules of Kubernetes' `ParseSemantic`.

use std::{cmp::Ordering, fmt};

/// A semantic version, with or without a leading `v`, that remembers how it was written.
#[derive(Clone, Debug)]
pub struct Version {
    number: semver::Version,
    text: String,
}

/// Text that is not a semantic version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a semantic version such as v1.2.3 ({problem})")]
pub struct NotAVersion {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Version {
    /// Reads a version. Blanks around it do not matter.
    pub fn parse(text: &str) -> Result<Self, NotAVersion> {
        let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let number = semver::Version::parse(trimmed.strip_prefix('v').unwrap_or(trimmed))
            .map_err(|error| NotAVersion { text: text.to_owned(), problem: error.to_string() })?;
        Ok(Self { number, text: trimmed.to_owned() })
    }

    /// The version as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.number.major
    }

    /// The second number.
    pub fn minor(&self) -> u64 {
        self.number.minor
    }

    /// Whether it is not a pre-release.
    pub fn is_stable(&self) -> bool {
        self.number.pre.is_empty()
    }

    /// Whether both name the same release, however they are written.
    pub fn is_same_release(&self, other: &Self) -> bool {
        self.number == other.number
    }

    /// Whether it comes after the other; what follows a `+` makes no difference.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.number.cmp_precedence(&other.number).is_gt()
    }

    /// The order in which releases are tried: stable before pre-release, then the newest first.
    pub fn by_preference(&self, other: &Self) -> Ordering {
        other.is_stable().cmp(&self.is_stable()).then_with(|| other.cmp(self))
    }
}

/// By precedence; what is equal in precedence is ordered by its text, so that an order never depends on chance.
impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp_precedence(&other.number).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("v1.2.3", true),
            ("1.2.3", true),
            (" v1.2.3", true),
            ("v1.2.3 ", true),
            ("v0.0.0", true),
            ("v1.2.3-rc.1", true),
            ("v1.2.3-0a.b-c+build.01", true),
            ("v1.2.3+build", true),
            ("v1.2", false),
            ("v1", false),
            ("v1.2.3.4", false),
            ("v01.2.3", false),
            ("v1.2.3-01", false),
            ("v1.2.3-", false),
            ("v1.2.3-a..b", false),
            ("V1.2.3", false),
            ("vv1.2.3", false),
            ("latest", false),
            ("", false),
            ("v1.2.x", false),
            ("v1.2.3/..", false),
        ] {
            assert_eq!(Version::parse(text).is_ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn builds_of_one_version_are_equally_new() {
        for (version, other, expected) in [
            ("v1.2.3", "v1.2.2", true),
            ("v1.2.3", "v1.2.3", false),
            ("v1.2.3", "1.2.3", false),
            ("v1.2.3+b", "v1.2.3+a", false),
            ("v1.2.3", "v1.2.3-rc.1", true),
            ("v1.2.3-rc.1", "v1.2.3", false),
            ("v1.10.0", "v1.9.9", true),
        ] {
            let [version, other] = [version, other].map(|it| Version::parse(it).unwrap());
            assert_eq!(version.is_newer_than(&other), expected, "{version} and {other}");
        }
    }

    #[test]
    fn stable_releases_come_first_and_the_newest_of_them_before_all() {
        let mut versions: Vec<_> =
            ["1.2.3", "v2.0.0-rc.10", "v1.10.0", "v2.0.0-rc.9", "v1.9.0", "v1.10.0+b", "v2.0.0-alpha"]
                .map(|it| Version::parse(it).unwrap())
                .into();
        versions.sort_by(Version::by_preference);
        let texts: Vec<_> = versions.iter().map(Version::as_str).collect();
        assert_eq!(
            texts,
            ["v1.10.0+b", "v1.10.0", "v1.9.0", "1.2.3", "v2.0.0-rc.10", "v2.0.0-rc.9", "v2.0.0-alpha"]
        );
    }
}
