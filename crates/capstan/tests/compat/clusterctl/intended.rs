//! Where we differ from upstream on purpose, and why.

use super::{harness::Outcome, verdict::Difference};

/// What ours does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// It succeeds where upstream refuses, and prints this among other things.
    Succeeds(&'static str),
    /// It refuses where upstream succeeds, and says this among other things.
    Refuses(&'static str),
    /// It prints something else, with this among it.
    Prints(&'static str),
}

/// A case, what ours does instead, and why.
struct Intended {
    case: &'static str,
    instead: Instead,
    #[expect(dead_code, reason = "for the reader of the table")]
    reason: &'static str,
}

/// What ours does instead in a case, if it differs there on purpose.
pub(crate) fn of(case: &str) -> Option<Instead> {
    INTENDED.iter().find(|intended| intended.case == case).map(|intended| intended.instead)
}

/// Takes a difference away that is intended; makes one where it should be and is not.
pub(crate) fn weigh(case: &str, difference: Option<Difference>, ours: &Outcome) -> Option<Difference> {
    let Some(instead) = of(case) else { return difference };
    let as_intended = match (instead, &difference) {
        (Instead::Succeeds(text), Some(Difference::OursSucceeds { .. }))
        | (
            Instead::Prints(text),
            Some(Difference::Objects(_) | Difference::Order(_) | Difference::Bytes(_)),
        ) => ours.output.contains(text),
        (Instead::Refuses(text), Some(Difference::OursRefuses { .. })) => ours.words.contains(text),
        _ => false,
    };
    if as_intended {
        return None;
    }
    let found = difference.map_or_else(|| "they agree".to_owned(), |difference| difference.to_string());
    Some(Difference::NotAsIntended { instead: format!("{instead:?}"), found })
}

const INTENDED: &[Intended] = &[];
