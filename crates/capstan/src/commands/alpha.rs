//! `capstan alpha`.

use capstan_inspect::rollout::{self, RolloutAction};
use k8s_openapi::jiff::Timestamp;

use crate::{
    cli::{
        Globals,
        alpha::{Alpha, AlphaArgs, Rollout, RolloutOfArgs, rollout_resource},
    },
    error::CommandError,
    hints::Hint,
    management::Management,
    printer::Printer,
    session::Session,
};

pub(crate) async fn run(args: AlphaArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    let Alpha::Rollout(args) = args.what;
    let (action, args) = match args.what {
        Rollout::Restart(args) => (RolloutAction::Restart, args),
        Rollout::Pause(args) => (RolloutAction::Pause, args),
        Rollout::Resume(args) => (RolloutAction::Resume, args),
    };
    roll_out(action, &args, globals, printer).await
}

/// What fails does not keep the others from being done; each failure is printed.
async fn roll_out(
    action: RolloutAction,
    args: &RolloutOfArgs,
    globals: &Globals,
    printer: Printer,
) -> Result<(), CommandError> {
    let resources = args.resources.iter().map(|it| rollout_resource(it)).collect::<Result<Vec<_>, _>>();
    let resources = resources.map_err(|error| CommandError::plain(error).hint("nothing was changed"))?;
    // A configuration that is named must be there, though a rollout needs nothing of it.
    Session::open(globals, printer).await?;
    let management = Management::open(&args.kubeconfig).await?;
    let namespace = management.namespace_or(args.namespace.as_deref());
    let mut failures = Vec::new();
    for resource in &resources {
        match rollout::perform(management.cluster(), namespace, resource, action, Timestamp::now()).await {
            Ok(()) => printer.done(&format!("{resource} {}", action.participle())),
            Err(error) => failures.push(CommandError::plain(error.to_string()).hint_if(error.hint())),
        }
    }
    let last = failures.pop();
    for failure in &failures {
        printer.error(failure);
    }
    last.map_or(Ok(()), Err)
}
