//! All output of the commands: data to stdout, everything else to stderr.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};

use crate::error::CommandError;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();

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

    pub(crate) fn is_interactive(self) -> bool {
        self.interactive
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
        if self.interactive {
            self.tell(format_args!("\r\u{1b}[K  {DIM}{text}{DIM:#}"));
        } else {
            self.tell(format_args!("  {text}\n"));
        }
    }

    /// Ends a run of progress.
    pub(crate) fn progress_done(self) {
        if self.interactive {
            self.tell("\r\u{1b}[K");
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

    /// Draws lines in the place of those drawn before; without a terminal only what is new is printed.
    pub(crate) fn redraw(self, before: &[String], now: &[String]) {
        let mut out = stdout();
        if self.interactive && !before.is_empty() {
            say(&mut out, format_args!("\u{1b}[{}A\u{1b}[J", before.len()));
        }
        for line in now.iter().filter(|line| self.interactive || !before.contains(line)) {
            say(&mut out, format_args!("{line}\n"));
        }
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
