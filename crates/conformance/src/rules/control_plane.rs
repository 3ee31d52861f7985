//! Rules for a ControlPlane.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::Rule;

/// Seen in files.
pub const CONTROL_PLANE_IN_FILES: &[&Rule] = &[&CP1, &CP3, &CP4, &CP5, &CP6, &CP13];

/// Seen only in a running provider.
pub const CONTROL_PLANE_RUNNING: &[&Rule] = &[&CP2, &CP7, &CP8, &CP9, &CP10, &CP11, &CP12, &CP14];

/// Completion.
pub static CP1: Rule = rule(
    "CP1",
    Must,
    All,
    "a ControlPlane reports that it takes requests: status.initialization.controlPlaneInitialized \
     (v1beta1: status.initialized)",
    "the field is a boolean in the schema of the version that core picks",
    "never sees the control plane as initialized: no worker joins",
    paragraph!("control-plane", "controlplane-initialization-completed"),
);
/// Kubeconfig.
pub static CP2: Rule = rule(
    "CP2",
    Must,
    All,
    "the provider keeps a valid kubeconfig in Secret <cluster>-kubeconfig, typed, labelled and keyed as agreed",
    "the Secret of a running provider is read and used",
    "cannot connect to the workload cluster",
    paragraph!("control-plane", "cluster-kubeconfig-management"),
);
/// Endpoint.
pub static CP3: Rule = rule(
    "CP3",
    Must,
    All,
    "a provider that makes the control plane endpoint reports it in spec.controlPlaneEndpoint",
    "where the schema has the field, it is an object with host (a string) and port (an integer)",
    "cannot copy the endpoint to the Cluster",
    paragraph!("control-plane", "controlplane-endpoint"),
);
/// Replicas.
pub static CP4: Rule = rule(
    "CP4",
    May,
    All,
    "a ControlPlane with spec.replicas counts its replicas in the status and has the scale subresource",
    "where the schema has spec.replicas, status.selector, the contract's counters and the paths of scale exist",
    "takes counters that are missing for unknown: the Cluster does not show how many replicas are up to date",
    paragraph!("control-plane", "controlplane-replicas"),
);
/// Version.
pub static CP5: Rule = rule(
    "CP5",
    May,
    All,
    "a ControlPlane with spec.version reports what runs in status.versions or status.version",
    "where the schema has spec.version, it is a string, and one of the two exists",
    "takes the control plane for one that is being provisioned, and makes no workers",
    paragraph!("control-plane", "controlplane-version"),
);
/// Machines.
pub static CP6: Rule = rule(
    "CP6",
    May,
    All,
    "a ControlPlane that makes Machines takes their template from spec.machineTemplate",
    "where the schema has spec.machineTemplate, it has the contract's metadata, infrastructureRef and timeouts",
    "cannot use the kind in a ClusterClass: it writes these fields",
    paragraph!("control-plane", "controlplane-machines"),
);
/// Placement.
pub static CP7: Rule = rule(
    "CP7",
    Should,
    All,
    "control plane Machines are labelled with the control plane's name and spread over failure domains",
    "Machines of a running provider are looked at",
    "cannot find the owner of these Machines",
    paragraph!("control-plane", "machine-placement"),
);
/// Available condition.
pub static CP8: Rule = rule(
    "CP8",
    Should,
    All,
    "a ControlPlane has the condition Available as long as it lives",
    "the conditions of a running provider are watched",
    "has only completion to show in the Cluster's condition ControlPlaneAvailable",
    paragraph!("control-plane", "controlplane-conditions"),
);
/// External control planes.
pub static CP9: Rule = rule(
    "CP9",
    May,
    All,
    "status.externalManagedControlPlane is true where the control plane has no Nodes",
    "the status of a running provider is read as core reads it",
    "waits for Nodes that never come",
    paragraph!("control-plane", "controlplane-machines"),
);
/// UpToDate condition.
pub static CP10: Rule = rule(
    "CP10",
    Should,
    All,
    "the provider sets the Machines' condition UpToDate and spec.minReadySeconds",
    "Machines of a running provider are looked at",
    "cannot count Machines that are up to date",
    paragraph!("control-plane", "minreadyseconds-and-uptodate-propagation"),
);
/// Certificates.
pub static CP11: Rule = rule(
    "CP11",
    Must,
    All,
    "certificates in Secrets have the agreed names, type and label",
    "Secrets of a running provider are read",
    "does not find the authority, or `move` leaves it behind",
    paragraph!("control-plane", "cluster-certificate-management"),
);
/// Rollout.
pub static CP12: Rule = rule(
    "CP12",
    May,
    All,
    "spec.rollout.after (v1beta1: spec.rolloutAfter) rolls Machines out",
    "the field is set",
    "sets it for `clusterctl alpha rollout restart`, and nothing happens",
    paragraph!("control-plane", "controlplane-rolloutafter"),
);
/// Template.
pub static CP13: Rule = rule(
    "CP13",
    Should,
    All,
    "there is a <ControlPlane>Template, which ClusterClasses need",
    "a CRD of the same group has the kind with Template at its end",
    "cannot make a ControlPlane from a ClusterClass",
    paragraph!("control-plane", "controlplanetemplate-controlplanetemplatelist-resource-definition"),
);
/// Gates.
pub static CP14: Rule = rule(
    "CP14",
    Must,
    All,
    "no Machine is made before the Cluster's infrastructure is provisioned and its endpoint is known",
    "the gates are opened one after the other",
    "has no endpoint yet that the Machine could serve",
    paragraph!("control-plane", "typical-controlplane-reconciliation-workflow"),
);
