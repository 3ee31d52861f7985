//! How far a long command is: one bar on a terminal, plain lines without one.

use std::sync::{Mutex, PoisonError};

use crate::printer::Printer;

const WIDTH: usize = 24;

/// One bar for the whole.
#[derive(Debug)]
pub(crate) struct Progress {
    printer: Printer,
    /// What is at work now.
    stage: Mutex<String>,
    /// What was waited for last.
    awaited: Mutex<String>,
}

impl Progress {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, stage: Mutex::default(), awaited: Mutex::default() }
    }

    /// Something else begins. Without a terminal this is the only line about it.
    pub(crate) fn begin(&self, stage: &str, told: &str) {
        stage.clone_into(&mut self.stage.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.printer.is_interactive() {
            self.printer.step(told);
        }
    }

    /// So many of all are done; the last one belongs to a part.
    pub(crate) fn advance(&self, done: usize, all: usize, part: &str) {
        if self.printer.is_interactive() {
            let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
            self.printer.progress(&bar(done, all, part, &stage));
        }
    }

    /// Waiting for something; the reason takes the bar's place. Without a terminal each new reason gets a line.
    pub(crate) fn waiting(&self, reason: &str) {
        if self.printer.is_interactive() {
            self.printer.progress(reason);
            return;
        }
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if *awaited != reason {
            reason.clone_into(&mut awaited);
            self.printer.step(reason);
        }
    }

    /// Says something without breaking the bar.
    pub(crate) fn say(&self, say: impl FnOnce(Printer)) {
        self.printer.progress_done();
        say(self.printer);
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.printer.progress_done();
    }
}

fn bar(done: usize, all: usize, part: &str, stage: &str) -> String {
    let filled = (WIDTH * done.min(all)).checked_div(all).unwrap_or(WIDTH);
    format!("{}{} {done}/{all} {part}: {stage}", "█".repeat(filled), "░".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        for (done, all, filled) in [(0, 10, 0), (5, 10, 12), (10, 10, 24), (11, 10, 24), (0, 0, 24)] {
            let bar = bar(done, all, "infrastructure-acme", "workloads");
            assert_eq!(bar.matches('█').count(), filled, "{bar}");
            assert_eq!(bar.matches('░').count(), WIDTH - filled, "{bar}");
            assert!(bar.ends_with(&format!("{done}/{all} infrastructure-acme: workloads")), "{bar}");
        }
    }
}
