//! What bodies that are still being received hold together.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// A body in the pool.
pub(super) type Id = u64;

#[derive(Debug)]
struct Body<T> {
    bytes: usize,
    /// Nothing is awaited from its sender any more.
    whole: bool,
    /// When its last bytes came.
    since: Instant,
    handle: T,
}

/// Bytes that bodies hold, by body.
#[derive(Debug)]
pub(super) struct Pool<T> {
    free: usize,
    bodies: BTreeMap<Id, Body<T>>,
    next: Id,
}

/// What becomes of a body that has become longer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth<T> {
    /// There is room, once these are let go.
    Fits(Vec<T>),
    /// There is none before a body that is whole is answered; these are let go meanwhile.
    Full(Vec<T>),
}

impl<T> Pool<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { free: capacity, bodies: BTreeMap::new(), next: 0 }
    }

    /// A body begins.
    pub(super) fn enter(&mut self, now: Instant, handle: T) -> Id {
        self.next += 1;
        self.bodies.insert(self.next, Body { bytes: 0, whole: false, since: now, handle });
        self.next
    }

    /// Bytes of a body have arrived. Where there is no room, the body that has been silent for longest is dropped: an
    /// honest sender is never silent for long.
    pub(super) fn grow(&mut self, id: Id, bytes: usize, now: Instant) -> Growth<T> {
        if let Some(body) = self.bodies.get_mut(&id) {
            body.since = now;
        }
        let mut gone = Vec::new();
        while self.free < bytes {
            let others =
                self.bodies.iter().filter(|(other, body)| **other != id && !body.whole && body.bytes > 0);
            let Some(silent) = others.min_by_key(|(_, body)| body.since).map(|(id, _)| *id) else {
                return Growth::Full(gone);
            };
            gone.extend(self.leave(silent));
        }
        if let Some(body) = self.bodies.get_mut(&id) {
            body.bytes += bytes;
            self.free -= bytes;
        }
        Growth::Fits(gone)
    }

    /// A body has come to its end.
    pub(super) fn complete(&mut self, id: Id) {
        if let Some(body) = self.bodies.get_mut(&id) {
            body.whole = true;
        }
    }

    /// A body is answered, or given up.
    pub(super) fn leave(&mut self, id: Id) -> Option<T> {
        let body = self.bodies.remove(&id)?;
        self.free += body.bytes;
        Some(body.handle)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn for_want_of_room_the_most_silent_body_goes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pool = Pool::new(100);
        let [a, b, c] = ["a", "b", "c"].map(|name| pool.enter(at(0), name));
        assert_eq!(pool.grow(a, 40, at(1)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(b, 50, at(2)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(a, 10, at(3)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(c, 30, at(4)), Growth::Fits(vec!["b"]));
        assert_eq!(pool.leave(b), None, "it is gone already");
        // What is whole stays, and so does who holds nothing.
        pool.complete(a);
        let d = pool.enter(at(5), "d");
        assert_eq!(pool.grow(d, 60, at(6)), Growth::Full(vec!["c"]));
        assert_eq!(pool.leave(a), Some("a"));
        assert_eq!(pool.grow(d, 60, at(7)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(d, 41, at(8)), Growth::Full(vec![]), "a body does not make room for itself");
    }
}
