//! Which lines of a text are gone in another, and which are new.

use std::{collections::HashMap, fmt};

use serde::{Serialize, Serializer};

/// Texts that differ by more lines than this are shown one after the other: nobody would read it anyway, and the
/// search for the least difference takes the square of it.
const MOST_EDITS: usize = 2000;
/// How many lines around a difference are shown.
const CONTEXT: usize = 3;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// It is in both texts.
    Kept,
    /// It is in the old text only.
    Removed,
    /// It is in the new text only.
    Added,
    /// Lines that are in both were left out; the text says where the next ones are.
    Gap,
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// What becomes of it.
    pub sign: Sign,
    /// Its text, without the sign.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.sign {
            Sign::Kept => " ",
            Sign::Removed => "-",
            Sign::Added => "+",
            Sign::Gap => "@@ ",
        };
        write!(out, "{sign}{}", self.text)
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The lines that differ, with some around them; none where the texts are equal.
pub(crate) fn difference(old: &str, new: &str) -> Vec<Line> {
    if old == new { Vec::new() } else { with_gaps(compare(old, new)) }
}

/// All lines of both texts: those kept and removed are the old text, those kept and added the new one.
fn compare(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old_numbers: Vec<usize> = old.iter().map(|line| number(*line)).collect();
    let new_numbers: Vec<usize> = new.iter().map(|line| number(*line)).collect();

    let same = |(a, b): &(&usize, &usize)| a == b;
    let head = old_numbers.iter().zip(&new_numbers).take_while(same).count();
    let (old_rest, new_rest) = (tail(&old_numbers, head), tail(&new_numbers, head));
    let foot = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let old_middle = old_rest.get(..old_rest.len() - foot).unwrap_or_default();
    let new_middle = new_rest.get(..new_rest.len() - foot).unwrap_or_default();

    let middle = shortest_edits(old_middle, new_middle).unwrap_or_else(|| {
        let removed = vec![Sign::Removed; old_middle.len()];
        [removed, vec![Sign::Added; new_middle.len()]].concat()
    });
    let signs = [vec![Sign::Kept; head], middle, vec![Sign::Kept; foot]].concat();
    spell(&signs, &old, &new)
}

fn tail(numbers: &[usize], from: usize) -> &[usize] {
    numbers.get(from..).unwrap_or_default()
}

/// The lines that some signs stand for.
fn spell(signs: &[Sign], old: &[&str], new: &[&str]) -> Vec<Line> {
    let (mut old, mut new) = (old.iter(), new.iter());
    let lines = signs.iter().filter_map(|sign| {
        let text = match sign {
            Sign::Removed => old.next()?,
            Sign::Added => new.next()?,
            Sign::Kept | Sign::Gap => {
                new.next()?;
                old.next()?
            }
        };
        Some(Line { sign: *sign, text: (*text).to_owned() })
    });
    lines.collect()
}

/// The fewest removals and additions that make one list of the other (Myers' greedy algorithm); nothing where there are
/// too many.
///
/// Round `d` has the furthest places in the old list that `d` edits lead to, one for each surplus of removals over
/// additions from `-d` to `d` in steps of two.
fn shortest_edits(old: &[usize], new: &[usize]) -> Option<Vec<Sign>> {
    let mut rounds: Vec<Vec<Option<usize>>> = Vec::new();
    for edits in 0..=MOST_EDITS.min(old.len() + new.len()) {
        let before = rounds.last().map_or(&[][..], Vec::as_slice);
        let mut round = Vec::with_capacity(edits + 1);
        for removals in 0..=edits {
            let additions = edits - removals;
            let start = begin(before, removals, additions, old.len(), new.len()).map(|(start, _)| start);
            let end = start.map(|start| start + run(old, new, start, start + additions - removals));
            if end == Some(old.len()) && old.len() + additions - removals == new.len() {
                round.push(end);
                rounds.push(round);
                return Some(retrace(&rounds, removals, old.len(), new.len()));
            }
            round.push(end);
        }
        rounds.push(round);
    }
    None
}

/// Where the lines in common begin that follow the last edit, and that edit.
fn begin(
    before: &[Option<usize>],
    removals: usize,
    additions: usize,
    old: usize,
    new: usize,
) -> Option<(usize, Option<Sign>)> {
    if removals + additions == 0 {
        return Some((0, None));
    }
    let removed = removals.checked_sub(1).and_then(|it| *before.get(it)?).map(|it| it + 1);
    let added = before.get(removals).copied().flatten();
    let is_within =
        |at: &usize| *at <= old && *at + additions >= removals && *at + additions - removals <= new;
    let removed = removed.filter(is_within).map(|at| (at, Some(Sign::Removed)));
    let added = added.filter(is_within).map(|at| (at, Some(Sign::Added)));
    match (removed, added) {
        (Some(removed), Some(added)) => Some(if removed.0 > added.0 { removed } else { added }),
        (one, other) => one.or(other),
    }
}

/// How many lines two lists have in common from some places on.
fn run(old: &[usize], new: &[usize], old_at: usize, new_at: usize) -> usize {
    tail(old, old_at).iter().zip(tail(new, new_at)).take_while(|(a, b)| a == b).count()
}

/// The way that led to the end.
fn retrace(rounds: &[Vec<Option<usize>>], removals: usize, old: usize, new: usize) -> Vec<Sign> {
    let (mut signs, mut removals) = (Vec::new(), removals);
    for edits in (0..rounds.len()).rev() {
        let end = rounds.get(edits).and_then(|it| *it.get(removals)?).unwrap_or_default();
        let before = edits.checked_sub(1).and_then(|it| rounds.get(it)).map_or(&[][..], Vec::as_slice);
        let Some((start, edit)) = begin(before, removals, edits - removals, old, new) else {
            break;
        };
        signs.extend(std::iter::repeat_n(Sign::Kept, end - start));
        signs.extend(edit);
        removals -= usize::from(edit == Some(Sign::Removed));
    }
    signs.reverse();
    signs
}

/// Leaves out lines that are far from any difference.
fn with_gaps(lines: Vec<Line>) -> Vec<Line> {
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, it)| it.sign != Sign::Kept).map(|(at, _)| at).collect();
    let is_near = |at: usize| {
        let next = changed.partition_point(|it| *it < at);
        let around = [next.checked_sub(1), Some(next)].into_iter().flatten();
        around.filter_map(|it| changed.get(it)).any(|it| it.abs_diff(at) <= CONTEXT)
    };
    let (mut shown, mut old, mut new, mut is_shown) = (Vec::new(), 1, 1, true);
    for (at, line) in lines.into_iter().enumerate() {
        let (is_old, is_new) = (line.sign != Sign::Added, line.sign != Sign::Removed);
        if is_near(at) {
            if !is_shown {
                shown.push(Line { sign: Sign::Gap, text: format!("-{old} +{new}") });
            }
            shown.push(line);
            is_shown = true;
        } else {
            is_shown = false;
        }
        old += usize::from(is_old);
        new += usize::from(is_new);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn differences_are_as_small_as_can_be() {
        for (old, new, expected) in [
            ("a\nb\nc\n", "a\nb\nc\n", vec![]),
            ("", "a\n", vec!["+a"]),
            ("a\n", "", vec!["-a"]),
            ("a\nb\nc\n", "a\nx\nc\n", vec![" a", "-b", "+x", " c"]),
            // What is kept between two differences is seen.
            ("a\nb\nc\nd\n", "b\nc\nx\nd\n", vec!["-a", " b", " c", "+x", " d"]),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
                "x\n1\n2\n3\n4\n5\n6\n7\n8\n",
                vec!["+x", " 1", " 2", " 3", "@@ -6 +7", " 6", " 7", " 8", "-9"],
            ),
        ] {
            assert_eq!(texts(&difference(old, new)), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn texts_that_have_nothing_in_common_are_shown_one_after_the_other() {
        let many =
            |word: &str| (0..MOST_EDITS).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join("\n");
        let lines = difference(&many("a"), &many("b"));
        assert_eq!(lines.len(), 2 * MOST_EDITS);
        assert!(lines.is_sorted_by_key(|it| it.sign == Sign::Added));
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec("[abc]", 0..30).prop_map(|lines| lines.join("\n"))
    }

    /// The length of the longest common subsequence, the slow way.
    fn in_common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut corner = 0;
            for (at, b) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { corner + 1 } else { above.max(row[at]) };
                corner = above;
            }
        }
        row[new.len()]
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_their_comparison(old in text(), new in text()) {
            let lines = compare(&old, &new);
            let without = |sign: Sign| -> Vec<&str> {
                lines.iter().filter(|it| it.sign != sign).map(|it| it.text.as_str()).collect()
            };
            let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
            prop_assert_eq!(without(Sign::Added), old.clone());
            prop_assert_eq!(without(Sign::Removed), new.clone());
            let kept = lines.iter().filter(|it| it.sign == Sign::Kept).count();
            prop_assert_eq!(kept, in_common(&old, &new));
        }

        #[test]
        fn equal_texts_do_not_differ(text in text()) {
            prop_assert_eq!(difference(&text, &text), vec![]);
        }
    }
}
