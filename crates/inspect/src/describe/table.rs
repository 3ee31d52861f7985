//! Cells in columns.

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "looks")]
pub enum Paint {
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
    pub fn code(self) -> Option<&'static str> {
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

    /// With more pieces.
    pub(super) fn followed_by(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn width(&self) -> usize {
        self.0.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    fn escaped(&self, escape: fn(&str) -> String) -> Self {
        Self(self.0.iter().map(|(paint, text)| (*paint, escape(text))).collect())
    }
}

/// A table in lines, each in pieces of different looks.
pub type Lines = Vec<Vec<(Paint, String)>>;

/// A header and rows of as many cells. Every column is as wide as its widest cell and the padding behind it, which is one
/// blank behind a header.
pub(super) fn render<const N: usize>(
    header: [&str; N],
    rows: &[[Text; N]],
    padding: usize,
    escape: fn(&str) -> String,
) -> Lines {
    let header = header.map(Text::plain);
    let rows: Vec<[Text; N]> = rows.iter().map(|row| row.each_ref().map(|it| it.escaped(escape))).collect();
    let mut widths = header.each_ref().map(|it| it.width() + 1);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width() + padding);
        }
    }
    let line = |row: &[Text; N]| {
        let padded = widths.iter().zip(row).flat_map(|(width, cell)| {
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            cell.0.iter().cloned().chain([(Paint::Plain, blanks)])
        });
        padded.collect()
    };
    [&header].into_iter().chain(&rows).map(line).collect()
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
                Text::new(Paint::Grey, "├─").and(Paint::Bold, "long"),
                Text::new(Paint::Red, "日本"),
                Text::default(),
            ],
            [Text::plain("e\u{301}"), Text::plain("x"), Text::plain("last")],
        ];
        let lines = render(["NAME", "B", "C"], &rows, 2, str::to_owned);
        let plain: Vec<String> =
            lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect();
        assert_eq!(plain, ["NAME    B     C     ", "├─long  日本        ", "e\u{301}       x     last  "]);
        let looks: Vec<_> = lines[1].iter().filter(|it| it.0 != Paint::Plain).collect();
        let expected = [(Paint::Grey, "├─"), (Paint::Bold, "long"), (Paint::Red, "日本")];
        assert_eq!(looks, expected.map(|(paint, text)| (paint, text.to_owned())).each_ref());
    }

    #[test]
    fn a_column_has_room_for_what_is_escaped() {
        let rows = [[Text::plain("a\u{7}"), Text::plain("b")]];
        let lines = render(["A", "B"], &rows, 1, |text| text.replace('\u{7}', "\\u0007"));
        let widths: Vec<usize> = lines.iter().map(|line| line.iter().map(|it| it.1.len()).sum()).collect();
        assert_eq!(widths, [10, 10]);
    }
}
