//! Reading a text as Go reads it.

use serde_json::Value;

use super::{compose::compose, error::ReadError, source::Source, split::split};
use crate::Place;

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// The line of the whole text that it begins in, from 1. Comments before it are not part of it.
    pub line: usize,
}

/// The documents of a stream, without those that are empty or null.
///
/// ```
/// let documents = capstan_manifest::yaml::read("# a comment\n---\nkind: Cluster\n---\n---\nport: 0x50\non: off\n")?;
/// assert_eq!(documents.len(), 2);
/// assert_eq!(documents[1].value, serde_json::json!({"port": 80, "true": false}));
/// assert_eq!(documents[1].line, 6);
/// # Ok::<(), capstan_manifest::yaml::ReadError>(())
/// ```
pub fn read(text: &str) -> Result<Vec<Document>, ReadError> {
    let mut documents = Vec::new();
    for chunk in split(text) {
        let number = documents.len() + 1;
        let mut source = chunk.map_err(|bad| {
            let place = Place { line: bad.lines_before + 1, column: 1 };
            ReadError::new(number, place, bad.problem)
        })?;
        let root = compose(&mut source).map_err(|(place, problem)| ReadError::new(number, place, problem))?;
        if let Some((value, at)) = root.filter(|(value, _): &(Value, _)| !value.is_null()) {
            documents.push(Document { value, line: source.place(at).line });
        }
    }
    Ok(documents)
}

/// The first document of a text, or null if there is none. What comes behind it is not looked at.
pub fn read_one(text: &str) -> Result<Value, ReadError> {
    let root = compose(&mut Source::new(text.into(), 0));
    root.map(|root| root.map_or(Value::Null, |(value, _)| value))
        .map_err(|(place, problem)| ReadError::new(1, place, problem))
}
