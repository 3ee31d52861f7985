//! Flags of `describe`.

use capstan_inspect::describe::{ConditionStyle, DescribeOptions};
use clap::{ArgAction, Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::{
    cobra::go_bool,
    generate::{KubeconfigArgs, ListFormat},
    show_conditions::ShowConditions,
};
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct DescribeArgs {
    #[command(subcommand)]
    pub(crate) what: Describe,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// Show a workload cluster as a tree: what belongs to it, in which state, and where a problem is
    ///
    /// Machines in the same state are one line; objects of a Machine are shown where they say more than the Machine.
    /// What cannot be read is shown as such: Missing for what is referred to but does not exist, Unknown for what the
    /// user may not look at.
    #[command(after_help = EXAMPLES)]
    Cluster(Box<DescribeClusterArgs>),
}

const EXAMPLES: &str = "\
Examples:
  The cluster test-1 at a glance:
    capstan describe cluster test-1

  Every Machine with its objects, and all conditions that are not as they should be:
    capstan describe cluster test-1 --grouping=false --echo --show-conditions all+

  All conditions of the control plane and of one Machine:
    capstan describe cluster test-1 --show-conditions KubeadmControlPlane,Machine/m1

  Live, until Ctrl-C or until the cluster is gone:
    capstan describe cluster test-1 --watch

  For a program:
    capstan describe cluster test-1 -o json";

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "every one is a switch of its own")]
pub(crate) struct DescribeClusterArgs {
    /// Name of the Cluster
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace of the Cluster [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,

    /// Show the conditions of these one by one: KIND or KIND/NAME, separated by commas, or all; with + behind it only
    /// those that are not as they should be or have a message
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true,
          value_parser = |it: &str| it.parse::<ShowConditions>())]
    pub(crate) show_conditions: ShowConditions,

    /// Show MachineSets
    #[arg(long)]
    pub(crate) show_machinesets: bool,

    /// Show the ClusterResourceSets that were applied
    #[arg(long)]
    pub(crate) show_resourcesets: bool,

    /// Show the templates of infrastructure and bootstrap configurations
    #[arg(long)]
    pub(crate) show_templates: bool,

    /// Show the objects of a Machine also where they are fine or say no more than the Machine
    #[arg(long)]
    pub(crate) echo: bool,

    /// Show Machines in the same state as one line
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_bool)]
    pub(crate) grouping: bool,

    /// Look at the conditions of v1beta2; with =false at those of v1beta1, which have a severity
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true", value_parser = go_bool)]
    pub(crate) v1beta2: bool,

    /// Use colours, or not with =false [default: on a terminal]; $NO_COLOR wins
    #[arg(short, long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = go_bool)]
    pub(crate) color: Option<bool>,

    /// Form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,

    /// Keep showing it as it changes, until Ctrl-C or until the Cluster is deleted
    #[arg(short, long)]
    pub(crate) watch: bool,
}

impl DescribeClusterArgs {
    /// What is to be shown.
    pub(crate) fn options(&self) -> DescribeOptions {
        DescribeOptions {
            show_machine_sets: self.show_machinesets,
            show_resource_sets: self.show_resourcesets,
            show_templates: self.show_templates,
            echo: self.echo,
            grouping: self.grouping,
            style: if self.v1beta2 { ConditionStyle::Current } else { ConditionStyle::Legacy },
        }
    }
}
