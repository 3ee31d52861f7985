//! Findings, for people and for programs.

use capstan_api::conditions::Report;
use jiff::Timestamp;
use serde::Serialize;

use super::controllers::Controller;
use capstan_management::ObjectRef;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainProblem {
    /// `spec.paused` stops the controllers.
    Paused,
    /// An annotation stops the controllers of one object.
    PausedByAnnotation,
    /// No controller has reported on the Cluster.
    NotObserved,
    /// The provider is installed, but has no Deployment.
    ControllerMissing,
    /// The controller's Deployment is scaled to zero.
    ControllerScaledToZero,
    /// The controller's Deployment has no replica that is available.
    ControllerNotAvailable,
    /// The controller's replicas run, but none of them leads.
    ControllerWithoutLeader,
    /// The provider that a kind belongs to is not installed.
    ProviderNotInstalled,
    /// A webhook that the API server must call before a write does not answer.
    WebhookUnreachable,
    /// The conversion webhook of a kind does not answer.
    ConversionWebhookUnreachable,
    /// The ClusterClass of a topology does not exist.
    ClusterClassMissing,
    /// The topology controller has not created the Cluster's objects from its ClusterClass.
    TopologyNotReconciled,
    /// The kind of a reference has no CRD.
    KindNotInstalled,
    /// The CRD of a kind has no contract label that core understands.
    NoContract,
    /// The contract labels of a CRD name only versions that it does not serve.
    VersionNotServed,
    /// The kind of a reference is cluster-scoped, but the contract asks for a namespaced one.
    ClusterScoped,
    /// A reference names an object that does not exist.
    ObjectMissing,
    /// An object that the Cluster needs is being deleted.
    ObjectDeleting,
    /// An object cannot be read.
    Unreadable,
    /// A provider reports a terminal failure.
    TerminalFailure,
    /// Infrastructure is managed externally and not reported as done.
    ExternallyManaged,
    /// Infrastructure is not provisioned, or not ready.
    InfrastructureNotReady,
    /// The control plane has no endpoint.
    EndpointMissing,
    /// The Cluster names no control plane.
    ControlPlaneRefMissing,
    /// The control plane does not accept requests yet.
    ControlPlaneNotInitialized,
    /// The control plane was initialized, but is not available.
    ControlPlaneNotAvailable,
    /// The Secret with the kubeconfig of the workload cluster does not exist.
    KubeconfigMissing,
    /// The workload cluster cannot be reached.
    ConnectionLost,
    /// Workers ask for a newer version than their control plane has.
    VersionSkew,
    /// Bootstrap data has not been created.
    BootstrapNotReady,
    /// The Secret of the bootstrap data does not exist.
    BootstrapDataMissing,
    /// A machine runs, but no Node has joined.
    MachineWithoutNode,
    /// A Machine has failed.
    MachineFailed,
    /// A Machine is not ready for another reason.
    MachineNotReady,
    /// Workers are not available for another reason.
    WorkersNotAvailable,
    /// A finalizer holds an object that is being deleted.
    DeletionHeldByFinalizer,
    /// A hook holds a Machine that is being deleted.
    DeletionHeldByHook,
    /// The Cluster is deleted after its descendants.
    DeletionWaitsForDescendants,
    /// A condition of the Cluster that nothing else explains.
    Condition,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandPurpose {
    /// It shows more.
    Look,
    /// It changes something, so that things go on.
    GoOn,
}

/// A command that can be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingCommand {
    /// Its purpose.
    pub purpose: CommandPurpose,
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

/// Something that keeps a Cluster from being available or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of finding.
    pub problem: ExplainProblem,
    /// The object concerned.
    pub object: ObjectRef,
    /// The finding in a sentence.
    pub sentence: String,
    /// The condition that the object reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionSeen>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The controller that acts on the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// Commands to copy.
    pub commands: Vec<FindingCommand>,
}

/// The state of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// It reports that it is available.
    Available,
    /// It reports that it is not.
    NotAvailable,
    /// It does not report it.
    Unknown,
    /// It is being deleted.
    Deleting,
}

/// The explanation of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The Cluster.
    pub cluster: ObjectRef,
    /// Its state.
    pub state: ClusterState,
    /// Since when, if it reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Its phase, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The explanation in one sentence.
    pub summary: String,
    /// The findings; the others depend on the first.
    pub findings: Vec<Finding>,
    /// What could not be read, so that it is not part of the explanation.
    pub unreadable: Vec<String>,
}
