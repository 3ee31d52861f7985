//! Stories on a real control plane: one namespace each, waits on watches, never a mocked API.

mod bad_input;
mod binary;
mod deletion;
mod disturbance;
mod handshake;
mod provider;
mod versions;
