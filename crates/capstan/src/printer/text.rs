//! Text for people that no foreign text can turn into something else.

use std::{borrow::Cow, fmt::Write};

use anstyle::{AnsiColor, Style};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const RED: Style = AnsiColor::Red.on_default();
/// Foreign text cannot begin a line that looks like one of ours: what follows a line break in it is indented.
const CONTINUATION: &str = "\n      ";

/// Makes foreign text harmless: characters that a terminal acts on, and those that change what a reader sees without
/// being seen themselves, become JSON's escapes (`\u001b`). Line breaks and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 32);
    for letter in text.chars() {
        match letter {
            '\r' => out.push_str("\\r"),
            letter if is_unseen(letter) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            letter => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// The same for a place where text has only one line: line breaks and tabs are escaped, too.
pub(crate) fn harmless_line(text: &str) -> String {
    harmless(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Controls (C0, DEL, C1), and what Unicode calls default ignorable or format characters: marks for the direction of
/// text, joiners, fillers, variation selectors, tags. Line and paragraph separators, too.
fn is_unseen(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        letter => letter.is_control(),
    }
}

/// Text for people. All text that comes into it is made harmless; looks and line breaks are only those that a command
/// gives by calling for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(String);

impl Text {
    /// Text in a look.
    pub(crate) fn painted(style: Style, text: &str) -> Self {
        let painted = |line: &str| format!("{style}{line}{style:#}");
        let lines: Vec<String> = harmless(text).split('\n').map(painted).collect();
        Self(lines.join(CONTINUATION))
    }

    /// One line in the look that has a code of its own in ECMA-48.
    pub(crate) fn with_code(code: &'static str, text: &str) -> Self {
        Self(format!("\u{1b}[{code}m{}\u{1b}[0m", harmless_line(text)))
    }

    /// Text whose line breaks are ours.
    pub(crate) fn laid_out(text: &str) -> Self {
        Self(harmless(text).into_owned())
    }

    /// With more text behind it.
    pub(crate) fn and(mut self, more: impl Into<Self>) -> Self {
        self.push(more);
        self
    }

    pub(crate) fn push(&mut self, more: impl Into<Self>) {
        self.0.push_str(&more.into().0);
    }

    /// Text, and the end of its line.
    pub(crate) fn line(&mut self, text: impl Into<Self>) {
        self.push(text.into().ended());
    }

    /// With the end of its line.
    pub(crate) fn ended(mut self) -> Self {
        self.0.push('\n');
        self
    }

    /// The lines of it.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines()
    }

    /// Without looks, for a file.
    pub(crate) fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.0).to_string()
    }

    /// As a terminal takes it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(harmless(text).replace('\n', CONTINUATION))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// A word in the colour of what it means.
pub(crate) fn coloured(word: &str) -> Text {
    let style = match word {
        "Provisioned" | "True" => GREEN,
        "Failed" | "False" => RED.bold(),
        _ => YELLOW,
    };
    Text::painted(style, word)
}

/// Less important text.
pub(crate) fn dim(text: &str) -> Text {
    Text::painted(DIM, text)
}

/// More important text.
pub(crate) fn bold(text: &str) -> Text {
    Text::painted(BOLD, text)
}

/// What is added, what is removed, and what to be careful about.
pub(crate) fn green(text: &str) -> Text {
    Text::painted(GREEN, text)
}

pub(crate) fn red(text: &str) -> Text {
    Text::painted(RED, text)
}

pub(crate) fn yellow(text: &str) -> Text {
    Text::painted(YELLOW, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_or_does_not_show_is_escaped() {
        for (text, expected) in [
            ("plain ä 日本 e\u{301} ✓ \\u001b", "plain ä 日本 e\u{301} ✓ \\u001b"),
            ("a\nb\tc", "a\nb\tc"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("\u{1b}]52;c;Y3VybA==\u{1b}\\", "\\u001b]52;c;Y3VybA==\\u001b\\"),
            ("\u{1b}[2J\u{1b}[8m", "\\u001b[2J\\u001b[8m"),
            ("\u{9b}2J\u{9d}0;t\u{9c}\u{85}", "\\u009b2J\\u009d0;t\\u009c\\u0085"),
            ("fine\rerror", "fine\\rerror"),
            ("\0\u{8}\u{b}\u{c}\u{7f}", "\\u0000\\u0008\\u000b\\u000c\\u007f"),
            ("a\u{202e}b\u{2066}c\u{2069}\u{200f}\u{61c}", "a\\u202eb\\u2066c\\u2069\\u200f\\u061c"),
            (
                "pr\u{200b}od\u{ad}\u{feff}\u{2060}\u{3164}\u{fe0f}",
                "pr\\u200bod\\u00ad\\ufeff\\u2060\\u3164\\ufe0f",
            ),
            ("a\u{2028}b\u{2029}", "a\\u2028b\\u2029"),
            ("\u{e0041}\u{e0100}", "\\udb40\\udc41\\udb40\\udd00"),
        ] {
            assert_eq!(harmless(text), expected);
            assert_eq!(harmless(expected), expected, "what is harmless stays as it is");
        }
        assert_eq!(harmless_line("a\r\n\tb"), "a\\r\\n\\tb");
    }

    #[test]
    fn escapes_mean_the_same_in_json() {
        for letter in (0..=0x0010_ffff).filter_map(char::from_u32).filter(|it| is_unseen(*it)) {
            let escaped = format!("\"{}\"", harmless(&letter.to_string()));
            assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), letter.to_string(), "{escaped}");
        }
    }

    #[test]
    fn nothing_of_unicode_that_is_unseen_is_missed() {
        // Rust's own escapes know what cannot be printed; unassigned and private characters are printed as boxes.
        let blanks = ['\u{a0}', '\u{1680}', '\u{202f}', '\u{205f}', '\u{3000}'];
        let is_format = |it: char| {
            // Behind another character only what cannot be printed is escaped, not what combines with that character.
            let is_escaped = format!("x{it}").escape_debug().nth(2).is_some();
            let is_sign = matches!(
                it,
                '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
            );
            is_escaped
                && !it.is_ascii()
                && !is_sign
                && !blanks.contains(&it)
                && !matches!(it, '\u{2000}'..='\u{200a}')
        };
        // Planes and blocks in which every character is assigned.
        for block in
            ['\u{80}'..='\u{24f}', '\u{600}'..='\u{6ff}', '\u{2000}'..='\u{206f}', '\u{fe00}'..='\u{fe0f}']
        {
            for letter in block.filter(|it| is_format(*it)) {
                assert!(is_unseen(letter), "U+{:04X}", u32::from(letter));
            }
        }
    }

    #[test]
    fn looks_and_line_breaks_are_only_ours() {
        let mut text = Text::default();
        text.line(bold("a\u{1b}[31m").and(": ").and("b\nhint: c"));
        text.line(Text::with_code("31", "d\ne"));
        text.push(Text::laid_out("f\ng\u{7}"));
        let expected =
            "\u{1b}[1ma\\u001b[31m\u{1b}[0m: b\n      hint: c\n\u{1b}[31md\\ne\u{1b}[0m\nf\ng\\u0007";
        assert_eq!(text.as_str(), expected);
        assert_eq!(text.plain(), "a\\u001b[31m: b\n      hint: c\nd\\ne\nf\ng\\u0007");
        assert_eq!(dim("a\nb").as_str(), "\u{1b}[2ma\u{1b}[0m\n      \u{1b}[2mb\u{1b}[0m");
    }
}
