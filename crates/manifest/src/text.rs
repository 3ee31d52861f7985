//! From the text of a components file or template to its objects: variables first, then YAML.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    envsubst::{RenderError, SyntaxError, Template},
    yaml::{self, Document, ReadError},
};

/// A text cannot be made into objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A page for people instead of YAML.
    #[error("it is a web page, not YAML")]
    WebPage,
    /// A variable is not written as variables are.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// Variables have no value, or one that cannot be used.
    #[error("{0}")]
    Variables(#[from] RenderError),
    /// Not YAML.
    #[error("{0}")]
    Yaml(#[from] ReadError),
    /// YAML, but not an object.
    #[error("document {document}, which begins in line {line}, is {found} where an object is expected")]
    NotAnObject {
        /// Which document, from 1; empty ones are not counted.
        document: usize,
        /// Where it begins.
        line: usize,
        /// What it is.
        found: &'static str,
    },
}

/// What a variable is replaced by.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The objects of a text after its variables are replaced; without a lookup variables stay as they are. A text that is
/// given away is in memory only until its variables are replaced.
pub fn objects<'a>(
    text: impl Into<Cow<'a, str>>,
    lookup: Option<Lookup<'_>>,
) -> Result<Vec<Document>, TextError> {
    let text = render(text.into(), lookup)?;
    read(&text)
}

/// The text with its variables replaced.
pub fn render<'a>(text: Cow<'a, str>, lookup: Option<Lookup<'_>>) -> Result<Cow<'a, str>, TextError> {
    if is_web_page(&text) {
        return Err(TextError::WebPage);
    }
    // Without a lookup, too: a variable that cannot be replaced is better reported before the installation.
    let template = Template::parse(&text)?;
    if let Some(lookup) = lookup {
        return Ok(template.render(lookup)?.into());
    }
    drop(template);
    Ok(text)
}

/// The objects of a text without variables.
pub fn read(text: &str) -> Result<Vec<Document>, TextError> {
    let documents = yaml::read(text)?;
    for (index, document) in documents.iter().enumerate() {
        if !document.value.is_object() {
            return Err(TextError::NotAnObject {
                document: index + 1,
                line: document.line,
                found: name(&document.value),
            });
        }
    }
    Ok(documents)
}

/// Whether a text is an HTML page: a login, or a web server's error.
pub fn is_web_page(text: &str) -> bool {
    let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n', '\u{c}']);
    ["<!doctype", "<html", "<head", "<?xml"]
        .iter()
        .any(|it| start.get(..it.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(it)))
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
