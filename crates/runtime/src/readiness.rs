//! When a process is ready: once it can answer calls of its webhooks.
//!
//! Controllers' own watches are not waited for: one of them may need the webhooks, which cannot be reached before the
//! process is ready, and one that is refused must not take the webhooks down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{outages::Outages, watch::WatchHandle};

type NamedWatch = (String, Arc<WatchHandle>);

/// What a process waits for before it calls itself ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    watches: Arc<Mutex<Vec<NamedWatch>>>,
    /// Watches that are listed, but not waited for.
    others: Arc<Mutex<Vec<NamedWatch>>>,
    gates: Arc<Mutex<Vec<Arc<Gate>>>>,
    outages: Outages,
}

/// Another precondition of readiness. Once open it stays open: what breaks later is repaired while
/// the process serves.
#[derive(Debug)]
pub struct Gate {
    name: String,
    /// Why it is closed; `None` once it is open.
    held: Mutex<Option<String>>,
}

impl Gate {
    /// Lets the process be ready.
    pub fn open(&self) {
        *lock(&self.held) = None;
    }

    /// Sets the reason why it is still closed.
    pub fn hold(&self, why: &str) {
        let mut held = lock(&self.held);
        if held.is_some() {
            *held = Some(why.to_owned());
        }
    }
}

impl Readiness {
    /// Readiness of a process that has these outages.
    pub fn new(outages: Outages) -> Self {
        Self { outages, ..Self::default() }
    }

    /// The watches that are broken now. A process stays ready meanwhile: its webhooks need no watch.
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// Adds a watch that must be synced first.
    pub fn expect(&self, name: impl Into<String>) -> Arc<WatchHandle> {
        let handle = Arc::new(WatchHandle::new(&self.outages));
        lock(&self.watches).push((name.into(), Arc::clone(&handle)));
        handle
    }

    /// Adds a watch that is listed, but not waited for.
    pub fn mention(&self, name: impl Into<String>) -> Arc<WatchHandle> {
        let handle = Arc::new(WatchHandle::new(&self.outages));
        lock(&self.others).push((name.into(), Arc::clone(&handle)));
        handle
    }

    /// The watches that are not waited for and not loaded yet.
    pub fn mentioned(&self) -> Vec<String> {
        not_loaded(&lock(&self.others))
    }

    /// Adds another precondition.
    pub fn gate(&self, name: impl Into<String>) -> Arc<Gate> {
        let gate =
            Arc::new(Gate { name: name.into(), held: Mutex::new(Some("not looked at yet".to_owned())) });
        lock(&self.gates).push(Arc::clone(&gate));
        gate
    }

    /// The names of what is still awaited, with the state that each is in.
    pub fn awaited(&self) -> Vec<String> {
        let mut awaited = not_loaded(&lock(&self.watches));
        let gates = lock(&self.gates);
        awaited.extend(gates.iter().filter_map(|gate| {
            let held = lock(&gate.held);
            held.as_ref().map(|why| format!("{}: {why}", gate.name))
        }));
        awaited
    }

    /// Whether nothing is awaited any more.
    pub fn is_ready(&self) -> bool {
        self.awaited().is_empty()
    }
}

fn not_loaded(watches: &[NamedWatch]) -> Vec<String> {
    watches
        .iter()
        .filter(|(_, handle)| !handle.was_synced())
        .map(|(name, handle)| format!("the first list of {name}: {:?}", handle.state()))
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_named() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready());
        let gate = readiness.gate("webhooks");
        gate.hold("no certificate");
        assert_eq!(readiness.awaited(), ["webhooks: no certificate"]);
        gate.open();
        gate.hold("too late");
        assert!(readiness.is_ready());
    }
}
