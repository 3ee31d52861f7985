//! Whatever is in a configuration file, of whichever format, it is read or refused without a word of its values, and
//! settings are warned of or refused without a word of the variables beside them; flags win over the environment, and that over the file; and what is JSON says the same as YAML.

#![no_main]

use std::collections::BTreeMap;

use capstan_fuzz::CANARY;
use capstan_repository::{Config, Environment, config::Format, environment_name};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const ORIGIN: &str = "clusterctl.yaml";
/// More keys than this are not looked up: each takes several readings of the file.
const MOST_KEYS: usize = 4;

fuzz_target!(|text: &str| {
    let environment = environment(&[("BASE", "/base")]);
    for format in [Format::Yaml, Format::Json, Format::Toml, Format::Dotenv] {
        match Config::parse(text, format, ORIGIN, &environment) {
            Ok(config) => check_settings(&config),
            Err(error) => {
                let words = error.to_string();
                assert!(
                    words.starts_with("the configuration file clusterctl.yaml is malformed: "),
                    "{words}"
                );
                assert!(!without_key(&words).contains(CANARY), "{format:?}: {words}");
            }
        }
    }
    if let Ok(Value::Object(entries)) = serde_json::from_str(text) {
        let entries = entries.into_iter().collect();
        check_secrecy(&entries);
        check_variables(text, &entries);
    }
});

/// An error without the one thing that it may quote: a key that occurs twice. Keys are no secrets.
fn without_key(words: &str) -> &str {
    match words.split_once("the key \"") {
        Some((before, rest)) if rest.ends_with("\" occurs twice") => before,
        _ => words,
    }
}

/// Values of variables are quoted by nothing, whatever settings stand beside them.
fn check_secrecy(entries: &BTreeMap<String, Value>) {
    let settings = ["providers", "images", "cert-manager", "overridesfolder"];
    let is_quotable = |key: &str| settings.contains(&key.to_lowercase().as_str());
    let mut file = serde_json::Map::new();
    for (key, value) in entries {
        let value = if is_quotable(key) { value.clone() } else { Value::from(CANARY) };
        // What is in a setting may be quoted, and so may keys.
        let is_free = |text: &str| !text.to_lowercase().contains(CANARY);
        if is_free(key) && (!is_quotable(key) || is_free(&value.to_string())) {
            file.insert(key.clone(), value);
        }
    }
    let text = Value::Object(file).to_string();
    let config =
        Config::parse(&text, Format::Json, ORIGIN, &environment(&[])).expect("it is JSON with entries");
    let mut said = config.warnings().to_vec();
    said.push(format!("{config:?}"));
    said.extend(config.providers().err().map(|it| format!("{it} {it:?}")));
    said.extend(config.images().err().map(|it| format!("{it} {it:?}")));
    said.extend(config.cert_manager().err().map(|it| format!("{it} {it:?}")));
    said.extend(config.overrides_folder().err().map(|it| format!("{it} {it:?}")));
    assert!(said.iter().all(|it| !it.contains(CANARY)), "{said:?}");
}

fn check_settings(config: &Config) {
    match config.providers() {
        Ok(providers) => {
            assert!(providers.is_sorted_by(|a, b| (a.kind, &a.name) < (b.kind, &b.name)));
            assert!(providers.len() >= 64, "built-in providers are replaced and never removed");
            assert!(providers.iter().all(|it| !it.name.is_empty() && !it.url.trim().is_empty()));
        }
        Err(error) => assert!(error.to_string().contains("providers"), "{error}"),
    }
    if let Err(error) = config.images() {
        assert!(error.to_string().contains("images"), "{error}");
    }
    match config.cert_manager() {
        Ok(found) => assert!(!found.version.is_empty()),
        Err(error) => assert!(error.to_string().contains("cert-manager"), "{error}"),
    }
    if let Err(error) = config.overrides_folder() {
        assert!(error.to_string().contains("overridesFolder"), "{error}");
    }
    assert!(config.github_token().is_none_or(|it| !it.trim().is_empty()));
    assert!(config.warnings().iter().all(|it| !it.is_empty()));
    let shown = format!("{config:?}");
    assert!(shown.contains(ORIGIN));
}

/// The variables of a JSON file, by the key as it is written there.
fn check_variables(text: &str, entries: &BTreeMap<String, Value>) {
    let read = |format, variables: &[(&str, &str)]| {
        Config::parse(text, format, ORIGIN, &environment(variables)).expect("it is JSON with entries")
    };
    let json = read(Format::Json, &[]);
    // The two of them differ in what they allow: keys that are there twice, surrogates, how deep values are nested.
    let yaml = Config::parse(text, Format::Yaml, ORIGIN, &environment(&[])).ok();
    let is_alone =
        |key: &str| entries.keys().filter(|it| it.to_lowercase() == key.to_lowercase()).count() == 1;
    for (key, value) in entries.iter().filter(|(key, _)| is_alone(key)).take(MOST_KEYS) {
        let expected = match value {
            Value::Null => Some(None),
            Value::Bool(it) => Some(Some(it.to_string())),
            Value::String(it) => Some(Some(it.clone())),
            Value::Array(_) | Value::Object(_) => Some(Some(String::new())),
            // Go reads the numbers of JSON as floats, and those of YAML as they are.
            Value::Number(_) => None,
        };
        if let Some(expected) = &expected {
            assert_eq!(&json.variable(key), expected, "{key:?} in JSON");
            if let Some(yaml) = &yaml {
                assert_eq!(&yaml.variable(key), expected, "{key:?} in YAML");
            }
        }
        let name = environment_name(key);
        let mut config = read(Format::Json, &[(name.as_str(), "environment")]);
        assert_eq!(config.variable(key).as_deref(), Some("environment"), "{key:?}");
        config.set(key, "flag".to_owned());
        assert_eq!(config.variable(key).as_deref(), Some("flag"), "{key:?}");
    }
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment { variables, home: Some("/home/me".into()), ..Environment::default() }
}
