//! Flags of `config`.

use clap::{Args, Subcommand};

use super::generate::{CLUSTER_EXAMPLES, ClusterArgs, ListFormat, PROVIDER_EXAMPLES, ProviderArgs};

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) what: Config,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// List the providers that are known, and where their releases are
    Repositories(RepositoriesArgs),

    /// The same as `generate cluster`
    #[command(after_help = CLUSTER_EXAMPLES)]
    Cluster(Box<ClusterArgs>),

    /// The same as `generate provider`
    #[command(after_help = PROVIDER_EXAMPLES)]
    Provider(Box<ProviderArgs>),
}

#[derive(Args, Debug)]
pub(crate) struct RepositoriesArgs {
    /// Form of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,
}
