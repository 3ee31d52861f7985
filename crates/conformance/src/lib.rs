//! The contract between Cluster API and its providers, as checks that anybody's provider can be put to.
//!
//! [`rule`] holds the contract as data, [`report`] what became of each rule.

pub mod report;
pub mod rule;

pub use report::{Finding, Outcome, Report};
pub use rule::{Contracts, Level, Rule};
