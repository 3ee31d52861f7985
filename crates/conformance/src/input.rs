//! Objects, and the files that they were in.

use capstan_manifest::yaml::{self, Document};
use serde_json::Value;

/// An object as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Where it was found: the name of a file, or of a cluster.
    pub file: String,
    /// The object.
    pub object: Value,
}

/// A file cannot be read as objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not YAML.
    #[error("{file} is not YAML: {cause}")]
    Yaml {
        /// The file.
        file: String,
        /// Which document, where, and what is wrong.
        cause: yaml::ReadError,
        /// Whether the file has variables that are to be substituted.
        variables: bool,
    },
    /// YAML, but not an object.
    #[error(
        "{file}: document {document}, which begins in line {line}, is no object with apiVersion and kind"
    )]
    NotAnObject {
        /// The file.
        file: String,
        /// Which of its documents, from 1.
        document: usize,
        /// Where the document begins, from 1.
        line: usize,
    },
}

/// Reads a file of one or many YAML documents (JSON is YAML). Empty documents are left out, lists taken apart.
pub fn read(file: &str, text: &str) -> Result<Vec<Source>, InputError> {
    let documents = yaml::read(text).map_err(|cause| InputError::Yaml {
        file: file.to_owned(),
        cause,
        variables: text.contains("${"),
    })?;
    let of = |object: Value| Source { file: file.to_owned(), object };
    let mut sources = Vec::new();
    for (index, Document { value, line }) in documents.into_iter().enumerate() {
        match value {
            Value::Object(mut object) if object.get("kind").is_some_and(|it| it == "List") => {
                let items = object.remove("items").unwrap_or_default();
                sources.extend(items.as_array().into_iter().flatten().cloned().map(of));
            }
            // Upstream's tools accept a metadata.yaml without kind.
            object if object.get("apiVersion").is_some_and(Value::is_string) => sources.push(of(object)),
            _ => return Err(InputError::NotAnObject { file: file.to_owned(), document: index + 1, line }),
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_told_apart_and_empty_ones_left_out() {
        let text = "# a licence\n---\napiVersion: v1\nkind: A\ntext: |\n  one\n  --- two\n--- # next\napiVersion: v1\nkind: B\n---\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: C}\n";
        let read = read("f.yaml", text).unwrap();
        let kinds: Vec<_> = read.iter().map(|it| it.object["kind"].clone()).collect();
        assert_eq!(kinds, [json!("A"), json!("B"), json!("C")]);
        assert_eq!(read[0].object["text"], "one\n--- two\n");
        assert!(read.iter().all(|it| it.file == "f.yaml"));
    }

    #[test]
    fn variables_with_defaults_are_text() {
        let text = "apiVersion: v1\nkind: A\nargs:\n- --v=${LEVEL:=2}\n- ${OTHER}\n";
        assert_eq!(read("f.yaml", text).unwrap()[0].object["args"], json!(["--v=${LEVEL:=2}", "${OTHER}"]));
    }

    #[test]
    fn what_is_not_yaml_is_named_with_its_document() {
        let text = "apiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\nspec: ${SPEC}: {\n";
        let error = read("f.yaml", text).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("f.yaml is not YAML: document 2, line 6, column "), "{message}");
        assert!(matches!(error, InputError::Yaml { variables: true, .. }), "{error:?}");
        let error = read("f.yaml", "a: [1\n").unwrap_err();
        assert!(matches!(error, InputError::Yaml { variables: false, .. }), "{error:?}");
        let error = read("values.yaml", "a: 1\n").unwrap_err();
        assert!(error.to_string().contains("values.yaml: document 1"), "{error}");
    }
}
