//! What becomes of a workload cluster template.

use serde_json::Value;

use crate::namespaces::Destination;
use crate::objects::{self, ObjectError};
use crate::scope::Scopes;

/// Why a template cannot be used: an object of it is wrong.
pub type TemplateError = ObjectError;

/// Puts the objects of a template into a namespace, if there is one to put them into.
///
/// The documents are those of the file, parsed after its variables have been replaced; their order stays.
pub fn render(documents: Vec<Value>, target_namespace: Option<&str>) -> Result<Vec<Value>, TemplateError> {
    let mut objects = objects::read(documents)?;
    if let Some(target) = target_namespace.filter(|it| !it.is_empty()) {
        let scopes = Scopes::of(&objects);
        let destination = Destination { target, kept: None, scopes: &scopes };
        objects.iter_mut().try_for_each(|object| destination.take_in(object))?;
    }
    Ok(objects.into_iter().map(|object| Value::Object(object.content)).collect())
}
