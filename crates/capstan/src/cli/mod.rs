//! The command line: every flag in one place.

pub(crate) mod alpha;
pub(crate) mod cobra;
pub(crate) mod completion;
pub(crate) mod config;
mod convert;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod init;
pub(crate) mod lint;
pub(crate) mod preview;
pub(crate) mod show_conditions;
pub(crate) mod upgrade;

use std::{path::PathBuf, time::Duration};

use capstan_runtime::options::{ManagerOptions, parse_duration};
use clap::{ArgAction, ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use self::{
    alpha::AlphaArgs, completion::CompletionArgs, config::ConfigArgs, delete::DeleteArgs,
    describe::DescribeArgs, explain::ExplainArgs, generate::GenerateArgs, get::GetArgs, init::InitArgs,
    upgrade::UpgradeArgs,
};
use crate::program;

pub(crate) use self::convert::ConvertArgs;
pub(crate) use lint::{Lint, LintArgs, LintFiles};

/// A Cluster API management plane: the CLI, the core provider and a reference infrastructure provider in one binary.
#[derive(Debug, Parser)]
#[command(name = "capstan", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line with upstream's habits, under the name that the program was called by.
    pub(crate) fn with_habits() -> clap::Command {
        let name = program::name();
        cobra::with_habits(cobra::with_examples_of(Self::command().name(name), name))
    }

    /// What the user typed.
    pub(crate) fn read<T: Into<std::ffi::OsString> + Clone>(
        words: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::with_habits().try_get_matches_from(words)?)
    }
}

/// What every command that reads releases wants to know.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Globals {
    /// Configuration: a file or an https:// address [default: clusterctl.yaml in $XDG_CONFIG_HOME/cluster-api or
    /// ~/.cluster-api]
    #[arg(long, global = true, value_name = "FILE-OR-URL")]
    pub(crate) config: Option<String>,

    /// Verbosity: 1 logs what is fetched from where [default: $CLUSTERCTL_LOG_LEVEL, or 0]
    #[arg(short = 'v', long = "v", global = true, value_name = "LEVEL", value_parser = cobra::level,
          allow_negative_numbers = true)]
    pub(crate) verbosity: Option<u8>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print manifests: of workload clusters, of providers, or of any YAML with variables
    Generate(GenerateArgs),

    /// Look at the configuration: providers and where their releases are
    Config(ConfigArgs),

    /// Install providers into a management cluster
    ///
    /// The first time core, the kubeadm providers and cert-manager are installed with what is asked for. Everything
    /// is fetched and checked before anything is written; an installation that was interrupted is completed by the
    /// same command.
    ///
    /// With --operator the providers are objects that the provider operator acts on. It gets the variables that their
    /// components ask for and the image overrides from the local configuration, as Secrets, and releases that only this
    /// machine can read as ConfigMaps.
    Init(Box<InitArgs>),

    /// Upgrade the providers of a management cluster
    Upgrade(UpgradeArgs),

    /// Delete providers from a management cluster
    ///
    /// CustomResourceDefinitions and namespaces stay unless they are asked for. Providers that still look after objects
    /// are not deleted. Of a provider that the provider operator manages the object is to be deleted, by kubectl; --all
    /// deletes the objects, too, core's last, and then the operator.
    #[command(after_help = delete::EXAMPLES)]
    Delete(Box<DeleteArgs>),

    /// Print what a management cluster knows: kubeconfigs of workload clusters, Clusters
    Get(GetArgs),

    /// Show what belongs to a workload cluster, and in which state it is
    Describe(DescribeArgs),

    /// Explain why something is not available, and what to do
    Explain(ExplainArgs),

    /// Try what may change: rollouts of machines
    Alpha(AlphaArgs),

    /// Start a local control plane and watch a Cluster become Provisioned on it
    ///
    /// Everything runs on loopback and ends with this command: etcd, kube-apiserver, kube-controller-manager, the
    /// core provider and the local provider. The first run builds the control plane from its Go modules, once.
    Quickstart(QuickstartArgs),

    /// Run controllers
    ///
    /// The flags are those of upstream's managers, so that existing manifests keep working.
    Manager(Box<ManagerArgs>),

    /// Print CustomResourceDefinitions as YAML
    ///
    /// Example: capstan crds core | kubectl apply --server-side -f -
    Crds(CrdsArgs),

    /// Check anybody's provider against the Cluster API contract
    ///
    /// Each finding names the rule, what was seen, how to repair it, and the paragraph of the contract. The command
    /// fails where a rule is broken that a provider must keep.
    Conformance(ConformanceArgs),

    /// Convert manifests of Cluster API from v1beta1 to v1beta2
    ///
    /// Documents of cluster.x-k8s.io/v1beta1 are converted; all others are passed through. Comments are not kept.
    ///
    /// Example: capstan convert cluster.yaml -o cluster.yaml
    Convert(ConvertArgs),

    /// Print a script that completes commands, flags, providers, versions and flavors in a shell
    Completion(CompletionArgs),

    /// Check the files of a provider's release as their author wrote them
    ///
    /// Each finding names the rule, the file, line and column, what was seen and how to repair it. The command fails
    /// where a rule is broken that must be kept.
    Lint(LintArgs),

    /// Print the version of this binary
    Version(VersionArgs),
}

impl Command {
    /// Whether controllers, servers or playing core are part of it.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Quickstart(_) | Self::Manager(_) | Self::Conformance(_))
    }

    /// Whether it may report a newer version of Capstan.
    pub(crate) fn reminds(&self) -> bool {
        match self {
            Self::Completion(_) | Self::Manager(_) => false,
            Self::Version(args) => !args.check,
            _ => true,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct QuickstartArgs {
    /// Keep the control plane's data here and reuse it next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Name of the sample Cluster
    #[arg(long, value_name = "NAME", default_value = "demo")]
    pub(crate) name: String,

    /// End once the Cluster is Provisioned and its endpoint answers
    #[arg(long)]
    pub(crate) exit_when_ready: bool,

    /// Verbosity of the controllers' log, which goes to logs/controllers.log in the state folder
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,
}

#[derive(Args, Debug)]
pub(crate) struct ManagerArgs {
    /// Which controllers to run
    #[arg(value_enum)]
    pub(crate) which: Controllers,

    #[command(flatten)]
    pub(crate) options: ManagerOptions,

    /// Clusters that are reconciled at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = positive)]
    pub(crate) cluster_concurrency: usize,

    /// Workload clusters that are connected to at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = positive)]
    pub(crate) clustercache_concurrency: usize,

    /// Requests a second to each workload cluster; 0 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 20.0, value_parser = rate)]
    pub(crate) clustercache_client_qps: f64,

    /// Requests at once beyond --clustercache-client-qps
    #[arg(long, value_name = "NUMBER", default_value_t = 30)]
    pub(crate) clustercache_client_burst: u32,

    /// How long a workload cluster may be silent before RemoteConnectionProbe says so
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = parse_duration)]
    pub(crate) remote_connection_grace_period: Duration,

    /// LocalClusters that are reconciled at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = positive)]
    pub(crate) localcluster_concurrency: usize,

    /// Provider objects of a kind that the operator looks at at the same time; one provider at a time is written
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = positive)]
    pub(crate) provider_concurrency: usize,

    /// Whether the operator creates provider objects for providers that clusterctl or the commands installed
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = cobra::go_bool)]
    pub(crate) migrate_inventory: bool,

    /// Accepted because upstream's manifests set it; without effect
    #[arg(long, value_name = "GATE=BOOL,...")]
    pub(crate) feature_gates: Option<String>,

    /// Verbosity of the log: 2 for what matters, 4 for decisions, 6 for everything
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,

    /// Form of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) logging_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Controllers {
    /// The core provider: the Cluster controller
    Core,
    /// The local infrastructure provider: the LocalCluster controller
    Local,
    /// The provider operator: providers as declarative objects
    Operator,
    /// Core and local, under the core provider's Lease: run no `manager local` beside it
    All,
}

impl Controllers {
    /// Whether the controllers of a part are among these.
    pub(crate) fn includes(self, part: Self) -> bool {
        self == part || (self == Self::All && part != Self::Operator)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// An object a line
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct CrdsArgs {
    /// Whose kinds to print
    #[arg(value_enum, default_value_t = KindsOf::All)]
    pub(crate) which: KindsOf,

    /// Whether API versions are converted by webhooks; without them only v1beta2 is served
    ///
    /// Use --webhooks=false for a manager that runs with --webhook-port 0.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = cobra::go_bool)]
    pub(crate) webhooks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindsOf {
    /// The core provider
    Core,
    /// The local infrastructure provider
    Local,
    /// The provider operator, whose kinds have one version and are never converted
    Operator,
    /// All of them
    All,
}

impl KindsOf {
    /// Whether the kinds of a part are among these.
    pub(crate) fn includes(self, part: Self) -> bool {
        self == part || self == Self::All
    }
}

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct ConformanceArgs {
    #[command(subcommand)]
    pub(crate) what: Conformance,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Conformance {
    /// Check what files or a cluster show: CRDs, RBAC and release files
    ///
    /// Nothing is run and nothing is changed. What files cannot show is listed as not checked.
    #[command(after_help = STATIC_EXAMPLES)]
    Static(StaticArgs),

    /// Check a running provider of InfraClusters: this command plays core, in a namespace of its own
    ///
    /// It creates Clusters and InfraClusters, does to them what core does, and judges what the provider does. Run it on a
    /// management cluster for tests where the provider runs: it makes real infrastructure from the manifest, several times
    /// over, and takes it down again.
    #[command(after_help = INFRACLUSTER_EXAMPLES)]
    Infracluster(InfraClusterArgs),

    /// Print the contract: all rules, how much they bind and where they are seen
    ///
    /// JSON has also how each rule is checked, what core does otherwise, and the paragraph of the contract.
    Rules(RulesArgs),
}

const STATIC_EXAMPLES: &str = "\
Examples:
  Check a release as it is published, with its metadata.yaml:
    capstan conformance static --components out/v1.2.3/

  Check what will be released, labels included:
    kubectl kustomize config/default | capstan conformance static --components -

  Check a provider that is installed:
    capstan conformance static --kubeconfig ~/.kube/config --provider infrastructure-foo

  Write a report for a build server:
    capstan conformance static --components out/v1.2.3/ -o junit > conformance.xml";

const INFRACLUSTER_EXAMPLES: &str = "\
Examples:
  Check a provider of FooClusters; foo.yaml has one FooCluster and the Secret that it needs:
    capstan conformance infracluster --kind FooCluster --manifest foo.yaml

  The same where a core manager is running:
    capstan conformance infracluster --kind FooCluster --manifest foo.yaml --core beside

  Restart the provider on the way:
    capstan conformance infracluster --kind FooCluster --manifest foo.yaml \\
      --restart-command 'kubectl -n foo-system rollout restart deployment foo-controller-manager'";

#[derive(Args, Debug)]
pub(crate) struct InfraClusterArgs {
    /// Kind of the InfraCluster
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: String,

    /// API group of the kind [default: that of its document in the manifest]
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// API version of the kind [default: the one that core picks by the contract labels of its CRD]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,

    /// File with one object of the kind, and all that it needs, such as Secrets; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: PathBuf,

    /// Kubeconfig of the management cluster [default: $KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Namespace to play in; one that does not exist is created, and deleted afterwards [default: a fresh one]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Who plays core
    #[arg(long, value_enum, value_name = "WHO", default_value_t = PlaysCore::Fake)]
    pub(crate) core: PlaysCore,

    /// How long the provider may take for one step, such as to provision or to delete
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) timeout: Duration,

    /// How long nothing must happen where nothing is to happen
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    pub(crate) quiet_time: Duration,

    /// Check only these rules [default: all]
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Command that restarts the provider, run by sh; without it restarts are not checked
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart_command: Option<String>,

    /// Form of the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Table)]
    pub(crate) output: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaysCore {
    /// This command; no core manager is running
    Fake,
    /// This command, beside a core manager that is running
    Beside,
    /// The core manager that is running; what needs a core that misbehaves is not checked
    Real,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("given").required(true).multiple(false))]
pub(crate) struct StaticArgs {
    /// Files of YAML, or folders of them: components, CRDs, metadata.yaml; - for standard input
    ///
    /// Of a folder, all files that end in .yaml, .yml or .json are read, but neither subfolders nor the templates of
    /// workload clusters (cluster-template*, clusterclass*) nor kustomization.yaml. Components may have variables
    /// such as ${NAME:=default}; they are read as text.
    #[arg(long, value_name = "FILE-OR-FOLDER", num_args = 1.., group = "given")]
    pub(crate) components: Vec<PathBuf>,

    /// Read a cluster instead: its CRDs, ClusterRoles and the providers' Deployments
    #[arg(long, value_name = "FILE", group = "given")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, if not its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,

    /// Check one of the cluster's providers only: the value of its label cluster.x-k8s.io/provider
    #[arg(long, value_name = "LABEL", requires = "kubeconfig")]
    pub(crate) provider: Option<String>,

    /// Form of the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Table)]
    pub(crate) output: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// For build servers: JUnit's XML
    Junit,
}

#[derive(Args, Debug)]
pub(crate) struct RulesArgs {
    /// Form of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RulesFormat::Table)]
    pub(crate) output: RulesFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = VersionFormat::Text)]
    pub(crate) output: VersionFormat,

    /// Ask whether there is a newer version, at $CAPSTAN_RELEASES or at the project's home
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionFormat {
    /// A line for people
    Text,
    /// The version alone
    Short,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "must be 0 or a number greater than 0".to_owned())
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number greater than 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::with_habits().debug_assert();
    }

    #[test]
    fn flags_can_be_given_as_upstreams_manifests_do() {
        let cli = Cli::read([
            "capstan",
            "manager",
            "core",
            "--leader-elect",
            "--diagnostics-address=:8443",
            "--insecure-diagnostics=false",
            "--v=4",
            "--sync-period=5m0s",
            "--namespace=",
            "--kube-api-qps=50",
            "--clustercache-concurrency=100",
            "--clustercache-client-qps=20",
            "--clustercache-client-burst=30",
            "--remote-connection-grace-period=1m40s",
            "--watch-filter=mine",
            "--feature-gates=MachinePool=true,ClusterTopology=false,RuntimeSDK=false",
        ])
        .unwrap();
        let Command::Manager(args) = cli.command else { panic!("not manager") };
        assert!(args.options.leader_elect && !args.options.insecure_diagnostics);
        assert_eq!(args.verbosity, 4);
        assert_eq!(args.options.sync_period.as_secs(), 300);
        assert_eq!((args.options.namespace.as_str(), args.options.watch_filter.as_str()), ("", "mine"));
        let gates = args.feature_gates.as_deref();
        assert_eq!(gates, Some("MachinePool=true,ClusterTopology=false,RuntimeSDK=false"));
        assert_eq!(args.remote_connection_grace_period.as_secs(), 100);
        for refused in
            ["--clustercache-client-qps=-1", "--clustercache-client-qps=NaN", "--clustercache-concurrency=0"]
        {
            assert!(Cli::read(["capstan", "manager", "core", refused]).is_err(), "{refused}");
        }
    }
}
