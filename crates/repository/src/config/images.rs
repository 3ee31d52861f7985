//! Other places for images.

use std::collections::BTreeMap;

use capstan_manifest::images::{Override, Overrides};

use super::{ConfigError, fields::Fields, value::Value, variables::Variables};

pub(super) const KEY: &str = "images";

/// By `all`, component, or component and image, in lower case.
pub(super) fn read(variables: &Variables) -> Result<(Overrides, Vec<String>), ConfigError> {
    let mut warnings: Vec<_> = super::check_environment(variables, KEY)?.into_iter().collect();
    let entries: &[_] = match variables.in_file(KEY) {
        None | Some(Value::Null) => &[],
        Some(Value::List(items)) if items.is_empty() => &[],
        Some(Value::Map(entries)) => entries,
        Some(other) => return Err(ConfigError::setting(KEY, "a map of overrides", other)),
    };
    let mut overrides = BTreeMap::new();
    for (key, value) in entries {
        let place = format!("{KEY}.{key}");
        let mut fields = Fields::of(value, &place)?;
        let mut part = |name: &'static str| fields.text(name).map(Option::unwrap_or_default);
        let one = Override { repository: part("repository")?, name: part("name")?, tag: part("tag")? };
        warnings.extend(fields.unknown());
        if overrides.insert(key.to_lowercase(), one).is_some() {
            warnings.push(format!("{place}: another key differs only in case, and this one counts"));
        }
    }
    Ok((overrides.into_iter().collect(), warnings))
}
