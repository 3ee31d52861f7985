//! Where the releases of providers come from.
//!
//! Nothing here looks at the terminal, the environment or the clock by itself: callers hand them in.

mod error;
pub mod remote;

pub use error::FetchError;
