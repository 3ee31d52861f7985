//! Flags of `delete`.

use capstan_api::provider::ProviderType;
use clap::Args;
use clap_complete::ArgValueCompleter;

use super::{generate::KubeconfigArgs, preview::PreviewArgs};
use crate::complete;

pub(crate) const EXAMPLES: &str = "\
Examples:
  What would go with a provider, and what would stay:
    capstan delete --infrastructure aws --dry-run

  One provider, but for its namespace and its kinds:
    capstan delete --infrastructure aws

  Everything, without a trace:
    capstan delete --all --include-crd --include-namespace";

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Core provider
    #[arg(long, value_name = "NAME[:VERSION]",
          add = ArgValueCompleter::new(complete::installed(ProviderType::Core)))]
    pub(crate) core: Option<String>,

    /// Bootstrap providers
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::Bootstrap)))]
    pub(crate) bootstrap: Vec<String>,

    /// Control plane providers
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::ControlPlane)))]
    pub(crate) control_plane: Vec<String>,

    /// Infrastructure providers
    #[arg(short, long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::Infrastructure)))]
    pub(crate) infrastructure: Vec<String>,

    /// IPAM providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::Ipam)))]
    pub(crate) ipam: Vec<String>,

    /// Runtime extension providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::RuntimeExtension)))]
    pub(crate) runtime_extension: Vec<String>,

    /// Add-on providers
    #[arg(long, value_name = "NAME[:VERSION],...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::installed(ProviderType::Addon)))]
    pub(crate) addon: Vec<String>,

    /// All providers, and what is left of others; provider objects and the provider operator as well
    #[arg(long)]
    pub(crate) all: bool,

    /// Namespace of the instance to delete, where a provider has several
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Also the providers' namespaces, with everything in them
    #[arg(long)]
    pub(crate) include_namespace: bool,

    /// Also the providers' CustomResourceDefinitions, and whatever else instances of a provider share; refused while
    /// there are objects of these kinds
    #[arg(long)]
    pub(crate) include_crd: bool,

    /// Delete providers that still look after objects, which no controller looks after any more then; with --all also
    /// where the provider operator would wait for these objects
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) preview: PreviewArgs,
}

impl DeleteArgs {
    /// The providers that are named, by type.
    pub(crate) fn named(&self) -> impl Iterator<Item = (ProviderType, &str)> {
        let core: Vec<&String> = self.core.iter().collect();
        let lists = [
            (ProviderType::Core, core),
            (ProviderType::Bootstrap, self.bootstrap.iter().collect()),
            (ProviderType::ControlPlane, self.control_plane.iter().collect()),
            (ProviderType::Infrastructure, self.infrastructure.iter().collect()),
            (ProviderType::Ipam, self.ipam.iter().collect()),
            (ProviderType::RuntimeExtension, self.runtime_extension.iter().collect()),
            (ProviderType::Addon, self.addon.iter().collect()),
        ];
        let named = lists.into_iter().flat_map(|(kind, names)| names.into_iter().map(move |it| (kind, it)));
        named.map(|(kind, name)| (kind, name.as_str())).filter(|(_, name)| !name.is_empty())
    }
}
