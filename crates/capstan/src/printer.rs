//! All output of the commands: data to stdout, everything else to stderr.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use anstream::{AutoStream, ColorChoice, stderr, stdout};
use anstyle::{AnsiColor, Style};
use terminal_size::{Height, terminal_size};

use crate::error::CommandError;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();
/// Has the terminal begin the line anew.
const SAME_LINE: &str = "\r\u{1b}[K";
/// Lets the terminal cut lines that are too long for it, and wrap them again: what wraps cannot be drawn over.
const CUT_LINES: &str = "\u{1b}[?7l";
const WRAP_LINES: &str = "\u{1b}[?7h";

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

    /// Tells nothing on the way.
    pub(crate) fn silent() -> Self {
        Self { interactive: false, is_silent: true }
    }

    /// Whether somebody looks on, at a terminal where lines can be drawn over.
    pub(crate) fn is_interactive(self) -> bool {
        let takes_codes = |choice| choice != ColorChoice::Never;
        self.interactive
            && takes_codes(AutoStream::choice(&io::stdout()))
            && takes_codes(AutoStream::choice(&io::stderr()))
    }

    /// Data: goes to stdout as it is. A reader who has seen enough is no failure.
    pub(crate) fn data(self, text: &str) -> Result<(), CommandError> {
        match stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CommandError::new("cannot write to standard output", error))
            }
            _ => Ok(()),
        }
    }

    /// A line for a person on stdout.
    pub(crate) fn line(self, text: &str) {
        say(&mut stdout(), format_args!("{text}\n"));
    }

    /// A command that the reader can copy.
    pub(crate) fn command(self, text: &str) {
        say(&mut stdout(), format_args!("  {BOLD}{text}{BOLD:#}\n"));
    }

    /// What is being done.
    pub(crate) fn step(self, text: &str) {
        self.tell(format_args!("{DIM}•{DIM:#} {text}\n"));
    }

    /// What has been done.
    pub(crate) fn done(self, text: &str) {
        self.tell(format_args!("{GREEN}✓{GREEN:#} {text}\n"));
    }

    /// Progress within a step: replaces itself on a terminal.
    pub(crate) fn progress(self, text: &str) {
        if self.is_interactive() {
            self.tell(format_args!("{SAME_LINE}{CUT_LINES}  {DIM}{text}{DIM:#}{WRAP_LINES}"));
        } else {
            self.tell(format_args!("  {text}\n"));
        }
    }

    /// Ends a run of progress.
    pub(crate) fn progress_done(self) {
        if self.is_interactive() {
            self.tell(SAME_LINE);
        }
    }

    /// Good to know, but nothing to act on now.
    pub(crate) fn note(self, text: &str) {
        self.tell(format_args!("{YELLOW}note:{YELLOW:#} {text}\n"));
    }

    pub(crate) fn warn(self, text: &str) {
        self.tell(format_args!("{YELLOW}warning:{YELLOW:#} {text}\n"));
    }

    fn tell(self, text: impl Display) {
        if !self.is_silent {
            say(&mut stderr(), text);
        }
    }

    pub(crate) fn error(self, error: &CommandError) {
        let mut out = stderr();
        say(&mut out, format_args!("{RED}error:{RED:#} {}\n", error.message));
        for cause in &error.causes {
            say(&mut out, format_args!("  {DIM}because:{DIM:#} {cause}\n"));
        }
        if let Some(hint) = &error.hint {
            say(&mut out, format_args!("{GREEN}hint:{GREEN:#} {hint}\n"));
        }
    }
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
    pub(crate) fn draw(&mut self, mut lines: Vec<String>) {
        let mut out = stdout();
        if self.printer.is_interactive() {
            let height = terminal_size().map(|(_, Height(rows))| usize::from(rows));
            fit(&mut lines, height);
            if !self.drawn.is_empty() {
                say(&mut out, format_args!("\u{1b}[{}A\u{1b}[J", self.drawn.len()));
            }
            let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            say(&mut out, format_args!("{CUT_LINES}{text}{WRAP_LINES}"));
        } else {
            for line in lines.iter().filter(|line| !self.drawn.contains(line)) {
                say(&mut out, format_args!("{line}\n"));
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
        lines.push(dim(&format!("… {missing} more lines: enlarge the window to see them")));
    }
}

/// What people are told on the way is not worth failing for.
fn say(out: &mut impl Write, text: impl Display) {
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// A word in the colour of what it means.
pub(crate) fn coloured(word: &str) -> String {
    let style = match word {
        "Provisioned" | "True" => GREEN,
        "Failed" | "False" => RED,
        _ => YELLOW,
    };
    format!("{style}{word}{style:#}")
}

/// Less important text.
pub(crate) fn dim(text: &str) -> String {
    format!("{DIM}{text}{DIM:#}")
}

/// More important text.
pub(crate) fn bold(text: &str) -> String {
    format!("{BOLD}{text}{BOLD:#}")
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
