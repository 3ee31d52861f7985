//! One file a command.

mod conformance;
mod convert;
mod crds;
mod manager;
mod quickstart;
mod version;

use crate::{
    cli::{Cli, Command},
    error::CommandError,
    printer::Printer,
};

/// Runs a command to its end.
pub(crate) async fn run(cli: Cli, printer: Printer) -> Result<(), CommandError> {
    match cli.command {
        Command::Quickstart(args) => quickstart::run(args, printer).await,
        Command::Manager(args) => manager::run(*args).await,
        Command::Crds(args) => crds::run(&args, printer),
        Command::Conformance(args) => conformance::run(args, printer).await,
        Command::Convert(args) => convert::run(&args, printer),
        Command::Version(args) => version::run(&args, printer),
    }
}
