//! When a process is ready: once all of its watches know the whole truth.

use std::sync::{Arc, Mutex, PoisonError};

use crate::watch::WatchHandle;

type NamedWatch = (String, Arc<WatchHandle>);

/// What a process waits for before it calls itself ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    watches: Arc<Mutex<Vec<NamedWatch>>>,
}

impl Readiness {
    /// Adds a watch that must be synced first.
    pub fn expect(&self, name: impl Into<String>) -> Arc<WatchHandle> {
        let handle = Arc::new(WatchHandle::default());
        self.lock().push((name.into(), Arc::clone(&handle)));
        handle
    }

    /// The names of what is still awaited, with the state that each is in.
    pub fn awaited(&self) -> Vec<String> {
        self.lock()
            .iter()
            .filter(|(_, handle)| !handle.was_synced())
            .map(|(name, handle)| format!("{name}: {:?}", handle.state()))
            .collect()
    }

    /// Whether nothing is awaited any more.
    pub fn is_ready(&self) -> bool {
        self.lock().iter().all(|(_, handle)| handle.was_synced())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<NamedWatch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
