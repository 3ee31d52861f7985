//! Whose turn it is: large reviews are worked on one at a time, and the peers that send them take turns.

use std::{collections::HashMap, net::IpAddr};

/// The requests that wait for the one turn there is.
#[derive(Debug)]
pub(super) struct Turns<T> {
    taken: bool,
    /// In the order in which they came.
    waiting: Vec<(IpAddr, T)>,
    most: usize,
    /// When each peer was served last, of those that wait.
    served: HashMap<IpAddr, u64>,
    count: u64,
}

/// What becomes of a request for the turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked<T> {
    /// It is its turn now.
    Now(T),
    /// It waits; another one may have been dropped for it.
    Waits(Option<T>),
    /// Too many wait already.
    Full(T),
}

impl<T> Turns<T> {
    /// So many may wait.
    pub(super) fn new(most: usize) -> Self {
        Self { taken: false, waiting: Vec::new(), most, served: HashMap::new(), count: 0 }
    }

    /// Forgets the requests that do not wait any more.
    pub(super) fn forget(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.waiting.retain(|(_, waiter)| !is_gone(waiter));
    }

    /// Asks for the turn. If too many wait already, the last of the peer with the most of them leaves, unless the asking
    /// peer would then have more.
    pub(super) fn ask(&mut self, peer: IpAddr, waiter: T) -> Asked<T> {
        if !self.taken {
            self.taken = true;
            self.serve(peer);
            return Asked::Now(waiter);
        }
        let mut left = None;
        if self.waiting.len() >= self.most {
            let waiting_of = |peer: IpAddr| self.waiting.iter().filter(|it| it.0 == peer).count();
            let place = (0..self.waiting.len()).max_by_key(|place| waiting_of(self.waiting[*place].0));
            match place {
                Some(place) if waiting_of(self.waiting[place].0) > waiting_of(peer) + 1 => {
                    left = Some(self.waiting.remove(place).1);
                }
                _ => return Asked::Full(waiter),
            }
        }
        self.waiting.push((peer, waiter));
        Asked::Waits(left)
    }

    /// Gives the turn back; gives who has it next: the first of the peer that has waited longest since its last turn.
    pub(super) fn release(&mut self) -> Option<T> {
        let last = |peer: &IpAddr| self.served.get(peer).copied().unwrap_or_default();
        let next = (0..self.waiting.len()).min_by_key(|place| last(&self.waiting[*place].0));
        self.taken = next.is_some();
        let (peer, waiter) = self.waiting.remove(next?);
        self.serve(peer);
        Some(waiter)
    }

    fn serve(&mut self, peer: IpAddr) {
        self.count += 1;
        let waiting = &self.waiting;
        self.served.retain(|peer, _| waiting.iter().any(|it| it.0 == *peer));
        self.served.insert(peer, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn peers_take_turns_however_many_requests_they_have() {
        let mut turns = Turns::new(10);
        assert_eq!(turns.ask(peer(1), "a1"), Asked::Now("a1"));
        for (number, name) in [(1, "a2"), (1, "a3"), (2, "b1"), (1, "a4"), (2, "b2"), (3, "c1")] {
            assert_eq!(turns.ask(peer(number), name), Asked::Waits(None));
        }
        let order: Vec<_> = std::iter::from_fn(|| turns.release()).collect();
        assert_eq!(order, ["b1", "c1", "a2", "b2", "a3", "a4"]);
        assert_eq!(turns.ask(peer(1), "again"), Asked::Now("again"));
    }

    #[test]
    fn who_fills_the_queue_makes_room_for_others() {
        let mut turns = Turns::new(3);
        turns.ask(peer(1), "a0");
        for name in ["a1", "a2", "a3"] {
            assert_eq!(turns.ask(peer(1), name), Asked::Waits(None));
        }
        assert_eq!(turns.ask(peer(1), "a4"), Asked::Full("a4"));
        assert_eq!(turns.ask(peer(2), "b1"), Asked::Waits(Some("a3")));
        assert_eq!(turns.ask(peer(2), "b2"), Asked::Full("b2"), "it would have more than the other");
        assert_eq!(turns.release(), Some("b1"));
    }
}
