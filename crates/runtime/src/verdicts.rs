//! What the API server lately said of tokens, so that it is not asked again with every request, and how often it may be
//! asked about new ones.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use tokio::time::Instant;

/// How long an allowance holds.
const ALLOWED_FOR: Duration = Duration::from_secs(10);
/// How long a refusal holds: what was refused may be granted any moment.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// How long a token that was allowed is known, so that to ask about it again is no new question.
const KNOWN_FOR: Duration = Duration::from_mins(10);
/// How many verdicts to keep: any caller can make up any number of tokens.
const MOST: usize = 256;
/// How many peers' questions to count apart from each other.
const PEERS: usize = 1024;

/// How often the API server is asked about new tokens of one peer.
pub(crate) const OF_PEER: Rate = Rate { period: Duration::from_secs(1), burst: 10 };
/// And of all peers.
const OF_ALL: Rate = Rate { period: Duration::from_millis(100), burst: 40 };

/// Stands for a token and what is asked for with it. The token itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asked([u8; SHA256_OUTPUT_LEN]);

impl Asked {
    pub(crate) fn new(token: &str, path: &str) -> Self {
        let mut context = Context::new(&SHA256);
        // No path holds this byte, so that no two pairs look alike.
        for part in [path.as_bytes(), b"\0", token.as_bytes()] {
            context.update(part);
        }
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

/// Verdicts that still hold.
#[derive(Default)]
pub(crate) struct Verdicts {
    known: HashMap<Asked, (bool, Instant)>,
}

impl Verdicts {
    /// Whether it is allowed, if that is known.
    pub(crate) fn get(&self, asked: &Asked, now: Instant) -> Option<bool> {
        self.known.get(asked).filter(|(_, until)| *until > now).map(|(is_allowed, _)| *is_allowed)
    }

    /// Whether it was allowed not long ago.
    pub(crate) fn is_known(&self, asked: &Asked, now: Instant) -> bool {
        self.known.get(asked).is_some_and(|(is_allowed, until)| *is_allowed && *until + KNOWN_FOR > now)
    }

    /// Keeps a verdict for a while. Where there are too many, the one goes that would be kept the shortest.
    pub(crate) fn keep(&mut self, asked: Asked, is_allowed: bool, now: Instant) {
        let kept_until = |(is_allowed, until): &(bool, Instant)| {
            if *is_allowed { *until + KNOWN_FOR } else { *until }
        };
        if self.known.len() >= MOST && !self.known.contains_key(&asked) {
            self.known.retain(|_, verdict| kept_until(verdict) > now);
        }
        if self.known.len() >= MOST && !self.known.contains_key(&asked) {
            let shortest = self.known.iter().min_by_key(|(_, verdict)| kept_until(verdict));
            let shortest = shortest.map(|(asked, _)| *asked);
            shortest.and_then(|shortest| self.known.remove(&shortest));
        }
        let lasts = if is_allowed { ALLOWED_FOR } else { REFUSED_FOR };
        self.known.insert(asked, (is_allowed, now + lasts));
    }
}

/// So many at once, and then one each period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    period: Duration,
    burst: u32,
}

impl Rate {
    /// How many there are in a minute, without the burst.
    pub(crate) fn per_minute(self) -> u64 {
        60_000 / u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn allows(self, used_until: Option<Instant>, now: Instant) -> bool {
        let ahead = used_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        ahead <= self.period * (self.burst - 1)
    }
}

/// Counts questions about new tokens, so that made-up ones do not become load on the API server.
#[derive(Default)]
pub(crate) struct Questions {
    /// Until when what was asked uses up its share.
    all: Option<Instant>,
    peers: HashMap<IpAddr, Instant>,
}

impl Questions {
    /// Whether one more may be asked for a peer; counts it if so.
    pub(crate) fn ask(&mut self, peer: IpAddr, now: Instant) -> bool {
        let of_peer = self.peers.get(&peer).copied();
        if !OF_ALL.allows(self.all, now) || !OF_PEER.allows(of_peer, now) {
            return false;
        }
        let add = |until: Option<Instant>, rate: Rate| until.map_or(now, |it| it.max(now)) + rate.period;
        self.all = Some(add(self.all, OF_ALL));
        if self.peers.len() >= PEERS {
            self.peers.retain(|_, until| *until > now);
        }
        // The rate of all leaves no room for so many peers within their period: all others were dropped above.
        if self.peers.len() < PEERS || of_peer.is_some() {
            self.peers.insert(peer, add(of_peer, OF_PEER));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_asks_so_often_and_all_together_so_often() {
        let (mut questions, start) = (Questions::default(), Instant::now());
        let peer = |number: u32| IpAddr::from(number.to_be_bytes());
        // What is allowed in the first 60 s of asking ten times a second.
        let asked =
            (0..600).filter(|tenth| questions.ask(peer(1), start + Duration::from_millis(100) * *tenth));
        assert_eq!(asked.count(), 10 + 59);
        assert!(questions.ask(peer(2), start + Duration::from_mins(1)), "another peer has its own share");
        let mut questions = Questions::default();
        let asked = (0..5000).filter(|number| questions.ask(peer(*number), start));
        assert_eq!(asked.count(), 40);
        let later = start + Duration::from_secs(10);
        let asked = (0..5000).filter(|number| questions.ask(peer(*number), later));
        assert_eq!(asked.count(), 40, "no more than at first");
        for number in 0..5000 {
            questions.ask(peer(number), later + Duration::from_millis(100) * number);
        }
        assert!(questions.peers.len() <= PEERS);
        assert_eq!(OF_PEER.per_minute(), 60);
    }

    #[test]
    fn what_was_allowed_stays_known_for_a_while() {
        let (mut verdicts, start) = (Verdicts::default(), Instant::now());
        let (good, bad) = (Asked::new("good", "/metrics"), Asked::new("bad", "/metrics"));
        verdicts.keep(good, true, start);
        verdicts.keep(bad, false, start);
        let known = |verdicts: &Verdicts, after| [good, bad].map(|it| verdicts.is_known(&it, start + after));
        assert_eq!(known(&verdicts, Duration::from_mins(5)), [true, false]);
        assert_eq!(known(&verdicts, Duration::from_mins(11)), [false, false]);
        for number in 0..10 * MOST {
            verdicts.keep(Asked::new(&number.to_string(), "/metrics"), false, start + Duration::from_mins(5));
        }
        assert_eq!(known(&verdicts, Duration::from_mins(5)), [true, false]);
        verdicts.keep(good, false, start + Duration::from_mins(5));
        assert_eq!(known(&verdicts, Duration::from_mins(5)), [false, false], "a refusal ends it");
    }

    #[test]
    fn verdicts_hold_for_some_seconds() {
        let (mut verdicts, start) = (Verdicts::default(), Instant::now());
        let (good, bad) = (Asked::new("good", "/metrics"), Asked::new("bad", "/metrics"));
        verdicts.keep(good, true, start);
        verdicts.keep(bad, false, start);
        for (millis, of_good, of_bad) in [
            (0, Some(true), Some(false)),
            (1_999, Some(true), Some(false)),
            (2_000, Some(true), None),
            (9_999, Some(true), None),
            (10_000, None, None),
        ] {
            let now = start + Duration::from_millis(millis);
            assert_eq!((verdicts.get(&good, now), verdicts.get(&bad, now)), (of_good, of_bad), "{millis} ms");
        }
        assert_eq!(
            verdicts.get(&Asked::new("good", "/metrics/cpu"), start),
            None,
            "another path is another question"
        );
        assert_eq!(verdicts.get(&Asked::new("goods", "/metric"), start), None);
        verdicts.keep(good, false, start);
        assert_eq!(verdicts.get(&good, start), Some(false), "the last word counts");
    }

    #[test]
    fn made_up_tokens_do_not_displace_good_ones() {
        let (mut verdicts, start) = (Verdicts::default(), Instant::now());
        let good = Asked::new("good", "/metrics");
        verdicts.keep(good, true, start);
        for number in 0..10 * MOST {
            verdicts.keep(Asked::new(&number.to_string(), "/metrics"), false, start);
        }
        assert_eq!((verdicts.known.len(), verdicts.get(&good, start)), (MOST, Some(true)));
        verdicts.keep(Asked::new("late", "/metrics"), false, start + Duration::from_secs(5));
        assert_eq!(verdicts.known.len(), 2, "what holds no more goes first");
    }
}
