//! Other places for images.

use std::collections::BTreeMap;

use super::{ConfigError, fields::Fields, variables::Variables};
use crate::value::Value;

pub(super) const KEY: &str = "images";

/// What replaces parts of an image's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageOverride {
    /// Replaces everything before the last part of the path.
    pub repository: Option<String>,
    /// Replaces the last part of the path.
    pub name: Option<String>,
    /// Replaces the tag.
    pub tag: Option<String>,
}

/// By `all`, component, or component and image, in lower case.
pub(super) fn read(
    variables: &Variables,
) -> Result<(BTreeMap<String, ImageOverride>, Vec<String>), ConfigError> {
    super::refuse_environment(variables, KEY)?;
    let entries = match variables.from_file(KEY) {
        None | Some(Value::Null) => return Ok(Default::default()),
        Some(Value::List(items)) if items.is_empty() => return Ok(Default::default()),
        Some(Value::Map(entries)) => entries,
        Some(other) => return Err(ConfigError::setting(KEY, "a map of overrides", other)),
    };
    let mut overrides = BTreeMap::new();
    let mut warnings = Vec::new();
    for (key, value) in entries {
        let place = format!("{KEY}.{key}");
        let mut fields = Fields::of(value, &place)?;
        let one = ImageOverride {
            repository: fields.text("repository")?,
            name: fields.text("name")?,
            tag: fields.text("tag")?,
        };
        warnings.extend(fields.unknown());
        if overrides.insert(key.to_lowercase(), one).is_some() {
            warnings.push(format!("{place}: another key differs only in case, and this one counts"));
        }
    }
    Ok((overrides, warnings))
}
