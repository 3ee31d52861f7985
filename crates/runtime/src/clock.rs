//! The one place that asks what time it is.

use jiff::Timestamp;

/// The time of day.
pub fn now() -> Timestamp {
    Timestamp::now()
}
