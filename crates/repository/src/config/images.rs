//! Other places for images.

use std::collections::BTreeMap;

use capstan_manifest::images::{Override, Overrides};

use super::{ConfigError, fields::Fields, value::Value, variables::Variables, yaml};

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
        let one = read_one(&mut fields)?;
        warnings.extend(fields.unknown());
        if overrides.insert(key.to_lowercase(), one).is_some() {
            warnings.push(format!("{place}: another key differs only in case, and this one counts"));
        }
    }
    Ok((overrides.into_iter().collect(), warnings))
}

fn read_one(fields: &mut Fields<'_>) -> Result<Override, ConfigError> {
    let mut part = |name: &'static str| fields.text(name).map(Option::unwrap_or_default);
    Ok(Override { repository: part("repository")?, name: part("name")?, tag: part("tag")? })
}

/// Why a text is no map of image overrides. Nothing of the text is in it: it may come from a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotImageOverrides {
    /// It is not YAML.
    #[error("line {line} is not YAML")]
    NotYaml {
        /// Where it ceases to be.
        line: usize,
    },
    /// It is YAML of another kind.
    #[error("it is {found}, and not a map")]
    NotAMap {
        /// What it is.
        found: &'static str,
    },
    /// One entry is wrong.
    #[error("in entry {entry}, {problem}")]
    Entry {
        /// Which one, from 1.
        entry: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads image overrides alone: what a configuration file has under `images`. What is only warned of there is an error
/// here, where nobody reads warnings.
pub fn read_image_overrides(text: &str) -> Result<Overrides, NotImageOverrides> {
    let value = yaml::read(text).map_err(|error| NotImageOverrides::NotYaml { line: error.line })?;
    let entries = match value {
        Value::Null => Vec::new(),
        Value::Map(entries) => entries,
        other => return Err(NotImageOverrides::NotAMap { found: other.kind() }),
    };
    let mut overrides = BTreeMap::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        let wrong = |problem: String| NotImageOverrides::Entry { entry: at + 1, problem };
        // The place is what follows "in entry 1, ".
        let mut fields = Fields::of(value, "it").map_err(|error| wrong(without_place(&error)))?;
        let one = read_one(&mut fields).map_err(|error| wrong(without_place(&error)))?;
        if !fields.unknown().is_empty() {
            return Err(wrong("a field is none of repository, name and tag".to_owned()));
        }
        if overrides.insert(key.to_lowercase(), one).is_some() {
            return Err(wrong("the key differs from another one only in case".to_owned()));
        }
    }
    Ok(overrides.into_iter().collect())
}

fn without_place(error: &ConfigError) -> String {
    match error {
        ConfigError::Setting { setting, expected, found } => {
            let setting = setting.strip_prefix("it.").unwrap_or(setting);
            format!("{setting} must be {expected}, but is {found}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_alone_are_read_as_in_the_configuration_file() {
        let text =
            "ALL: {Repository: r.io/m, TAG: v2}\nInfrastructure-AWS/Manager: {name: n}\ncert-manager:\n";
        let images = read_image_overrides(text).unwrap();
        let replaced = images.apply("infrastructure-aws", "k8s.io/capi/manager:v1").unwrap();
        assert_eq!(replaced, "r.io/m/n:v2");
        for nothing in ["", "# nothing\n", "{}", "null"] {
            assert!(read_image_overrides(nothing).unwrap() == Overrides::default(), "{nothing:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_overrides_is_told_without_their_text() {
        for (text, expected) in [
            ("s3cret", "it is text, and not a map"),
            ("[s3cret]", "it is a list, and not a map"),
            ("all: {}\ns3cret: [s3cret", "line 2 is not YAML"),
            ("s3cret: s3cret", "in entry 1, it must be a map, but is text"),
            ("all: {}\ns3cret: {tag: [s3cret]}", "in entry 2, tag must be text, but is a list"),
            ("all: {s3cret: s3cret}", "in entry 1, a field is none of repository, name and tag"),
            ("s3cret: {}\nS3cret: {}", "in entry 2, the key differs from another one only in case"),
            ("s3cret: {}\ns3cret: {}", "line 2 is not YAML"),
            ("all: *s3cret", "line 1 is not YAML"),
        ] {
            let error = read_image_overrides(text).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
    }
}
