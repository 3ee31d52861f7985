//! All output of the commands: data to stdout, everything else to stderr.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is where output happens"
)]

use std::io::IsTerminal;

use anstream::{eprint, eprintln, print, println};
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
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self {
            interactive: std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    /// Data: goes to stdout as it is.
    pub(crate) fn data(self, text: &str) {
        print!("{text}");
    }

    /// A line for a person on stdout.
    pub(crate) fn line(self, text: &str) {
        println!("{text}");
    }

    /// A command that the reader can copy.
    pub(crate) fn command(self, text: &str) {
        println!("  {BOLD}{text}{BOLD:#}");
    }

    /// What is being done.
    pub(crate) fn step(self, text: &str) {
        eprintln!("{DIM}•{DIM:#} {text}");
    }

    /// What has been done.
    pub(crate) fn done(self, text: &str) {
        eprintln!("{GREEN}✓{GREEN:#} {text}");
    }

    /// Progress within a step: replaces itself on a terminal.
    pub(crate) fn progress(self, text: &str) {
        if self.interactive {
            eprint!("\r\u{1b}[K  {DIM}{text}{DIM:#}");
        } else {
            eprintln!("  {text}");
        }
    }

    /// Ends a run of progress.
    pub(crate) fn progress_done(self) {
        if self.interactive {
            eprint!("\r\u{1b}[K");
        }
    }

    pub(crate) fn warn(self, text: &str) {
        eprintln!("{YELLOW}warning:{YELLOW:#} {text}");
    }

    pub(crate) fn error(self, error: &CommandError) {
        eprintln!("{RED}error:{RED:#} {}", error.message);
        for cause in &error.causes {
            eprintln!("  {DIM}because:{DIM:#} {cause}");
        }
        if let Some(hint) = &error.hint {
            eprintln!("{GREEN}hint:{GREEN:#} {hint}");
        }
    }

    /// Draws lines in the place of those drawn before; without a terminal only what is new is printed.
    pub(crate) fn redraw(self, before: &[String], now: &[String]) {
        if self.interactive {
            if !before.is_empty() {
                print!("\u{1b}[{}A\u{1b}[J", before.len());
            }
            for line in now {
                println!("{line}");
            }
        } else if before != now {
            for line in now.iter().filter(|line| !before.contains(line)) {
                println!("{line}");
            }
        }
    }
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
