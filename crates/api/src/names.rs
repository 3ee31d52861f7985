//! Names that are part of the wire: groups, labels, annotations, finalizers, Secrets.

/// The API group of the core kinds.
pub const CORE_GROUP: &str = "cluster.x-k8s.io";
/// The API group of the infrastructure kinds of SIG-sponsored providers.
pub const INFRASTRUCTURE_GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The API group of the bootstrap kinds.
pub const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";
/// The API group of ClusterResourceSets.
pub const ADDONS_GROUP: &str = "addons.cluster.x-k8s.io";
/// The API group of the control plane kinds.
pub const CONTROL_PLANE_GROUP: &str = "controlplane.cluster.x-k8s.io";

/// The API group of the inventory of providers, and of their metadata.yaml.
pub const CLUSTERCTL_GROUP: &str = "clusterctl.cluster.x-k8s.io";

/// The value of [`label::PROVIDER`] on the core provider's components.
pub const CORE_PROVIDER: &str = "cluster-api";

/// The value of [`label::CLUSTERCTL_CORE`] on the inventory and its kind.
pub const INVENTORY: &str = "inventory";
/// The value of [`label::CLUSTERCTL_CORE`] on the components of cert-manager, and their namespace.
pub const CERT_MANAGER: &str = "cert-manager";
/// The value of [`label::CLUSTERCTL_CORE`] on the components of the provider operator, and their CRDs.
pub const OPERATOR: &str = "capi-operator";
/// Who owns what is written to a management cluster by commands.
pub const FIELD_MANAGER: &str = "capstan";
/// The field manager of clusterctl.
pub const CLUSTERCTL_FIELD_MANAGER: &str = "clusterctl";
/// The field manager of upstream's provider operator.
pub const OPERATOR_FIELD_MANAGER: &str = "capi-operator";

/// The namespace of the components that all instances of a provider share.
pub const SHARED_NAMESPACE: &str = "capi-webhook-system";

/// Finalizers.
pub mod finalizer {
    /// Held by the Cluster controller on every Cluster.
    pub const CLUSTER: &str = "cluster.cluster.x-k8s.io";
    /// Held by the Machine controller.
    pub const MACHINE: &str = "machine.cluster.x-k8s.io";
    /// Held by the MachineSet controller.
    pub const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
    /// Held by the MachineDeployment controller.
    pub const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
    /// Held by the MachinePool controller.
    pub const MACHINE_POOL: &str = "machinepool.cluster.x-k8s.io";
}

/// Labels.
pub mod label {
    /// The Cluster that an object belongs to.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// Marks a control plane Machine.
    pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
    /// The control plane object that owns a Machine.
    pub const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
    /// The MachineSet that owns a Machine.
    pub const MACHINE_SET_NAME: &str = "cluster.x-k8s.io/set-name";
    /// The MachineDeployment that owns a Machine or MachineSet.
    pub const MACHINE_DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
    /// The MachinePool that owns a Machine.
    pub const MACHINE_POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
    /// Objects are reconciled only by managers whose `--watch-filter` has this label's value.
    pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
    /// Marks everything that was installed for a provider.
    pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
    /// What else belongs to a management cluster: [`super::INVENTORY`], [`super::CERT_MANAGER`] or [`super::OPERATOR`].
    pub const CLUSTERCTL_CORE: &str = "clusterctl.cluster.x-k8s.io/core";
    /// The provider that a component was installed by.
    pub const PROVIDER: &str = "cluster.x-k8s.io/provider";
    /// Marks a Node on an interruptible machine.
    pub const INTERRUPTIBLE: &str = "cluster.x-k8s.io/interruptible";
    /// Marks externally managed infrastructure, as the specification has it; see the annotation of the same name.
    pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
    /// Grants the core manager the rules of a ClusterRole.
    pub const AGGREGATE_TO_MANAGER: &str = "cluster.x-k8s.io/aggregate-to-manager";
    /// Marks objects that a managed topology owns.
    pub const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
    /// The topology's name for a MachineDeployment.
    pub const TOPOLOGY_DEPLOYMENT_NAME: &str = "topology.cluster.x-k8s.io/deployment-name";
    /// The topology's name for a MachinePool.
    pub const TOPOLOGY_POOL_NAME: &str = "topology.cluster.x-k8s.io/pool-name";
    /// The template that a Machine was made from.
    pub const MACHINE_TEMPLATE_HASH: &str = "machine-template-hash";
    /// A CRD's label `<prefix><contract>` lists the versions that implement that contract.
    pub const CONTRACT_PREFIX: &str = "cluster.x-k8s.io/";
}

/// Annotations.
pub mod annotation {
    /// On a provider's entry in the inventory while it is being upgraded: the version that it goes to.
    pub const UPGRADING_TO: &str = "capstan.dev/upgrading-to";
    /// Stops reconciliation of the object, whatever the value.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// The infrastructure is managed externally.
    pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
    /// Asks for a Machine to be deleted first when scaling down.
    pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    /// Asks for a Machine to be remediated.
    pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
    /// Keeps health checks from remediating a Machine.
    pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
    /// The template that an object was cloned from.
    pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
    /// The kind and group of that template.
    pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
    /// Replicas are managed by an outside autoscaler.
    pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
    /// Stops a MachineSet from creating Machines.
    pub const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";
    /// What an object held that its older API version cannot say.
    pub const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";
    /// The autoscaler's lower bound.
    pub const AUTOSCALER_MIN_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
    /// The autoscaler's upper bound.
    pub const AUTOSCALER_MAX_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    /// Keeps a Machine's Node from being drained.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// Keeps deletion of a Machine from waiting for its volumes.
    pub const EXCLUDE_WAIT_FOR_VOLUME_DETACH: &str =
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// When the certificates on a control plane Machine expire.
    pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";
    /// Prefix of hooks that hold a Machine before it is drained.
    pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
    /// Prefix of hooks that hold a Machine before its infrastructure is deleted.
    pub const PRE_TERMINATE_HOOK_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
    /// Runtime hooks have agreed to the deletion.
    pub const OK_TO_DELETE: &str = "runtime.cluster.x-k8s.io/ok-to-delete";
    /// Runtime hooks that have still to be called.
    pub const PENDING_HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";
    /// Marks a dry run of the topology controller.
    pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
    /// Holds a MachineDeployment's upgrade and those after it.
    pub const TOPOLOGY_HOLD_UPGRADE_SEQUENCE: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
    /// Defers a MachineDeployment's upgrade.
    pub const TOPOLOGY_DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";
    /// How many MachineDeployments are upgraded at once.
    pub const TOPOLOGY_UPGRADE_CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
    /// Lets a topology be added to a Cluster that has none.
    pub const UNSAFE_UPDATE_CLASS: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
    /// Lets a topology's version go anywhere.
    pub const UNSAFE_UPDATE_VERSION: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    /// The CRD generation whose objects have been migrated to the storage version.
    pub const CRD_MIGRATION_OBSERVED_GENERATION: &str = "crd-migration.cluster.x-k8s.io/observed-generation";
}

/// Annotations that the Machine controller writes on Nodes.
pub mod node_annotation {
    /// The Cluster's name.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// The Cluster's namespace.
    pub const CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
    /// The Machine's name.
    pub const MACHINE: &str = "cluster.x-k8s.io/machine";
    /// The kind of the Machine's owner.
    pub const OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
    /// The name of the Machine's owner.
    pub const OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";
    /// Labels that were copied from the Machine.
    pub const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
    /// Annotations that were copied from the Machine.
    pub const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";
    /// Taints that were copied from the Machine.
    pub const TAINTS_FROM_MACHINE: &str = "cluster.x-k8s.io/taints-from-machine";
}

/// Taints that the Machine controllers read and write on Nodes.
pub mod taint {
    /// A Node whose labels have not been synced yet; effect NoSchedule.
    pub const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";
    /// A Node of an old MachineSet during a rollout; effect PreferNoSchedule.
    pub const OUTDATED_REVISION: &str = "node.cluster.x-k8s.io/outdated-revision";
}

/// Secrets that belong to a Cluster are named `<cluster>-<purpose>`.
pub mod secret {
    /// The type of all of them.
    pub const TYPE: &str = "cluster.x-k8s.io/secret";
    /// Key of a kubeconfig or of bootstrap data.
    pub const VALUE_KEY: &str = "value";
    /// Key of a certificate.
    pub const CERTIFICATE_KEY: &str = "tls.crt";
    /// Key of a private key.
    pub const PRIVATE_KEY_KEY: &str = "tls.key";
    /// Purpose: the admin kubeconfig.
    pub const KUBECONFIG: &str = "kubeconfig";
    /// Purpose: the cluster's certificate authority.
    pub const CA: &str = "ca";
    /// Purpose: etcd's certificate authority.
    pub const ETCD: &str = "etcd";
    /// Purpose: the service account key pair.
    pub const SERVICE_ACCOUNT: &str = "sa";
    /// Purpose: the front proxy's certificate authority.
    pub const FRONT_PROXY_CA: &str = "proxy";
    /// Purpose: the API server's client certificate for etcd.
    pub const API_SERVER_ETCD_CLIENT: &str = "apiserver-etcd-client";
}
