//! A limit on how often something happens.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct Throttle {
    per_token: Duration,
    burst: u32,
    /// When the bucket was, or will be, empty.
    empty_at: Mutex<Option<Instant>>,
}

impl Throttle {
    /// So many a second on average, and so many at once beyond that.
    pub(crate) fn new(qps: f64, burst: u32) -> Self {
        Self {
            per_token: Duration::from_secs_f64(1.0 / qps),
            burst: burst.max(1),
            empty_at: Mutex::new(None),
        }
    }

    /// Waits for a token.
    pub(crate) async fn pass(&self) {
        let wait_until = {
            let mut empty_at = self.empty_at.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let full = now.checked_sub(self.per_token * self.burst).unwrap_or(now);
            let next = empty_at.map_or(full, |at| at.max(full)) + self.per_token;
            *empty_at = Some(next);
            next
        };
        tokio::time::sleep_until(wait_until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        tokio::time::advance(Duration::from_hours(1)).await;
        let throttle = Throttle::new(10.0, 5);
        let started = Instant::now();
        for _ in 0..5 {
            throttle.pass().await;
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            throttle.pass().await;
        }
        assert_eq!(started.elapsed().as_millis(), 1000);
    }
}
