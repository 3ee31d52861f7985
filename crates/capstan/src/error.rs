//! What a person is told when a command fails.

use std::error::Error;

use capstan_inspect::clusters::ClusterError;
use capstan_management::{ServerError, apply::ApplyError};
use capstan_repository::{ConfigError, FetchError, InvalidProviderArgument, MetadataError, RepositoryError};

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

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}

impl From<FetchError> for CommandError {
    fn from(error: FetchError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}

impl From<RepositoryError> for CommandError {
    fn from(error: RepositoryError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}

impl From<MetadataError> for CommandError {
    fn from(error: MetadataError) -> Self {
        Self::plain(error.to_string())
    }
}

impl From<InvalidProviderArgument> for CommandError {
    fn from(error: InvalidProviderArgument) -> Self {
        Self::plain(error.to_string()).hint("write NAME or NAME:VERSION, e.g. aws:v2.9.1")
    }
}

impl From<ServerError> for CommandError {
    fn from(error: ServerError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}

impl From<ApplyError> for CommandError {
    fn from(error: ApplyError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}

impl From<ClusterError> for CommandError {
    fn from(error: ClusterError) -> Self {
        Self::plain(error.to_string()).hint_if(error.hint())
    }
}
