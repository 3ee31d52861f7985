//! The variables of a cluster template: set by flags and arguments, and listed.

use std::collections::BTreeMap;

use capstan_api::admission::rules::{is_dns_label, is_dns_subdomain};
use capstan_manifest::envsubst::Variable;
use capstan_repository::{Config, Version};
use serde_json::{Value, json};

use crate::{
    cli::generate::{ClusterArgs, ListFormat},
    error::CommandError,
    output,
};

const CLUSTER_NAME: &str = "CLUSTER_NAME";
const NAMESPACE: &str = "NAMESPACE";
const KUBERNETES_VERSION: &str = "KUBERNETES_VERSION";
const CONTROL_PLANE_MACHINE_COUNT: &str = "CONTROL_PLANE_MACHINE_COUNT";
const WORKER_MACHINE_COUNT: &str = "WORKER_MACHINE_COUNT";

/// Lets flags and arguments win over the environment and the configuration file.
pub(super) fn set(config: &mut Config, args: &ClusterArgs, namespace: &str) -> Result<(), CommandError> {
    if !is_dns_label(namespace) {
        return Err(CommandError::plain(format!("{namespace:?} cannot be the name of a namespace"))
            .hint("--target-namespace takes at most 63 lower-case letters, digits and dashes"));
    }
    if !is_dns_subdomain(&args.name) {
        return Err(CommandError::plain(format!("{:?} cannot be the name of a cluster", args.name))
            .hint("use lower-case letters, digits, dashes and dots, with a letter or digit at both ends"));
    }
    config.set(NAMESPACE, namespace.to_owned());
    config.set(CLUSTER_NAME, args.name.clone());
    if let Some(version) = args.kubernetes_version.as_deref().filter(|it| !it.is_empty()) {
        if Version::parse(version).is_err() {
            return Err(CommandError::plain(format!("--kubernetes-version {version} is no version"))
                .hint("give all three numbers, e.g. v1.34.1"));
        }
        config.set(KUBERNETES_VERSION, version.to_owned());
    }
    let control_plane = count(config, CONTROL_PLANE_MACHINE_COUNT, args.control_plane_machine_count, 1)?;
    config.set(CONTROL_PLANE_MACHINE_COUNT, control_plane.to_string());
    let workers = count(config, WORKER_MACHINE_COUNT, args.worker_machine_count, 0)?;
    config.set(WORKER_MACHINE_COUNT, workers.to_string());
    Ok(())
}

/// A number of machines: from the flag, else the variable, else the least.
fn count(config: &Config, name: &str, flag: Option<i64>, least: i64) -> Result<i64, CommandError> {
    let number = match (flag, config.variable(name)) {
        (Some(number), _) => number,
        (None, None) => least,
        (None, Some(text)) => text.parse().map_err(|_| {
            CommandError::plain(format!("variable {name} is {text:?}, which is no whole number")).hint(
                format!("set it in the environment or the configuration file, or use --{}", flag_of(name)),
            )
        })?,
    };
    if number < least {
        return Err(CommandError::plain(format!(
            "--{} is {number}; it must be {least} at least",
            flag_of(name)
        )));
    }
    Ok(number)
}

/// The flag that sets a variable.
fn flag_of(variable: &str) -> String {
    variable.to_lowercase().replace('_', "-")
}

/// What a variable is without being set, as the list tells it.
enum Fallback {
    Nothing,
    Is(String),
}

/// The list of variables, required ones first.
pub(super) fn list(variables: &BTreeMap<String, Variable>, args: &ClusterArgs, config: &Config) -> String {
    let fallbacks: Vec<_> = variables.values().map(|it| (it, fallback(it, args, config))).collect();
    let required = fallbacks.iter().filter(|(_, it)| matches!(it, Fallback::Nothing));
    let required: Vec<_> = required.map(|(variable, _)| variable.name.as_str()).collect();
    let optional: Vec<_> = fallbacks
        .iter()
        .filter_map(|(variable, it)| match it {
            Fallback::Nothing => None,
            Fallback::Is(value) => Some((variable.name.as_str(), value.as_str())),
        })
        .collect();
    match args.output {
        ListFormat::Text => as_text(&required, &optional),
        format => {
            let value = |(name, value): &(&str, &str)| json!({"name": name, "default": unquoted(value)});
            let optional: Vec<Value> = optional.iter().map(value).collect();
            output::list(format, &json!({"required": required, "optional": optional}), String::new)
        }
    }
}

fn fallback(variable: &Variable, args: &ClusterArgs, config: &Config) -> Fallback {
    let number = |flag: Option<i64>, least: i64| {
        let set = || config.variable(&variable.name).unwrap_or_else(|| least.to_string());
        Fallback::Is(flag.map_or_else(set, |number| number.to_string()))
    };
    match variable.name.as_str() {
        CLUSTER_NAME => Fallback::Is(args.name.clone()),
        NAMESPACE => {
            let current = || "current Namespace in the KubeConfig file".to_owned();
            Fallback::Is(args.target_namespace.clone().unwrap_or_else(current))
        }
        CONTROL_PLANE_MACHINE_COUNT => number(args.control_plane_machine_count, 1),
        WORKER_MACHINE_COUNT => number(args.worker_machine_count, 0),
        KUBERNETES_VERSION => {
            match args.kubernetes_version.clone().or_else(|| config.variable(KUBERNETES_VERSION)) {
                Some(version) if !version.is_empty() => Fallback::Is(version),
                _ => own_default(variable),
            }
        }
        _ => own_default(variable),
    }
}

/// The default that the template gives, in quotes.
fn own_default(variable: &Variable) -> Fallback {
    match variable.default.as_deref() {
        None | Some("") => Fallback::Nothing,
        Some(quoted) if quoted.starts_with('"') => Fallback::Is(quoted.to_owned()),
        Some(text) => Fallback::Is(quote(text)),
    }
}

fn as_text(required: &[&str], optional: &[(&str, &str)]) -> String {
    let mut text = String::new();
    if !required.is_empty() {
        text.extend(["Required Variables:\n", output::bullets(required).as_str()]);
    }
    if !optional.is_empty() {
        text.push_str("\nOptional Variables:\n");
        let row =
            |(name, value): &(&str, &str)| vec![format!("  - {name}"), format!("(defaults to {value})")];
        text.push_str(&output::columns(&optional.iter().map(row).collect::<Vec<_>>(), 0, 2));
    }
    text.push('\n');
    text
}

/// A text in double quotes, as Go writes it.
fn quote(text: &str) -> String {
    let letter = |letter: char| match letter {
        '"' | '\\' => format!("\\{letter}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        letter if letter.is_control() => format!("\\x{:02x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text)
}
