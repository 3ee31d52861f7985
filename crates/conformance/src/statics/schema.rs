//! Walks through an OpenAPI schema by path.

use serde_json::Value;

/// What a schema says of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    /// The field exists, with this schema.
    Found(&'a Value),
    /// The API server would drop the field.
    Absent,
    /// The API server would keep the field, but nothing says what it is.
    Open,
}

/// What a field must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Boolean,
    Integer,
    Object,
    String,
    /// A list of strings.
    Strings,
}

impl Type {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Object => "an object",
            Self::String => "a string",
            Self::Strings => "a list of strings",
        }
    }

    fn matches(self, schema: &Value) -> bool {
        match self {
            Self::Boolean => schema["type"] == "boolean",
            Self::Integer => schema["type"] == "integer",
            Self::Object => schema["type"] == "object",
            Self::String => schema["type"] == "string",
            Self::Strings => schema["type"] == "array" && schema["items"]["type"] == "string",
        }
    }
}

/// What a schema says of a field at a dotted path.
pub(super) fn find<'a>(root: &'a Value, path: &str) -> Field<'a> {
    let mut schema = root;
    for segment in path.split('.') {
        if let Some(next) = schema["properties"].get(segment) {
            schema = next;
        } else if is_open(schema) || !schema.is_object() {
            return Field::Open;
        } else {
            return Field::Absent;
        }
    }
    Field::Found(schema)
}

/// Whether the API server keeps fields that the schema does not name. It says so for one level only: below, each
/// object speaks for itself.
fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
        || !matches!(schema["additionalProperties"], Value::Null | Value::Bool(false))
}

/// Whether a schema is of a type. A schema that takes anything is not of any.
pub(super) fn is(schema: &Value, expected: Type) -> bool {
    expected.matches(schema)
}

/// Whether a schema leaves the type open.
pub(super) fn is_untyped(schema: &Value) -> bool {
    schema["type"].is_null() && schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// A schema's type in words.
pub(super) fn describe(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "an integer or a string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => match schema["items"]["type"].as_str() {
            Some(item) => format!("a list of {item}s"),
            None => "a list".to_owned(),
        },
        Some("object") if schema["additionalProperties"].is_object() => "a map".to_owned(),
        Some(name @ ("object" | "integer")) => format!("an {name}"),
        Some(name) => format!("a {name}"),
        None => "of no type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_is_found_absent_or_open() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"closed": {"type": "object"}}});
        let root = object(json!({
            "status": object(json!({"ready": {"type": "boolean"}})),
            "spec": open,
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }));
        assert_eq!(find(&root, "status.ready"), Field::Found(&json!({"type": "boolean"})));
        assert_eq!(find(&root, "status.initialization.provisioned"), Field::Absent);
        assert_eq!(find(&root, "nothing"), Field::Absent);
        assert_eq!(find(&root, "spec.anything.at.all"), Field::Open);
        // Below a named object the API server drops what is not named.
        assert_eq!(find(&root, "spec.closed.anything"), Field::Absent);
        assert_eq!(find(&root, "map.anything"), Field::Open);
        assert_eq!(find(&Value::Null, "status"), Field::Open);
    }

    #[test]
    fn types_are_told_apart_and_named() {
        for (schema, expected, words) in [
            (json!({"type": "boolean"}), Type::Boolean, "a boolean"),
            (json!({"type": "integer", "format": "int32"}), Type::Integer, "an integer"),
            (json!({"type": "string"}), Type::String, "a string"),
            (json!({"type": "object"}), Type::Object, "an object"),
            (json!({"type": "array", "items": {"type": "string"}}), Type::Strings, "a list of strings"),
        ] {
            assert!(is(&schema, expected), "{schema}");
            assert_eq!(describe(&schema), words);
            assert!(!is(&json!({"x-kubernetes-int-or-string": true}), expected));
        }
        assert_eq!(describe(&json!({"x-kubernetes-int-or-string": true})), "an integer or a string");
        assert_eq!(describe(&json!({"type": "object", "additionalProperties": {}})), "a map");
    }
}
