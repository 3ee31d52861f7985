//! `capstan`: a Cluster API management plane in one binary.

mod cli;
mod commands;
mod error;
mod logging;
mod printer;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Cli, printer::Printer};

fn main() -> ExitCode {
    let printer = Printer::new();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Asking for help is no failure; everything else exits with 1, as clusterctl does.
            let code = if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            return if error.print().is_ok() { code } else { ExitCode::FAILURE };
        }
    };
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        printer.warn("another TLS provider is installed already");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.error(&error::CommandError::new("cannot start", error));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(commands::run(cli, printer));
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
