//! What is worth another attempt, and when.

use std::time::Duration;

use super::Retry;
use crate::FetchError;
use crate::error::speaks_of_certificates;

/// Whether the same request may well succeed a moment later.
pub(crate) fn is_transient(error: &FetchError) -> bool {
    match error {
        FetchError::Unreachable { source, .. } => !speaks_of_certificates(source.as_ref()),
        FetchError::Status { status, .. } => *status >= 500,
        FetchError::TimedOut { .. } | FetchError::Truncated { .. } => true,
        _ => false,
    }
}

/// Whether the source could not be asked at all, so that an older answer is better than none.
pub(crate) fn is_absence(error: &FetchError) -> bool {
    is_transient(error) || matches!(error, FetchError::RateLimited { .. } | FetchError::Unreachable { .. })
}

/// The pause after this failed attempt (from 1).
pub(crate) fn pause(retry: &Retry, attempt: u32) -> Duration {
    let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
    retry.first_pause.saturating_mul(doubled).min(retry.longest_pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> FetchError {
        FetchError::Status { url: String::new(), status, detail: String::new() }
    }

    #[test]
    fn only_what_may_pass_is_retried() {
        let unreachable = |text: &str| FetchError::Unreachable { url: String::new(), source: text.into() };
        let limited =
            FetchError::RateLimited { host: String::new(), reset: None, variable: None, withheld: None };
        let checksum =
            FetchError::Checksum { what: String::new(), expected: String::new(), found: String::new() };
        for (error, transient, absence) in [
            (status(500), true, true),
            (status(503), true, true),
            (status(418), false, false),
            (unreachable("connection refused"), true, true),
            (unreachable("invalid peer certificate"), false, true),
            (FetchError::Truncated { url: String::new(), expected: None, found: 1 }, true, true),
            (limited, false, true),
            (checksum, false, false),
            (FetchError::TooLarge { url: String::new(), limit: 1 }, false, false),
        ] {
            assert_eq!((is_transient(&error), is_absence(&error)), (transient, absence), "{error:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit() {
        let retry = Retry {
            attempts: 9,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(3),
        };
        let pauses: Vec<_> = [1, 2, 3, 4, 99].map(|attempt| pause(&retry, attempt).as_millis()).into();
        assert_eq!(pauses, [500, 1000, 2000, 3000, 3000]);
    }
}
