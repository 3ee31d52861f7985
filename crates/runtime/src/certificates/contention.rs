//! Backing off when another writer keeps overwriting the same field.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// This many rewrites of one target within the window are no contention yet.
const TOLERATED: usize = 3;
const WINDOW: Duration = Duration::from_mins(1);
/// The wait after the last tolerated rewrite; it doubles with each further rewrite.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The latest writes of one bundle to one target.
#[derive(Clone, Debug, Default)]
pub(super) struct Contention {
    bundle: String,
    /// The latest rewrites.
    rewrites: VecDeque<Instant>,
    pause: Duration,
    paused_until: Option<Instant>,
}

impl Contention {
    /// Until when the target is not written, if a pause is on.
    pub(super) fn paused_until(&self, bundle: &str, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| self.bundle == bundle && *until > now)
    }

    /// Records a write; true for the one that starts contention.
    pub(super) fn wrote(&mut self, bundle: &str, now: Instant) -> bool {
        if self.bundle != bundle {
            // The first write of a bundle overwrites no other writer.
            *self = Self { bundle: bundle.to_owned(), ..Self::default() };
            return false;
        }
        self.rewrites.push_back(now);
        while self.rewrites.len() > TOLERATED {
            self.rewrites.pop_front();
        }
        // Our own pauses spread the rewrites.
        let window = WINDOW + self.pause * 4;
        let lately = self.rewrites.front().is_some_and(|first| now.duration_since(*first) <= window);
        if self.rewrites.len() < TOLERATED || !lately {
            self.pause = Duration::ZERO;
            self.paused_until = None;
            return false;
        }
        let is_new = self.pause.is_zero();
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.paused_until = Some(now + self.pause);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rewrites_are_tolerated_and_more_are_contention() {
        let mut now = Instant::now();
        let mut contention = Contention::default();
        assert!(!contention.wrote("a", now), "the first write");
        for _ in 0..2 {
            assert!(!contention.wrote("a", now));
            assert_eq!(contention.paused_until("a", now), None);
        }
        // Each rewrite waits longer than the one before; only the first is reported.
        for (count, seconds) in [1, 2, 4, 8, 16, 32, 60, 60, 60, 60].into_iter().enumerate() {
            assert_eq!(contention.wrote("a", now), count == 0, "{count}");
            let until = now + Duration::from_secs(seconds);
            assert_eq!(contention.paused_until("a", now), Some(until), "{count}");
            assert_eq!(contention.paused_until("a", until), None);
            assert_eq!(contention.paused_until("b", now), None, "another bundle is news");
            now = until;
        }
        // After a quiet time it starts over.
        now += Duration::from_mins(10);
        for expected in [false, false, true] {
            assert_eq!(contention.wrote("a", now), expected);
        }
        assert!(!contention.wrote("b", now));
        assert_eq!(contention.paused_until("b", now), None);
    }

    #[test]
    fn rare_rewrites_are_no_contention() {
        let mut now = Instant::now();
        let mut contention = Contention::default();
        for _ in 0..20 {
            assert!(!contention.wrote("a", now));
            assert_eq!(contention.paused_until("a", now), None);
            now += Duration::from_secs(40);
        }
    }
}
