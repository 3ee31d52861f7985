//! One file a command.

mod alpha;
mod completion;
mod config;
mod conformance;
mod convert;
mod crds;
mod delete;
mod describe;
mod explain;
pub(crate) mod generate;
mod get;
mod init;
mod lint;
mod manager;
mod quickstart;
mod upgrade;
pub(crate) mod version;
mod waiting;

use crate::{
    cli::{Cli, Command},
    error::CommandError,
    printer::Printer,
};

/// Runs a command to its end.
pub(crate) async fn run(cli: Cli, printer: Printer) -> Result<(), CommandError> {
    let globals = &cli.globals;
    match cli.command {
        Command::Generate(args) => generate::run(args, globals, printer).await,
        Command::Config(args) => config::run(args, globals, printer).await,
        Command::Init(args) => init::run(*args, globals, printer).await,
        Command::Describe(args) => describe::run(args, printer).await,
        Command::Get(args) => get::run(args, printer).await,
        Command::Explain(args) => explain::run(args, printer).await,
        Command::Alpha(args) => alpha::run(args, globals, printer).await,
        Command::Delete(args) => delete::run(*args, printer).await,
        Command::Upgrade(args) => upgrade::run(args, globals, printer).await,
        Command::Completion(args) => completion::run(&args, printer),
        Command::Quickstart(args) => quickstart::run(args, printer).await,
        Command::Manager(args) => manager::run(*args).await,
        Command::Crds(args) => crds::run(&args, printer),
        Command::Conformance(args) => conformance::run(args, printer).await,
        Command::Lint(args) => lint::run(&args, printer),

        Command::Convert(args) => convert::run(&args, printer),
        Command::Version(args) => version::run(&args, globals, printer).await,
    }
}
