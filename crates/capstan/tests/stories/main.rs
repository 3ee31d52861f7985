//! Stories on a real control plane: one namespace each, waits on watches, never a mocked API.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod admission;
mod bad_input;
mod binary;
mod certificates;
mod completion;
mod conformance;
mod connection;
mod contention;
mod contract;
mod deletion;
mod describe;
mod disturbance;
mod explain;
mod fault_matrix;
mod get;
mod handshake;
mod kubeconfig;
mod machines;
mod management;
mod overload;
mod provider;
mod provider_matrix;
mod proxies;
mod refusals;
mod rendering;
mod repositories;
mod rollout;
mod scenarios;
mod serving;
mod surroundings;
mod tenants;
mod terminals;
mod user;
mod versions;
mod workload;
