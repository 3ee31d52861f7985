//! How long to wait before the next attempt.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The wait after so many failed attempts: it doubles from 1 s to 30 s, less up to a fifth by which the many differ,
/// so that they do not come all at once when what they share is back.
pub(crate) fn back_off(failures: u32, whose: &impl Hash) -> Duration {
    let whole = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    let mut hasher = DefaultHasher::new();
    (whose, failures).hash(&mut hasher);
    let part = u32::try_from(hasher.finish() % 1000).unwrap_or_default();
    whole.saturating_sub(whole / 5 * part / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_30_seconds_and_differ() {
        for (failures, longest) in
            [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30), (u32::MAX, 30)]
        {
            let longest = Duration::from_secs(longest);
            for whose in 0..100 {
                let wait = back_off(failures, &whose);
                assert!(wait <= longest && wait >= longest * 4 / 5, "{failures}: {wait:?}");
            }
            assert_ne!(back_off(failures, &1), back_off(failures, &2));
            assert_eq!(back_off(failures, &1), back_off(failures, &1));
        }
    }
}
