//! The text that is parsed, and where its parts stand in the text that was given.

use std::borrow::Cow;

use crate::Place;

/// A text to parse.
pub(super) struct Source<'a> {
    original: &'a str,
    text: Cow<'a, str>,
    /// For every removal its offset in `text`, and how many bytes are gone up to there.
    removals: Vec<(usize, usize)>,
}

impl<'a> Source<'a> {
    /// The text as it is, up to the first NUL.
    pub(super) fn as_written(text: &'a str) -> Self {
        let original = text.split('\0').next().unwrap_or_default();
        Self { original, text: Cow::Borrowed(original), removals: Vec::new() }
    }

    /// The text with `${NAME}` wherever `${ NAME }` is written, be it in a word or behind an escaped `$`.
    pub(super) fn without_spaces_around_names(text: &'a str) -> Self {
        let mut source = Self::as_written(text);
        let mut kept = String::new();
        let mut rest = source.original;
        while let Some((before, spaced)) = split_before_spaced_name(rest) {
            kept += before;
            rest = spaced.after;
            for (keep, spaces) in [("${", spaced.leading), (spaced.name, spaced.trailing)] {
                kept += keep;
                let gone = source.removals.last().map_or(0, |(_, gone)| *gone);
                source.removals.push((kept.len(), gone + spaces));
            }
        }
        if !source.removals.is_empty() {
            source.text = Cow::Owned(kept + rest);
        }
        source
    }

    /// The text to parse.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text as it was given, from what stands at an offset of [`text`](Self::text) on.
    pub(super) fn original_from(&self, offset: usize) -> &'a str {
        self.original.get(self.original_offset(offset)..).unwrap_or_default()
    }

    fn original_offset(&self, offset: usize) -> usize {
        let before = self.removals.partition_point(|(at, _)| *at <= offset);
        let gone =
            before.checked_sub(1).and_then(|last| self.removals.get(last)).map_or(0, |(_, gone)| *gone);
        offset + gone
    }
}

/// A bare name with spaces around it; `leading` and `trailing` count their bytes.
struct SpacedName<'a> {
    leading: usize,
    name: &'a str,
    trailing: usize,
    after: &'a str,
}

fn split_before_spaced_name(text: &str) -> Option<(&str, SpacedName<'_>)> {
    text.match_indices('$').find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        Some((before, spaced_name(rest)?))
    })
}

fn spaced_name(text: &str) -> Option<SpacedName<'_>> {
    let inside = text.strip_prefix("${")?;
    let named = inside.trim_start_matches(is_space);
    let end = named.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))?;
    let (name, spaces) = named.split_at(end);
    let closed = spaces.trim_start_matches(is_space);
    let (leading, trailing) = (inside.len() - named.len(), spaces.len() - closed.len());
    let is_spaced = !name.is_empty() && leading + trailing > 0 && closed.starts_with('}');
    is_spaced.then_some(SpacedName { leading, name, trailing, after: closed })
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

/// Finds the places of ascending offsets in one walk through the text.
pub(super) struct Places<'a> {
    source: &'a Source<'a>,
    offset: usize,
    place: Place,
}

impl<'a> Places<'a> {
    pub(super) fn new(source: &'a Source<'a>) -> Self {
        Self { source, offset: 0, place: Place { line: 1, column: 1 } }
    }

    /// The place in the original of what stands at an offset of the text to parse.
    pub(super) fn find(&mut self, offset: usize) -> Place {
        let offset = self.source.original_offset(offset);
        let passed = self.source.original.get(self.offset..offset).unwrap_or_default();
        match passed.rsplit_once('\n') {
            None => self.place.column += passed.chars().count(),
            Some((lines, last)) => {
                self.place.line += lines.matches('\n').count() + 1;
                self.place.column = last.chars().count() + 1;
            }
        }
        self.offset = offset;
        self.place
    }
}
