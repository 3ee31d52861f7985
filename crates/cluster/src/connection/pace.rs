//! How soon a kubeconfig that has changed may be tried.

use std::{collections::HashMap, hash::Hash, time::Duration};

use tokio::time::Instant;

/// So many changes in a row are tried at once.
const AT_ONCE: u32 = 4;
/// Each further one, this long after the one before: as often as a failed attempt is repeated.
const PERIOD: Duration = Duration::from_secs(30);
/// Below this many entries, outdated ones are not looked for.
const FEW: usize = 1024;

/// When changes of kubeconfigs were tried. It outlives Clusters and Secrets: to delete and recreate one must not cause
/// more attempts than to change it.
#[derive(Debug)]
pub(super) struct Pace<K> {
    /// Until when each has used up what it may. The past is not kept for long.
    used_until: HashMap<K, Instant>,
    sweep_at: usize,
}

impl<K> Default for Pace<K> {
    fn default() -> Self {
        Self { used_until: HashMap::new(), sweep_at: FEW }
    }
}

impl<K: Clone + Eq + Hash> Pace<K> {
    /// How long an attempt that a change causes has to wait.
    pub(super) fn wait(&self, key: &K, now: Instant) -> Duration {
        let used_until = self.used_until.get(key).copied().unwrap_or(now);
        used_until.saturating_duration_since(now).saturating_sub(PERIOD * (AT_ONCE - 1))
    }

    /// Such an attempt begins.
    pub(super) fn begin(&mut self, key: &K, now: Instant) {
        if self.used_until.len() >= self.sweep_at {
            self.used_until.retain(|_, until| *until > now);
            self.sweep_at = FEW.max(2 * self.used_until.len());
        }
        let until = self.used_until.entry(key.clone()).or_insert(now);
        *until = now.max(*until) + PERIOD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When attempts begin if the kubeconfig is another one each second.
    fn attempts(seconds: u64) -> Vec<u64> {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let mut begun = Vec::new();
        for second in 0..seconds {
            let now = start + Duration::from_secs(second);
            if pace.wait(&"a", now).is_zero() {
                pace.begin(&"a", now);
                begun.push(second);
            }
        }
        begun
    }

    #[test]
    fn a_few_changes_are_tried_at_once_and_further_ones_now_and_then() {
        assert_eq!(attempts(130), [0, 1, 2, 3, 30, 60, 90, 120]);
    }

    #[test]
    fn the_wait_is_as_long_as_it_says() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        for _ in 0..AT_ONCE {
            assert_eq!(pace.wait(&"a", start), Duration::ZERO);
            pace.begin(&"a", start);
        }
        assert_eq!(pace.wait(&"b", start), Duration::ZERO, "another Cluster's changes are its own");
        assert_eq!(pace.wait(&"a", start), PERIOD);
        assert_eq!(pace.wait(&"a", start + PERIOD), Duration::ZERO);
        // A key that was quiet for long may be quick again, and no quicker than at first.
        let later = start + PERIOD * 100;
        for _ in 0..AT_ONCE {
            assert_eq!(pace.wait(&"a", later), Duration::ZERO);
            pace.begin(&"a", later);
        }
        assert_eq!(pace.wait(&"a", later), PERIOD);
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        for number in 0..20 * FEW {
            pace.begin(&number, start + PERIOD * u32::try_from(number).unwrap());
        }
        assert!(pace.used_until.len() <= FEW, "{}", pace.used_until.len());
    }
}
