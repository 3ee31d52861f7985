//! What can go wrong between asking for a file and having it.

use std::{io, path::PathBuf};

/// Why a file or a list of versions could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address cannot be one of a release.
    #[error("the address {url} cannot be used: {reason}")]
    InvalidUrl {
        /// The address as it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The source answers, but has no such thing.
    #[error("not found: {what}")]
    NotFound {
        /// What was looked for, and where.
        what: String,
        /// What there is instead, where that is known.
        available: Vec<String>,
    },
    /// A file on disk.
    #[error("{}: {source}", .path.display())]
    Local {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FetchError {
    /// Whether the source was asked and does not have it, so that another version may be tried.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// What the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { available, .. } if !available.is_empty() => {
                Some(format!("there are: {}", available.join(", ")))
            }
            _ => None,
        }
    }
}
