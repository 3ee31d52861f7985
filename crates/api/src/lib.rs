//! The kinds that Capstan serves or reads, their conditions, and the contract between core and providers.
//!
//! Everything here is a value or a function over values: no client, no clock, no environment.

pub mod admission;
pub mod cluster;
pub mod conditions;
pub mod contract;
pub mod convert;
pub mod crd;
pub mod inventory;
pub mod names;
pub mod operator;
pub mod provider;
