//! A value in an object together with the way to it.

use serde_json::{Map, Value};

use super::Errors;

/// Names in a path are cut after so many characters: no valid one is longer.
const LONGEST_KEY: usize = 63;

static ABSENT: Value = Value::Null;

/// A field of an object; an absent one has the value null.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// The way to it.
    pub path: String,
    /// The value.
    pub value: &'a Value,
}

impl<'a> Field<'a> {
    /// The object itself.
    pub fn root(object: &'a Value) -> Self {
        Self { path: String::new(), value: object }
    }

    /// The way to a field within.
    pub fn path_to(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field within.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self { path: self.path_to(name), value: self.value.get(name).unwrap_or(&ABSENT) }
    }

    /// Fields one within the other, like `topology.classRef.name`.
    #[must_use]
    pub fn descend(&self, names: &str) -> Self {
        names.split('.').fold(self.clone(), |field, name| field.child(name))
    }

    /// The way to an entry of a map.
    pub fn path_to_key(&self, key: &str) -> String {
        let cut = key.char_indices().nth(LONGEST_KEY).map_or(key.len(), |(end, _)| end);
        format!("{}[{}]", self.path, &key[..cut])
    }

    /// Whether it says nothing: absent, empty, or full of fields that say nothing.
    pub fn is_blank(&self) -> bool {
        is_blank(self.value)
    }

    /// The items of a list, each with its way; nothing if it is absent.
    pub fn items(&self, errors: &mut Errors) -> Vec<Self> {
        match self.value {
            Value::Null => Vec::new(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| Self { path: format!("{}[{index}]", self.path), value })
                .collect(),
            other => {
                errors.invalid(&self.path, other, "must be a list");
                Vec::new()
            }
        }
    }

    /// The items of a list of objects with names, each with its way by name.
    pub fn named_items(&self, errors: &mut Errors) -> Vec<Self> {
        let mut items = self.items(errors);
        for item in &mut items {
            if let Some(name) = item.value.get("name").and_then(Value::as_str)
                && !name.is_empty()
            {
                item.path = self.path_to_key(name);
            }
        }
        items
    }

    /// The fields of an object; nothing if it is absent.
    pub fn object(&self, errors: &mut Errors) -> Option<&'a Map<String, Value>> {
        match self.value {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            other => {
                errors.invalid(&self.path, other, "must be an object");
                None
            }
        }
    }

    /// Text; nothing if it is absent.
    pub fn text(&self, errors: &mut Errors) -> Option<&'a str> {
        match self.value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => {
                errors.invalid(&self.path, other, "must be a string");
                None
            }
        }
    }

    /// A whole number; nothing if it is absent.
    pub fn integer(&self, errors: &mut Errors) -> Option<i64> {
        if self.value.is_null() {
            return None;
        }
        let number = self.value.as_i64();
        if number.is_none() {
            errors.invalid(&self.path, self.value, "must be a whole number");
        }
        number
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
