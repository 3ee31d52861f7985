//! What a command prints when it fails.

use std::error::Error;

use crate::hints::Hint;

/// What was being done, why it failed, and what to do.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// Something failed for a reason.
    pub(crate) fn new(doing: impl Into<String>, cause: impl Error) -> Self {
        let mut causes = vec![cause.to_string()];
        let mut source = cause.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Many errors repeat their cause in their own text.
            if !causes.last().is_some_and(|last| last.contains(&text)) {
                causes.push(text);
            }
            source = error.source();
        }
        Self { message: doing.into(), causes, hint: None }
    }

    /// Something failed, and its own words say it all.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hint: None }
    }

    /// With a hint, if there is one.
    pub(crate) fn hint_if(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// An error of a library, in its own words, with its hint.
impl<E: Error + Hint> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}
