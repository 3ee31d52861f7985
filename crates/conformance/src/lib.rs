//! The contract between Cluster API and its providers, as checks that anybody's provider can be put to.
//!
//! [`rule`] holds the contract as data, [`report`] what became of each rule. [`rules`] are the rules themselves,
//! [`statics`] checks what [`input`] reads from files, [`lint`] the text of release files, and [`output`] writes a
//! report for people and programs.

pub mod dynamic;
pub mod input;
pub mod lint;
pub mod output;
pub mod report;
pub mod rule;
pub mod rules;
pub mod statics;

pub use input::{InputError, Source};
pub use report::{Finding, Outcome, Place, Report};
pub use rule::{Contracts, Level, Reader, Rule};
pub use statics::{NothingToCheck, Origin};
