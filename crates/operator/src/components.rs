//! Placeholder.

/// The rules that a refusal misses.
pub fn missing_rules(_message: &str) -> Option<String> {
    None
}
