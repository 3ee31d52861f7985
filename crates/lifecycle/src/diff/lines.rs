//! Which lines of a text are gone in another, and which are new.

use std::fmt;

use serde::{Serialize, Serializer};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

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
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut shown = Vec::new();
    let (mut old_end, mut new_end) = (0, 0);
    for group in group_diff_ops(compare(&old, &new), CONTEXT) {
        for operation in group {
            let (old_lines, new_lines) = (operation.old_range(), operation.new_range());
            if old_lines.start > old_end || new_lines.start > new_end {
                let text = format!("-{} +{}", old_lines.start + 1, new_lines.start + 1);
                shown.push(Line { sign: Sign::Gap, text });
            }
            (old_end, new_end) = (old_lines.end, new_lines.end);
            shown.extend(lines(&operation, &old, &new));
        }
    }
    shown
}

/// The operations that make one list of lines of the other.
fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // Its work is bounded where texts have little in common.
    capture_diff_slices(Algorithm::Myers, old, new)
}

/// The lines of an operation, those that are removed first.
fn lines(operation: &DiffOp, old: &[&str], new: &[&str]) -> Vec<Line> {
    let of = |texts: &[&str], range: std::ops::Range<usize>, sign: Sign| -> Vec<Line> {
        let texts = texts.get(range).unwrap_or_default();
        texts.iter().map(|text| Line { sign, text: (*text).to_owned() }).collect()
    };
    if let DiffOp::Equal { .. } = operation {
        return of(old, operation.old_range(), Sign::Kept);
    }
    let removed = of(old, operation.old_range(), Sign::Removed);
    [removed, of(new, operation.new_range(), Sign::Added)].concat()
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
        const LINES: usize = 20_000;
        let many = |word: &str| (0..LINES).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join("\n");
        let lines = difference(&many("a"), &many("b"));
        assert_eq!(lines.len(), 2 * LINES);
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
            let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
            let lines: Vec<_> = compare(&old, &new).iter().flat_map(|it| lines(it, &old, &new)).collect();
            let without = |sign: Sign| -> Vec<&str> {
                lines.iter().filter(|it| it.sign != sign).map(|it| it.text.as_str()).collect()
            };
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
