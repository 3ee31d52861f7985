//! Changes of a container: image, flags, environment, resources.

use std::collections::BTreeMap;

use capstan_api::operator::ContainerSpec;
use serde_json::{Map, Value};

use super::CustomizeError;
use super::error::ArgProblem;
use super::feature_gates::{self, FeatureGates};
use super::flags::{self, Flags};
use super::images::ImageChange;
use super::manager::ManagerChanges;

/// What a spec asks of the container that it names.
pub(super) struct ContainerChanges<'a> {
    image: Option<ImageChange<'a>>,
    flags: Flags,
    env: &'a [Value],
    resources: Option<&'a Value>,
}

impl<'a> ContainerChanges<'a> {
    pub(super) fn read(spec: &'a ContainerSpec, problems: &mut Vec<CustomizeError>) -> Self {
        let unnamed = spec.env.iter().enumerate().filter(|(_, entry)| env_name(entry).is_empty());
        problems
            .extend(unnamed.map(|(index, _)| CustomizeError::Env { container: spec.name.clone(), index }));
        Self {
            image: spec.image.as_ref().and_then(|it| ImageChange::read(it, &spec.name, problems)),
            flags: read_args(spec, problems),
            env: &spec.env,
            resources: spec.resources.as_ref(),
        }
    }
}

/// The flags that a spec's args set. The key `namespace` sets none: every provider watches all namespaces.
fn read_args(spec: &ContainerSpec, problems: &mut Vec<CustomizeError>) -> Flags {
    let mut flags = Flags::default();
    let mut keys: BTreeMap<String, &str> = BTreeMap::new();
    for (key, value) in &spec.args {
        let mut refuse = |problem| {
            let (container, key) = (spec.name.clone(), key.clone());
            problems.push(CustomizeError::Arg { container, key, problem });
        };
        let Some(name) = flags::name(key) else {
            refuse(ArgProblem::Name);
            continue;
        };
        if flags::is_namespace(name) {
            continue;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                refuse(ArgProblem::Value);
                continue;
            }
        };
        if flags.get(name).is_some_and(|other| other != text) {
            let other = keys.get(&flags::key(name)).copied().unwrap_or_default().to_owned();
            refuse(ArgProblem::Conflict { other });
            continue;
        }
        keys.insert(flags::key(name), key);
        flags.set(name, text);
    }
    flags
}

/// The name of a container.
pub(super) fn name(container: &Map<String, Value>) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Changes a container of a Deployment. What the spec says for the manager wins over what it says for the container.
pub(super) fn apply(
    container: &mut Map<String, Value>,
    own: Option<&ContainerChanges<'_>>,
    manager: Option<&ManagerChanges<'_>>,
    deployment: &str,
    problems: &mut Vec<CustomizeError>,
) {
    if let Some(own) = own {
        if let Some(change) = &own.image {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            match change.apply(image) {
                Ok(image) => drop(container.insert("image".to_owned(), Value::from(image))),
                Err(reason) => problems.push(CustomizeError::ReleaseImage {
                    deployment: deployment.to_owned(),
                    container: name(container).to_owned(),
                    image: image.to_owned(),
                    reason,
                }),
            }
        }
        if let Some(resources) = own.resources {
            container.insert("resources".to_owned(), resources.clone());
        }
        if set_env(container, own.env).is_none() {
            problems.push(malformed(deployment, "spec.template.spec.containers[].env"));
        }
    }
    if let Some(manager) = manager {
        manager.rewrite_probes(container);
    }
    let flags = flags_of(container, own, manager);
    if flags.write(container).is_none() {
        problems.push(malformed(deployment, "spec.template.spec.containers[].args"));
    }
}

fn malformed(deployment: &str, field: &'static str) -> CustomizeError {
    CustomizeError::Malformed { deployment: deployment.to_owned(), field }
}

/// The flags to write to a container.
///
/// A flag such as `--awscluster-concurrency` stays beside `--max-concurrent-reconciles`: it is the exception for one
/// kind, and only the provider knows for which.
fn flags_of(
    container: &Map<String, Value>,
    own: Option<&ContainerChanges<'_>>,
    manager: Option<&ManagerChanges<'_>>,
) -> Flags {
    let mut flags = own.map(|it| it.flags.clone()).unwrap_or_default();
    let mut gates = FeatureGates::default();
    for value in flags::values(container, feature_gates::FLAG) {
        gates.merge(value);
    }
    let own_gates = flags.get(feature_gates::FLAG).map(str::to_owned);
    if let Some(value) = &own_gates {
        gates.merge(value);
    }
    let manager_gates = manager.and_then(ManagerChanges::feature_gates);
    if let Some(manager_gates) = manager_gates {
        gates.set(manager_gates);
    }
    if own_gates.is_some() || manager_gates.is_some() {
        flags.set(feature_gates::FLAG, gates.to_string());
    }
    if let Some(manager) = manager {
        flags.extend(manager.flags());
    }
    flags
}

/// Sets environment variables, each once: in its place where the container has it, else at the end. `None` says that
/// the environment is no list.
fn set_env(container: &mut Map<String, Value>, entries: &[Value]) -> Option<()> {
    if entries.is_empty() {
        return Some(());
    }
    let env = container.entry("env").or_insert(Value::Null);
    if env.is_null() {
        *env = Value::Array(Vec::new());
    }
    let env = env.as_array_mut()?;
    for entry in entries {
        let name = env_name(entry);
        let place = env.iter().position(|it| env_name(it) == name).unwrap_or(env.len());
        env.retain(|it| env_name(it) != name);
        env.insert(place, entry.clone());
    }
    Some(())
}

fn env_name(entry: &Value) -> &str {
    entry.get("name").and_then(Value::as_str).unwrap_or_default()
}
