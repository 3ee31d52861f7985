//! What the [summary](super::Summary) of an object's own conditions and the [aggregate](super::Aggregate)
//! of one condition over many objects have in common.
//!
//! Both give False where there is an issue, else Unknown where something is unknown, else True
//! (True and False change places where the result has negative polarity), and say which condition or
//! object is to blame.

use thiserror::Error;

use super::{ConditionRef, ConditionStatus, reason};

/// Whether True is good news or bad news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polarity {
    /// True is good, e.g. `Ready`.
    #[default]
    Positive,
    /// False is good, e.g. `Deleting`.
    Negative,
}

/// How much a condition weighs in a merge, the heaviest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Something is wrong.
    Issue,
    /// The status is unknown.
    Unknown,
    /// All is well.
    Info,
}

impl Priority {
    /// The priority that a status has by its polarity alone.
    pub const fn of(status: ConditionStatus, polarity: Polarity) -> Self {
        match (status, polarity) {
            (ConditionStatus::Unknown, _) => Self::Unknown,
            (ConditionStatus::False, Polarity::Positive) | (ConditionStatus::True, Polarity::Negative) => {
                Self::Issue
            }
            (ConditionStatus::True, Polarity::Positive) | (ConditionStatus::False, Polarity::Negative) => {
                Self::Info
            }
        }
    }

    pub(super) const fn status(self, polarity: Polarity) -> ConditionStatus {
        match (self, polarity) {
            (Self::Unknown, _) => ConditionStatus::Unknown,
            (Self::Issue, Polarity::Positive) | (Self::Info, Polarity::Negative) => ConditionStatus::False,
            (Self::Info, Polarity::Positive) | (Self::Issue, Polarity::Negative) => ConditionStatus::True,
        }
    }
}

/// The reason of the result, by the heaviest of what was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons<'a> {
    /// Where there is an issue.
    pub issue: &'a str,
    /// Where something is unknown and there is no issue.
    pub unknown: &'a str,
    /// Where all is well.
    pub info: &'a str,
}

impl Default for Reasons<'_> {
    fn default() -> Self {
        Self {
            issue: reason::ISSUES_REPORTED,
            unknown: reason::UNKNOWN_REPORTED,
            info: reason::INFO_REPORTED,
        }
    }
}

impl<'a> Reasons<'a> {
    pub(super) const fn of(&self, priority: Priority) -> &'a str {
        match priority {
            Priority::Issue => self.issue,
            Priority::Unknown => self.unknown,
            Priority::Info => self.info,
        }
    }
}

/// Conditions that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// There is nothing to say anything about.
    #[error("there is no condition to compute {target} from")]
    Nothing {
        /// The type of the result.
        target: String,
    },
    /// The result would depend on itself.
    #[error("{target} cannot be computed from itself")]
    Circular {
        /// The type of the result.
        target: String,
    },
}

/// What stands for a condition that was expected and is not there.
pub(super) fn not_yet_reported<'a>(type_: &'a str, message: &'a str) -> ConditionRef<'a> {
    ConditionRef {
        type_,
        status: ConditionStatus::Unknown,
        reason: reason::NOT_YET_REPORTED,
        message,
        since: None,
    }
}

/// A message as it follows a bullet: on the same line, or as a list of its own below it.
pub(super) fn indented(message: &str) -> String {
    if !message.contains('\n') && !has_bullet(message) {
        return format!(" {message}");
    }
    let all_have_bullets = message.split('\n').all(has_bullet);
    message
        .split('\n')
        .map(|line| match (all_have_bullets, has_bullet(line)) {
            (true, _) => format!("\n  {line}"),
            (false, true) => format!("\n    {line}"),
            (false, false) => format!("\n  * {line}"),
        })
        .collect()
}

/// A star before white space, wherever it is in the line.
fn has_bullet(line: &str) -> bool {
    line.as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'*' && matches!(pair[1], b'\t' | b'\n' | 0x0c | b'\r' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_follow_polarity() {
        for (status, positive, negative) in [
            (ConditionStatus::True, Priority::Info, Priority::Issue),
            (ConditionStatus::False, Priority::Issue, Priority::Info),
            (ConditionStatus::Unknown, Priority::Unknown, Priority::Unknown),
        ] {
            assert_eq!(Priority::of(status, Polarity::Positive), positive);
            assert_eq!(Priority::of(status, Polarity::Negative), negative);
        }
    }

    #[test]
    fn lists_are_indented() {
        for (message, expected) in [
            ("a", " a"),
            ("", " "),
            ("a*b *", " a*b *"),
            ("* a", "\n  * a"),
            ("a * b", "\n  a * b"),
            ("* a\n* b", "\n  * a\n  * b"),
            ("a\nb", "\n  * a\n  * b"),
            ("a\n* b\n  * c", "\n  * a\n    * b\n      * c"),
            ("a\n", "\n  * a\n  * "),
        ] {
            assert_eq!(indented(message), expected, "{message:?}");
        }
    }
}
