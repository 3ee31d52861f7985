//! The work queue: each key at most once, never on two workers, with a back-off of its own.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::turns::Turns;

/// The first delay after a failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest delay between two tries of a failing key.
const LONGEST_DELAY: Duration = Duration::from_mins(1);

/// How a worker finished with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing more to do until something changes.
    Settled,
    /// Look again after a while.
    Again(Duration),
    /// It failed: retry with a growing back-off.
    Failed,
}

/// A queue of keys that wait to be worked on.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: Ready<K>,
    delayed: BTreeMap<(Instant, u64), K>,
    entries: HashMap<K, Entry>,
    sequence: u64,
    adds: u64,
    retries: u64,
    closed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    place: Place,
    /// Added again while being worked on.
    again: bool,
    failures: u32,
    ready_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Ready,
    Delayed(Instant, u64),
    AtWork,
}

/// The keys that a worker could take now.
#[derive(Debug)]
enum Ready<K> {
    InOrder(VecDeque<K>),
    InTurns(Turns<K>, GroupOf<K>),
}

/// Whose a key is.
type GroupOf<K> = fn(&K) -> &Arc<str>;

impl<K> Ready<K> {
    fn push(&mut self, key: K) {
        match self {
            Self::InOrder(keys) => keys.push_back(key),
            Self::InTurns(keys, group_of) => {
                let group = Arc::clone(group_of(&key));
                keys.push(&group, key);
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        match self {
            Self::InOrder(keys) => keys.pop_front(),
            Self::InTurns(keys, _) => keys.take(),
        }
    }

    /// A key that was taken is at work no more.
    fn done(&mut self, key: &K) {
        if let Self::InTurns(keys, group_of) = self {
            keys.done(group_of(key));
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::InOrder(keys) => keys.len(),
            Self::InTurns(keys, _) => keys.len(),
        }
    }
}

/// Figures for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFigures {
    /// Keys that a worker could take now.
    pub depth: usize,
    /// Keys ever added.
    pub adds: u64,
    /// Keys ever added again after a failure.
    pub retries: u64,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self::of(Ready::InOrder(VecDeque::new()))
    }
}

impl<K> Queue<K> {
    /// A queue from which groups of keys take turns, for so many workers. No group gets all of them: one that is at work
    /// already gets one more only while it has fewer than are free.
    pub fn fair(workers: usize, group_of: fn(&K) -> &Arc<str>) -> Self {
        Self::of(Ready::InTurns(Turns::new(workers), group_of))
    }

    fn of(ready: Ready<K>) -> Self {
        Self {
            state: Mutex::new(State {
                ready,
                delayed: BTreeMap::new(),
                entries: HashMap::new(),
                sequence: 0,
                adds: 0,
                retries: 0,
                closed: false,
            }),
            changed: Notify::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Adds a key, for the next free worker.
    pub fn add(&self, key: K) {
        let mut state = self.lock();
        state.adds += 1;
        state.add(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the next key, waiting for one; `None` once the queue is closed. With the key comes how long it waited.
    pub async fn next(&self) -> Option<(K, Duration)> {
        loop {
            let changed = self.changed.notified();
            let wake = {
                let mut state = self.lock();
                if state.closed {
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.promote(now);
                if let Some(key) = state.ready.take() {
                    let entry = state.entries.entry(key.clone()).or_default();
                    entry.place = Place::AtWork;
                    let waited = entry.ready_since.take().map_or(Duration::ZERO, |since| now - since);
                    if state.ready.len() > 0 {
                        self.changed.notify_one();
                    }
                    return Some((key, waited));
                }
                state.delayed.keys().next().map(|(at, _)| *at)
            };
            match wake {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Returns a key that [`take`](Self::take) handed out.
    pub fn done(&self, key: K, outcome: Outcome) {
        let mut state = self.lock();
        state.done(key, outcome);
        drop(state);
        self.changed.notify_one();
    }

    /// Closes the queue: waiting workers get `None`.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Figures for metrics.
    pub fn figures(&self) -> QueueFigures {
        let state = self.lock();
        QueueFigures { depth: state.ready.len(), adds: state.adds, retries: state.retries }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn add(&mut self, key: K) {
        let entry = self.entries.entry(key.clone()).or_default();
        match entry.place {
            Place::Ready => return,
            Place::AtWork => {
                entry.again = true;
                return;
            }
            Place::Delayed(at, sequence) => {
                self.delayed.remove(&(at, sequence));
            }
            Place::Nowhere => {}
        }
        entry.place = Place::Ready;
        entry.ready_since = Some(Instant::now());
        self.ready.push(key);
    }

    fn done(&mut self, key: K, outcome: Outcome) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        self.ready.done(&key);
        entry.place = Place::Nowhere;
        let again = std::mem::take(&mut entry.again);
        let delay = match outcome {
            Outcome::Settled => {
                entry.failures = 0;
                None
            }
            Outcome::Again(delay) => {
                entry.failures = 0;
                Some(delay)
            }
            Outcome::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                self.retries += 1;
                Some(back_off(entry.failures))
            }
        };
        // Something changed meanwhile: that is a reason to look at once, even after a failure.
        if again {
            self.add(key);
        } else if let Some(delay) = delay {
            let at = Instant::now() + delay;
            self.sequence += 1;
            entry.place = Place::Delayed(at, self.sequence);
            self.delayed.insert((at, self.sequence), key);
        } else {
            self.entries.remove(&key);
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.place = Place::Ready;
                entry.ready_since = Some(now);
            }
            self.ready.push(key);
        }
    }
}

/// How long to wait after this many failures in a row.
pub fn back_off(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(queue: &Queue<&'static str>) -> Option<&'static str> {
        tokio::select! {
            next = queue.next() => next.map(|(key, _)| key),
            () = tokio::time::sleep(Duration::from_millis(1)) => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_is_never_on_two_workers() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(take(&queue).await, Some("a"));
        queue.add("a");
        assert_eq!(take(&queue).await, Some("b"));
        assert_eq!(take(&queue).await, None, "a is at work");
        queue.done("a", Outcome::Settled);
        assert_eq!(take(&queue).await, Some("a"), "a was asked for while at work");
        queue.done("a", Outcome::Settled);
        queue.done("b", Outcome::Settled);
        assert_eq!(take(&queue).await, None);
        assert!(queue.lock().entries.is_empty(), "settled keys are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_spaced_out_until_a_success() {
        let queue = Queue::default();
        queue.add("a");
        let mut gaps = Vec::new();
        for _ in 0..6 {
            let started = Instant::now();
            let (key, _) = queue.next().await.unwrap();
            gaps.push(started.elapsed().as_millis());
            queue.done(key, Outcome::Failed);
        }
        assert_eq!(gaps, [0, 5, 10, 20, 40, 80]);
        let (key, _) = queue.next().await.unwrap();
        queue.done(key, Outcome::Again(Duration::from_secs(1)));
        let (key, _) = queue.next().await.unwrap();
        queue.done(key, Outcome::Failed);
        let started = Instant::now();
        queue.next().await.unwrap();
        assert_eq!(started.elapsed().as_millis(), 5, "a success resets the back-off");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_cuts_a_delay_short() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(take(&queue).await, Some("a"));
        queue.done("a", Outcome::Again(Duration::from_mins(10)));
        assert_eq!(take(&queue).await, None);
        queue.add("a");
        assert_eq!(take(&queue).await, Some("a"));
        queue.done("a", Outcome::Settled);
        assert_eq!(take(&queue).await, None);
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(take(&queue).await, None, "the old delay is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn groups_take_turns() {
        let queue = Arc::new(Queue::<(Arc<str>, u8)>::fair(2, |(group, _)| group));
        let key = |group: &str, number: u8| (Arc::from(group), number);
        for number in 0..10 {
            queue.add(key("tarpits", number));
        }
        let take = async || {
            tokio::select! {
                next = queue.next() => next.map(|(key, _)| key),
                () = tokio::time::sleep(Duration::from_millis(1)) => None,
            }
        };
        assert_eq!(take().await, Some(key("tarpits", 0)));
        assert_eq!(take().await, None, "the other worker is for others");
        // A worker that waits is woken when the group may go on.
        let waits = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { queue.next().await.map(|(key, _)| key) }
        });
        tokio::task::yield_now().await;
        queue.done(key("tarpits", 0), Outcome::Again(Duration::from_secs(1)));
        assert_eq!(waits.await.unwrap(), Some(key("tarpits", 1)));
        queue.add(key("other", 0));
        assert_eq!(take().await, Some(key("other", 0)));
        queue.done(key("other", 0), Outcome::Failed);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(take().await, Some(key("other", 0)), "delays end as in any queue");
        assert_eq!(queue.figures().depth, 9);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_every_wait() {
        let queue = Arc::new(Queue::<&'static str>::default());
        let waits: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for wait in waits {
            assert_eq!(wait.await.unwrap(), None);
        }
    }

    #[test]
    fn back_off_has_a_ceiling() {
        assert_eq!(back_off(1), FIRST_DELAY);
        assert_eq!(back_off(100), LONGEST_DELAY);
        assert!((1..40).all(|n| back_off(n) <= back_off(n + 1)));
    }
}
