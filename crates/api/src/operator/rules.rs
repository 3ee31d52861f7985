//! What a provider's spec may say.
//!
//! The schema refuses most of this already. An object may have been stored before its schema was, and a schema cannot
//! say all of it, so the controller asks again before it acts, and the webhook asks for those who can still change it.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    spec::{ContainerSpec, DurationValue, FetchConfiguration, ManagerSpec, ProviderSpec},
    status::reason,
};
use crate::{
    admission::{
        rules::{label_value, qualified_name},
        shown,
    },
    convert::duration::{NANOS_PER_SECOND, nanoseconds},
    names::label,
    provider::ProviderType,
};

/// The verbosity that `debug` sets.
pub const DEBUG_VERBOSITY: i64 = 5;
/// The profilerAddress that `debug` sets.
pub const DEBUG_PROFILER_ADDRESS: &str = "localhost:6060";
/// Why a locked manager cannot be changed.
pub(super) const DEBUG_LOCK: &str = "manager.debug is true and locks the other properties of the manager; \
                                     set debug to false, then change them";

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;
/// Keys in paths are cut after so many characters.
const LONGEST_KEY: usize = 63;
/// What serde says is cut after so many characters: it repeats values of any length.
const LONGEST_DETAIL: usize = 300;
const NANOS: i128 = NANOS_PER_SECOND.cast_signed();

/// What is wrong with a provider's spec, or with a change of it.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecProblem {
    /// The spec is not what a spec looks like.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
    /// The version is not `vX.Y.Z`.
    Version {
        /// The version.
        found: String,
    },
    /// The name makes a label that is too long.
    Name {
        /// The label's value.
        label: String,
        /// How long names of this kind may be.
        longest: usize,
    },
    /// fetchConfig has both url and selector.
    UrlAndSelector,
    /// fetchConfig has neither url nor selector.
    NoUrlOrSelector,
    /// fetchConfig.url is not an address of releases.
    Url {
        /// The url.
        found: String,
    },
    /// fetchConfig.selector selects every ConfigMap.
    EmptySelector,
    /// A part of fetchConfig.selector is not valid.
    Selector {
        /// The part.
        field: String,
        /// Its value.
        found: Value,
        /// What is wrong, and what would be right.
        detail: String,
    },
    /// A duration cannot be read, or is negative.
    Duration {
        /// The duration's field.
        field: &'static str,
        /// Its value.
        found: DurationValue,
        /// Whether it is negative.
        negative: bool,
    },
    /// Several entries of deployment.containers have one name.
    DuplicateContainer {
        /// The name.
        name: String,
    },
    /// The value of a container's flag is not text, a number, true or false.
    Argument {
        /// The flag.
        field: String,
        /// Its value.
        found: Value,
    },
    /// Properties of the manager were changed while `debug` is set.
    DebugLocked {
        /// The properties.
        changed: Vec<String>,
    },
}

/// A duration that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a duration; write seconds as a number, or text such as 10m30s, up to 2562047h")]
pub struct NotADuration;

impl SpecProblem {
    /// The field, e.g. `spec.version`.
    pub fn field(&self) -> String {
        match self {
            Self::Unreadable { .. } => "spec".to_owned(),
            Self::Version { .. } => "spec.version".to_owned(),
            Self::Name { .. } => "metadata.name".to_owned(),
            Self::UrlAndSelector | Self::NoUrlOrSelector => "spec.fetchConfig".to_owned(),
            Self::Url { .. } => "spec.fetchConfig.url".to_owned(),
            Self::EmptySelector => "spec.fetchConfig.selector".to_owned(),
            Self::Selector { field, .. } | Self::Argument { field, .. } => field.clone(),
            Self::Duration { field, .. } => (*field).to_owned(),
            Self::DuplicateContainer { .. } => "spec.deployment.containers".to_owned(),
            Self::DebugLocked { .. } => "spec.manager".to_owned(),
        }
    }

    /// The value that is wrong, where it is short enough to be repeated.
    pub fn found(&self) -> Option<Value> {
        match self {
            Self::Version { found } | Self::Url { found } => Some(json!(found)),
            Self::Selector { found, .. } | Self::Argument { found, .. } => Some(found.clone()),
            Self::Duration { found, .. } => Some(json!(found)),
            Self::DuplicateContainer { name } => Some(json!(name)),
            Self::Unreadable { .. }
            | Self::Name { .. }
            | Self::UrlAndSelector
            | Self::NoUrlOrSelector
            | Self::EmptySelector
            | Self::DebugLocked { .. } => None,
        }
    }

    /// What is wrong, and what to write instead.
    pub fn detail(&self) -> String {
        match self {
            Self::Unreadable { detail } => format!("cannot be read: {detail}"),
            Self::Version { found } if is_semantic(found) && found.len() <= LONGEST_LABEL => {
                format!("has no leading v; write v{found}")
            }
            Self::Version { .. } => {
                "is not a version; write three numbers after a v, such as v1.2.3".to_owned()
            }
            Self::Name { label, longest } => format!(
                "makes a label that is too long: {}={} may have {LONGEST_LABEL} characters; \
                 choose a name of at most {longest}",
                label::PROVIDER,
                shown(&json!(label))
            ),
            Self::UrlAndSelector => "has both url and selector; remove one of them".to_owned(),
            Self::NoUrlOrSelector => {
                "has neither url nor selector; set one of them, or remove fetchConfig to use the address that \
                 is known for the provider's name"
                    .to_owned()
            }
            Self::Url { .. } => {
                "is not an address of releases; begin with https://, http:// or oci://, followed by a host"
                    .to_owned()
            }
            Self::EmptySelector => {
                "is empty and would select every ConfigMap; name labels in matchLabels or matchExpressions"
                    .to_owned()
            }
            Self::Selector { detail, .. } => detail.clone(),
            Self::Duration { negative: true, .. } => "is negative; write 0 or more".to_owned(),
            Self::Duration { .. } => NotADuration.to_string(),
            Self::DuplicateContainer { .. } => {
                "is the name of several entries; write one entry for each container".to_owned()
            }
            Self::Argument { .. } => "is not the value of a flag; write text, a number, true or false".to_owned(),
            Self::DebugLocked { changed } => format!("{DEBUG_LOCK} (changed: {})", changed.join(", ")),
        }
    }

    /// The reason of the condition that reports it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Version { .. } => reason::INCORRECT_VERSION_FORMAT,
            Self::Name { .. } => reason::INCORRECT_NAME,
            Self::UrlAndSelector
            | Self::NoUrlOrSelector
            | Self::Url { .. }
            | Self::EmptySelector
            | Self::Selector { .. } => reason::FETCH_CONFIG_INVALID,
            Self::Unreadable { .. }
            | Self::Duration { .. }
            | Self::DuplicateContainer { .. }
            | Self::Argument { .. } => reason::COMPONENTS_CUSTOMIZATION,
            Self::DebugLocked { .. } => reason::DEBUG_LOCKED,
        }
    }
}

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, detail) = (self.field(), self.detail());
        match (self, self.found()) {
            (Self::DebugLocked { .. }, _) => write!(f, "{field}: {detail}"),
            (_, Some(found)) => write!(f, "{field}: {}: {detail}", shown(&found)),
            (_, None) => write!(f, "{field} {detail}"),
        }
    }
}

/// Reads the spec of a provider object. An object without one asks for the latest version.
pub fn read_spec(object: &Value) -> Result<ProviderSpec, SpecProblem> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(ProviderSpec::default()),
        Some(spec) => ProviderSpec::deserialize(spec).map_err(|error| SpecProblem::Unreadable {
            detail: cut(&error.to_string(), LONGEST_DETAIL).to_owned(),
        }),
    }
}

/// Everything that is wrong with the spec of a provider of this type and name.
pub fn problems(kind: ProviderType, name: &str, spec: &ProviderSpec) -> Vec<SpecProblem> {
    let mut problems = Vec::new();
    let longest = longest_name(kind);
    if name.len() > longest {
        problems.push(SpecProblem::Name { label: kind.label(name), longest });
    }
    if let Some(found) = spec.version.as_deref().filter(|version| !version.is_empty())
        && !found.strip_prefix('v').is_some_and(is_semantic)
    {
        problems.push(SpecProblem::Version { found: found.to_owned() });
    }
    if let Some(fetch) = &spec.fetch_config {
        problems.extend(fetch_problems(fetch));
    }
    for (field, found) in spec.manager.iter().flat_map(durations) {
        match duration_seconds(found) {
            Ok(0..) => {}
            // As in controller-runtime, a negative one stands for no limit.
            Ok(_) if field == GRACEFUL_SHUT_DOWN => {}
            read => {
                let negative = read.is_ok();
                problems.push(SpecProblem::Duration { field, found: found.clone(), negative });
            }
        }
    }
    let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
    for container in spec.deployment.iter().flat_map(|deployment| &deployment.containers) {
        *entries.entry(&container.name).or_default() += 1;
        problems.extend(argument_problems(container));
    }
    let repeated = entries.into_iter().filter(|(_, count)| *count > 1);
    problems.extend(repeated.map(|(name, _)| SpecProblem::DuplicateContainer { name: name.to_owned() }));
    problems
}

/// What is wrong with the change from one spec to another.
///
/// While `manager.debug` is true and stays true, the rest of the manager may not change. Removing the manager counts as
/// a change of all that it held, because it does not say that debugging is over.
pub fn change_problems(old: &ProviderSpec, new: &ProviderSpec) -> Vec<SpecProblem> {
    let Some(before) = old.manager.as_ref().filter(|manager| manager.debug) else { return Vec::new() };
    let (before, after) = match &new.manager {
        Some(after) if !after.debug => return Vec::new(),
        Some(after) => (properties(before), properties(after)),
        None => (properties(before), Map::new()),
    };
    let mut changed: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    changed.retain(|field| field != "debug" && before.get(field) != after.get(field));
    changed.sort_unstable();
    changed.dedup();
    if changed.is_empty() { Vec::new() } else { vec![SpecProblem::DebugLocked { changed }] }
}

/// What a spec says without effect.
pub fn warnings(spec: &ProviderSpec) -> Vec<String> {
    const IGNORED: &str = "is ignored: every provider watches all namespaces";
    let mut warnings = Vec::new();
    for container in spec.deployment.iter().flat_map(|deployment| &deployment.containers) {
        for flag in container.args.keys().filter(|flag| flag.trim_start_matches('-') == "namespace") {
            warnings.push(format!("{} {IGNORED}", argument(container, flag)));
        }
    }
    let Some(manager) = &spec.manager else { return warnings };
    if manager.cache_namespace.as_deref().is_some_and(|namespace| !namespace.is_empty()) {
        warnings.push(format!("spec.manager.cacheNamespace {IGNORED}"));
    }
    if manager.debug {
        if let Some(verbosity) = manager.verbosity.filter(|it| *it != DEBUG_VERBOSITY) {
            warnings.push(format!(
                "spec.manager.verbosity {verbosity} is overridden: debug sets {DEBUG_VERBOSITY}"
            ));
        }
        if let Some(address) = manager.profiler_address.as_deref().filter(|it| *it != DEBUG_PROFILER_ADDRESS)
        {
            let address = shown(&json!(address));
            warnings.push(format!(
                "spec.manager.profilerAddress {address} is overridden: debug sets {DEBUG_PROFILER_ADDRESS}"
            ));
        }
    }
    warnings
}

/// A duration in whole seconds, rounded as Go rounds: half a second and more counts as one. A number, or text that
/// consists of digits, means seconds; other text is read as Go reads it, e.g. `1h2m3.5s`.
pub fn duration_seconds(value: &DurationValue) -> Result<i64, NotADuration> {
    let nanos = match value {
        DurationValue::Int(seconds) => i128::from(*seconds) * NANOS,
        DurationValue::String(text) => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                i128::from(text.parse::<i64>().map_err(|_| NotADuration)?) * NANOS
            } else {
                nanoseconds(text).ok_or(NotADuration)?
            }
        }
    };
    // Managers, which are written in Go, read nothing that is longer.
    let nanos = i64::try_from(nanos).map_err(|_| NotADuration)?;
    let second = i64::try_from(NANOS).map_err(|_| NotADuration)?;
    let (whole, rest) = (nanos / second, nanos % second);
    Ok(if rest.abs() * 2 >= second { whole + rest.signum() } else { whole })
}

/// How long the name of a provider of this type may be: the value of its label has the type as a prefix.
pub(super) fn longest_name(kind: ProviderType) -> usize {
    LONGEST_LABEL - kind.label("").len()
}

const GRACEFUL_SHUT_DOWN: &str = "spec.manager.gracefulShutDown";

/// The durations that a manager is given, with their fields.
fn durations(manager: &ManagerSpec) -> impl Iterator<Item = (&'static str, &DurationValue)> {
    let election = manager.leader_election.as_ref();
    [
        ("spec.manager.syncPeriod", manager.sync_period.as_ref()),
        (GRACEFUL_SHUT_DOWN, manager.graceful_shut_down.as_ref()),
        ("spec.manager.leaderElection.leaseDuration", election.and_then(|it| it.lease_duration.as_ref())),
        ("spec.manager.leaderElection.renewDeadline", election.and_then(|it| it.renew_deadline.as_ref())),
        ("spec.manager.leaderElection.retryPeriod", election.and_then(|it| it.retry_period.as_ref())),
    ]
    .into_iter()
    .filter_map(|(field, value)| Some((field, value?)))
}

fn fetch_problems(fetch: &FetchConfiguration) -> Vec<SpecProblem> {
    match (fetch.url.as_deref().filter(|url| !url.is_empty()), &fetch.selector) {
        (Some(_), Some(_)) => vec![SpecProblem::UrlAndSelector],
        (None, None) => vec![SpecProblem::NoUrlOrSelector],
        (Some(url), None) if is_address(url) => Vec::new(),
        (Some(url), None) => vec![SpecProblem::Url { found: url.to_owned() }],
        (None, Some(selector)) => selector_problems(selector),
    }
}

/// Whether releases can be fetched from a URL. Whether they are there is another question.
fn is_address(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let known = ["https", "http", "oci"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
    let readable = !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    known && readable && !rest.is_empty() && !rest.starts_with('/')
}

fn selector_problems(selector: &LabelSelector) -> Vec<SpecProblem> {
    const PATH: &str = "spec.fetchConfig.selector";
    let labels = selector.match_labels.iter().flatten();
    let requirements = selector.match_expressions.iter().flatten();
    if labels.clone().next().is_none() && requirements.clone().next().is_none() {
        return vec![SpecProblem::EmptySelector];
    }
    let mut problems = Vec::new();
    let mut check = |field: String, found: &str, judged: Result<(), &str>| {
        if let Err(detail) = judged {
            problems.push(SpecProblem::Selector { field, found: json!(found), detail: detail.to_owned() });
        }
    };
    for (key, value) in labels {
        check(format!("{PATH}.matchLabels"), key, qualified_name(key));
        check(format!("{PATH}.matchLabels[{}]", cut(key, LONGEST_KEY)), value, label_value(value));
    }
    for (index, requirement) in requirements.enumerate() {
        let path = format!("{PATH}.matchExpressions[{index}]");
        let values = requirement.values.as_deref().unwrap_or_default();
        check(format!("{path}.key"), &requirement.key, qualified_name(&requirement.key));
        let operator = match (requirement.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", true) => Err("must have values"),
            ("Exists" | "DoesNotExist", false) => Err("must not have values"),
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => Ok(()),
            _ => Err("must be In, NotIn, Exists or DoesNotExist"),
        };
        check(format!("{path}.operator"), &requirement.operator, operator);
        for value in values {
            check(format!("{path}.values"), value, label_value(value));
        }
    }
    problems
}

fn argument_problems(container: &ContainerSpec) -> impl Iterator<Item = SpecProblem> {
    let is_scalar = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    container
        .args
        .iter()
        .filter(move |(_, value)| !is_scalar(value))
        .map(|(flag, value)| SpecProblem::Argument { field: argument(container, flag), found: value.clone() })
}

/// The path to a flag of a container.
fn argument(container: &ContainerSpec, flag: &str) -> String {
    format!(
        "spec.deployment.containers[{}].args[{}]",
        cut(&container.name, LONGEST_KEY),
        cut(flag, LONGEST_KEY)
    )
}

/// The beginning of a text.
fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

fn is_semantic(version: &str) -> bool {
    semver::Version::parse(version).is_ok()
}

/// The properties of a manager that are set.
fn properties(manager: &ManagerSpec) -> Map<String, Value> {
    match json!(manager) {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(value: Value) -> ProviderSpec {
        serde_json::from_value(value).unwrap()
    }

    fn words(problems: &[SpecProblem]) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wrong_with_a_spec() {
        let manager = |value: Value| json!({ "manager": value });
        let fetch = |value: Value| json!({ "fetchConfig": value });
        let requirement = |value: Value| fetch(json!({"selector": {"matchExpressions": [value]}}));
        let container = |value: Value| json!({"deployment": {"containers": [value]}});
        for (value, reason, expected) in [
            (json!({}), "", &[][..]),
            (json!({"version": ""}), "", &[]),
            (json!({"version": "v1.2.3"}), "", &[]),
            (json!({"version": "v1.2.3-rc.1+build.5"}), "", &[]),
            (
                json!({"version": "1.2.3"}),
                reason::INCORRECT_VERSION_FORMAT,
                &[r#"spec.version: "1.2.3": has no leading v; write v1.2.3"#],
            ),
            (
                json!({"version": "one"}),
                reason::INCORRECT_VERSION_FORMAT,
                &[r#"spec.version: "one": is not a version; write three numbers after a v, such as v1.2.3"#],
            ),
            (
                json!({"version": "v1.2"}),
                reason::INCORRECT_VERSION_FORMAT,
                &[r#"spec.version: "v1.2": is not a version; write three numbers after a v, such as v1.2.3"#],
            ),
            (
                json!({"version": "vv1.2.3"}),
                reason::INCORRECT_VERSION_FORMAT,
                &[
                    r#"spec.version: "vv1.2.3": is not a version; write three numbers after a v, such as v1.2.3"#,
                ],
            ),
            (fetch(json!({"url": "https://github.com/o/r/releases"})), "", &[]),
            (fetch(json!({"url": "HTTP://127.0.0.1:8080"})), "", &[]),
            (fetch(json!({"url": "oci://registry.example.com/capa:v1.0.0"})), "", &[]),
            (
                fetch(json!({})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    "spec.fetchConfig has neither url nor selector; set one of them, or remove fetchConfig to use \
                   the address that is known for the provider's name",
                ],
            ),
            (
                fetch(json!({"url": ""})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    "spec.fetchConfig has neither url nor selector; set one of them, or remove fetchConfig to use \
                   the address that is known for the provider's name",
                ],
            ),
            (
                fetch(json!({"url": "https://h", "selector": {"matchLabels": {"a": "b"}}})),
                reason::FETCH_CONFIG_INVALID,
                &["spec.fetchConfig has both url and selector; remove one of them"],
            ),
            (
                fetch(json!({"url": "github.com/o/r/releases"})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.url: "github.com/o/r/releases": is not an address of releases; begin with https://, http:// or oci://, followed by a host"#,
                ],
            ),
            (
                fetch(json!({"url": "file:///releases"})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.url: "file:///releases": is not an address of releases; begin with https://, http:// or oci://, followed by a host"#,
                ],
            ),
            (
                fetch(json!({"url": "https:///releases"})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.url: "https:///releases": is not an address of releases; begin with https://, http:// or oci://, followed by a host"#,
                ],
            ),
            (
                fetch(json!({"url": "https://a b"})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.url: "https://a b": is not an address of releases; begin with https://, http:// or oci://, followed by a host"#,
                ],
            ),
            (fetch(json!({"selector": {"matchLabels": {"example.com/a": ""}}})), "", &[]),
            (
                fetch(json!({"selector": {"matchLabels": {}, "matchExpressions": []}})),
                reason::FETCH_CONFIG_INVALID,
                &["spec.fetchConfig.selector is empty and would select every ConfigMap; name labels in \
                   matchLabels or matchExpressions"],
            ),
            (
                fetch(json!({"selector": {"matchLabels": {"a b": "c d"}}})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.selector.matchLabels: "a b": must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"#,
                    r#"spec.fetchConfig.selector.matchLabels[a b]: "c d": must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"#,
                ],
            ),
            (requirement(json!({"key": "a", "operator": "In", "values": ["b"]})), "", &[]),
            (requirement(json!({"key": "a", "operator": "DoesNotExist"})), "", &[]),
            (
                requirement(json!({"key": "a", "operator": "Is", "values": ["b"]})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.selector.matchExpressions[0].operator: "Is": must be In, NotIn, Exists or DoesNotExist"#,
                ],
            ),
            (
                requirement(json!({"key": "a", "operator": "NotIn"})),
                reason::FETCH_CONFIG_INVALID,
                &[r#"spec.fetchConfig.selector.matchExpressions[0].operator: "NotIn": must have values"#],
            ),
            (
                requirement(json!({"key": "/", "operator": "Exists", "values": [" "]})),
                reason::FETCH_CONFIG_INVALID,
                &[
                    r#"spec.fetchConfig.selector.matchExpressions[0].key: "/": the part before '/' must be a DNS subdomain of at most 253 characters"#,
                    r#"spec.fetchConfig.selector.matchExpressions[0].operator: "Exists": must not have values"#,
                    r#"spec.fetchConfig.selector.matchExpressions[0].values: " ": must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"#,
                ],
            ),
            (manager(json!({"syncPeriod": 660, "gracefulShutDown": "-1s"})), "", &[]),
            (
                manager(json!({"syncPeriod": "soon", "gracefulShutDown": "never"})),
                reason::COMPONENTS_CUSTOMIZATION,
                &[
                    r#"spec.manager.syncPeriod: "soon": is not a duration; write seconds as a number, or text such as 10m30s, up to 2562047h"#,
                    r#"spec.manager.gracefulShutDown: "never": is not a duration; write seconds as a number, or text such as 10m30s, up to 2562047h"#,
                ],
            ),
            (
                manager(
                    json!({"leaderElection": {"leaseDuration": -15, "renewDeadline": "-1m", "retryPeriod": ""}}),
                ),
                reason::COMPONENTS_CUSTOMIZATION,
                &[
                    "spec.manager.leaderElection.leaseDuration: -15: is negative; write 0 or more",
                    r#"spec.manager.leaderElection.renewDeadline: "-1m": is negative; write 0 or more"#,
                    r#"spec.manager.leaderElection.retryPeriod: "": is not a duration; write seconds as a number, or text such as 10m30s, up to 2562047h"#,
                ],
            ),
            (container(json!({"name": "manager", "args": {"a": "b", "c": 1, "d": true, "e": 0.5}})), "", &[]),
            (
                container(json!({"name": "manager", "args": {"a": null, "b": [1], "--c": {"d": "e"}}})),
                reason::COMPONENTS_CUSTOMIZATION,
                &[
                    "spec.deployment.containers[manager].args[--c]: an object: is not the value of a flag; write text, a number, true or false",
                    "spec.deployment.containers[manager].args[a]: null: is not the value of a flag; write text, a number, true or false",
                    "spec.deployment.containers[manager].args[b]: a list: is not the value of a flag; write text, a number, true or false",
                ],
            ),
            (
                json!({"deployment": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": "a"}]}}),
                reason::COMPONENTS_CUSTOMIZATION,
                &[
                    r#"spec.deployment.containers: "a": is the name of several entries; write one entry for each container"#,
                ],
            ),
        ] {
            let found = problems(ProviderType::Infrastructure, "aws", &spec(value.clone()));
            assert_eq!(words(&found), expected, "{value}");
            for problem in found {
                assert_eq!(problem.reason(), reason, "{problem}");
            }
        }
    }

    #[test]
    fn names_make_labels() {
        let (fits, too_long) = ("n".repeat(48), "n".repeat(49));
        assert_eq!(problems(ProviderType::Infrastructure, &fits, &ProviderSpec::default()), []);
        assert_eq!(problems(ProviderType::Core, &too_long, &ProviderSpec::default()), []);
        let found = problems(ProviderType::Infrastructure, &too_long, &ProviderSpec::default());
        assert_eq!(
            words(&found),
            [format!(
                "metadata.name makes a label that is too long: cluster.x-k8s.io/provider=\"infrastructure-{too_long}\" \
                 may have 63 characters; choose a name of at most 48"
            )]
        );
        assert_eq!(found[0].reason(), reason::INCORRECT_NAME);
    }

    #[test]
    fn what_cannot_be_read() {
        let container =
            |image: Value| json!({"spec": {"deployment": {"containers": [{"name": "a", "image": image}]}}});
        for (object, expected) in [
            (json!({}), Ok(())),
            (json!({"spec": null}), Ok(())),
            (container(json!("a:b")), Ok(())),
            (container(json!({"tag": "b"})), Ok(())),
            (container(json!({})), Ok(())),
            (container(json!(null)), Ok(())),
            (
                container(json!(1)),
                Err(
                    "spec cannot be read: a container's image must be text, or an object with repository, name or tag",
                ),
            ),
            (
                container(json!({"repo": "b"})),
                Err(
                    "spec cannot be read: a container's image has an unknown field `repo`, expected one of `repository`, `name`, `tag`",
                ),
            ),
            (
                container(json!({"tag": 1})),
                Err(
                    "spec cannot be read: a container's image has an invalid type: integer `1`, expected a string",
                ),
            ),
            (
                json!({"spec": {"paused": "yes"}}),
                Err("spec cannot be read: invalid type: string \"yes\", expected a boolean"),
            ),
        ] {
            let read = read_spec(&object).map(drop).map_err(|problem| problem.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{object}");
        }
        let long = read_spec(&json!({"spec": {"paused": "ä".repeat(100_000)}})).unwrap_err().to_string();
        assert_eq!(long.chars().count(), "spec cannot be read: ".len() + LONGEST_DETAIL);
    }

    #[test]
    fn debug_locks_the_manager() {
        let manager = |value: Value| json!({ "manager": value });
        for (old, new, changed) in [
            (manager(json!({"debug": true})), manager(json!({"debug": true})), None),
            (
                manager(json!({"debug": true})),
                manager(json!({"debug": true, "verbosity": 2})),
                Some("verbosity"),
            ),
            (
                manager(json!({"debug": true, "verbosity": 2, "syncPeriod": 5})),
                manager(json!({"debug": true, "verbosity": 3, "featureGates": {"A": true}})),
                Some("featureGates, syncPeriod, verbosity"),
            ),
            // Debugging begins, or is over.
            (manager(json!({"verbosity": 2})), manager(json!({"debug": true, "verbosity": 3})), None),
            (manager(json!({"debug": true})), manager(json!({"debug": false, "verbosity": 3})), None),
            (manager(json!({"debug": true, "verbosity": 2})), manager(json!({})), None),
            (manager(json!({"verbosity": 2})), manager(json!({"verbosity": 3})), None),
            // A manager that is removed.
            (manager(json!({"debug": true})), json!({}), None),
            (manager(json!({"debug": true, "verbosity": 2})), json!({}), Some("verbosity")),
            // Everything else may change.
            (manager(json!({"debug": true})), json!({"manager": {"debug": true}, "version": "v1.0.0"}), None),
        ] {
            let found = change_problems(&spec(old.clone()), &spec(new.clone()));
            let expected = changed.map(|changed| {
                format!(
                    "spec.manager: manager.debug is true and locks the other properties of the manager; set debug to \
                     false, then change them (changed: {changed})"
                )
            });
            assert_eq!(words(&found), Vec::from_iter(expected), "{old} -> {new}");
            assert!(found.iter().all(|it| it.reason() == reason::DEBUG_LOCKED));
        }
    }

    #[test]
    fn what_has_no_effect() {
        let manager = |value: Value| json!({ "manager": value });
        for (value, expected) in [
            (json!({}), &[][..]),
            (manager(json!({"debug": true})), &[]),
            (manager(json!({"verbosity": 2, "profilerAddress": ":1"})), &[]),
            (manager(json!({"debug": true, "verbosity": 5, "profilerAddress": "localhost:6060"})), &[]),
            (
                manager(json!({"debug": true, "verbosity": 2, "profilerAddress": ":1"})),
                &[
                    "spec.manager.verbosity 2 is overridden: debug sets 5",
                    r#"spec.manager.profilerAddress ":1" is overridden: debug sets localhost:6060"#,
                ],
            ),
            (manager(json!({"cacheNamespace": ""})), &[]),
            (
                json!({
                    "manager": {"cacheNamespace": "a"},
                    "deployment": {"containers": [
                        {"name": "manager", "args": {"--namespace": "x", "namespace": "y", "namespaces": "z"}},
                    ]},
                }),
                &[
                    "spec.deployment.containers[manager].args[--namespace] is ignored: every provider watches all namespaces",
                    "spec.deployment.containers[manager].args[namespace] is ignored: every provider watches all namespaces",
                    "spec.manager.cacheNamespace is ignored: every provider watches all namespaces",
                ],
            ),
        ] {
            assert_eq!(warnings(&spec(value.clone())), expected, "{value}");
        }
    }

    #[test]
    fn durations_are_whole_seconds() {
        let seconds = |value: Value| duration_seconds(&serde_json::from_value(value).unwrap()).ok();
        for (value, expected) in [
            (json!(660), Some(660)),
            (json!(-1), Some(-1)),
            (json!("660"), Some(660)),
            (json!("+5"), Some(5)),
            (json!("-5"), Some(-5)),
            (json!("0"), Some(0)),
            (json!("660s"), Some(660)),
            (json!("1h2m3.5s"), Some(3724)),
            (json!("499ms"), Some(0)),
            (json!("500ms"), Some(1)),
            (json!("-500ms"), Some(-1)),
            (json!("1.4999s"), Some(1)),
            (json!("9223372036"), Some(9_223_372_036)),
            (json!("9223372037"), None),
            (json!("99999999999999999999"), None),
            (json!("2562048h"), None),
            (json!(""), None),
            (json!("-"), None),
            (json!("5 s"), None),
            (json!("soon"), None),
            (json!("1e3"), None),
        ] {
            assert_eq!(seconds(value.clone()), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn seconds_are_read_as_they_are_written(seconds in 0..i32::MAX) {
            for text in [format!("{seconds}"), format!("{seconds}s"), format!("{}m{}s", seconds / 60, seconds % 60)] {
                prop_assert_eq!(duration_seconds(&DurationValue::String(text)), Ok(i64::from(seconds)));
            }
            prop_assert_eq!(duration_seconds(&DurationValue::Int(seconds)), Ok(i64::from(seconds)));
        }

        #[test]
        fn any_text_is_a_duration_or_not(text in "[-+]?[0-9]{0,21}[.]?[0-9]{0,3}(ns|us|µs|ms|s|m|h|)") {
            let _ = duration_seconds(&DurationValue::String(text));
        }
    }
}
