//! Flags of `alpha`.

use capstan_inspect::rollout::{RolloutResource, RolloutTarget};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::generate::KubeconfigArgs;
use crate::complete;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct AlphaArgs {
    #[command(subcommand)]
    pub(crate) what: Alpha,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Alpha {
    /// Restart, pause or resume the rollout of machines
    Rollout(RolloutArgs),
}

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    pub(crate) what: Rollout,
}

const RESTART_EXAMPLES: &str = "\
Examples:
  Replace all machines of a MachineDeployment and of a control plane:
    capstan alpha rollout restart machinedeployment/my-workers kubeadmcontrolplane/my-control-plane";

#[derive(Debug, Subcommand)]
pub(crate) enum Rollout {
    /// Replace all machines, from now on
    #[command(after_help = RESTART_EXAMPLES)]
    Restart(RolloutOfArgs),

    /// Stop rolling out until it is resumed
    Pause(RolloutOfArgs),

    /// Go on with what was paused
    Resume(RolloutOfArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RolloutOfArgs {
    /// What to roll out: machinedeployment/NAME or kubeadmcontrolplane/NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub(crate) resources: Vec<String>,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,

    /// Namespace of the resources [default: that of the kubeconfig's context]
    #[arg(short = 'n', long, value_name = "NAMESPACE", add = ArgValueCompleter::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,
}

/// What `KIND/NAME` names.
pub(crate) fn rollout_resource(text: &str) -> Result<RolloutResource, String> {
    let named = text.split_once('/').and_then(|(kind, name)| {
        let target = RolloutTarget::ALL.into_iter().find(|it| it.kind().eq_ignore_ascii_case(kind))?;
        let is_name = !name.is_empty() && !name.contains('/');
        is_name.then(|| RolloutResource { target, name: name.to_owned() })
    });
    named.ok_or_else(|| {
        format!("{text:?} is not KIND/NAME with kind machinedeployment or kubeadmcontrolplane")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_kinds_and_names() {
        use RolloutTarget::{KubeadmControlPlane, MachineDeployment};
        for (text, expected) in [
            ("machinedeployment/a", Some((MachineDeployment, "a"))),
            ("MachineDeployment/Some.Name", Some((MachineDeployment, "Some.Name"))),
            ("kubeadmcontrolplane/b", Some((KubeadmControlPlane, "b"))),
            ("machinedeployment/", None),
            ("machinedeployment", None),
            ("machinedeployment/a/b", None),
            ("machineset/a", None),
            ("/a", None),
        ] {
            let parsed = rollout_resource(text).ok();
            let expected = expected.map(|(target, name)| RolloutResource { target, name: name.to_owned() });
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
