//! What admission webhooks decide, and the rules of Kubernetes that several kinds share.

mod errors;
mod field;
pub mod rules;

pub use errors::{Errors, Fault, FieldError, invalid_message};
pub use field::Field;
use serde_json::{Value, json};

/// What is to become of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Changes to the object, as JSON patch operations.
    pub patch: Vec<Value>,
    /// Words for whoever sent the object; they do not keep it out.
    pub warnings: Vec<String>,
    /// Why it is kept out; empty if it is not.
    pub errors: Errors,
}

impl Verdict {
    /// Sets a field of the object.
    pub fn set(&mut self, pointer: &str, value: impl Into<Value>) {
        // In an object, `add` replaces what is there.
        self.patch.push(json!({"op": "add", "path": pointer, "value": value.into()}));
    }
}
