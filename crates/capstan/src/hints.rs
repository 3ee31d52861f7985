//! Hints: what a person can do about an error.
//!
//! Libraries report facts. The flags, commands and variables that help are named here, in one file a library.

mod conformance;
mod inspect;
mod lifecycle;
mod management;
mod manifest;
mod operator;
mod repository;

/// An error that a person may be able to do something about.
///
/// An error that has this and [`std::error::Error`] becomes a [`crate::error::CommandError`] by `?`.
pub(crate) trait Hint {
    /// What to do, where the error's own text does not say it.
    fn hint(&self) -> Option<String>;
}
