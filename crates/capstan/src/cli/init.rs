//! Flags of `init`.

use capstan_api::provider::ProviderType;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::{
    cobra::{go_bool, go_integer},
    generate::{KubeconfigArgs, ListFormat},
};
use crate::complete;

const EXAMPLES: &str = "\
Examples:
  Core, the kubeadm providers, cert-manager and AWS:
    capstan init --infrastructure aws

  What that would do, object by object:
    capstan init --infrastructure aws --dry-run --diff

  One more provider later, waiting until it runs:
    capstan init --ipam in-cluster:v1.0.0 --wait-providers

  The same by the provider operator, with variables and image overrides from the local configuration:
    capstan init --operator --infrastructure aws";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    #[command(subcommand)]
    pub(crate) what: Option<Init>,

    /// The same as `init list-images`
    #[arg(long)]
    pub(crate) list_images: bool,

    #[command(flatten)]
    pub(crate) install: InstallArgs,

    #[command(flatten)]
    pub(crate) images: ListImagesArgs,
}

/// How providers are installed.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    /// Namespace to install into [default: those of the providers' components]
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub(crate) target_namespace: Option<String>,

    /// Namespace that the providers are to look at alone [default: all namespaces]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) watching_namespace: Option<String>,

    /// Whether the names of ClusterRoles and ClusterRoleBindings begin with the namespace
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_bool)]
    pub(crate) rbac_prefix: bool,

    /// Wait until the providers run
    #[arg(long)]
    pub(crate) wait_providers: bool,

    /// Seconds to wait for them
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = go_integer)]
    pub(crate) wait_provider_timeout: i64,

    /// Whether problems that are found beforehand keep anything from being installed; if not, they are warnings
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_bool)]
    pub(crate) validate: bool,

    /// Show what would be created and changed, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// With --dry-run: also how each object differs
    #[arg(long, requires = "dry_run")]
    pub(crate) diff: bool,
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
    capstan init list-images --core - --bootstrap - --control-plane - --infrastructure aws:v2.9.1

  With the image of the provider operator:
    capstan init list-images --operator --infrastructure aws";

#[derive(Args, Debug)]
pub(crate) struct ListImagesArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    #[command(flatten)]
    pub(crate) providers: ManyProviders,

    /// Leave the providers to the provider operator: install it if it is missing, and create provider objects
    #[arg(long)]
    pub(crate) operator: bool,

    /// Image of the operator [default: this version's, with the configured overrides for capstan-operator]
    #[arg(long, value_name = "IMAGE", requires = "operator")]
    pub(crate) operator_image: Option<String>,

    /// Form of the list, or of what --dry-run shows
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

impl ManyProviders {
    /// All that are named, by type. An empty name, as scripts pass it, names none.
    pub(crate) fn named(&self) -> Vec<(ProviderType, String)> {
        let core: Vec<String> = self.core.iter().cloned().collect();
        let lists = [
            (ProviderType::Core, &core),
            (ProviderType::Bootstrap, &self.bootstrap),
            (ProviderType::ControlPlane, &self.control_plane),
            (ProviderType::Infrastructure, &self.infrastructure),
            (ProviderType::Ipam, &self.ipam),
            (ProviderType::RuntimeExtension, &self.runtime_extension),
            (ProviderType::Addon, &self.addon),
        ];
        let named = lists.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)));
        named.filter(|it| !it.1.is_empty()).map(|(kind, name)| (kind, name.clone())).collect()
    }
}
