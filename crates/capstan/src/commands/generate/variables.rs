//! The variables of a cluster template: set by flags and arguments, and listed.

use std::collections::BTreeMap;

use capstan_manifest::envsubst::Variable;
use capstan_repository::{Config, Version};
use serde_json::json;

use super::{check_cluster_name, check_namespace};
use crate::{
    cli::generate::ClusterArgs,
    error::CommandError,
    output,
    printer::{Output, Text},
};

const CLUSTER_NAME: &str = "CLUSTER_NAME";
const NAMESPACE: &str = "NAMESPACE";
const KUBERNETES_VERSION: &str = "KUBERNETES_VERSION";
const CONTROL_PLANE_MACHINE_COUNT: &str = "CONTROL_PLANE_MACHINE_COUNT";
const WORKER_MACHINE_COUNT: &str = "WORKER_MACHINE_COUNT";

/// Lets flags and arguments win over the environment and the configuration file.
pub(super) fn set(config: &mut Config, args: &ClusterArgs, namespace: &str) -> Result<(), CommandError> {
    check_namespace("--target-namespace", Some(namespace))?;
    check_cluster_name("NAME", &args.name)?;
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
    let hint =
        flag_of(name).map(|flag| format!("{flag} wins over the environment and the configuration file"));
    let set = config.variable(name).filter(|_| flag.is_none());
    let number = match (flag, &set) {
        (Some(number), _) => number,
        (None, None) => least,
        (None, Some(text)) => text.parse().map_err(|_| {
            CommandError::plain(format!("variable {name} is {text:?}, which is no whole number"))
                .hint_if(hint.clone())
        })?,
    };
    if number >= least {
        return Ok(number);
    }
    let what = if set.is_some() { name.to_owned() } else { flag_of(name).unwrap_or_default().to_owned() };
    Err(CommandError::plain(format!("{what} is {number}; it must be {least} at least")))
}

/// The flag that sets a variable.
pub(super) fn flag_of(variable: &str) -> Option<&'static str> {
    Some(match variable {
        NAMESPACE => "--target-namespace",
        KUBERNETES_VERSION => "--kubernetes-version",
        CONTROL_PLANE_MACHINE_COUNT => "--control-plane-machine-count",
        WORKER_MACHINE_COUNT => "--worker-machine-count",
        _ => return None,
    })
}

/// What a variable is without being set.
enum Fallback {
    /// It must be set.
    Nothing,
    /// Flags, arguments or rules of ours say so.
    Is(String),
    /// The template says so.
    Default(String),
    /// It is known only when it is needed.
    Later(&'static str),
}

impl Fallback {
    /// As the list for people has it.
    fn text(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Is(value) => Some(value.clone()),
            Self::Default(value) if value.starts_with('"') => Some(value.clone()),
            Self::Default(value) => Some(quote(value)),
            Self::Later(words) => Some((*words).to_owned()),
        }
    }

    fn value(&self) -> Option<&str> {
        match self {
            Self::Is(value) | Self::Default(value) => Some(value),
            Self::Nothing | Self::Later(_) => None,
        }
    }
}

/// The list of variables, required ones first.
pub(super) fn list(variables: &BTreeMap<String, Variable>, args: &ClusterArgs, config: &Config) -> Output {
    let fallbacks: Vec<_> = variables.values().map(|it| (&it.name, fallback(it, args, config))).collect();
    let (required, optional): (Vec<_>, Vec<_>) =
        fallbacks.iter().partition(|(_, it)| matches!(it, Fallback::Nothing));
    let required: Vec<_> = required.into_iter().map(|(name, _)| name.as_str()).collect();
    let entries = optional.iter().map(|(name, it)| json!({"name": name, "default": it.value()}));
    let value = json!({"required": required, "optional": entries.collect::<Vec<_>>()});
    let rows =
        || optional.iter().filter_map(|(name, it)| Some((name.as_str(), it.text()?))).collect::<Vec<_>>();
    output::list(args.output, &value, || as_text(&required, &rows()))
}

fn fallback(variable: &Variable, args: &ClusterArgs, config: &Config) -> Fallback {
    let number = |flag: Option<i64>, least: i64| {
        let set = || config.variable(&variable.name).unwrap_or_else(|| least.to_string());
        Fallback::Is(flag.map_or_else(set, |number| number.to_string()))
    };
    match variable.name.as_str() {
        CLUSTER_NAME => Fallback::Is(args.name.clone()),
        NAMESPACE => match args.target_namespace.as_ref().filter(|it| !it.is_empty()) {
            Some(namespace) => Fallback::Is(namespace.clone()),
            None => Fallback::Later("current Namespace in the KubeConfig file"),
        },
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

/// The default that the template gives.
fn own_default(variable: &Variable) -> Fallback {
    match variable.default.as_deref() {
        None | Some("") => Fallback::Nothing,
        Some(text) => Fallback::Default(text.to_owned()),
    }
}

fn as_text(required: &[&str], optional: &[(&str, String)]) -> Text {
    let mut text = Text::default();
    if !required.is_empty() {
        text.line("Required Variables:");
        text.push(output::bullets(required));
    }
    if !optional.is_empty() {
        text.line("");
        text.line("Optional Variables:");
        let row =
            |(name, value): &(&str, String)| vec![format!("  - {name}"), format!("(defaults to {value})")];
        text.push(output::columns(&optional.iter().map(row).collect::<Vec<_>>(), 0, 2));
    }
    text.ended()
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
