//! Reasons that come from the algebra itself, not from any one condition.

/// A condition that was expected is not there.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// A condition gives no reason of its own.
pub const NO_REASON_REPORTED: &str = "NoReasonReported";
/// A provider's conditions cannot be read.
pub const INVALID_CONDITION_REPORTED: &str = "InvalidConditionReported";
/// A merge found an issue, and the caller named no reason for that.
pub const ISSUES_REPORTED: &str = "IssuesReported";
/// A merge found something unknown, and the caller named no reason for that.
pub const UNKNOWN_REPORTED: &str = "UnknownReported";
/// A merge found all well, and the caller named no reason for that.
pub const INFO_REPORTED: &str = "InfoReported";
