//! `capstan upgrade`: providers to newer versions.

mod apply;
mod managed;
mod operator;
mod plan;

use capstan_lifecycle::upgrade::{UpgradeError, UpgradeWarning};
use capstan_management::inventory::{Installed, Inventory};

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
        Upgrade::Operator(args) => operator::run(&args, globals, printer).await,
    }
}

/// Warns of upgrades that began and did not finish, and of entries of the inventory that count for nothing.
pub(crate) fn warn_of_inventory(inventory: &Inventory, printer: Printer) {
    for entry in &inventory.unreadable {
        printer.warn(&format!(
            "Provider {entry} is ignored: its type is unknown, or it has no type, providerName or version"
        ));
    }
    let mut flags = Vec::new();
    for (provider, version) in inventory.unfinished() {
        let Installed { kind, name, version: installed, namespace, .. } = provider;
        printer.warn(&format!(
            "an upgrade of {} from {installed} to {version} began and did not finish: its controllers may be stopped",
            provider.label()
        ));
        let is_alone = inventory.instances(*kind, name).count() == 1;
        let instance = if is_alone { name.clone() } else { format!("{namespace}/{name}") };
        flags.push(format!("--{} {instance}:{version}", kind.prefix()));
    }
    if !flags.is_empty() {
        printer.warn(&format!("to finish it: {} upgrade apply {}", program::name(), flags.join(" ")));
    }
}

fn print_warnings(warnings: &[UpgradeWarning], printer: Printer) {
    for UpgradeWarning { label, text } in warnings {
        printer.warn(&format!("{label}: {text}"));
    }
}

/// Why an upgrade failed, with what to do about it.
fn failed(error: UpgradeError, session: &Session) -> CommandError {
    match error {
        UpgradeError::Release { label, source } => session.unusable_release_of(&label, *source),
        error => error.into(),
    }
}
