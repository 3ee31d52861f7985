//! Capstan beside upstream's own binaries and manifests, on a real control plane.
//!
//! `make test-compat` runs this with the folders that it needs.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod clusterctl;
mod conformance;
mod convert;
mod delete;
mod describe;
mod init;
mod kubeadm;
mod local;
mod management;
mod release;
mod upgrade;
