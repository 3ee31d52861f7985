//! Inputs made up at random, the same ones in every run.

use std::fmt::Write as _;

/// Numbers that look random and follow from a seed (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice that fall the same way for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("it is below a usize")
    }

    /// One of several.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "a",
    "name",
    "x y",
    "true",
    "No",
    "1.10",
    "0x1f",
    "1e3",
    "2021-01-01",
    "~",
    "null",
    "-",
    "- a",
    "a: b",
    "a #b",
    "#x",
    "it's",
    "\"q\"",
    "\\",
    "ä",
    "日本",
    "😀",
    "@x",
    "%x",
    "&a",
    "*a",
    "!t",
    "|",
    ">",
    "{a",
    "[b",
    "a}",
    "b]",
    "a,b",
    " lead",
    "trail ",
    "",
    "v1beta1",
    "100m",
    "1_000",
    "=",
    "<<",
    "?",
    ":",
    "::",
    "a:",
    "http://x:1/y?z",
    "...",
    "---",
    "-1",
    "+1",
    "0777",
    "08",
    ".5",
    "5.",
    "y",
    "on",
    "'",
    "''",
    "\t",
    "a\tb",
    "\u{a0}",
    "x  y",
    "12:30",
    "0b1",
    ".inf",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen",
];

const PLAIN: &[&str] = &[
    "word",
    "some words",
    "1",
    "1.5",
    "true",
    "no",
    "null",
    "~",
    "0x10",
    "010",
    "1e3",
    "-7",
    "v1.30.0",
    "a/b",
    "x.y-z_1",
    "2021-01-01",
    "100m",
    "it's",
    "a:b",
    "a#b",
    "\\d",
    "10.0.0.0/8",
    "ä",
    "😀 x",
    "=",
    "0.10",
    "1_0",
    "12:30:45",
    "y",
    "N",
];

/// A map with whatever fits into it.
pub(crate) fn document(dice: &mut Dice) -> String {
    let mut text = String::new();
    map(dice, 0, 3, &mut text);
    text
}

fn map(dice: &mut Dice, indent: usize, depth: usize, text: &mut String) {
    for index in 0..=dice.below(5) {
        // Distinct by their first letters, whose order is never in doubt.
        let key = char::from(b'a' + u8::try_from(index * 4 + dice.below(4)).expect("few keys"));
        let rest = dice.pick(&["", "", "Name", "-b", ".c/d", "_e", " f", "1", "10"]);
        let key = format!("{key}{rest}");
        write!(text, "{:indent$}{key}:", "").expect("a string takes all");
        value(dice, indent, depth, text);
    }
}

/// What comes after a key: on its line or below it.
fn value(dice: &mut Dice, indent: usize, depth: usize, text: &mut String) {
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 | 1 => line(text, dice.pick(PLAIN)),
        2 => single_quoted(dice, text),
        3 => double_quoted(dice, text),
        4 => block(dice, indent + 2, text),
        5 => line(text, &flow(dice, 2)),
        6 | 7 => {
            text.push('\n');
            map(dice, indent + 2, depth - 1, text);
        }
        _ => {
            text.push('\n');
            let indent = indent + 2 * dice.below(2);
            sequence(dice, indent, depth - 1, text);
        }
    }
}

fn line(text: &mut String, value: &str) {
    writeln!(text, " {value}").expect("a string takes all");
}

fn single_quoted(dice: &mut Dice, text: &mut String) {
    let word = dice.pick(WORDS).replace('\'', "''");
    line(text, &format!("'{word}'"));
}

fn double_quoted(dice: &mut Dice, text: &mut String) {
    let words: Vec<_> = (0..=dice.below(3)).map(|_| dice.pick(WORDS)).collect();
    let separator = dice.pick(&[" ", "", "\n", " \n", "\n ", "\t"]);
    // JSON's way to quote is one of YAML's, but for pairs of surrogates, which it does not write.
    let quoted = serde_json::to_string(&words.join(separator)).expect("a string is JSON");
    line(text, &quoted);
}

fn block(dice: &mut Dice, indent: usize, text: &mut String) {
    let style = dice.pick(&["|", "|-", "|+", ">", ">-"]);
    line(text, style);
    writeln!(text, "{:indent$}first", "").expect("a string takes all");
    for _ in 0..dice.below(4) {
        let content =
            dice.pick(&["second", "  deeper", "a: b", "# not a comment", "- x", "", "'q'", "😀", "end  "]);
        let content = format!("{:indent$}{content}", "");
        writeln!(text, "{}", if content.trim().is_empty() { "" } else { &content })
            .expect("a string takes all");
    }
}

fn sequence(dice: &mut Dice, indent: usize, depth: usize, text: &mut String) {
    for _ in 0..=dice.below(3) {
        write!(text, "{:indent$}-", "").expect("a string takes all");
        // One further in, or a sequence in a sequence would be its next item.
        value(dice, indent + 1, depth, text);
    }
}

fn flow(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 2 } else { 4 }) {
        0 => dice.pick(&["1", "x", "true", "null", "1.5", "a b", "~"]).to_owned(),
        1 => format!("'{}'", dice.pick(WORDS).replace('\'', "''")),
        2 => {
            let items: Vec<_> = (0..dice.below(4)).map(|_| flow(dice, depth - 1)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => {
            let items = (0..dice.below(4)).map(|index| format!("k{index}: {}", flow(dice, depth - 1)));
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
    }
}

const NAMES: &[&str] = &["A", "B", "E", "N", "P", "PATHS", "M", "LONG", "WORDS", "DOLLAR", "SHARP", "U", "V"];

/// Text with an expression or two, in up to three levels.
pub(crate) fn expression(dice: &mut Dice) -> String {
    let around = ["", "", "x", "$$", "$", "a b", "}", "{", "\\", "/"];
    let first = dice.pick(&around);
    let inner = variable(dice, 3);
    let last = dice.pick(&around);
    if dice.below(4) == 0 {
        return format!("{first}{inner}{last}{}", variable(dice, 1));
    }
    format!("{first}{inner}{last}")
}

fn variable(dice: &mut Dice, depth: usize) -> String {
    let name = dice.pick(NAMES);
    let form = match dice.below(8) {
        0 => String::new(),
        1 => dice.pick(&["^", "^^", ",", ",,", ",^"]).to_owned(),
        2 | 3 => format!("{}{}", dice.pick(&[":=", "=", ":-", ":?", ":+"]), words(dice, depth)),
        4 => {
            let start = argument(dice, depth, &["0", "1", "3", "20", "x", "02"]);
            if dice.below(2) == 0 {
                format!(":{start}")
            } else {
                format!(":{start}:{}", dice.pick(&["0", "1", "4", "20", "x"]))
            }
        }
        5 => {
            let sign = dice.pick(&["#", "##", "%", "%%"]);
            format!(
                "{sign}{}",
                argument(dice, depth, &["a", "*a", "a*", "?", "*/", "/*", "*b*", "[ab]", "x", ".*", " "])
            )
        }
        _ => {
            let sign = dice.pick(&["/", "//", "/#", "/%"]);
            let from = argument(dice, depth, &["a", "b", "abc", "x", " ", "\\/", "ß", "*"]);
            format!("{sign}{from}/{}", argument(dice, depth, &["", "o", "xy", "$", "\\/", "a", " ", "$$"]))
        }
    };
    format!("${{{name}{form}}}")
}

/// One text or one variable.
fn argument(dice: &mut Dice, depth: usize, texts: &[&str]) -> String {
    if depth > 0 && dice.below(4) == 0 { variable(dice, depth - 1) } else { dice.pick(texts).to_owned() }
}

/// Texts and variables as they come.
fn words(dice: &mut Dice, depth: usize) -> String {
    let texts =
        ["x", "", "a b", "1.2", "/y", "\"q\"", "#", "$", "$$", ":", "=", "[1]", "'", "a-b", "ä", "{", "\\"];
    (0..=dice.below(3))
        .map(|_| {
            if depth > 0 && dice.below(3) == 0 {
                variable(dice, depth - 1)
            } else {
                dice.pick(&texts).to_owned()
            }
        })
        .collect()
}
