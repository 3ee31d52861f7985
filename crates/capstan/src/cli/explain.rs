//! Flags of `explain`.

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::generate::KubeconfigArgs;
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct ExplainArgs {
    #[command(subcommand)]
    pub(crate) what: Explain,
}

const EXAMPLES: &str = "\
Examples:
  Why is my cluster not available?
    capstan explain cluster my-cluster

  The same for a program:
    capstan explain cluster my-cluster -n my-namespace -o json";

#[derive(Debug, Subcommand)]
pub(crate) enum Explain {
    /// Say why a Cluster is not available, and what to do
    ///
    /// Nothing is changed. The answer is what everything else waits for: the object, its condition, since when, which
    /// controller acts on it and whether it runs, and the commands to look and to go on. What else was found is listed
    /// below.
    #[command(after_help = EXAMPLES)]
    Cluster(ExplainClusterArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ExplainClusterArgs {
    /// Name of the Cluster
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace of the Cluster [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,

    /// Form of the explanation
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ExplanationFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplanationFormat {
    /// Sentences, for people
    #[default]
    Text,
    /// The same as data, for programs
    Json,
}
