//! When somebody else writes the same field again and again: neither gives in, but at least one is slow about it.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// This many rewrites of one target within the window are taken for mishaps.
const MISHAPS: usize = 3;
const WINDOW: Duration = Duration::from_mins(1);
/// The wait after the last mishap; it doubles with each further rewrite.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The latest writes of one bundle to one target.
#[derive(Clone, Debug, Default)]
pub(super) struct Quarrel {
    bundle: String,
    /// Of all rewrites, the latest that could make it a quarrel.
    rewrites: VecDeque<Instant>,
    pause: Duration,
    paused_until: Option<Instant>,
}

impl Quarrel {
    /// Until when the target is left as it is, if it is.
    pub(super) fn paused_until(&self, bundle: &str, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| self.bundle == bundle && *until > now)
    }

    /// Takes note of a write; says whether it shows for the first time that there is a quarrel.
    pub(super) fn wrote(&mut self, bundle: &str, now: Instant) -> bool {
        if self.bundle != bundle {
            // The first write of a bundle puts nothing right that somebody broke.
            *self = Self { bundle: bundle.to_owned(), ..Self::default() };
            return false;
        }
        self.rewrites.push_back(now);
        while self.rewrites.len() > MISHAPS {
            self.rewrites.pop_front();
        }
        // Our own pauses spread the rewrites.
        let window = WINDOW + self.pause * 4;
        let lately = self.rewrites.front().is_some_and(|first| now.duration_since(*first) <= window);
        if self.rewrites.len() < MISHAPS || !lately {
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
    fn a_few_rewrites_are_mishaps_and_more_are_a_quarrel() {
        let mut now = Instant::now();
        let mut quarrel = Quarrel::default();
        assert!(!quarrel.wrote("a", now), "the first write");
        for _ in 0..2 {
            assert!(!quarrel.wrote("a", now));
            assert_eq!(quarrel.paused_until("a", now), None);
        }
        // Whoever overwrites it at once is answered ever more slowly, and only told of once.
        for (count, seconds) in [1, 2, 4, 8, 16, 32, 60, 60, 60, 60].into_iter().enumerate() {
            assert_eq!(quarrel.wrote("a", now), count == 0, "{count}");
            let until = now + Duration::from_secs(seconds);
            assert_eq!(quarrel.paused_until("a", now), Some(until), "{count}");
            assert_eq!(quarrel.paused_until("a", until), None);
            assert_eq!(quarrel.paused_until("b", now), None, "another bundle is news");
            now = until;
        }
        // After peace it begins anew.
        now += Duration::from_mins(10);
        for expected in [false, false, true] {
            assert_eq!(quarrel.wrote("a", now), expected);
        }
        assert!(!quarrel.wrote("b", now));
        assert_eq!(quarrel.paused_until("b", now), None);
    }

    #[test]
    fn rare_rewrites_are_no_quarrel() {
        let mut now = Instant::now();
        let mut quarrel = Quarrel::default();
        for _ in 0..20 {
            assert!(!quarrel.wrote("a", now));
            assert_eq!(quarrel.paused_until("a", now), None);
            now += Duration::from_secs(40);
        }
    }
}
