//! The variables of a text, where they stand, and a text without them that keeps its shape.

use std::ops::Range;

use capstan_manifest::Place;

/// Variables that `clusterctl generate cluster` sets by flags and arguments.
pub(super) mod common {
    pub(crate) const CLUSTER_NAME: &str = "CLUSTER_NAME";
    pub(crate) const NAMESPACE: &str = "NAMESPACE";
    pub(crate) const KUBERNETES_VERSION: &str = "KUBERNETES_VERSION";
    pub(crate) const CONTROL_PLANE_MACHINE_COUNT: &str = "CONTROL_PLANE_MACHINE_COUNT";
    pub(crate) const WORKER_MACHINE_COUNT: &str = "WORKER_MACHINE_COUNT";
    /// Those that always have a value, whatever default is written down.
    pub(crate) const ALL: [&str; 5] =
        [CLUSTER_NAME, NAMESPACE, KUBERNETES_VERSION, CONTROL_PLANE_MACHINE_COUNT, WORKER_MACHINE_COUNT];
}

// Letters that no file contains and that YAML accepts anywhere.
const BEGIN: char = '\u{e000}';
const END: char = '\u{e001}';

/// What stands in a text in place of a variable without default.
pub(super) fn placeholder(name: &str) -> String {
    format!("{BEGIN}{name}{END}")
}

/// Whether a text has a variable in it whose value is not known.
pub(super) fn is_open(text: &str) -> bool {
    text.contains(BEGIN)
}

/// The text with variables as their author wrote them.
pub(super) fn as_written(text: &str) -> String {
    text.replace(BEGIN, "${").replace(END, "}")
}

/// A place where a variable is used. Variables in the default of another one are not counted, as clusterctl does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) name: String,
    /// From the dollar to the brace.
    pub(super) at: Range<usize>,
    /// What is written behind `:=` or one of its other spellings.
    pub(super) default: Option<String>,
    /// Whether the name is all that there is in the braces.
    pub(super) is_bare: bool,
    pub(super) has_spaces: bool,
}

/// All uses of variables in a text that has been found to be well-formed.
pub(super) fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(dollar) = text.get(from..).and_then(|it| it.find('$')).map(|it| from + it) {
        let rest = text.get(dollar + 1..).unwrap_or_default();
        from = match rest.chars().next() {
            // Two dollars are one, and begin nothing.
            Some('$') => dollar + 2,
            Some('{') => match closing_brace(text, dollar + 2) {
                Some(end) => {
                    found.extend(read_use(text, dollar..end + 1));
                    end + 1
                }
                None => break,
            },
            _ => dollar + 1,
        };
    }
    found
}

/// The brace that ends a variable whose name begins at an offset.
fn closing_brace(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1;
    let mut before = ' ';
    for (offset, letter) in text.get(from..)?.char_indices() {
        match letter {
            '{' if before == '$' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(from + offset);
        }
        before = letter;
    }
    None
}

fn read_use(text: &str, at: Range<usize>) -> Option<Use> {
    let body = text.get(at.start + 2..at.end - 1)?;
    let trimmed = body.trim_start().trim_start_matches('#');
    let length = trimmed.find(|it: char| !(it.is_alphanumeric() || it == '_')).unwrap_or(trimmed.len());
    let (name, rest) = trimmed.split_at_checked(length)?;
    let default = [":=", ":-", ":?", ":+", "="].iter().find_map(|it| rest.strip_prefix(it));
    (!name.is_empty()).then(|| Use {
        name: name.to_owned(),
        default: default.filter(|it| !it.is_empty()).map(str::to_owned),
        is_bare: rest.trim().is_empty(),
        has_spaces: rest.trim().is_empty() && body.trim() != body,
        at,
    })
}

/// A text in which all variables have a value, and the way back from it.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) text: String,
    /// What was put in, and where it stood before.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

/// Replaces variables by their defaults or by placeholders. `fixed` keep their placeholder even with a default;
/// with `drop_lines`, variables that have a line for themselves leave it empty.
pub(super) fn fill(text: &str, uses: &[Use], fixed: &[&str], drop_lines: bool) -> Filled {
    let mut filled = Filled { text: String::with_capacity(text.len()), pieces: Vec::new() };
    let mut done = 0;
    for it in uses {
        filled.text.push_str(text.get(done..it.at.start).unwrap_or_default());
        let start = filled.text.len();
        if !(drop_lines && is_alone(text, &it.at)) {
            filled.text.push_str(&value(it, fixed));
        }
        filled.pieces.push((start..filled.text.len(), it.at.clone()));
        done = it.at.end;
    }
    filled.text.push_str(text.get(done..).unwrap_or_default());
    filled
}

fn value(it: &Use, fixed: &[&str]) -> String {
    match &it.default {
        Some(default) if !fixed.contains(&it.name.as_str()) => {
            let nested = uses(default);
            fill(default, &nested, fixed, false).text
        }
        _ => placeholder(&it.name),
    }
}

/// Whether a variable has a line for itself, so that it can stand for lines of YAML.
pub(super) fn is_alone(text: &str, at: &Range<usize>) -> bool {
    let before = text.get(..at.start).unwrap_or_default();
    let after = text.get(at.end..).unwrap_or_default();
    let blank = |it: Option<&str>| it.is_none_or(|it| it.trim().is_empty());
    blank(before.rsplit('\n').next()) && blank(after.split('\n').next())
}

impl Filled {
    /// The place in the text as it was written that became a place in this one.
    pub(super) fn source_place(&self, text: &str, place: Place) -> Place {
        place_of(text, self.source_offset(offset_of(&self.text, place)))
    }

    fn source_offset(&self, offset: usize) -> usize {
        let Some((put, stood)) = self.pieces.iter().rev().find(|(put, _)| put.start <= offset) else {
            return offset;
        };
        // Within what was put in there is nothing that the author wrote: the variable itself is.
        if offset < put.end { stood.start } else { stood.end + (offset - put.end) }
    }
}

/// Where in a text a line and column are.
fn offset_of(text: &str, place: Place) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines.clone().take(place.line.saturating_sub(1)).map(str::len).sum();
    let line = lines.skip(place.line.saturating_sub(1)).take(1).collect::<String>();
    before + line.chars().take(place.column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// The line and column of an offset.
pub(super) fn place_of(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Place { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_found_with_their_defaults_and_spaces() {
        for (text, expected) in [
            ("a ${A} b", vec![("A", None, true, false)]),
            (
                "${A:=x}${B=y}${C:-z}${D:?w}",
                vec![
                    ("A", Some("x"), false, false),
                    ("B", Some("y"), false, false),
                    ("C", Some("z"), false, false),
                    ("D", Some("w"), false, false),
                ],
            ),
            (
                "${ A } ${A } ${ A}",
                vec![("A", None, true, true), ("A", None, true, true), ("A", None, true, true)],
            ),
            ("${A:=${B:=c}d} ${E}", vec![("A", Some("${B:=c}d"), false, false), ("E", None, true, false)]),
            ("$${A} $A $(A) ${A:=}", vec![("A", None, false, false)]),
            (
                "${#A} ${A/x/y} ${A^^}",
                vec![("A", None, true, false), ("A", None, false, false), ("A", None, false, false)],
            ),
            ("${A", vec![]),
        ] {
            let found = uses(text);
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.name.as_str(), it.default.as_deref(), it.is_bare, it.has_spaces))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_filled_text_has_defaults_and_placeholders_and_reads_as_written() {
        let text = "a: ${A}\nb: ${B:=1}\nc: ${C:=${D:=x}y}\nd: ${N:=1}\n";
        let filled = fill(text, &uses(text), &["N"], false);
        assert_eq!(filled.text, "a: \u{e000}A\u{e001}\nb: 1\nc: xy\nd: \u{e000}N\u{e001}\n");
        assert_eq!(as_written(&filled.text), "a: ${A}\nb: 1\nc: xy\nd: ${N}\n");
        assert!(is_open(&filled.text) && !is_open("${A}"));
    }

    #[test]
    fn lines_of_variables_can_be_left_empty() {
        let text = "a:\n  ${A}\n  b: ${B}\n";
        let filled = fill(text, &uses(text), &[], true);
        assert_eq!(filled.text, "a:\n  \n  b: \u{e000}B\u{e001}\n");
    }

    #[test]
    fn every_place_in_a_filled_text_leads_back() {
        let text = "ä: ${LONG_NAME:=1} x\n${A:=two\nlines} y: z\nq: ${B} r\n";
        let filled = fill(text, &uses(text), &[], false);
        for (word, line, column) in
            [("x", 1, 20), ("y:", 3, 8), ("z", 3, 11), ("r", 4, 9), ("1", 1, 4), ("lines", 2, 1)]
        {
            let place = place_of(&filled.text, filled.text.find(word).unwrap());
            assert_eq!(filled.source_place(text, place), Place { line, column }, "{word}");
        }
    }

    mod laws {
        use proptest::prelude::*;

        use super::*;

        /// Text with variables in most of the forms that there are.
        fn text() -> impl Strategy<Value = String> {
            let piece = prop_oneof![
                "[a-zä:# \n]{0,6}",
                Just("$$".to_owned()),
                Just("${A}".to_owned()),
                Just("${ B }".to_owned()),
                Just("${C:=de\nfault}".to_owned()),
                Just("${D:=${E:=x}y}".to_owned()),
                Just("${F/a/b}".to_owned()),
            ];
            prop::collection::vec(piece, 0..12).prop_map(|it| it.concat())
        }

        proptest! {
            #[test]
            fn what_is_written_is_found_where_it_is_written(text in text(), drop_lines: bool) {
                let uses = uses(&text);
                let filled = fill(&text, &uses, &["D"], drop_lines);
                let mut shift = 0_isize;
                let mut next = 0;
                for (offset, _) in text.char_indices() {
                    while uses.get(next).is_some_and(|it| it.at.end <= offset) {
                        let (put, stood) = &filled.pieces[next];
                        shift += isize::try_from(put.len()).unwrap() - isize::try_from(stood.len()).unwrap();
                        next += 1;
                    }
                    if uses.get(next).is_some_and(|it| it.at.contains(&offset)) {
                        continue;
                    }
                    let there = offset.checked_add_signed(shift).unwrap();
                    prop_assert_eq!(&filled.text[there..].chars().next(), &text[offset..].chars().next());
                    let place = place_of(&filled.text, there);
                    prop_assert_eq!(filled.source_place(&text, place), place_of(&text, offset));
                }
            }
        }
    }
}
