//! What bodies that are still being received hold together.

use std::{collections::BTreeMap, net::IpAddr};

use tokio::time::Instant;

/// A body in the pool.
pub(super) type Id = u64;

#[derive(Debug)]
struct Body<T> {
    peer: IpAddr,
    bytes: usize,
    /// It has arrived whole.
    whole: bool,
    /// When its last bytes came.
    since: Instant,
    handle: T,
}

/// Bytes that bodies hold, by body.
#[derive(Debug)]
pub(super) struct Pool<T> {
    capacity: usize,
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
        Self { capacity, free: capacity, bodies: BTreeMap::new(), next: 0 }
    }

    /// A body begins.
    pub(super) fn enter(&mut self, peer: IpAddr, now: Instant, handle: T) -> Id {
        self.next += 1;
        self.bodies.insert(self.next, Body { peer, bytes: 0, whole: false, since: now, handle });
        self.next
    }

    /// Bytes of a body have arrived. Where there is no room, the body that has been silent for longest is dropped: an
    /// honest sender is never silent for long. One peer has half of the room at most, and makes room for itself beyond
    /// that.
    pub(super) fn grow(&mut self, id: Id, bytes: usize, now: Instant) -> Growth<T> {
        let mut gone = Vec::new();
        let Some(body) = self.bodies.get_mut(&id) else { return Growth::Fits(gone) };
        body.since = now;
        let peer = body.peer;
        loop {
            let is_own = |body: &Body<T>| body.peer == peer;
            let own: usize = self.bodies.values().filter(|it| is_own(it)).map(|it| it.bytes).sum();
            let is_own_fault = own + bytes > self.capacity / 2;
            if !is_own_fault && self.free >= bytes {
                break;
            }
            let others = self.bodies.iter().filter(|(other, body)| {
                **other != id && !body.whole && body.bytes > 0 && (!is_own_fault || is_own(body))
            });
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

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn for_want_of_room_the_most_silent_body_goes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pool = Pool::new(200);
        let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(name, it)| pool.enter(peer(it), at(0), name));
        assert_eq!(pool.grow(a, 40, at(1)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(b, 90, at(2)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(a, 30, at(3)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(c, 60, at(4)), Growth::Fits(vec!["b"]));
        assert_eq!(pool.leave(b), None, "it is gone already");
        assert_eq!(pool.grow(b, 10, at(4)), Growth::Fits(vec![]), "what is gone does not grow");
        // What is whole stays, and so does a body of which nothing has come.
        pool.complete(a);
        let [fourth, fifth] =
            [("fourth", 4), ("fifth", 5)].map(|(name, it)| pool.enter(peer(it), at(5), name));
        assert_eq!(pool.grow(fifth, 60, at(5)), Growth::Fits(vec![]));
        assert_eq!(pool.grow(fourth, 70, at(6)), Growth::Fits(vec!["c"]));
        pool.complete(fourth);
        pool.complete(fifth);
        let late = pool.enter(peer(6), at(7), "late");
        assert_eq!(pool.grow(late, 10, at(7)), Growth::Full(vec![]));
        assert_eq!(pool.leave(a), Some("a"));
        assert_eq!(pool.grow(late, 10, at(8)), Growth::Fits(vec![]));
    }

    #[test]
    fn one_peer_fills_half_of_the_pool() {
        let now = Instant::now();
        let mut pool = Pool::new(100);
        let [a, b, c] = ["a", "b", "c"].map(|name| pool.enter(peer(1), now, name));
        let other = pool.enter(peer(2), now, "other");
        assert_eq!(pool.grow(other, 20, now), Growth::Fits(vec![]));
        assert_eq!(pool.grow(a, 30, now), Growth::Fits(vec![]));
        assert_eq!(pool.grow(b, 30, now), Growth::Fits(vec!["a"]), "its own body goes, not the other peer's");
        pool.complete(b);
        assert_eq!(pool.grow(c, 21, now), Growth::Full(vec![]));
        assert_eq!(pool.grow(c, 20, now), Growth::Fits(vec![]));
        assert_eq!(pool.grow(other, 30, now), Growth::Fits(vec![]));
    }
}
