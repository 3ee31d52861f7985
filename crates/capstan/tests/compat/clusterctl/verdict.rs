//! How far two outcomes of a case agree.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::harness::{Case, Fate, Outcome};

/// How many differing lines a failure shows.
const SHOWN: usize = 4;
/// How much of each.
const WIDTH: usize = 200;

/// Where two outcomes part.
#[derive(Debug)]
pub(crate) enum Difference {
    /// The case is not what its author thought: upstream succeeds or refuses against the case's word.
    Misjudged { words: String },
    /// Ours succeeds where upstream refuses.
    OursSucceeds { words: String, output: String },
    /// Ours refuses where upstream succeeds.
    OursRefuses { words: String },
    /// Ours ended in a way no command may end, or failed without a word.
    OursBroke { words: String },
    /// They are to differ on purpose, and do not, or do otherwise.
    NotAsIntended { instead: String, found: String },
    /// Both succeed, with other objects or another text.
    Objects(Lines),
    /// Both succeed, with the same objects in another order.
    Order(Lines),
    /// Both succeed, with the same objects written otherwise.
    Bytes(Lines),
}

/// The first differing lines of two texts.
#[derive(Debug)]
pub(crate) struct Lines(Vec<(usize, String, String)>);

/// Compares what the two binaries made of a case.
pub(crate) fn judge(case: &Case, upstream: &Outcome, ours: &Outcome) -> Option<Difference> {
    let (fate, words) = (case.fate, || ours.words.clone());
    if (fate == Fate::Succeeds && !upstream.succeeded) || (fate == Fate::Refuses && upstream.succeeded) {
        return Some(Difference::Misjudged { words: format!("{}{}", upstream.words, upstream.output) });
    }
    // 101 is how a Rust program panics.
    if ours.code.is_none_or(|code| code == 101) || (!ours.succeeded && ours.words.trim().is_empty()) {
        return Some(Difference::OursBroke { words: words() });
    }
    match (upstream.succeeded, ours.succeeded) {
        (false, false) => None,
        (false, true) => {
            let output = ours.output.clone();
            Some(Difference::OursSucceeds { words: upstream.words.clone(), output })
        }
        (true, false) => Some(Difference::OursRefuses { words: words() }),
        (true, true) => compare(&upstream.output, &ours.output),
    }
}

fn compare(upstream: &str, ours: &str) -> Option<Difference> {
    if upstream == ours {
        return None;
    }
    let lines = Lines::of(upstream, ours);
    let (Some(mut expected), Some(mut found)) = (objects(upstream), objects(ours)) else {
        return Some(Difference::Objects(lines));
    };
    if expected == found {
        return Some(Difference::Bytes(lines));
    }
    for objects in [&mut expected, &mut found] {
        objects.sort_by_cached_key(Value::to_string);
    }
    Some(if expected == found { Difference::Order(lines) } else { Difference::Objects(lines) })
}

/// The documents of a stream, if the text is one of objects.
fn objects(text: &str) -> Option<Vec<Value>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).ok()?;
    objects.iter().all(Value::is_object).then_some(objects)
}

impl Lines {
    fn of(upstream: &str, ours: &str) -> Self {
        let (mut expected, mut found) = (upstream.lines(), ours.lines());
        let mut lines = Vec::new();
        for number in 1.. {
            match (expected.next(), found.next()) {
                (None, None) => break,
                (one, other) if one == other => {}
                (one, other) => lines.push((number, shorten(one), shorten(other))),
            }
            if lines.len() == SHOWN {
                break;
            }
        }
        Self(lines)
    }
}

fn shorten(line: Option<&str>) -> String {
    line.map_or_else(
        || "(nothing)".to_owned(),
        |line| format!("{:?}", line.chars().take(WIDTH).collect::<String>()),
    )
}

impl Display for Lines {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(formatter, "\n    (only in how lines end)");
        }
        for (number, upstream, ours) in &self.0 {
            write!(
                formatter,
                "\n    line {number}: upstream {upstream}\n    {:>w$} {ours}",
                "ours",
                w = 14 + digits(*number)
            )?;
        }
        Ok(())
    }
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let short =
            |words: &str| words.trim().chars().take(2 * WIDTH).collect::<String>().replace('\n', "\n    ");
        match self {
            Self::Misjudged { words } => {
                write!(formatter, "upstream takes it otherwise than the case says\n    {}", short(words))
            }
            Self::OursSucceeds { words, output } => {
                write!(
                    formatter,
                    "ours succeeds, upstream refuses\n    {}\n    ours: {}",
                    short(words),
                    short(output)
                )
            }
            Self::OursRefuses { words } => {
                write!(formatter, "ours refuses, upstream succeeds\n    {}", short(words))
            }
            Self::OursBroke { words } => write!(formatter, "ours broke\n    {}", short(words)),
            Self::NotAsIntended { instead, found } => {
                write!(formatter, "ours was to differ: {instead}, but {found}")
            }
            Self::Objects(lines) => write!(formatter, "the contents differ{lines}"),
            Self::Order(lines) => write!(formatter, "the order of objects differs{lines}"),
            Self::Bytes(lines) => write!(formatter, "the same objects are written otherwise{lines}"),
        }
    }
}
