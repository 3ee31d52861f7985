//! Flags of `init`.

use capstan_api::provider::ProviderType;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::generate::{KubeconfigArgs, ListFormat};
use crate::complete;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InitArgs {
    #[command(subcommand)]
    pub(crate) what: Option<Init>,

    /// The same as `init list-images`
    #[arg(long)]
    pub(crate) list_images: bool,

    #[command(flatten)]
    pub(crate) images: ListImagesArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Init {
    /// List the images that an installation needs, for instance to copy them to a registry of your own
    ///
    /// No management cluster is needed. Where one is given by --kubeconfig, core, bootstrap and control plane are
    /// left out by default if a core provider is installed there, and cert-manager if its namespace exists.
    #[command(after_help = LIST_IMAGES_EXAMPLES)]
    ListImages(Box<ListImagesArgs>),
}

const LIST_IMAGES_EXAMPLES: &str = "\
Examples:
  Core, the kubeadm providers, cert-manager and AWS:
    capstan init list-images --infrastructure aws

  AWS alone:
    capstan init list-images --core - --bootstrap - --control-plane - --infrastructure aws:v2.9.1";

#[derive(Args, Debug)]
pub(crate) struct ListImagesArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    #[command(flatten)]
    pub(crate) providers: ManyProviders,

    /// Form of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,
}

/// Any number of providers, by flags of their types.
#[derive(Args, Debug)]
pub(crate) struct ManyProviders {
    /// Core provider; - for none [default: cluster-api]
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Core)))]
    pub(crate) core: Option<String>,

    /// Bootstrap providers; - for none [default: kubeadm]
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Bootstrap)))]
    pub(crate) bootstrap: Vec<String>,

    /// Control plane providers; - for none [default: kubeadm]
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::ControlPlane)))]
    pub(crate) control_plane: Vec<String>,

    /// Infrastructure providers
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Infrastructure)))]
    pub(crate) infrastructure: Vec<String>,

    /// IPAM providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Ipam)))]
    pub(crate) ipam: Vec<String>,

    /// Runtime extension providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::RuntimeExtension)))]
    pub(crate) runtime_extension: Vec<String>,

    /// Add-on providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Addon)))]
    pub(crate) addon: Vec<String>,
}
