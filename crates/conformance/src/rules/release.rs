//! Rules for the files of a release, as clusterctl reads them: the components file, what lies beside it, and the
//! templates of workload clusters.

use super::{
    Level::{Must, Notice, Should},
    common::{G17A, G17B, G17C, G17D},
    paragraph, release,
};
use crate::rule::Rule;

/// What a components file and its folder show.
pub const COMPONENTS: &[&Rule] = &[
    &R1, &R2, &R3, &R4, &V1, &V2, &V3, &V4, &V5, &V6, &R5, &R6, &G17C, &R7, &R8, &R9, &G17D, &R10, &R11,
    &R12, &R13, &R14, &G17B, &R15, &R16, &R17, &R18, &G17A, &R19, &R20,
];

/// What the template of a workload cluster and its folder show.
pub const TEMPLATE: &[&Rule] = &[
    &R1, &R2, &R3, &R4, &V1, &V2, &V3, &V4, &V5, &T1, &T2, &T3, &T4, &T5, &T6, &T7, &T8, &T9, &T10, &T11,
    &T12, &T13,
];

/// Objects.
pub static R1: Rule = release(
    "R1",
    Must,
    "the file is YAML, and each document an object with apiVersion, kind and metadata.name",
    "the file is read as clusterctl does, with variables replaced by their defaults or by placeholders",
    "refuses the file, or the API server refuses the object",
    paragraph!("clusterctl", "components-yaml"),
);
/// Lists.
pub static R2: Rule = release(
    "R2",
    Must,
    "objects are documents of their own, and in no List",
    "no document is of kind List",
    "does not take lists apart, and no API server takes an object of kind List",
    paragraph!("clusterctl", "components-yaml"),
);
/// Twice.
pub static R3: Rule = release(
    "R3",
    Should,
    "no object is in the file twice",
    "group, kind, namespace and name of each object are compared",
    "writes both, one over the other, so that only the last one counts",
    paragraph!("clusterctl", "components-yaml"),
);
/// Text in labels.
pub static R4: Rule = release(
    "R4",
    Must,
    "labels and annotations are strings",
    "no value in metadata.labels and metadata.annotations is a number, a boolean or anything else",
    "drops all labels of the object, or refuses the file",
    paragraph!("clusterctl", "labels"),
);
/// Syntax of variables.
pub static V1: Rule = release(
    "V1",
    Must,
    "variables are written as ${VAR}, ${VAR:=default} or in another form that is supported",
    "the file is parsed for variables as clusterctl does; ${VAR$FOO} is no variable",
    "refuses the file",
    paragraph!("clusterctl", "variables"),
);
/// Spaces in variables.
pub static V2: Rule = release(
    "V2",
    Should,
    "there are no spaces in the braces of a variable",
    "no variable is written as ${ VAR }, ${ VAR} or ${VAR }",
    "still takes them, but they are deprecated",
    paragraph!("clusterctl", "variables"),
);
/// Upper case.
pub static V3: Rule = release(
    "V3",
    Should,
    "names of variables are in upper case",
    "no name of a variable has a letter in lower case",
    "looks for the name in upper case in the environment, so that only its configuration file can set the variable",
    paragraph!("clusterctl", "variables"),
);
/// Variables in comments.
pub static V4: Rule = release(
    "V4",
    Should,
    "a variable that must be set is used outside of comments",
    "a variable without default shows in an object",
    "asks its user for the variable, although it has no effect",
    paragraph!("clusterctl", "variables"),
);
/// One default.
pub static V5: Rule = release(
    "V5",
    Should,
    "a variable has a default at all of its places, or at none",
    "the places of each variable are compared",
    "goes by the first place: it asks for a variable that has a default later on, and puts nothing where a later place has none",
    paragraph!("clusterctl", "variables"),
);
/// Prefix of variables.
pub static V6: Rule = release(
    "V6",
    Should,
    "names of variables begin with the provider's name",
    "they have the name of the label cluster.x-k8s.io/provider in them, or begin with CAP..._, EXP_ or CLUSTER_TOPOLOGY, as \
     all providers' do",
    "cannot distinguish the variables of several providers, so that all of them get the same value",
    paragraph!("clusterctl", "variables"),
);
/// Name of the file.
pub static R5: Rule = release(
    "R5",
    Should,
    "the components file is named after the provider's type",
    "it is core-, bootstrap-, control-plane-, infrastructure-, ipam-, runtime-extension- or addon-components.yaml",
    "finds the file only if its configuration names it",
    paragraph!("clusterctl", "naming-conventions"),
);
/// Metadata.
pub static R6: Rule = release(
    "R6",
    Must,
    "metadata.yaml is in the same folder",
    "the folder of the components file has a file of that name",
    "refuses the release",
    paragraph!("clusterctl", "metadata-yaml"),
);
/// Templates.
pub static R7: Rule = release(
    "R7",
    Should,
    "an infrastructure provider's release has templates of workload clusters",
    "the folder of the components file has a cluster-template.yaml or cluster-template-<flavor>.yaml",
    "has nothing for `generate cluster`",
    paragraph!("clusterctl", "workload-cluster-templates"),
);
/// Local repositories.
pub static R8: Rule = release(
    "R8",
    Must,
    "a local repository is laid out as <provider-label>/<version>/, with a semantic version",
    "where the folders are named so, the label is that of the objects and the version has three numbers",
    "does not find the release",
    paragraph!("clusterctl", "creating-a-local-provider-repository"),
);
/// Versions begin with v.
pub static R9: Rule = release(
    "R9",
    Should,
    "the version in a local repository begins with v",
    "where the folders are named <provider-label>/<version>/, the version begins with v",
    "does not find the release as the latest one",
    paragraph!("clusterctl", "creating-a-local-provider-repository"),
);
/// A Namespace.
pub static R10: Rule = release(
    "R10",
    Should,
    "the components have a Namespace, which is the default target namespace",
    "there is an object of kind Namespace",
    "installs the provider only with --target-namespace",
    paragraph!("clusterctl", "target-namespace"),
);
/// All in the target namespace.
pub static R11: Rule = release(
    "R11",
    Must,
    "all objects belong to the target namespace, but for shared ones in capi-webhook-system",
    "metadata.namespace of each object is the name of the Namespace, or is left out",
    "puts the object into the target namespace, where it is not looked for",
    paragraph!("clusterctl", "target-namespace"),
);
/// All that is referred to is in the target namespace.
pub static R12: Rule = release(
    "R12",
    Must,
    "bindings, webhooks and conversions lead to the target namespace",
    "namespaces of subjects and of webhooks' services, and in cert-manager.io/inject-ca-from, are the name of the Namespace",
    "replaces the namespace by the target namespace, so that the reference leads elsewhere",
    paragraph!("clusterctl", "components-yaml-transformations"),
);
/// Shared objects.
pub static R13: Rule = release(
    "R13",
    Should,
    "a release with shared objects in capi-webhook-system has all of its webhooks there",
    "where an object is in that namespace, the services of webhooks and conversions are, too",
    "renews the webhooks of one instance only, while the CRDs are shared by all",
    paragraph!("clusterctl", "components-yaml"),
);
/// A Deployment.
pub static R14: Rule = release(
    "R14",
    Should,
    "the controllers are deployed by a Deployment",
    "there is an object of kind Deployment",
    "and the operator find no manager: they set no watching namespace, and do not wait until it is up",
    paragraph!("clusterctl", "controllers--watching-namespace"),
);
/// Watching namespace.
pub static R15: Rule = release(
    "R15",
    Must,
    "the manager has a flag --namespace for the namespace that it watches",
    "files do not show it",
    "starts a manager that ends at once, where a watching namespace is asked for",
    paragraph!("clusterctl", "controllers--watching-namespace"),
);
/// API versions.
pub static R16: Rule = release(
    "R16",
    Must,
    "Deployments, DaemonSets, bindings, webhooks and CRDs are of API versions that clusterctl reads",
    "apps/v1, rbac.authorization.k8s.io/v1, and v1 or v1beta1 of admissionregistration.k8s.io and apiextensions.k8s.io",
    "refuses the file",
    paragraph!("clusterctl", "components-yaml-transformations"),
);
/// Images.
pub static R17: Rule = release(
    "R17",
    Must,
    "images have canonical names",
    "each image of a Deployment or DaemonSet is <registry>/<path>:<tag>, and docker.io has its library/ written out",
    "refuses the file",
    paragraph!("clusterctl", "controllers--watching-namespace"),
);
/// Certificates.
pub static R18: Rule = release(
    "R18",
    Must,
    "cert-manager.io/inject-ca-from is <namespace>/<name>",
    "the annotation of webhook configurations and CRDs has two parts",
    "refuses the file",
    paragraph!("clusterctl", "components-yaml-transformations"),
);
/// The label's type.
pub static R19: Rule = release(
    "R19",
    Should,
    "the label cluster.x-k8s.io/provider has the provider's type in it, and it is that of the file's name",
    "it is cluster-api, or <type>-<name> with the type of the file's name",
    "replaces the label, and does not know what was installed by kubectl under another",
    paragraph!("clusterctl", "labels"),
);
/// Links of components.
pub static R20: Rule = release(
    "R20",
    Notice,
    "the components have all objects that they refer to",
    "roles, service accounts, Secrets, ConfigMaps, services, issuers and certificates that are named are in the file",
    "installs, moves and deletes only what is in the file: the rest is the author's to bring and to document",
    paragraph!("clusterctl", "links-to-external-objects"),
);
/// Name of a template.
pub static T1: Rule = release(
    "T1",
    Must,
    "a template is named cluster-template.yaml, cluster-template-<flavor>.yaml or clusterclass-<class>.yaml",
    "the file has such a name",
    "does not find the template",
    paragraph!("clusterctl", "naming-conventions-1"),
);
/// Folder of a template.
pub static T2: Rule = release(
    "T2",
    Must,
    "a template is in the folder of the components file",
    "where the folder is that of a release, because it has a metadata.yaml, it has a components file, too",
    "does not find the one or the other",
    paragraph!("clusterctl", "naming-conventions-1"),
);
/// The namespace is there.
pub static T3: Rule = release(
    "T3",
    Must,
    "a template assumes that the target namespace exists",
    "there is no object of kind Namespace",
    "renames the Namespace to the target namespace, and who applies the template must be allowed to write it",
    paragraph!("clusterctl", "target-namespace-1"),
);
/// One namespace.
pub static T4: Rule = release(
    "T4",
    Must,
    "all objects of a template are in the same namespace",
    "metadata.namespace and the namespaces of references are all the same, or left out",
    "puts all objects into the target namespace, and references to another one break",
    paragraph!("clusterctl", "target-namespace-1"),
);
/// No cluster-wide objects.
pub static T5: Rule = release(
    "T5",
    Must,
    "all objects of a template are namespaced",
    "no object is of a kind that is known to be cluster-wide, such as ClusterRole",
    "makes clusters of one template share the object, and deletes it with none of them",
    paragraph!("clusterctl", "target-namespace-1"),
);
/// A Cluster.
pub static T6: Rule = release(
    "T6",
    Should,
    "a template has a Cluster, or a ClusterClass",
    "there is an object of kind Cluster or ClusterClass in a group of Cluster API",
    "makes no cluster of the template",
    paragraph!("clusterctl", "workload-cluster-templates"),
);
/// NAMESPACE.
pub static T7: Rule = release(
    "T7",
    Should,
    "a template takes its namespace from ${NAMESPACE}",
    "metadata.namespace is ${NAMESPACE}, or left out",
    "puts the objects into the namespace of --target-namespace all the same, but kubectl does not",
    paragraph!("clusterctl", "common-variables"),
);
/// CLUSTER_NAME.
pub static T8: Rule = release(
    "T8",
    Should,
    "a template takes the Cluster's name from ${CLUSTER_NAME}",
    "metadata.name of each Cluster is ${CLUSTER_NAME}",
    "makes a cluster of another name than it is asked for",
    paragraph!("clusterctl", "common-variables"),
);
/// KUBERNETES_VERSION.
pub static T9: Rule = release(
    "T9",
    Should,
    "a template takes versions of Kubernetes from ${KUBERNETES_VERSION}",
    "the versions of topologies, control planes, MachineDeployments and MachinePools have it",
    "makes a cluster of another version than --kubernetes-version",
    paragraph!("clusterctl", "common-variables"),
);
/// CONTROL_PLANE_MACHINE_COUNT.
pub static T10: Rule = release(
    "T10",
    Should,
    "a template takes the size of the control plane from ${CONTROL_PLANE_MACHINE_COUNT}",
    "the replicas of topologies' and Clusters' control planes have it",
    "makes a control plane of another size than --control-plane-machine-count",
    paragraph!("clusterctl", "common-variables"),
);
/// WORKER_MACHINE_COUNT.
pub static T11: Rule = release(
    "T11",
    Should,
    "a template takes the number of workers from ${WORKER_MACHINE_COUNT}",
    "the replicas of at least one MachineDeployment or MachinePool, or one in a topology, have it",
    "makes another number of workers than --worker-machine-count",
    paragraph!("clusterctl", "common-variables"),
);
/// Links of templates.
pub static T12: Rule = release(
    "T12",
    Notice,
    "a template has all objects that it refers to",
    "what references name by kind and name, and Secrets and ConfigMaps that are named, are in the template",
    "creates, moves and deletes only what the template holds: the author provides and documents the rest",
    paragraph!("clusterctl", "links-to-external-objects"),
);
/// The file of a ClusterClass.
pub static T13: Rule = release(
    "T13",
    Notice,
    "the ClusterClass of a topology is in the template, or beside it as clusterclass-<class>.yaml",
    "the class of each Cluster's topology is looked for in the template and in the folder",
    "takes the class from the management cluster, and fails where it is not there",
    paragraph!("clusterctl", "clusterclass-definitions"),
);
