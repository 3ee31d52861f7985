//! Flags of `generate` and of its older names under `config`.

use capstan_api::provider::ProviderType;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::cobra::{go_bool, go_integer};
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) what: Generate,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print the manifests of a workload cluster, made from a template
    ///
    /// The template comes from an infrastructure provider's release, a ConfigMap, a URL, a file or standard input.
    /// Its variables are set by flags, the environment or the configuration file, in this order.
    #[command(after_help = CLUSTER_EXAMPLES)]
    Cluster(Box<ClusterArgs>),

    /// Print the manifests of a provider, as they would be installed
    #[command(after_help = PROVIDER_EXAMPLES)]
    Provider(Box<ProviderArgs>),

    /// Replace the variables in any YAML
    #[command(after_help = YAML_EXAMPLES)]
    Yaml(YamlArgs),
}

pub(crate) const CLUSTER_EXAMPLES: &str = "\
Examples:
  From the infrastructure provider that is installed:
    capstan generate cluster my-cluster --kubernetes-version v1.34.1 | kubectl apply -f -

  From a certain release and flavor, without any management cluster:
    capstan generate cluster my-cluster -n default -i aws:v2.9.1 --flavor eks

  From a file, after a look at what can be set:
    capstan generate cluster my-cluster --from cluster-template.yaml --list-variables";

pub(crate) const PROVIDER_EXAMPLES: &str = "\
Examples:
  What `init` would install:
    capstan generate provider --infrastructure aws:v2.9.1

  What can be set, and which images it needs:
    capstan generate provider --infrastructure aws --describe";

const YAML_EXAMPLES: &str = "\
Examples:
  capstan generate yaml --from cluster-template.yaml
  cat cluster-template.yaml | capstan generate yaml --list-variables";

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    #[value(alias = "table")]
    Text,
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// Where the management cluster is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KubeconfigArgs {
    /// Kubeconfig of the management cluster [default: $KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<String>,

    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::contexts))]
    pub(crate) kubeconfig_context: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    /// Name of the workload cluster
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace of the workload cluster [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) target_namespace: Option<String>,

    /// Kubernetes version of the workload cluster; sets KUBERNETES_VERSION
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes_version: Option<String>,

    /// Number of control plane machines; sets CONTROL_PLANE_MACHINE_COUNT [default: 1]
    #[arg(long, alias = "controlplane-machine-count", value_name = "NUMBER", value_parser = go_integer,
          allow_negative_numbers = true)]
    pub(crate) control_plane_machine_count: Option<i64>,

    /// Number of worker machines; sets WORKER_MACHINE_COUNT [default: 0]
    #[arg(long, value_name = "NUMBER", value_parser = go_integer, allow_negative_numbers = true)]
    pub(crate) worker_machine_count: Option<i64>,

    /// Infrastructure provider that has the template [default: the one that is installed]
    #[arg(short, long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Infrastructure)))]
    pub(crate) infrastructure: Option<String>,

    /// Variant of the template: cluster-template-FLAVOR.yaml
    #[arg(short, long, value_name = "FLAVOR", add = ArgValueCompleter::new(complete::flavors))]
    pub(crate) flavor: Option<String>,

    /// URL or file that has the template; - for standard input
    #[arg(long, value_name = "URL-OR-FILE")]
    pub(crate) from: Option<String>,

    /// ConfigMap that has the template
    #[arg(long, value_name = "NAME")]
    pub(crate) from_config_map: Option<String>,

    /// Namespace of that ConfigMap [default: that of the kubeconfig's context]
    #[arg(long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) from_config_map_namespace: Option<String>,

    /// Key of that ConfigMap [default: template]
    #[arg(long, value_name = "KEY")]
    pub(crate) from_config_map_key: Option<String>,

    /// Print the variables of the template instead
    #[arg(long)]
    pub(crate) list_variables: bool,

    /// Form of the list of variables
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t, requires = "list_variables")]
    pub(crate) output: ListFormat,

    /// File to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<String>,
}

/// One provider, by a flag of its type.
#[derive(Args, Debug)]
pub(crate) struct OneProvider {
    /// Core provider
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Core)))]
    pub(crate) core: Option<String>,

    /// Bootstrap provider
    #[arg(short, long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Bootstrap)))]
    pub(crate) bootstrap: Option<String>,

    /// Control plane provider
    #[arg(short, long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::ControlPlane)))]
    pub(crate) control_plane: Option<String>,

    /// Infrastructure provider
    #[arg(short, long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Infrastructure)))]
    pub(crate) infrastructure: Option<String>,

    /// IPAM provider
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Ipam)))]
    pub(crate) ipam: Option<String>,

    /// Runtime extension provider
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::RuntimeExtension)))]
    pub(crate) runtime_extension: Option<String>,

    /// Add-on provider
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Addon)))]
    pub(crate) addon: Option<String>,
}

impl OneProvider {
    /// The providers that are named. An empty name, as scripts pass it, names none.
    pub(crate) fn named(&self) -> Vec<(ProviderType, &str)> {
        let flags = [
            (ProviderType::Core, &self.core),
            (ProviderType::Bootstrap, &self.bootstrap),
            (ProviderType::ControlPlane, &self.control_plane),
            (ProviderType::Infrastructure, &self.infrastructure),
            (ProviderType::Ipam, &self.ipam),
            (ProviderType::RuntimeExtension, &self.runtime_extension),
            (ProviderType::Addon, &self.addon),
        ];
        let given = flags.into_iter().filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
        given.filter(|(_, name)| !name.is_empty()).collect()
    }
}

#[derive(Args, Debug)]
pub(crate) struct ProviderArgs {
    #[command(flatten)]
    pub(crate) provider: OneProvider,

    /// Namespace to install into [default: that of the provider's components]
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub(crate) target_namespace: Option<String>,

    /// Namespace that the provider is to look at alone [default: all namespaces]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) watching_namespace: Option<String>,

    /// Whether the names of ClusterRoles and ClusterRoleBindings begin with the namespace
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_bool)]
    pub(crate) rbac_prefix: bool,

    /// Print what the provider is, which variables it takes and which images it needs
    #[arg(long)]
    pub(crate) describe: bool,

    /// Form of the description
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t, requires = "describe")]
    pub(crate) output: ListFormat,

    /// Leave variables as they are
    #[arg(long)]
    pub(crate) raw: bool,

    /// File to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct YamlArgs {
    /// URL or file to read; - for standard input
    #[arg(long, value_name = "URL-OR-FILE", default_value = "-")]
    pub(crate) from: String,

    /// Print the variables instead
    #[arg(long)]
    pub(crate) list_variables: bool,

    /// Form of the list of variables
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t, requires = "list_variables")]
    pub(crate) output: ListFormat,
}
