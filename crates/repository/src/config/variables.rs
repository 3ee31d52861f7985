//! Variables: set by flags, by the environment or by the configuration file, in this order.

use std::collections::BTreeMap;

use crate::{
    config::value::{Map, Value},
    environment::{Environment, Os},
};

/// All that a variable's value can come from.
#[derive(Clone, Default)]
pub(super) struct Variables {
    set: BTreeMap<String, String>,
    pub(super) environment: Environment,
    /// By the key in lower case.
    file: BTreeMap<String, Entry>,
}

#[derive(Clone)]
struct Entry {
    key: String,
    value: Value,
}

/// What a key of the file, or a name in a template, is called in the environment.
pub fn environment_name(key: &str) -> String {
    key.to_uppercase().replace('-', "_")
}

impl Variables {
    /// Takes the entries of a file, and says what is wrong with them.
    pub(super) fn new(entries: Map, environment: Environment) -> (Self, Vec<String>) {
        let mut variables = Self { environment, ..Self::default() };
        let mut warnings = Vec::new();
        for (key, value) in entries {
            let entry = Entry { key: key.clone(), value };
            if let Some(before) = variables.file.insert(key.to_lowercase(), entry) {
                warnings.push(format!(
                    "the keys {:?} and {key:?} differ only in case and are one to us; the value of {key:?} counts",
                    before.key
                ));
            }
        }
        warnings.extend(variables.file.values().filter_map(|it| variables.overlooked(&it.key)));
        (variables, warnings)
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.set.insert(name.to_lowercase(), value);
    }

    /// The value of a variable. Lists and maps are empty text; null is as if it was not there.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let set = || self.set.get(&name.to_lowercase()).cloned();
        let environment = || self.environment.get(&environment_name(name)).map(str::to_owned);
        let file = || match self.in_file(name)? {
            Value::Null => None,
            value => Some(value.text().unwrap_or_default()),
        };
        set().or_else(environment).or_else(file)
    }

    /// The value of a key in the file, whatever the environment says.
    pub(super) fn in_file(&self, key: &str) -> Option<&Value> {
        self.file.get(&key.to_lowercase()).map(|it| &it.value)
    }

    /// Keys whose values cannot be those of variables, other than the given ones.
    pub(super) fn composite_keys(&self, but: &[&str]) -> Vec<String> {
        let composite = |it: &&Entry| matches!(it.value, Value::List(_) | Value::Map(_));
        let others = self.file.iter().filter(|(key, _)| !but.contains(&key.as_str()));
        others
            .map(|(_, entry)| entry)
            .filter(composite)
            .map(|it| format!("{} is {}: as a variable it is empty", it.key, it.value.kind()))
            .collect()
    }

    /// Warns of an environment variable that is not read because of the case of its name.
    pub(super) fn overlooked(&self, name: &str) -> Option<String> {
        let wanted = environment_name(name);
        if self.environment.os == Os::Windows || self.environment.get(&wanted).is_some() {
            return None;
        }
        let (other, _) = self.environment.differing_in_case(&wanted)?;
        Some(format!("the environment variable {other} is not read, only {wanted} is"))
    }
}
