//! Writing a value as YAML, laid out as go-yaml lays it out.

use serde_json::Value;

use super::{keys, number, plain};

/// A value as one YAML document, with a line break at its end.
///
/// ```
/// let value = serde_json::json!({"kind": "ConfigMap", "data": {"a10": "", "a2": "yes", "text": "two\nlines\n"}});
/// assert_eq!(capstan_manifest::yaml::to_string(&value), "\
/// data:
///   a2: \"yes\"
///   a10: \"\"
///   text: |
///     two
///     lines
/// kind: ConfigMap
/// ");
/// ```
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    append(&mut out, value);
    out
}

/// Several values as one stream of documents, separated by `---`.
pub fn to_multi_document(values: &[Value]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push_str("---\n");
        }
        append(&mut out, value);
    }
    out
}

fn append(out: &mut String, value: &Value) {
    let mut emitter = Emitter { out, column: 0, after_space: true, after_indent: true };
    emitter.node(value, None, false);
    emitter.new_line(0);
}

/// Longer lines are folded at the next single space.
const WIDTH: usize = 80;
/// Longer keys are written the long way, with a question mark.
const MAX_SIMPLE_KEY: usize = 128;
const STEP: usize = 2;

struct Emitter<'a> {
    out: &'a mut String,
    column: usize,
    /// Whether a space may be left out before the next token.
    after_space: bool,
    /// Whether the line so far is only indentation and the signs of nested lists.
    after_indent: bool,
}

impl Emitter<'_> {
    /// Writes a value. The indentation is that of the list or map that holds it, if any.
    fn node(&mut self, value: &Value, outer: Option<usize>, in_map: bool) {
        match value {
            Value::Null => self.plain("null", outer, true),
            Value::Bool(true) => self.plain("true", outer, true),
            Value::Bool(false) => self.plain("false", outer, true),
            Value::Number(number) => self.plain(&number::text(number), outer, true),
            Value::String(text) => self.string(text, outer, true),
            Value::Array(items) if items.is_empty() => self.sign("[]", true, false),
            Value::Array(items) => {
                let indent = match outer {
                    None => 0,
                    // The compact form: a list in a map stands under its key.
                    Some(indent) if in_map && !self.after_indent => indent,
                    Some(indent) => indent + STEP,
                };
                for item in items {
                    self.new_line(indent);
                    self.sign("-", true, true);
                    self.node(item, Some(indent), false);
                }
            }
            Value::Object(map) if map.is_empty() => self.sign("{}", true, false),
            Value::Object(map) => {
                let indent = outer.map_or(0, |indent| indent + STEP);
                for (key, value) in keys::in_order(map) {
                    self.new_line(indent);
                    if key.len() <= MAX_SIMPLE_KEY && !key.contains(is_break) {
                        self.string(key, Some(indent), false);
                        self.sign(":", false, false);
                    } else {
                        self.sign("?", true, true);
                        self.string(key, Some(indent), true);
                        self.new_line(indent);
                        self.sign(":", true, true);
                    }
                    self.node(value, Some(indent), true);
                }
            }
        }
    }

    fn string(&mut self, text: &str, indent: Option<usize>, may_fold: bool) {
        match Style::of(text) {
            Style::Plain => self.plain(text, indent, may_fold),
            Style::Single => self.single_quoted(text, indent, may_fold),
            Style::Double => self.double_quoted(text, indent, may_fold),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: Option<usize>, may_fold: bool) {
        if !self.after_space {
            self.put(' ');
        }
        let mut after_blank = false;
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_space = letter == ' ';
            if is_space && may_fold && !after_blank && self.column > WIDTH && letters.peek() != Some(&' ') {
                self.new_line(scalar_indent(indent));
            } else {
                self.put(letter);
            }
            after_blank = is_space;
            self.after_indent = is_space && self.after_indent;
        }
        self.after_space = false;
        self.after_indent = false;
    }

    fn single_quoted(&mut self, text: &str, indent: Option<usize>, may_fold: bool) {
        self.sign("'", true, false);
        let mut after_blank = false;
        let mut after_break = false;
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            if letter == ' ' {
                let is_inside = at > 0 && at + 1 < text.len();
                let next = letters.peek().map(|(_, next)| *next);
                if may_fold && !after_blank && self.column > WIDTH && is_inside && next != Some(' ') {
                    self.new_line(scalar_indent(indent));
                } else {
                    self.put(letter);
                }
                after_blank = true;
            } else if is_break(letter) {
                self.put_break(letter);
                after_break = true;
            } else {
                if after_break {
                    self.new_line(scalar_indent(indent));
                }
                if letter == '\'' {
                    self.put('\'');
                }
                self.put(letter);
                self.after_indent = false;
                after_blank = false;
                after_break = false;
            }
        }
        self.sign("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, indent: Option<usize>, may_fold: bool) {
        self.sign("\"", true, false);
        // go-yaml looks for a byte order mark at the beginning of the text, whatever letter it is at.
        let escape_all = text.starts_with(BYTE_ORDER_MARK);
        let mut after_blank = false;
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let is_special = !is_printable(letter) || is_break(letter) || matches!(letter, '"' | '\\');
            if is_special || escape_all {
                self.put('\\');
                self.escape(letter);
                after_blank = false;
            } else if letter == ' ' {
                let is_inside = at > 0 && at + 1 < text.len();
                if may_fold && !after_blank && self.column > WIDTH && is_inside {
                    self.new_line(scalar_indent(indent));
                    if letters.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(letter);
                }
                after_blank = true;
            } else {
                self.put(letter);
                after_blank = false;
            }
        }
        self.sign("\"", false, false);
    }

    fn escape(&mut self, letter: char) {
        let short = match letter {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => letter,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(letter);
                let long = match code {
                    0..=0xff => format!("x{code:02X}"),
                    0x100..=0xffff => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                return self.put_all(&long);
            }
        };
        self.put(short);
    }

    fn literal(&mut self, text: &str, indent: Option<usize>) {
        self.sign("|", true, false);
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.sign("2", false, false);
        }
        let mut from_end = text.chars().rev().map(is_break);
        match (from_end.next(), from_end.next()) {
            (Some(true), Some(true) | None) => self.sign("+", false, false),
            (Some(true), Some(false)) => {}
            _ => self.sign("-", false, false),
        }
        self.put_break('\n');
        self.after_space = true;
        let mut after_break = true;
        for letter in text.chars() {
            if is_break(letter) {
                self.put_break(letter);
                after_break = true;
            } else {
                if after_break {
                    self.new_line(scalar_indent(indent));
                }
                self.put(letter);
                self.after_indent = false;
                after_break = false;
            }
        }
    }

    /// Goes to a column on a new line, or on this one if nothing but indentation is on it yet.
    fn new_line(&mut self, indent: usize) {
        if !self.after_indent || self.column > indent || (self.column == indent && !self.after_space) {
            self.put_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.after_space = true;
        self.after_indent = true;
    }

    fn sign(&mut self, sign: &str, needs_space: bool, keeps_indent: bool) {
        if needs_space && !self.after_space {
            self.put(' ');
        }
        self.put_all(sign);
        self.after_space = false;
        self.after_indent &= keeps_indent;
    }

    fn put_all(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put(&mut self, letter: char) {
        self.out.push(letter);
        self.column += 1;
    }

    fn put_break(&mut self, letter: char) {
        self.out.push(letter);
        self.column = 0;
        self.after_indent = true;
    }
}

/// The indentation of the further lines of a scalar.
fn scalar_indent(indent: Option<usize>) -> usize {
    indent.map_or(STEP, |indent| indent + STEP)
}

enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

impl Style {
    fn of(text: &str) -> Self {
        let look = Look::at(text);
        if text.contains('\n') {
            return if look.literal { Self::Literal } else { Self::Double };
        }
        match look {
            _ if !plain::is_string(text) => Self::Double,
            Look { plain: true, .. } => Self::Plain,
            Look { single: true, .. } => Self::Single,
            Look { .. } => Self::Double,
        }
    }
}

/// The styles that a text's letters allow.
struct Look {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Look {
    fn at(text: &str) -> Self {
        let mut plain = !text.starts_with("---") && !text.starts_with("...");
        let mut is_special = false;
        let mut break_then_space = false;
        let mut space_then_break = false;
        let mut has_break = false;
        let mut before: Option<char> = None;
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let before_blank = letters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            plain &= match (before, letter) {
                (None, first) if "#,[]{}&*!|>'\"%@`".contains(first) => false,
                (None, '?' | '-') | (_, ':') => !before_blank,
                (Some(before), '#') => !(matches!(before, ' ' | '\t' | '\0') || is_break(before)),
                _ => true,
            };
            is_special |= !is_printable(letter) || is_separator(letter);
            has_break |= is_break(letter);
            space_then_break |= before == Some(' ') && is_break(letter);
            break_then_space |= before.is_some_and(is_break) && letter == ' ';
            before = Some(letter);
        }
        let has_outer_space = text.starts_with(' ') || text.ends_with(' ');
        let single = !break_then_space && !space_then_break && !is_special;
        Self {
            plain: plain && single && !has_outer_space && !has_break,
            single,
            literal: !text.ends_with(' ') && !space_then_break && !is_special,
        }
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What go-yaml writes as it is; it escapes everything beyond the basic plane.
const fn is_printable(letter: char) -> bool {
    matches!(letter, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && letter != BYTE_ORDER_MARK
}

/// Line breaks to YAML 1.1 and letters to YAML 1.2. Go writes them as they are, and indents what is behind them: only
/// a reader of its kind gets back what was written.
const fn is_separator(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

const fn is_break(letter: char) -> bool {
    matches!(letter, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
