//! What the API server said lately of tokens, so that it is not asked again with every request.

use std::{collections::HashMap, time::Duration};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use tokio::time::Instant;

/// How long an allowance holds.
const ALLOWED_FOR: Duration = Duration::from_secs(10);
/// How long a refusal holds: what was refused may be granted any moment.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// How many verdicts to keep: any caller can make up any number of tokens.
const MOST: usize = 256;

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

    /// Keeps a verdict for a while. Where there are too many, the one goes that would hold the shortest.
    pub(crate) fn keep(&mut self, asked: Asked, is_allowed: bool, now: Instant) {
        if self.known.len() >= MOST && !self.known.contains_key(&asked) {
            self.known.retain(|_, (_, until)| *until > now);
        }
        if self.known.len() >= MOST && !self.known.contains_key(&asked) {
            let shortest = self.known.iter().min_by_key(|(_, (_, until))| *until).map(|(asked, _)| *asked);
            shortest.and_then(|shortest| self.known.remove(&shortest));
        }
        let lasts = if is_allowed { ALLOWED_FOR } else { REFUSED_FOR };
        self.known.insert(asked, (is_allowed, now + lasts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
