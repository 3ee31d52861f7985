//! `capstan`: a Cluster API management plane in one binary.

mod cli;
mod commands;
mod complete;
mod difference;
mod error;
mod goals;
mod hints;
mod logging;
mod management;
mod operator;
mod output;
mod plugins;
mod printer;
mod program;
mod progress;
mod session;
mod version_check;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap_complete::CompleteEnv;

use crate::{cli::Cli, printer::Printer};

fn main() -> ExitCode {
    let printer = Printer::new();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        printer.warn("another TLS provider is installed already");
    }
    // A shell that asks for completions is answered here, and the process ends.
    CompleteEnv::with_factory(Cli::with_habits).var(complete::VARIABLE).complete();
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            if error.kind() == ErrorKind::InvalidSubcommand
                && let Err(error) = plugins::become_plugin()
            {
                printer.error(&error);
                return ExitCode::FAILURE;
            }
            return answer(&error, printer);
        }
    };
    // Threads are for those who serve; a command that prints and ends is faster without.
    let mut builder = if cli.command.serves() {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.error(&error::CommandError::new("cannot start", error));
            return ExitCode::FAILURE;
        }
    };
    let reminder = cli.command.reminds().then(|| cli.globals.clone());
    let result = runtime.block_on(async {
        commands::run(cli, printer).await?;
        if let Some(globals) = reminder {
            version_check::remind(&globals, printer).await;
        }
        Ok(())
    });
    // A build that was interrupted must not hold the process.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Help is no failure, whether it was asked for or a group of commands was named alone; everything else exits with 1,
/// as clusterctl does.
fn answer(error: &clap::Error, printer: Printer) -> ExitCode {
    let is_help = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_help && printer.help(error).is_ok() {
        return ExitCode::SUCCESS;
    }
    printer.misuse(error);
    ExitCode::FAILURE
}
