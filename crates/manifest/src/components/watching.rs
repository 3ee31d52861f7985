//! The namespace that a manager looks at.

use serde_json::{Map, Value};

use super::{ComponentsError, workloads};
use crate::objects::Object;

/// What the contract calls the container with the controllers in it.
const MANAGER: &str = "manager";
const FLAG: &str = "--namespace";

/// Restricts every manager to one namespace; it is an error if there is no manager.
pub(super) fn restrict<'a>(
    objects: impl Iterator<Item = &'a mut Object>,
    namespace: &str,
) -> Result<(), ComponentsError> {
    let mut is_set = false;
    for object in objects.filter(|object| object.kind() == "Deployment") {
        for container in workloads::containers(object, "containers").filter_map(Value::as_object_mut) {
            if container.get("name").and_then(Value::as_str) == Some(MANAGER) {
                set_flag(container, namespace);
                is_set = true;
            }
        }
    }
    if is_set { Ok(()) } else { Err(ComponentsError::NoManager { namespace: namespace.to_owned() }) }
}

fn set_flag(container: &mut Map<String, Value>, namespace: &str) {
    let flag = Value::from(format!("{FLAG}={namespace}"));
    let mut is_replaced = false;
    for field in ["command", "args"] {
        if let Some(words) = container.get_mut(field).and_then(Value::as_array_mut) {
            is_replaced |= replace(words, &flag);
        }
    }
    if !is_replaced
        && let Some(args) = container.entry("args").or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
    {
        args.push(flag);
    }
}

/// Puts a flag in place of every `--namespace=x` and `--namespace x`, and says whether there was one.
fn replace(words: &mut Vec<Value>, flag: &Value) -> bool {
    let mut is_replaced = false;
    let mut is_value = false;
    words.retain_mut(|word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        let text = word.as_str().unwrap_or_default();
        is_value = text == FLAG;
        if is_value || text.strip_prefix(FLAG).is_some_and(|rest| rest.starts_with('=')) {
            *word = flag.clone();
            is_replaced = true;
        }
        true
    });
    is_replaced
}
