//! The text of a document, with the few spaces that go-yaml can do without and our parser cannot.
//!
//! Our parser knows YAML 1.2. What is in the way of files that Go reads can be put right by spaces that mean nothing,
//! put in where the parser stops. Texts that need none, which is nearly all, cost nothing.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::Place;

/// A text and where it is in a larger one.
pub(super) struct Source<'text> {
    text: Cow<'text, str>,
    lines_before: usize,
    patches: Vec<Patch>,
    /// How many more bytes may be read again because of patches.
    budget: usize,
}

/// Spaces that were not there.
struct Patch {
    line: usize,
    column: usize,
    width: usize,
}

/// A hostile text may need more patches than anybody wants to wait for.
const BUDGET: usize = 16 << 20;
/// How much faster text is moved than read, about.
const MOVES_PER_READ: usize = 32;

impl<'text> Source<'text> {
    pub(super) const fn new(text: Cow<'text, str>, lines_before: usize) -> Self {
        Self { text, lines_before, patches: Vec::new(), budget: BUDGET }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a place of this text is in the larger one, without the patches.
    pub(super) fn place(&self, at: Marker) -> Place {
        // The latest was put in last, so it is the first to be taken out.
        let column = self.patches.iter().rev().fold(at.col(), |column, patch| {
            if patch.line == at.line() && column > patch.column {
                column.saturating_sub(patch.width).max(patch.column)
            } else {
                column
            }
        });
        Place { line: self.lines_before + at.line(), column: column + 1 }
    }

    /// The first control character. Go refuses a few letters more: those it cannot read back when it has written them,
    /// a defect that no file relies on.
    pub(super) fn control_character(&self) -> Option<(Place, char)> {
        const BLOCK: usize = 64;
        let is_bad = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
        // Whole blocks at once are what the compiler makes fast code of.
        let any = |block: &[u8]| block.iter().fold(false, |found, byte| found | is_bad(byte));
        let bytes = self.text.as_bytes();
        let block = bytes.chunks(BLOCK).position(any)? * BLOCK;
        let offset = block + bytes.get(block..)?.iter().position(is_bad)?;
        let before = self.text.get(..offset)?;
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        let letter = self.text.get(offset..)?.chars().next()?;
        Some((Place { line: self.lines_before + line, column }, letter))
    }

    /// Puts in the spaces that the parser misses, if that is all it misses. `indent` is how far a line must be
    /// indented to belong to all lists and maps around it.
    pub(super) fn patch(&mut self, error: &ScanError, indent: usize) -> bool {
        let Some((at, column, width)) = self.missing_spaces(error, indent) else {
            return false;
        };
        // What was read in vain is read again, and what is behind it is moved.
        let cost = at + (self.text.len() - at) / MOVES_PER_READ;
        let Some(budget) = self.budget.checked_sub(cost) else {
            return false;
        };
        self.budget = budget;
        self.patches.push(Patch { line: error.marker().line(), column, width });
        self.text.to_mut().insert_str(at, &" ".repeat(width));
        true
    }

    /// The byte and the column that spaces must come before, and how many.
    fn missing_spaces(&self, error: &ScanError, indent: usize) -> Option<(usize, usize, usize)> {
        let marker = error.marker();
        let offset = marker.byte_offset()?;
        let rest = self.text.get(offset..)?;
        match error.kind() {
            // The further lines of quoted text and of what is in brackets may begin anywhere, and with tabs.
            ErrorKind::InvalidQuotedScalarIndent
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInBlockIndentation => {
                let line = self.text.get(..offset)?.rfind(['\n', '\r']).map_or(0, |before| before + 1);
                Some((line, 0, indent))
            }
            // A comment may follow anything but plain text without a space.
            ErrorKind::CommentNotSeparated
            | ErrorKind::InvalidTrailingSingleQuotedScalar
            | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
                rest.starts_with('#').then_some((offset, marker.col(), 1))
            }
            // A colon ends the name of an alias that is a key.
            ErrorKind::UnknownAnchor | ErrorKind::SimpleKeyExpected => {
                let name = 1 + rest.strip_prefix('*')?.find(|letter| !is_in_name(letter))?;
                let is_key = rest.get(name..)?.strip_prefix(':')?.starts_with(char::is_whitespace);
                is_key.then_some((offset + name, marker.col() + name, 1))
            }
            _ => None,
        }
    }
}

/// What the names of anchors are made of.
pub(super) const fn is_in_name(letter: char) -> bool {
    matches!(letter, '0'..='9' | 'A'..='Z' | 'a'..='z' | '_' | '-')
}
