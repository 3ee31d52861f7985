//! What a provider is.

// The comments are what `kubectl explain` prints, as it is.
#![allow(clippy::doc_markdown)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;

/// What a provider is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ProviderStatus {
    /// contract of Cluster API that the installed version implements, e.g. v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// installedVersion is the version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
    /// conditions of the provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// observedGeneration is the generation that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// The types of a provider's conditions.
pub mod condition {
    /// Whether the provider may be installed or upgraded.
    pub const PREFLIGHT: &str = "PreflightCheckPassed";
    /// Whether the provider is installed as its spec says.
    pub const INSTALLED: &str = "ProviderInstalled";
    /// Whether the last upgrade succeeded.
    pub const UPGRADED: &str = "ProviderUpgraded";
    /// Whether all Deployments of the provider are available and nothing is wrong.
    pub const READY: &str = "Ready";
    /// Whether the provider is paused.
    pub const PAUSED: &str = "Paused";
    /// Whether installed objects differ from the release.
    pub const DRIFTED: &str = "Drifted";
    /// Whether the provider cannot be deleted because it is used.
    pub const DELETION_BLOCKED: &str = "DeletionBlocked";
}

/// The reasons of a provider's conditions. Those of upstream's operator are spelled as there.
pub mod reason {
    /// Every preflight check passed.
    pub const PREFLIGHT_CHECKS_PASSED: &str = "PreflightChecksPassed";
    /// The object cannot be read.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The version is not `vX.Y.Z`.
    pub const INCORRECT_VERSION_FORMAT: &str = "IncorrectVersionFormat";
    /// The name makes a label that is too long.
    pub const INCORRECT_NAME: &str = "IncorrectProviderName";
    /// An older minor or major version is asked for.
    pub const UNSUPPORTED_DOWNGRADE: &str = "UnsupportedProviderDowngradeReason";
    /// fetchConfig, or its absence, does not say where releases are.
    pub const FETCH_CONFIG_INVALID: &str = "FetchConfigValidationError";
    /// Another object asks for the same provider.
    pub const MORE_THAN_ONE_EXISTS: &str = "MoreThanOneExists";
    /// The core provider is not ready yet.
    pub const WAITING_FOR_CORE: &str = "WaitingForCoreProviderReady";
    /// The provider does not implement a contract that core accepts.
    pub const CONTRACT_MISMATCH: &str = "CAPIVersionIncompatibility";
    /// A contract upgrade waits for providers to be paused.
    pub const WAITING_FOR_PAUSE: &str = "WaitingForProvidersToBePaused";
    /// An unpause waits for providers on another contract than core.
    pub const WAITING_FOR_CONTRACT: &str = "WaitingForProvidersToBeUpgraded";
    /// The manager's properties changed while debug is set.
    pub const DEBUG_LOCKED: &str = "ManagerLockedByDebug";
    /// The release or its variables cannot be had.
    pub const COMPONENTS_FETCH: &str = "ComponentsFetchError";
    /// The components cannot be changed as the spec asks.
    pub const COMPONENTS_CUSTOMIZATION: &str = "ComponentsCustomizationError";
    /// The components could not be upgraded.
    pub const COMPONENTS_UPGRADE: &str = "ComponentsUpgradeError";
    /// The components could not be deleted.
    pub const COMPONENTS_DELETION: &str = "OldComponentsDeletionError";
    /// The components could not be applied.
    pub const INSTALL_FAILED: &str = "InstallFailed";
    /// The operator lacks rights that the components need.
    pub const FORBIDDEN: &str = "OperatorForbidden";
    /// The components are installed.
    pub const INSTALLED: &str = "ProviderInstalled";
    /// The components are upgraded.
    pub const UPGRADED: &str = "ProviderUpgraded";
    /// Installation or upgrade is under way.
    pub const IN_PROGRESS: &str = "InProgress";
    /// All Deployments are available.
    pub const AVAILABLE: &str = "DeploymentAvailable";
    /// A Deployment is not available.
    pub const NOT_AVAILABLE: &str = "NoDeploymentAvailableConditionReason";
    /// The provider is paused.
    pub const PAUSED: &str = "Paused";
    /// The provider is not paused.
    pub const NOT_PAUSED: &str = "NotPaused";
    /// The provider is being deleted.
    pub const DELETING: &str = "Deleting";
    /// Objects were changed by others.
    pub const DRIFTED: &str = "ObjectsChanged";
    /// Nothing was changed by others.
    pub const NO_DRIFT: &str = "NoDrift";
    /// Clusters or other providers use the provider.
    pub const IN_USE: &str = "ProviderInUse";
}
