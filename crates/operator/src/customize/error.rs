//! Why a release cannot be changed as its provider's spec asks.

use std::fmt;

use capstan_manifest::images::ReferenceError;

/// Why a release cannot be changed as its provider's spec asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomizeError {
    /// No Deployment is the one that the spec is for.
    #[error("{}", no_deployment(deployments))]
    NoManagerDeployment {
        /// The Deployments of the release, as `namespace/name`.
        deployments: Vec<String>,
    },
    /// The spec names containers that no Deployment has.
    #[error("{}", unknown_containers(containers, deployments))]
    UnknownContainers {
        /// The containers that do not exist, sorted.
        containers: Vec<String>,
        /// The containers that exist.
        deployments: Vec<DeploymentContainers>,
    },
    /// The spec has two entries for one container.
    #[error(
        "spec.deployment.containers has several entries for container {container:?}: merge them into one"
    )]
    DuplicateContainer {
        /// The name of the container.
        container: String,
    },
    /// An arg is no flag.
    #[error("spec.deployment.containers[{container}].args: {key:?} {problem}")]
    Arg {
        /// The name of the container.
        container: String,
        /// The key of the arg.
        key: String,
        /// What is wrong with it.
        problem: ArgProblem,
    },
    /// An environment variable has no name.
    #[error("spec.deployment.containers[{container}].env[{index}]: expected an object with a name")]
    Env {
        /// The name of the container.
        container: String,
        /// The place of the entry, from 0.
        index: usize,
    },
    /// An image, or a part of one, cannot be used.
    #[error("spec.deployment.containers[{container}].{field}: {text:?} cannot be used: {reason}")]
    Image {
        /// The name of the container.
        container: String,
        /// `image`, or the part: `image.tag`.
        field: &'static str,
        /// The text of the field.
        text: String,
        /// What is wrong with it.
        reason: ReferenceError,
    },
    /// A part of an image holds more than that part.
    #[error(
        "spec.deployment.containers[{container}].{field}: {text:?} is more than that part of an image: \
         write a part in each of repository, name and tag, or the whole image as text"
    )]
    ImagePart {
        /// The name of the container.
        container: String,
        /// The part: `image.name` or `image.tag`.
        field: &'static str,
        /// The text of the field.
        text: String,
    },
    /// Parts of the release's image are to be replaced, but it cannot be taken apart.
    #[error(
        "cannot replace parts of image {image:?} of container {container:?} in Deployment {deployment}: {reason}; \
         set spec.deployment.containers[{container}].image to the whole image"
    )]
    ReleaseImage {
        /// The Deployment, as `namespace/name`.
        deployment: String,
        /// The name of the container.
        container: String,
        /// The image in the release.
        image: String,
        /// Why it cannot be taken apart.
        reason: ReferenceError,
    },
    /// A duration cannot be read.
    #[error("{field}: {reason}")]
    Duration {
        /// The field, such as `spec.manager.syncPeriod`.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A Deployment of the release is not what an API server would accept.
    #[error("Deployment {deployment} of the release has no usable {field}: correct the release's components")]
    Malformed {
        /// The Deployment, as `namespace/name`.
        deployment: String,
        /// The field that is missing or has another type.
        field: &'static str,
    },
    /// Several of the above.
    #[error("{}", join(.0, "; "))]
    Several(Vec<CustomizeError>),
}

/// What is wrong with an arg.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgProblem {
    /// The key is no name of a flag.
    #[error("is not the name of a flag: write it like sync-period, and its value after the colon")]
    Name,
    /// The value is neither text, number nor boolean.
    #[error("must be text, a number or a boolean")]
    Value,
    /// Another key sets the same flag to another value.
    #[error("sets the same flag as {other:?}: remove one of them")]
    Conflict {
        /// The other key.
        other: String,
    },
}

/// The containers that a Deployment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentContainers {
    /// The Deployment, as `namespace/name`.
    pub deployment: String,
    /// The names of its containers, then those of its init containers.
    pub containers: Vec<String>,
}

impl CustomizeError {
    /// All problems as one error; no problem is no error.
    pub(super) fn from_all(mut problems: Vec<Self>) -> Result<(), Self> {
        match problems.pop() {
            None => Ok(()),
            Some(only) if problems.is_empty() => Err(only),
            Some(last) => {
                problems.push(last);
                Err(Self::Several(problems))
            }
        }
    }
}

fn no_deployment(deployments: &[String]) -> String {
    if deployments.is_empty() {
        return "the release has no Deployment: remove spec.deployment and spec.manager".to_owned();
    }
    format!(
        "none of the Deployments {} is named ca…-controller-manager or has a container named \"manager\": \
         remove spec.deployment and spec.manager",
        enumerate(deployments)
    )
}

fn unknown_containers(containers: &[String], deployments: &[DeploymentContainers]) -> String {
    let has = |it: &DeploymentContainers| match it.containers.as_slice() {
        [] => format!("Deployment {} has no containers", it.deployment),
        names => format!("Deployment {} has {}", it.deployment, enumerate(&quoted(names))),
    };
    let existing: Vec<String> = deployments.iter().map(has).collect();
    let noun = if containers.len() == 1 { "container" } else { "containers" };
    let unknown = enumerate(&quoted(containers));
    format!("spec.deployment.containers: no {noun} named {unknown}; {}", join(&existing, ", "))
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{name:?}")).collect()
}

/// `a`, `a and b`, `a, b and c`.
fn enumerate(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", join(first, ", ")),
    }
}

fn join(items: &[impl fmt::Display], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}
