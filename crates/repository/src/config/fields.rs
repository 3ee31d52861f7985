//! Fields of a setting, whose names are the same in every case.

use super::ConfigError;
use super::value::{Map, Value};

/// The fields of one setting, and which of them were asked for.
pub(super) struct Fields<'a> {
    entries: &'a [(String, Value)],
    place: &'a str,
    known: Vec<&'static str>,
}

const NONE: &Map = &Map::new();

impl<'a> Fields<'a> {
    /// The fields of a map; null has none.
    pub(super) fn of(value: &'a Value, place: &'a str) -> Result<Self, ConfigError> {
        match value {
            Value::Map(entries) => Ok(Self { entries, place, known: Vec::new() }),
            Value::Null => Ok(Self { entries: NONE, place, known: Vec::new() }),
            other => Err(ConfigError::setting(place, "a map", other)),
        }
    }

    /// A field's text; numbers and booleans are text, too, and empty text is nothing.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, ConfigError> {
        self.known.push(name);
        let last = self.entries.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name));
        match last.map(|(_, value)| value) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.text() {
                Some(text) => Ok(Some(text).filter(|it| !it.is_empty())),
                None => Err(ConfigError::setting(&format!("{}.{name}", self.place), "text", value)),
            },
        }
    }

    /// A warning for each unknown field, most often a typing error.
    pub(super) fn unknown(&self) -> Vec<String> {
        let is_known = |key: &str| self.known.iter().any(|it| it.eq_ignore_ascii_case(key));
        let unknown = self.entries.iter().filter(|(key, _)| !is_known(key));
        unknown
            .map(|(key, _)| {
                format!("{}: there is no field {key:?}, only {}", self.place, self.known.join(", "))
            })
            .collect()
    }
}
