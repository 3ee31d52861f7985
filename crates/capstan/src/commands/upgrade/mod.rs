//! `capstan upgrade`: providers to newer versions.

mod apply;
mod plan;

use capstan_lifecycle::upgrade::{self, Unfinished, UpgradeError, UpgradeWarning};
use capstan_management::ManagementCluster;

use crate::{
    cli::{
        Globals,
        upgrade::{Upgrade, UpgradeArgs},
    },
    error::CommandError,
    printer::Printer,
    program,
    session::Session,
};

pub(crate) async fn run(args: UpgradeArgs, globals: &Globals, printer: Printer) -> Result<(), CommandError> {
    match args.what {
        Upgrade::Plan(args) => plan::run(&args, globals, printer).await,
        Upgrade::Apply(args) => apply::run(&args, globals, printer).await,
    }
}

/// Says what an upgrade left behind that was begun and not finished.
pub(crate) async fn tell_unfinished(
    cluster: &ManagementCluster,
    printer: Printer,
) -> Result<(), CommandError> {
    let unfinished = upgrade::unfinished(cluster).await?;
    for it in &unfinished {
        let Unfinished { provider, version } = it;
        printer.warn(&format!(
            "an upgrade of {} from {} to {version} was begun and not finished: its controllers may be stopped",
            provider.label(),
            provider.version
        ));
    }
    if !unfinished.is_empty() {
        printer.warn(&format!("go on by: {}", command(&unfinished)));
    }
    Ok(())
}

/// The command that goes on with upgrades.
fn command(unfinished: &[Unfinished]) -> String {
    let flags: Vec<String> = unfinished.iter().map(Unfinished::flag).collect();
    format!("{} upgrade apply {}", program::name(), flags.join(" "))
}

fn tell_warnings(warnings: &[UpgradeWarning], printer: Printer) {
    for UpgradeWarning { label, text } in warnings {
        printer.warn(&format!("{label}: {text}"));
    }
}

/// Why an upgrade cannot be, with what to do about it.
fn failed(error: UpgradeError, session: &Session) -> CommandError {
    match error {
        UpgradeError::Server(error) => error.into(),
        UpgradeError::Apply(error) => error.into(),
        UpgradeError::Release { label, source } => {
            let CommandError { message, causes, hint } = session.unusable_release(*source);
            CommandError { message: format!("{label}: {message}"), causes, hint }
        }
        UpgradeError::NothingInstalled => CommandError::plain(error.to_string())
            .hint(format!("install them first: {} init", program::name())),
        error => CommandError::plain(error.to_string()).hint_if(error.hint()),
    }
}
