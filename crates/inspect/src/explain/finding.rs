//! What is found, for people and for programs.

use capstan_api::conditions::Report;
use jiff::Timestamp;
use serde::Serialize;

use super::controllers::Controller;
use capstan_management::ObjectRef;

/// A way to be stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// `spec.paused` stops the controllers.
    Paused,
    /// An annotation stops the controllers of one object.
    PausedByAnnotation,
    /// No controller has looked at the Cluster.
    NotObserved,
    /// The provider is installed, but has no Deployment.
    ControllerMissing,
    /// The controller's Deployment is to have no replicas.
    ControllerScaledToZero,
    /// The controller's Deployment has no replica that is available.
    ControllerNotAvailable,
    /// The controller's replicas run, but none of them leads.
    ControllerWithoutLeader,
    /// The provider that a kind belongs to is not there.
    ProviderNotInstalled,
    /// Nobody answers a webhook that the API server must ask before a write.
    WebhookUnreachable,
    /// Nobody answers the webhook that converts the objects of a kind.
    ConversionWebhookUnreachable,
    /// The ClusterClass of a topology does not exist.
    ClusterClassMissing,
    /// The topology controller has not made the Cluster what its ClusterClass says.
    TopologyNotReconciled,
    /// The kind of a reference has no CustomResourceDefinition.
    KindNotInstalled,
    /// The CustomResourceDefinition of a kind names no contract that core understands.
    NoContract,
    /// The contract labels of the CustomResourceDefinition name only versions that it does not serve.
    VersionNotServed,
    /// The kind of a reference is cluster-scoped, but the contract asks for a namespaced one.
    ClusterScoped,
    /// A reference names an object that does not exist.
    ObjectMissing,
    /// An object that the Cluster stands on is being deleted.
    ObjectDeleting,
    /// An object cannot be read.
    Unreadable,
    /// A provider says that it has given up.
    TerminalFailure,
    /// Infrastructure is managed by somebody else, who does not say that it is done.
    ExternallyManaged,
    /// Infrastructure is not provisioned, or not ready.
    InfrastructureNotReady,
    /// Nobody says where the control plane is to be reached.
    EndpointMissing,
    /// The Cluster names no control plane.
    ControlPlaneRefMissing,
    /// The control plane does not accept requests yet.
    ControlPlaneNotInitialized,
    /// The control plane was initialized, but is not available.
    ControlPlaneNotAvailable,
    /// There is no kubeconfig to reach the workload cluster by.
    KubeconfigMissing,
    /// The workload cluster cannot be reached.
    ConnectionLost,
    /// Machines are to be newer than their control plane.
    VersionSkew,
    /// Bootstrap data has not been made.
    BootstrapNotReady,
    /// Bootstrap data was to be in a Secret that does not exist.
    BootstrapDataMissing,
    /// A machine runs, but no Node has joined.
    MachineWithoutNode,
    /// A Machine has failed for good.
    MachineFailed,
    /// A Machine is not ready for another reason.
    MachineNotReady,
    /// Workers are not available for another reason.
    WorkersNotAvailable,
    /// An object is deleted once somebody removes a finalizer.
    DeletionHeldByFinalizer,
    /// A Machine is deleted once somebody removes a hook.
    DeletionHeldByHook,
    /// The Cluster is deleted once its descendants are gone.
    DeletionWaitsForDescendants,
    /// A condition of the Cluster says so, and nothing else is known.
    Condition,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// It shows more.
    Look,
    /// It changes something, so that things go on.
    GoOn,
}

/// A command that can be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// What it is for.
    pub purpose: Purpose,
    /// The command.
    pub command: String,
}

/// A condition as the object reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionSeen {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, as one word.
    pub reason: String,
    /// Why, for a person; may be empty.
    pub message: String,
}

impl From<&Report> for ConditionSeen {
    fn from(report: &Report) -> Self {
        Self {
            type_: report.type_.clone(),
            status: report.status.as_str().to_owned(),
            reason: report.reason.clone(),
            message: report.message.clone(),
        }
    }
}

/// One thing that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub problem: Problem,
    /// The object that is stuck.
    pub object: ObjectRef,
    /// The same in a sentence.
    pub sentence: String,
    /// What the object itself says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionSeen>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Who is to act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// What to do.
    pub commands: Vec<Command>,
}

impl Finding {
    pub(crate) fn new(problem: Problem, object: ObjectRef, sentence: impl Into<String>) -> Self {
        Self {
            problem,
            object,
            sentence: sentence.into(),
            condition: None,
            since: None,
            controller: None,
            commands: Vec::new(),
        }
    }

    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since.or(self.since);
        self
    }

    /// With what the object says, and since when it does.
    pub(crate) fn saying(mut self, report: Option<&Report>) -> Self {
        if let Some(report) = report {
            self.condition = Some(report.into());
            self.since = report.since.or(self.since);
        }
        self
    }

    pub(crate) fn by(mut self, controller: Controller) -> Self {
        self.controller = Some(controller);
        self
    }

    pub(crate) fn look(self, command: impl Into<String>) -> Self {
        self.with(Purpose::Look, command.into())
    }

    pub(crate) fn look_if(self, command: Option<String>) -> Self {
        match command {
            Some(command) => self.look(command),
            None => self,
        }
    }

    pub(crate) fn go_on(self, command: impl Into<String>) -> Self {
        self.with(Purpose::GoOn, command.into())
    }

    fn with(mut self, purpose: Purpose, command: String) -> Self {
        self.commands.push(Command { purpose, command });
        self
    }
}

/// How a Cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It says that it is available.
    Available,
    /// It says that it is not.
    NotAvailable,
    /// Nobody knows.
    Unknown,
    /// It is on its way out.
    Deleting,
}

/// Why a Cluster is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The Cluster.
    pub cluster: ObjectRef,
    /// How it is.
    pub state: State,
    /// Since when, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its phase, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// All of it in one sentence.
    pub summary: String,
    /// What is in the way; all others depend on the first.
    pub findings: Vec<Finding>,
    /// What could not be read, so that it is not part of the explanation.
    pub unreadable: Vec<String>,
}
