//! Flags of `upgrade`.

use capstan_api::provider::ProviderType;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::{
    cobra::go_integer,
    generate::{KubeconfigArgs, ListFormat},
    preview::PreviewArgs,
};
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct UpgradeArgs {
    #[command(subcommand)]
    pub(crate) what: Upgrade,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Upgrade {
    /// Show which newer versions of the installed providers go together
    ///
    /// Providers that the provider operator manages are shown with their objects, and a newer operator is named. All
    /// repositories are asked at the same time. A release that cannot be used, or a repository that cannot be
    /// reached, is a warning and does not block other providers. Nothing is changed.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),

    /// Upgrade providers: to a contract's newest versions, or to versions of your choice
    ///
    /// Everything is fetched, rendered, checked and tried on the server before any controller is stopped. Where
    /// something fails after that, the controllers that were stopped are started again; the same command continues from
    /// there.
    ///
    /// Where the provider operator manages the providers, their objects get the new versions, one after the other, and
    /// the operator is awaited. For another contract all providers are paused first and unpaused at the end.
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(Box<ApplyArgs>),

    /// Upgrade the provider operator to the version of this program
    ///
    /// Its components are part of this program: nothing is downloaded. Providers keep running meanwhile. What the new
    /// version does not have is deleted, but for CRDs and namespaces.
    #[command(after_help = OPERATOR_EXAMPLES)]
    Operator(OperatorArgs),
}

const PLAN_EXAMPLES: &str = "\
Examples:
  capstan upgrade plan
  capstan upgrade plan -o json";

const APPLY_EXAMPLES: &str = "\
Examples:
  All providers to the newest versions of a contract:
    capstan upgrade apply --contract v1beta2

  What that would change:
    capstan upgrade apply --contract v1beta2 --dry-run --diff

  One provider alone:
    capstan upgrade apply --infrastructure aws:v2.9.1";

const OPERATOR_EXAMPLES: &str = "\
Examples:
  capstan upgrade operator

  What that would change:
    capstan upgrade operator --dry-run --diff

  With an image of your own, waiting until it runs:
    capstan upgrade operator --operator-image registry.example.com/capstan:v1.2.3 --wait";

#[derive(Args, Debug)]
pub(crate) struct OperatorArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Image of the operator [default: this version's, with the configured overrides for capstan-operator]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) operator_image: Option<String>,

    /// Wait until the operator runs
    #[arg(long)]
    pub(crate) wait: bool,

    /// How many seconds to wait for it
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub(crate) wait_timeout: u64,

    #[command(flatten)]
    pub(crate) preview: PreviewArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,
}

#[derive(Args, Debug)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Upgrade all providers to the newest versions that speak this contract or one that goes with it, e.g. v1beta2
    #[arg(long, value_name = "CONTRACT")]
    pub(crate) contract: Option<String>,

    #[command(flatten)]
    pub(crate) providers: UpgradedProviders,

    /// Allow versions that are older than what is installed
    #[arg(long)]
    pub(crate) allow_downgrade: bool,

    /// Apply the version again that is installed: for changed variables and images, and to undo manual changes
    ///
    /// Objects that are as they should be are not written, and controllers are not stopped.
    #[arg(long)]
    pub(crate) reapply: bool,

    /// Wait until the upgraded providers run
    #[arg(long)]
    pub(crate) wait_providers: bool,

    /// How many seconds to wait for them, and for each step of the provider operator
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub(crate) wait_provider_timeout: u64,

    #[command(flatten)]
    pub(crate) preview: PreviewArgs,
}

/// Providers and the versions that they are to get, by flags of their types.
#[derive(Args, Debug, Default)]
pub(crate) struct UpgradedProviders {
    /// Core provider
    #[arg(long, value_name = "NAME:VERSION",
          add = ArgValueCompleter::new(complete::providers(ProviderType::Core)))]
    pub(crate) core: Option<String>,

    /// Bootstrap providers
    #[arg(short, long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Bootstrap)))]
    pub(crate) bootstrap: Vec<String>,

    /// Control plane providers
    #[arg(short, long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::ControlPlane)))]
    pub(crate) control_plane: Vec<String>,

    /// Infrastructure providers
    #[arg(short, long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Infrastructure)))]
    pub(crate) infrastructure: Vec<String>,

    /// IPAM providers
    #[arg(long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Ipam)))]
    pub(crate) ipam: Vec<String>,

    /// Runtime extension providers
    #[arg(long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::RuntimeExtension)))]
    pub(crate) runtime_extension: Vec<String>,

    /// Add-on providers
    #[arg(long, value_name = "NAME:VERSION,...", value_delimiter = ',',
          add = ArgValueCompleter::new(complete::providers(ProviderType::Addon)))]
    pub(crate) addon: Vec<String>,
}

impl UpgradedProviders {
    /// What is named, by type.
    pub(crate) fn named(&self) -> impl Iterator<Item = (ProviderType, &str)> {
        let lists: [(ProviderType, &[String]); 7] = [
            (ProviderType::Core, self.core.as_slice()),
            (ProviderType::Bootstrap, &self.bootstrap),
            (ProviderType::ControlPlane, &self.control_plane),
            (ProviderType::Infrastructure, &self.infrastructure),
            (ProviderType::Ipam, &self.ipam),
            (ProviderType::RuntimeExtension, &self.runtime_extension),
            (ProviderType::Addon, &self.addon),
        ];
        let named =
            lists.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name.as_str())));
        named.filter(|(_, name)| !name.is_empty())
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    u64::try_from(go_integer(text)?).map_err(|_| "must not be less than 0".to_owned())
}
