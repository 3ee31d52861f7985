//! A condition as reported, before it is in an object's list.

use std::fmt;

use jiff::Timestamp;

use super::{Condition, ConditionStatus};

impl ConditionStatus {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What is said about one condition, by us or by a provider.
///
/// It has no generation, and a time only if the reporter set one: [`set`](super::set) fills both in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The type of the condition.
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one CamelCase word.
    pub reason: String,
    /// Why, for a person; may be empty.
    pub message: String,
    /// Since when, if that is known better than by looking at the clock now.
    pub since: Option<Timestamp>,
}

impl Report {
    /// A report without message, true from now on.
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            since: None,
        }
    }

    /// The same with a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same, true since then.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }
}

impl From<&Condition> for Report {
    fn from(condition: &Condition) -> Self {
        ConditionRef::from(condition).to_report()
    }
}

/// A condition borrowed from wherever it is: a typed list, a provider's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionRef<'a> {
    /// The type of the condition.
    pub type_: &'a str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one CamelCase word.
    pub reason: &'a str,
    /// Why, for a person; may be empty.
    pub message: &'a str,
    /// Since when, if known.
    pub since: Option<Timestamp>,
}

impl ConditionRef<'_> {
    fn to_report(self) -> Report {
        Report {
            type_: self.type_.to_owned(),
            status: self.status,
            reason: self.reason.to_owned(),
            message: self.message.to_owned(),
            since: self.since,
        }
    }
}

impl<'a> From<&'a Condition> for ConditionRef<'a> {
    fn from(condition: &'a Condition) -> Self {
        Self {
            type_: &condition.type_,
            status: condition.status,
            reason: &condition.reason,
            message: &condition.message,
            since: Some(condition.last_transition_time.0),
        }
    }
}

impl<'a> From<&'a Report> for ConditionRef<'a> {
    fn from(report: &'a Report) -> Self {
        Self {
            type_: &report.type_,
            status: report.status,
            reason: &report.reason,
            message: &report.message,
            since: report.since,
        }
    }
}
