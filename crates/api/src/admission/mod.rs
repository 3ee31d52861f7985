//! What admission webhooks decide, and the rules of Kubernetes that several kinds share.

mod address;
mod errors;
mod field;
pub mod rules;

pub use address::Address;
pub(crate) use errors::shown;
pub use errors::{Errors, Fault, FieldError, invalid_message};
pub use field::Field;
use serde_json::{Value, json};

/// What is to become of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Changes to the object, as JSON patch operations.
    pub patch: Vec<Value>,
    /// Warnings for the client; they do not reject the object.
    pub warnings: Vec<String>,
    /// Why the object is rejected; empty if it is admitted.
    pub errors: Errors,
}

impl Verdict {
    /// Sets a field of the object.
    pub fn set(&mut self, pointer: &str, value: impl Into<Value>) {
        // In an object, `add` replaces what is there.
        self.patch.push(json!({"op": "add", "path": pointer, "value": value.into()}));
    }
}
