//! The contract checked on a running provider: a fake core plays the other side, in a namespace of its own.
//!
//! Every scenario creates one Cluster and one InfraCluster, does what core does, and records every state of the
//! InfraCluster ([`history`]). Judgements ([`judge`]) are pure functions over these recordings.

mod cleanup;
mod history;
mod judge;
mod kinds;
mod recorder;
pub mod rules;
mod run;
mod scenarios;
mod stage;

use std::{fmt, sync::Arc, time::Duration};

use capstan_api::contract::NoCompatibleContract;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::report::Report;

/// What is put to the test.
#[derive(Clone, Debug)]
pub struct Target {
    /// The kind of the InfraCluster, e.g. `FooCluster`.
    pub kind: String,
    /// Its API group; that of the document of this kind unless given.
    pub group: Option<String>,
    /// Its API version; the one that core picks unless given.
    pub version: Option<String>,
    /// The user's manifest: one document of the kind, and what it needs, e.g. Secrets with credentials.
    pub documents: Vec<Value>,
}

/// Who plays core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Core {
    /// We do, and no core manager is running. Clusters refer to their InfraClusters.
    #[default]
    Fake,
    /// We do, beside a core manager that is running: Clusters refer to something that does not exist, so that it
    /// leaves the InfraClusters alone. Providers that find their object by the reference are woken by an annotation.
    Beside,
    /// The core manager that is running does. What needs a core that misbehaves is not checked.
    Real,
}

/// Restarts the provider, and returns once it has been asked to start again.
pub type Restart = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// How the test is made.
#[derive(Clone)]
pub struct Options {
    /// Who plays core.
    pub core: Core,
    /// The namespace to play in; a fresh one unless given. One that does not exist is created, and deleted afterwards.
    pub namespace: Option<String>,
    /// How long the provider may take for one step, e.g. to provision or to delete.
    pub timeout: Duration,
    /// How long nothing must happen where nothing is to happen.
    pub quiet_time: Duration,
    /// Only these rules are checked; all of them if there are none.
    pub only: Vec<String>,
    /// How to restart the provider.
    pub restart: Option<Restart>,
    /// Scenarios that are played at the same time.
    pub concurrency: usize,
    /// Ends the run early; what was created is removed before [`check`] returns.
    pub stop: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            core: Core::default(),
            namespace: None,
            timeout: Duration::from_secs(30),
            quiet_time: Duration::from_secs(3),
            only: Vec::new(),
            restart: None,
            concurrency: 8,
            stop: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("core", &self.core)
            .field("namespace", &self.namespace)
            .field("timeout", &self.timeout)
            .field("quiet_time", &self.quiet_time)
            .field("only", &self.only)
            .field("restart", &self.restart.is_some())
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// Why a provider could not be put to the test.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The manifest does not have what it is about.
    #[error("the manifest has {count} documents of kind {kind}, but one is needed")]
    Documents {
        /// The kind.
        kind: String,
        /// How many there are.
        count: usize,
    },
    /// A document is no object.
    #[error("document {number} of the manifest has no {field}")]
    Document {
        /// Which one, from 1.
        number: usize,
        /// What is missing.
        field: &'static str,
    },
    /// A rule was asked for that does not exist.
    #[error("there is no rule {id}: the rules are {}", known_rules())]
    UnknownRule {
        /// The name that was given.
        id: String,
    },
    /// The kind is not installed under the name that core looks for.
    #[error("there is no CustomResourceDefinition {name}: install the provider first, or name another group")]
    NoCrd {
        /// The name that core looks for.
        name: String,
    },
    /// The CRD has no contract label.
    #[error(transparent)]
    Contract(#[from] NoCompatibleContract),
    /// The version that was given belongs to no contract.
    #[error("no contract label of CustomResourceDefinition {crd} names version {version}")]
    Version {
        /// The CRD.
        crd: String,
        /// The version that was given.
        version: String,
    },
    /// The Cluster kind is not installed.
    #[error(
        "kind Cluster of group cluster.x-k8s.io is served neither as v1beta2 nor as v1beta1: install its CRD first"
    )]
    NoClusters,
    /// The InfraClusters cannot be watched.
    #[error("cannot watch {kind}: {why}")]
    Watch {
        /// The kind.
        kind: String,
        /// What the server said.
        why: String,
    },
    /// The server refused or failed.
    #[error("cannot {doing}")]
    Api {
        /// What was being done.
        doing: String,
        /// What the server said.
        source: Box<kube::Error>,
    },
    /// The run was ended early.
    #[error("the run was stopped; what it had created is removed")]
    Stopped,
}

fn known_rules() -> String {
    rules::ALL.iter().map(|rule| rule.id).collect::<Vec<_>>().join(", ")
}

/// Puts a running provider to the test.
pub async fn check(
    client: Client,
    target: Target,
    options: Options,
    progress: impl Fn(&str) + Sync,
) -> Result<Report, Error> {
    Box::pin(run::run(client, target, options, &progress)).await
}
