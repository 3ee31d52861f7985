//! Retries and waits: one place for delays and limits.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder, Retryable};
use tokio::time::{Instant, sleep};

/// The delays between tries: each is twice as long as the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// The first delay, and the one that is not exceeded.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The same delay each time.
    pub const fn constant(delay: Duration) -> Self {
        Self::new(delay, delay)
    }

    const fn builder(self) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_factor(2.0)
            .without_max_times()
    }
}

/// Sends a request until it succeeds or fails for good.
///
/// `is_transient` decides about an error and the time since the first try; `report` gets the errors that are retried.
pub async fn retry<T, E, F>(
    backoff: Backoff,
    request: impl FnMut() -> F,
    is_transient: impl Fn(&E, Duration) -> bool,
    mut report: impl FnMut(&E),
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let start = Instant::now();
    request
        .retry(backoff.builder())
        .when(move |error| is_transient(error, start.elapsed()))
        .notify(move |error, _| report(error))
        .await
}

/// A wait for something that has to be looked at again and again.
#[derive(Debug)]
pub struct Wait {
    delays: ExponentialBackoff,
    start: Instant,
    limit: Duration,
}

impl Wait {
    /// Begins a wait. Delays end at the limit, so that the last look is there.
    pub fn new(backoff: Backoff, limit: Duration) -> Self {
        Self { delays: backoff.builder().build(), start: Instant::now(), limit }
    }

    /// The time since it began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether the limit is reached.
    pub fn is_over(&self) -> bool {
        self.elapsed() >= self.limit
    }

    /// Sleeps until the next look.
    pub async fn pause(&mut self) {
        // The delays never end.
        let delay = self.delays.next().unwrap_or_default();
        self.pause_for(delay).await;
    }

    /// Sleeps for this long; the next delay stays as it is.
    pub async fn pause_for(&mut self, delay: Duration) {
        sleep(delay.min(self.limit.saturating_sub(self.elapsed()))).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));

    fn millis(times: &[Duration]) -> Vec<u128> {
        times.iter().map(Duration::as_millis).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_longest() {
        let start = Instant::now();
        let (times, reported) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let request = || async {
            times.borrow_mut().push(start.elapsed());
            let tries = times.borrow().len();
            if tries < 5 { Err(tries) } else { Ok("done") }
        };
        let result = retry(BACKOFF, request, |_, _| true, |error| reported.borrow_mut().push(*error)).await;
        assert_eq!(result, Ok("done"));
        let times = millis(&times.into_inner());
        // The timer is exact to a millisecond.
        for (found, expected) in times.iter().zip([0, 100, 300, 600, 900]) {
            assert!(found.abs_diff(expected) <= 5, "{times:?}");
        }
        assert_eq!(reported.into_inner(), [1, 2, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_does_not_pass_is_neither_retried_nor_reported() {
        for (is_transient, expected) in [(false, 1), (true, 4)] {
            let (tries, reported) = (Cell::new(0), Cell::new(0));
            let request = || async {
                tries.set(tries.get() + 1);
                Err::<(), _>("no")
            };
            let limit = Duration::from_millis(500);
            let is_transient = |_: &&str, elapsed| is_transient && elapsed < limit;
            let result = retry(BACKOFF, request, is_transient, |_| reported.set(reported.get() + 1)).await;
            assert_eq!(result, Err("no"));
            assert_eq!((tries.get(), reported.get()), (expected, expected - 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_look_is_at_the_limit() {
        let mut wait = Wait::new(BACKOFF, Duration::from_millis(350));
        let mut times = vec![wait.elapsed()];
        wait.pause().await;
        times.push(wait.elapsed());
        wait.pause_for(Duration::from_millis(10)).await;
        while !wait.is_over() {
            times.push(wait.elapsed());
            wait.pause().await;
        }
        times.push(wait.elapsed());
        let times = millis(&times);
        for (found, expected) in times.iter().zip([0, 100, 110, 310, 350]) {
            assert!(found.abs_diff(expected) <= 5, "{times:?}");
        }
        assert_eq!(times.len(), 5);
    }

    /// Controllers spawn what waits and retries.
    #[expect(dead_code, reason = "that it compiles is the test")]
    #[expect(clippy::manual_async_fn, reason = "an async fn does not state that its future is Send")]
    fn futures_are_send(names: &[String]) -> impl Future<Output = Result<(), ()>> + Send {
        async move {
            Wait::new(BACKOFF, Duration::MAX).pause().await;
            let request = || async {
                sleep(Duration::ZERO).await;
                if names.is_empty() { Err(()) } else { Ok(()) }
            };
            retry(BACKOFF, request, |(), _| true, |()| {}).await
        }
    }
}
