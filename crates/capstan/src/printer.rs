//! All output of the commands: data to stdout, everything else to stderr.
//!
//! Nothing else in this crate can write to them (`clippy.toml`). What people read is [`Text`], in which foreign text
//! (names, conditions, answers of servers, files) is harmless; plain `&str` is made harmless here.
#![expect(clippy::disallowed_methods, reason = "the one place that writes to stdout and stderr")]

mod text;

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice, stderr, stdout};
use anstyle::Style;
use terminal_size::{Height, terminal_size};

use self::text::{DIM, GREEN, RED, YELLOW};
pub(crate) use self::text::{Text, bold, coloured, dim, green, harmless, harmless_line, red, yellow};
use crate::error::CommandError;

/// Has the terminal begin the line again.
const SAME_LINE: &str = "\r\u{1b}[K";
/// Lets the terminal cut lines that are too long for it, and wrap them again: what wraps cannot be drawn over.
const CUT_LINES: &str = "\u{1b}[?7l";
const WRAP_LINES: &str = "\u{1b}[?7h";

/// What a command prints to stdout.
#[derive(Debug)]
pub(crate) enum Output {
    /// For people.
    Text(Text),
    /// For programs.
    Data(String),
}

/// Writes for people and for pipes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    interactive: bool,
    is_silent: bool,
}

#[expect(clippy::unused_self, reason = "who prints must have been given the printer")]
impl Printer {
    pub(crate) fn new() -> Self {
        Self { interactive: io::stdout().is_terminal() && io::stderr().is_terminal(), is_silent: false }
    }

    /// Prints no progress.
    pub(crate) fn silent() -> Self {
        Self { interactive: false, is_silent: true }
    }

    /// Whether output goes to a terminal where lines can be drawn over.
    pub(crate) fn is_interactive(self) -> bool {
        let takes_codes = |choice| choice != ColorChoice::Never;
        self.interactive
            && takes_codes(AutoStream::choice(&io::stdout()))
            && takes_codes(AutoStream::choice(&io::stderr()))
    }

    pub(crate) fn print(self, output: &Output) -> Result<(), CommandError> {
        match output {
            Output::Text(text) => self.text(text),
            Output::Data(data) => self.data(data),
        }
    }

    /// Text for people to stdout.
    pub(crate) fn text(self, text: &Text) -> Result<(), CommandError> {
        written(stdout().write_all(text.as_str().as_bytes()))
    }

    /// Data for programs to stdout, byte by byte. Only a terminal, where people look at it, gets it made harmless.
    pub(crate) fn data(self, text: &str) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        let text = if out.is_terminal() { harmless(text) } else { Cow::Borrowed(text) };
        written(out.write_all(text.as_bytes()))
    }

    /// The help that was asked for, in clap's looks.
    pub(crate) fn help(self, help: &clap::Error) -> Result<(), CommandError> {
        written(write!(stdout(), "{}", help.render().ansi()))
    }

    /// What is wrong with the command line. Only clap's own words have clap's looks, so that it is printed without.
    pub(crate) fn misuse(self, error: &clap::Error) {
        let text = error.render().to_string();
        let text = text.strip_prefix("error:").unwrap_or(&text);
        say(&mut stderr(), Text::painted(RED.bold(), "error:").and(Text::laid_out(text)).as_str());
    }

    /// A line for a person on stdout.
    pub(crate) fn line(self, text: &str) {
        say(&mut stdout(), Text::from(text).ended().as_str());
    }

    /// A command that the reader can copy.
    pub(crate) fn command(self, text: &str) {
        say(&mut stdout(), Text::from("  ").and(bold(text)).ended().as_str());
    }

    /// What is being done.
    pub(crate) fn step(self, text: &str) {
        self.tell(DIM, "•", text);
    }

    /// What has been done.
    pub(crate) fn done(self, text: &str) {
        self.tell(GREEN, "✓", text);
    }

    /// Progress within a step: replaces itself on a terminal.
    pub(crate) fn progress(self, text: &str) {
        if self.is_interactive() {
            let text = dim(&harmless_line(text));
            self.say(&format!("{SAME_LINE}{CUT_LINES}  {}{WRAP_LINES}", text.as_str()));
        } else {
            self.say_line(Text::from("  ").and(harmless_line(text)));
        }
    }

    /// Ends a run of progress.
    pub(crate) fn progress_done(self) {
        if self.is_interactive() {
            self.say(SAME_LINE);
        }
    }

    /// Good to know, but nothing to act on now.
    pub(crate) fn note(self, text: &str) {
        self.tell(YELLOW, "note:", text);
    }

    pub(crate) fn warn(self, text: &str) {
        self.tell(YELLOW, "warning:", text);
    }

    fn tell(self, style: Style, title: &str, text: &str) {
        self.say_line(titled(style, title, text));
    }

    fn say_line(self, text: impl Into<Text>) {
        self.say(text.into().ended().as_str());
    }

    fn say(self, text: &str) {
        if !self.is_silent {
            say(&mut stderr(), text);
        }
    }

    pub(crate) fn error(self, error: &CommandError) {
        let mut text = titled(RED.bold(), "error:", &error.message).ended();
        for cause in &error.causes {
            text.line(Text::from("  ").and(titled(DIM, "because:", cause)));
        }
        if let Some(hint) = &error.hint {
            text.line(titled(GREEN, "hint:", hint));
        }
        say(&mut stderr(), text.as_str());
    }
}

fn titled(style: Style, title: &str, text: &str) -> Text {
    Text::painted(style, title).and(" ").and(text)
}

/// Lines that are drawn again and again in the same place; without a terminal only what is new is printed.
#[derive(Debug)]
pub(crate) struct Picture {
    printer: Printer,
    drawn: Vec<String>,
}

impl Picture {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, drawn: Vec::new() }
    }

    /// Draws lines over those that were drawn before.
    pub(crate) fn draw(&mut self, text: &Text) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut out = stdout();
        if self.printer.is_interactive() {
            let height = terminal_size().map(|(_, Height(rows))| usize::from(rows));
            fit(&mut lines, height);
            if !self.drawn.is_empty() {
                say(&mut out, &format!("\u{1b}[{}A\u{1b}[J", self.drawn.len()));
            }
            let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            say(&mut out, &format!("{CUT_LINES}{text}{WRAP_LINES}"));
        } else {
            for line in lines.iter().filter(|line| !self.drawn.contains(line)) {
                say(&mut out, &format!("{line}\n"));
            }
        }
        self.drawn = lines;
    }

    /// The next lines are drawn below all that is there.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }
}

/// Leaves out what a terminal has no room for: what has left its upper edge cannot be drawn over.
fn fit(lines: &mut Vec<String>, height: Option<usize>) {
    // The cursor has a line of its own.
    let Some(room) = height.map(|it| it.saturating_sub(1).max(1)) else { return };
    if lines.len() > room {
        let missing = lines.len() - (room - 1);
        lines.truncate(room - 1);
        let words = dim(&format!("… {missing} more lines: enlarge the window to see them"));
        lines.push(words.as_str().to_owned());
    }
}

/// Progress that cannot be printed is no reason to fail.
fn say(out: &mut impl Write, text: &str) {
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Data that was written for a command. A reader who has seen enough is no failure.
fn written(result: io::Result<()>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_never_taller_than_its_terminal() {
        for (count, height, kept, missing) in [
            (3, None, 3, None),
            (3, Some(4), 3, None),
            (4, Some(4), 2, Some("… 2 more lines")),
            (9, Some(2), 0, Some("… 9 more lines")),
            (9, Some(0), 0, Some("… 9 more lines")),
        ] {
            let mut lines: Vec<String> = (0..count).map(|it| it.to_string()).collect();
            let whole = lines.clone();
            fit(&mut lines, height);
            assert_eq!(lines[..kept], whole[..kept]);
            assert_eq!(lines.len(), kept + usize::from(missing.is_some()));
            assert!(missing.is_none_or(|it| lines[kept].contains(it)), "{lines:?}");
        }
    }
}
