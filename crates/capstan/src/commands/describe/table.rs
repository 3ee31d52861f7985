//! Cells in columns and colours. All text is made harmless before it is measured.

use crate::printer::{Text, harmless_line};

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Bold,
    Grey,
    Red,
    Green,
    Yellow,
    Cyan,
    White,
    BoldWhite,
}

impl Paint {
    /// The code that terminals know for it; none for plain text.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Red => Some("31"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::Cyan => Some("36"),
            Self::White => Some("37"),
            Self::BoldWhite => Some("37;1"),
            Self::Grey => Some("90"),
        }
    }
}

/// One line of text in pieces of different looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell(Vec<(Paint, String)>);

impl Cell {
    /// Text in one look.
    pub(super) fn new(paint: Paint, text: impl Into<String>) -> Self {
        Self::default().and(paint, text)
    }

    /// Text as it is.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(Paint::Plain, text)
    }

    /// With one more piece.
    pub(super) fn and(mut self, paint: Paint, text: impl Into<String>) -> Self {
        let text = harmless_line(&text.into());
        if !text.is_empty() {
            self.0.push((paint, text));
        }
        self
    }

    fn width(&self) -> usize {
        self.0.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }
}

/// A header and rows of as many cells. Every column is as wide as its widest cell and the padding behind it, which is one
/// blank behind a header.
pub(super) fn render<const N: usize>(header: [&str; N], rows: &[[Cell; N]], padding: usize) -> Text {
    let header = header.map(Cell::plain);
    let mut widths = header.each_ref().map(|it| it.width() + 1);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width() + padding);
        }
    }
    let mut text = Text::default();
    for row in [&header].into_iter().chain(rows) {
        for (width, cell) in widths.iter().zip(row) {
            for (paint, piece) in &cell.0 {
                text.push(match paint.code() {
                    Some(code) => Text::with_code(code, piece),
                    None => Text::from(piece),
                });
            }
            text.push(" ".repeat(width.saturating_sub(cell.width())));
        }
        text.line("");
    }
    text
}

/// How many columns of a terminal a character takes: none for what is put upon the one before it, two for the scripts of
/// East Asia and for pictures.
fn columns(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0x33FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA000..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE4F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            [
                Cell::new(Paint::Grey, "├─").and(Paint::Bold, "long"),
                Cell::new(Paint::Red, "日本"),
                Cell::default(),
            ],
            [Cell::plain("e\u{301}"), Cell::plain("x"), Cell::plain("last")],
        ];
        let text = render(["NAME", "B", "C"], &rows, 2);
        assert_eq!(text.plain(), "NAME    B     C     \n├─long  日本        \ne\u{301}       x     last  \n");
        let second = text.lines().nth(1).unwrap();
        assert_eq!(second, "\u{1b}[90m├─\u{1b}[0m\u{1b}[1mlong\u{1b}[0m  \u{1b}[31m日本\u{1b}[0m        ");
    }

    #[test]
    fn a_column_has_room_for_what_is_escaped() {
        let text = render(["A", "B"], &[[Cell::plain("a\u{7}"), Cell::plain("b\nc")]], 1).plain();
        assert_eq!(text, "A       B    \na\\u0007 b\\nc \n");
    }
}
