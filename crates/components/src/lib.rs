//! The objects that our own managers are installed by.
//!
//! [`manager`] is the shape that all of them share: Namespace, ServiceAccount, roles, Service, NetworkPolicy and
//! Deployment. [`operator`] has all objects of the provider operator; those of the core provider and the local provider
//! are in `xtask`, which writes their release files.

pub mod manager;
pub mod operator;
