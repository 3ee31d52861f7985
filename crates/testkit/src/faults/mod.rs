//! Bad days, at the client's transport: one at random that a seed repeats, and one where a chosen request goes wrong.

mod numbered;
mod seeded;
mod stream;

pub use numbered::{Fault, Injection, RequestId, Transport, Verb};
pub use seeded::{Faults, client};
