//! The documents of a stream, taken apart line by line as Kubernetes does before any YAML is read.

use std::borrow::Cow;

use super::{error::Problem, source::Source};

/// A line of three dashes with something behind them, and how many lines come before it.
pub(super) struct BadSeparator {
    pub(super) problem: Problem,
    pub(super) lines_before: usize,
}

/// The documents of a stream. A bad separator ends it.
pub(super) const fn split(text: &str) -> Chunks<'_> {
    Chunks { rest: text, lines_before: 0 }
}

pub(super) struct Chunks<'text> {
    rest: &'text str,
    lines_before: usize,
}

impl<'text> Iterator for Chunks<'text> {
    type Item = Result<Source<'text>, BadSeparator>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        // A separator that nothing comes before begins the document instead of ending one.
        if let Some(problem) = problem_of_separator(self.rest) {
            return Some(Err(self.fail(problem)));
        }
        let (text, rest) = match self.rest.find("\n---") {
            Some(end) => self.rest.split_at(end + 1),
            None => (self.rest, ""),
        };
        let lines_before = self.lines_before;
        self.lines_before += text.bytes().filter(|byte| *byte == b'\n').count();
        if let Some(problem) = problem_of_separator(rest) {
            return Some(Err(self.fail(problem)));
        }
        self.rest = rest.split_once('\n').map_or("", |(_separator, rest)| rest);
        self.lines_before += 1;
        Some(Ok(Source::new(ended(text), lines_before)))
    }
}

impl Chunks<'_> {
    const fn fail(&mut self, problem: Problem) -> BadSeparator {
        self.rest = "";
        BadSeparator { problem, lines_before: self.lines_before }
    }
}

/// What is wrong with the separator that the text begins with, if it does.
fn problem_of_separator(text: &str) -> Option<Problem> {
    let behind = text.strip_prefix("---")?.lines().next()?.trim();
    let is_fine = behind.is_empty() || behind.starts_with('#');
    (!is_fine).then(|| Problem::Separator(behind.to_owned()))
}

/// The last line of a file gets the line break that it may lack.
fn ended(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) }
}
