//! Cells in columns and colours.

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

/// Text in pieces of different looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(Vec<(Paint, String)>);

impl Text {
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
        let text = text.into();
        if !text.is_empty() {
            self.0.push((paint, text));
        }
        self
    }

    fn width(&self) -> usize {
        self.0.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    fn write(&self, out: &mut String) {
        for (paint, text) in &self.0 {
            match paint.code() {
                Some(code) => out.extend(["\u{1b}[", code, "m", text, "\u{1b}[0m"]),
                None => out.push_str(text),
            }
        }
    }
}

/// A header and rows of as many cells. Every column is as wide as its widest cell and the padding behind it, which is one
/// blank behind a header.
pub(super) fn render<const N: usize>(header: [&str; N], rows: &[[Text; N]], padding: usize) -> String {
    let header = header.map(Text::plain);
    let mut widths = header.each_ref().map(|it| it.width() + 1);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width() + padding);
        }
    }
    let mut out = String::new();
    for row in [&header].into_iter().chain(rows) {
        for (width, cell) in widths.iter().zip(row) {
            cell.write(&mut out);
            out.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width())));
        }
        out.push('\n');
    }
    out
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
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            [
                Text::new(Paint::Grey, "├─").and(Paint::Bold, "long"),
                Text::new(Paint::Red, "日本"),
                Text::default(),
            ],
            [Text::plain("e\u{301}"), Text::plain("x"), Text::plain("last")],
        ];
        let coloured = render(["NAME", "B", "C"], &rows, 2);
        let plain = strip_str(&coloured).to_string();
        assert_eq!(plain, "NAME    B     C     \n├─long  日本        \ne\u{301}       x     last  \n");
        let second = coloured.lines().nth(1).unwrap();
        assert_eq!(second, "\u{1b}[90m├─\u{1b}[0m\u{1b}[1mlong\u{1b}[0m  \u{1b}[31m日本\u{1b}[0m        ");
    }
}
