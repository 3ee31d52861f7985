//! The contract between core and providers.
