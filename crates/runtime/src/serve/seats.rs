//! Who is connected: how many connections there may be, and which of them make room for others.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

use crate::refusals::Limit;

/// What a server allows its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Connections of one peer at once.
    pub(crate) per_peer: usize,
    /// How long a client may take until its first request is there, the TLS handshake included.
    pub(crate) first_request: Duration,
    /// How long a connection may go without a further request.
    pub(crate) silence: Duration,
    /// How long a request may take, from its head to the answer.
    pub(crate) request: Duration,
    /// How long a client may take no part of its answer.
    pub(crate) answer_stall: Duration,
}

/// What is going on on a connection, in the order in which such connections make room for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No request yet.
    New,
    /// Between two requests.
    Idle,
    /// The client is sending a body.
    Receiving,
    /// The client is taking an answer.
    Answering,
    /// The server is at work: never given up.
    Working,
}

#[derive(Debug)]
struct Seat<T> {
    peer: IpAddr,
    phase: Phase,
    /// When the phase began, or bytes were last exchanged in it.
    since: Instant,
    handle: T,
}

/// A connection in the table.
pub(super) type Id = u64;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Table<T> {
    limits: Limits,
    seats: BTreeMap<Id, Seat<T>>,
    next: Id,
}

/// What becomes of a new connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entrance<T> {
    /// It is served.
    Free(Id),
    /// It is served, and this one of that peer is closed because of the limit.
    InPlaceOf(Id, T, IpAddr, Limit),
    /// It is closed: all others are at work.
    Refused(Limit),
}

impl<T> Table<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, seats: BTreeMap::new(), next: 0 }
    }

    /// A peer has connected. At its own limit it pushes one of its own connections out; at the limit of all, one of the
    /// peer with the most.
    pub(super) fn enter(&mut self, peer: IpAddr, now: Instant, handle: T) -> Entrance<T> {
        let mut of_peer = HashMap::<IpAddr, usize>::new();
        if self.seats.len() >= self.limits.per_peer {
            for seat in self.seats.values() {
                *of_peer.entry(seat.peer).or_default() += 1;
            }
        }
        let limit = if of_peer.get(&peer).is_some_and(|count| *count >= self.limits.per_peer) {
            of_peer.retain(|it, _| *it == peer);
            Limit::PeerConnections(self.limits.per_peer)
        } else if self.seats.len() >= self.limits.connections {
            Limit::Connections(self.limits.connections)
        } else {
            return Entrance::Free(self.sit(peer, now, handle));
        };
        let movable = self.seats.iter().filter(|(_, seat)| seat.phase != Phase::Working);
        let most = movable.filter_map(|(id, seat)| Some((id, seat, of_peer.get(&seat.peer)?)));
        let given_up = most.min_by_key(|(_, seat, count)| (usize::MAX - **count, seat.phase, seat.since));
        let Some(seat) = given_up.map(|(id, ..)| *id).and_then(|id| self.seats.remove(&id)) else {
            return Entrance::Refused(limit);
        };
        Entrance::InPlaceOf(self.sit(peer, now, handle), seat.handle, seat.peer, limit)
    }

    fn sit(&mut self, peer: IpAddr, now: Instant, handle: T) -> Id {
        self.next += 1;
        self.seats.insert(self.next, Seat { peer, phase: Phase::New, since: now, handle });
        self.next
    }

    /// Something happens on a connection. Gives whether its deadline is earlier than before.
    pub(super) fn note(&mut self, id: Id, phase: Phase, now: Instant) -> bool {
        let before = self.deadline(id);
        if let Some(seat) = self.seats.get_mut(&id) {
            (seat.phase, seat.since) = (phase, now);
        }
        self.deadline(id).map(|it| it.0) < before.map(|it| it.0)
    }

    /// Until when something must happen on a connection, and which limit it hits otherwise. Silence between requests is
    /// nothing to complain of.
    pub(super) fn deadline(&self, id: Id) -> Option<(Instant, Option<Limit>)> {
        let seat = self.seats.get(&id)?;
        let Limits { first_request, silence, request, answer_stall, .. } = self.limits;
        let (after, limit) = match seat.phase {
            Phase::New => (first_request, Some(Limit::FirstRequest(first_request))),
            Phase::Idle => (silence, None),
            Phase::Answering => (answer_stall, Some(Limit::AnswerStall(answer_stall))),
            // A late caller first gets an answer that says so.
            Phase::Receiving | Phase::Working => (request + answer_stall, Some(Limit::RequestTime(request))),
        };
        Some((seat.since + after, limit))
    }

    /// A connection has ended.
    pub(super) fn leave(&mut self, id: Id) {
        self.seats.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 6,
        per_peer: 4,
        first_request: Duration::from_secs(8),
        silence: Duration::from_mins(2),
        request: Duration::from_secs(30),
        answer_stall: Duration::from_secs(5),
    };

    /// The peer of each connection, its phase and since which second.
    type Seats = &'static [(u8, Phase, u64)];
    /// Seats that are taken, the peer of a new connection, and what makes room for it: index, peer and limit.
    type Case = (Seats, u8, Option<(usize, u8, Limit)>);

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn table(seats: Seats) -> (Table<usize>, Instant) {
        let start = Instant::now();
        let mut table = Table::new(LIMITS);
        for (place, (number, phase, seconds)) in seats.iter().enumerate() {
            let Entrance::Free(id) = table.enter(peer(*number), start, place) else { panic!("{place}") };
            table.note(id, *phase, start + Duration::from_secs(*seconds));
        }
        (table, start + Duration::from_secs(100))
    }

    #[test]
    fn connections_make_room_in_the_order_of_their_use() {
        use Phase::{Answering, Idle, New, Receiving, Working};
        let own = Limit::PeerConnections(4);
        let all = Limit::Connections(6);
        let cases: [Case; 6] = [
            // At a peer's limit: its own, whatever others have.
            (&[(1, Idle, 1), (1, New, 5), (1, New, 4), (1, Working, 0), (2, New, 0)], 1, Some((2, 1, own))),
            (&[(1, Idle, 3), (1, Idle, 2), (1, Working, 0), (1, Receiving, 0)], 1, Some((1, 1, own))),
            (
                &[(1, Answering, 3), (1, Receiving, 9), (1, Receiving, 8), (1, Working, 0)],
                1,
                Some((2, 1, own)),
            ),
            // At the limit of all: the peer with the most.
            (
                &[(1, Idle, 0), (2, Idle, 7), (2, Idle, 6), (2, Idle, 9), (3, New, 0), (1, New, 0)],
                4,
                Some((2, 2, all)),
            ),
            // Whom it works for stays, and the next peer makes room.
            (
                &[(2, Working, 0), (2, Working, 0), (2, Working, 0), (1, Idle, 5), (1, Idle, 4), (3, New, 0)],
                4,
                Some((4, 1, all)),
            ),
            (&[(1, New, 0), (1, New, 0)], 2, None),
        ];
        for (seats, newcomer, expected) in cases {
            let (mut table, now) = table(seats);
            let found = match table.enter(peer(newcomer), now, 99) {
                Entrance::Free(_) => None,
                Entrance::InPlaceOf(_, place, IpAddr::V4(address), limit) => {
                    Some((place, address.octets()[3], limit))
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{seats:?}");
            assert!(table.seats.len() <= LIMITS.connections);
        }
        let (mut busy, now) = table(&[(1, Working, 0); 4]);
        assert_eq!(busy.enter(peer(1), now, 99), Entrance::Refused(own));
        assert!(matches!(busy.enter(peer(2), now, 99), Entrance::Free(_)));
    }

    #[test]
    fn each_phase_has_its_time() {
        let (mut table, _) = table(&[(1, Phase::New, 0)]);
        let now = Instant::now();
        for (phase, seconds, limit) in [
            (Phase::New, 8, Some("first_request")),
            (Phase::Idle, 120, None),
            (Phase::Receiving, 35, Some("request_time")),
            (Phase::Working, 35, Some("request_time")),
            (Phase::Answering, 5, Some("answer_stall")),
        ] {
            assert_eq!(
                table.note(1, phase, now),
                phase == Phase::Receiving || phase == Phase::Answering,
                "{phase:?}"
            );
            let (deadline, hit) = table.deadline(1).unwrap();
            assert_eq!(
                (deadline - now, hit.map(Limit::name)),
                (Duration::from_secs(seconds), limit),
                "{phase:?}"
            );
        }
        table.leave(1);
        assert_eq!(table.deadline(1), None);
    }
}
