//! Rules for all kinds that core reads, and for the release that they come in.

use super::{
    Contracts::All,
    Level::{May, Must, Should},
    paragraph, rule,
};
use crate::rule::{Contracts::V1Beta1, Rule};

/// Seen in files.
pub const COMMON_IN_FILES: &[&Rule] =
    &[&G1, &G2, &G3, &G4, &G4B, &G21, &G5, &G6, &G7, &G8, &G9, &G17A, &G17B, &G17C, &G17D, &G19, &G22];

/// Seen only in a running provider.
pub const COMMON_RUNNING: &[&Rule] = &[&G10, &G11, &G12, &G13, &G14, &G15, &G16, &G18, &G20];

/// Seen only in a running provider, and only on templates of machines and their bootstrap configs.
pub const TEMPLATE_RUNNING: &[&Rule] = &[&G19B];

/// Namespaced.
pub static G1: Rule = rule(
    "G1",
    Must,
    All,
    "the kind is defined by a CustomResourceDefinition and is namespaced",
    "spec.scope of the CRD is Namespaced",
    "looks for the object in the Cluster's namespace and never finds it",
    paragraph!("infra-cluster", "all-resources-scope"),
);
/// Name of the CRD.
pub static G2: Rule = rule(
    "G2",
    Must,
    All,
    "the CRD has the name that core computes from group and kind",
    "metadata.name of the CRD is the plural of the kind in lower case, a dot, and the group",
    "never finds the CRD, so that every Cluster that refers to the kind shows an error for ever",
    paragraph!("infra-cluster", "infracluster-infraclusterlist-resource-definition"),
);
/// Contract label.
pub static G3: Rule = rule(
    "G3",
    Must,
    All,
    "a label on the CRD says which API versions speak which contract",
    "the CRD has a label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1 that is not empty",
    "cannot determine which version to read: every Cluster that refers to the kind shows an error for ever",
    paragraph!("infra-cluster", "all-resources-version"),
);
/// There is a version to pick.
pub static G4: Rule = rule(
    "G4",
    Must,
    All,
    "each contract label names a version that is served",
    "at least one of its versions is in the CRD's spec.versions with served: true",
    "finds no version to read: every Cluster that refers to the kind shows an error for ever",
    paragraph!("infra-cluster", "all-resources-version"),
);
/// All labelled versions are served.
pub static G4B: Rule = rule(
    "G4b",
    Should,
    All,
    "all versions in a contract label are served",
    "they are versions in the CRD's spec.versions with served: true",
    "takes the greatest version that is served, but upstream's core asks for the greatest in the label",
    paragraph!("infra-cluster", "all-resources-version"),
);
/// The version speaks the contract it is labelled with.
pub static G5: Rule = rule(
    "G5",
    Must,
    All,
    "the version that core picks has the fields of the contract that it is labelled with",
    "the schema of that version does not report completion where only the other contract looks for it",
    "waits for a field that is never set: the object never becomes provisioned",
    paragraph!("infra-cluster", "all-resources-version"),
);
/// Status subresource.
pub static G6: Rule = rule(
    "G6",
    Must,
    All,
    "the kind has the status subresource",
    "subresources.status exists in the version that core picks",
    "and the provider overwrite each other: a write to the status changes the spec, and the other way round",
    paragraph!("infra-cluster", "infracluster-infraclusterlist-resource-definition"),
);
/// List kind and metadata.
pub static G7: Rule = rule(
    "G7",
    Must,
    All,
    "lists are of the kind <Kind>List, and objects have the standard metadata",
    "spec.names.listKind is <Kind>List, and metadata is an object where the schema has it",
    "cannot list or watch the kind",
    paragraph!("infra-cluster", "infracluster-infraclusterlist-resource-definition"),
);
/// Category.
pub static G8: Rule = rule(
    "G8",
    Should,
    All,
    "the kind is in the category cluster-api",
    "spec.names.categories of the CRD has cluster-api",
    "does not care, but `kubectl get cluster-api` does not show the objects",
    paragraph!("infra-cluster", "infracluster-infraclusterlist-resource-definition"),
);
/// RBAC for foreign groups.
pub static G9: Rule = rule(
    "G9",
    Must,
    All,
    "a provider with an API group of its own lets core read and write its kinds",
    "a ClusterRole with the label cluster.x-k8s.io/aggregate-to-manager: \"true\" has the verbs for the kind; \
     the groups infrastructure, bootstrap and controlplane of cluster.x-k8s.io need none",
    "is refused by the API server when it watches or patches the objects",
    paragraph!("infra-cluster", "all-resources-api-group"),
);
/// Finalizers of owners.
pub static G10: Rule = rule(
    "G10",
    Must,
    All,
    "a provider that sets owner references with blockOwnerDeletion may update the owner's finalizers",
    "owner references that the provider writes are compared with its permissions",
    "is not concerned, but the API server refuses the provider's writes where it enforces such rights",
    paragraph!("infra-machine", "all-resources-api-group"),
);
/// Waits for its owner.
pub static G11: Rule = rule(
    "G11",
    Must,
    All,
    "the provider does nothing for an object before its owner is known",
    "an object without owner reference is created and watched for a while",
    "has not adopted the object yet: infrastructure that is created now may have no owner",
    paragraph!("infra-cluster", "typical-infracluster-reconciliation-workflow"),
);
/// Any owner reference.
pub static G12: Rule = rule(
    "G12",
    Must,
    All,
    "the provider finds its owner by any owner reference of the right kind",
    "the owner reference is written with and without controller: true",
    "does not mark itself as the controller, so that the provider waits for ever",
    paragraph!("infra-cluster", "typical-infracluster-reconciliation-workflow"),
);
/// Pausing.
pub static G13: Rule = rule(
    "G13",
    Should,
    All,
    "the provider stops while the Cluster or the object is paused, and says so in the condition Paused",
    "Cluster and object are paused in turn, and the object is changed and deleted meanwhile",
    "pauses, and a provider that continues disturbs a move or a repair",
    paragraph!("infra-cluster", "infracluster-pausing"),
);
/// Finalizer.
pub static G14: Rule = rule(
    "G14",
    Should,
    All,
    "the provider holds the object by a finalizer of its own until all that it created is deleted",
    "the object is deleted at every stage",
    "sees that the object is deleted and continues, while infrastructure is left behind",
    paragraph!("infra-cluster", "typical-infracluster-reconciliation-workflow"),
);
/// Form of conditions.
pub static G15: Rule = rule(
    "G15",
    May,
    All,
    "conditions have a type, and a status of True, False or Unknown",
    "the conditions of a running provider are read as core reads them",
    "shows Unknown with the reason InvalidConditionReported",
    paragraph!("infra-cluster", "infracluster-conditions"),
);
/// Flags.
pub static G16: Rule = rule(
    "G16",
    May,
    All,
    "the manager has the flags --namespace and --watch-filter",
    "the manager is started with them",
    "is not concerned, but several instances of the provider cannot share a cluster",
    paragraph!("infra-cluster", "multi-tenancy"),
);
/// Provider label.
pub static G17A: Rule = rule(
    "G17a",
    Should,
    All,
    "all components have the label cluster.x-k8s.io/provider",
    "the objects of the components file have the label, all with the same value",
    "is not concerned; clusterctl adds the label, but not to what was installed by kubectl",
    paragraph!("clusterctl", "labels"),
);
/// Container named manager.
pub static G17B: Rule = rule(
    "G17b",
    Must,
    All,
    "the container that runs the controllers is named manager",
    "a Deployment among the components has a container named manager",
    "is not concerned, but clusterctl and the operator look for that container",
    paragraph!("clusterctl", "controllers--watching-namespace"),
);
/// Release series.
pub static G17C: Rule = rule(
    "G17c",
    Must,
    All,
    "metadata.yaml maps the release to the contract that the CRDs are labelled with",
    "metadata.yaml is what clusterctl reads, and the release's series names a contract that every CRD has a label for",
    "reads the CRDs only, but clusterctl refuses the release or installs one that core cannot use",
    paragraph!("clusterctl", "metadata-yaml"),
);
/// One Namespace.
pub static G17D: Rule = rule(
    "G17d",
    Must,
    All,
    "the components have one Namespace at most besides capi-webhook-system",
    "Namespace objects among the components are counted",
    "is not concerned, but clusterctl refuses the release",
    paragraph!("clusterctl", "target-namespace"),
);
/// Move.
pub static G18: Rule = rule(
    "G18",
    Must,
    All,
    "every object that must be moved leads to a Cluster by owner references, or its CRD has clusterctl's move label",
    "the objects of a provisioned Cluster are followed by their owner references",
    "is not concerned, but `clusterctl move` leaves the object behind",
    paragraph!("clusterctl", "ownerreferences-chain"),
);
/// Shape of templates.
pub static G19: Rule = rule(
    "G19",
    Must,
    All,
    "a template has the object's spec in spec.template.spec",
    "spec.template.spec is an object in the schema of the version that core picks",
    "cannot clone the template: no object is ever made from it",
    paragraph!("infra-cluster", "infraclustertemplate-infraclustertemplatelist-resource-definition"),
);
/// Terminal failures.
pub static G20: Rule = rule(
    "G20",
    May,
    V1Beta1,
    "status.failureReason and status.failureMessage, where they are set, are strings and final",
    "the status of a running provider is read as core reads it",
    "takes the object for failed for ever, or does not see the failure",
    paragraph!("infra-cluster", "infracluster-terminal-failures"),
);
/// Last or greatest.
pub static G21: Rule = rule(
    "G21",
    Should,
    All,
    "the last version in a contract label is the greatest",
    "of the versions in each label that are served, the last is the greatest by Kubernetes' order of versions",
    "takes the greatest version that is served, although the written contract says the last one",
    paragraph!("infra-cluster", "all-resources-version"),
);
/// Metadata in templates.
pub static G22: Rule = rule(
    "G22",
    Should,
    All,
    "a template has labels and annotations for its objects in spec.template.metadata",
    "spec.template.metadata is an object in the schema of the version that core picks",
    "has nothing to copy: users cannot give labels to what is made from the template",
    paragraph!("infra-cluster", "infraclustertemplate-infraclustertemplatelist-resource-definition"),
);
/// Dry run.
pub static G19B: Rule = rule(
    "G19b",
    Must,
    All,
    "an immutable machine or bootstrap template may be changed in a dry run with the annotation \
     topology.cluster.x-k8s.io/dry-run, which ClusterClasses need",
    "such a request is made",
    "cannot plan a rollout of a Cluster with a ClusterClass",
    paragraph!("infra-machine", "inframachinetemplate-support-for-ssa-dry-run"),
);
