//! Flags of `get`.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::generate::{KubeconfigArgs, ListFormat};
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct GetArgs {
    #[command(subcommand)]
    pub(crate) what: Get,
}

const KUBECONFIG_EXAMPLES: &str = "\
Examples:
  Use a workload cluster:
    capstan get kubeconfig my-cluster > my-cluster.kubeconfig
    kubectl --kubeconfig my-cluster.kubeconfig get nodes";

const CLUSTERS_EXAMPLES: &str = "\
Examples:
  All Clusters of a management cluster:
    capstan get clusters -A

  Those of a team, for a script:
    capstan get clusters -A -l team=blue -o json";

#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// Print the kubeconfig of a workload cluster
    #[command(after_help = KUBECONFIG_EXAMPLES)]
    Kubeconfig(KubeconfigOfArgs),

    /// List Clusters: how far they are, their machines and versions
    #[command(visible_alias = "cluster", after_help = CLUSTERS_EXAMPLES)]
    Clusters(ClustersArgs),
}

#[derive(Args, Debug)]
pub(crate) struct KubeconfigOfArgs {
    /// Name of the workload cluster
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace of the workload cluster [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ClustersArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace to look at [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,

    /// Look at all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// List only Clusters with these labels, e.g. team=blue,tier!=test
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) selector: String,

    /// Form of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,
}
