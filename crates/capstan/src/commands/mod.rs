//! One file a command.

mod conformance;
mod crds;
mod manager;
mod quickstart;
mod version;

use tokio_util::sync::CancellationToken;
use tracing::info;

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
        Command::Version(args) => version::run(&args, printer),
    }
}

/// A token that is cancelled by Ctrl-C or SIGTERM.
fn stop_on_signal() -> Result<CancellationToken, CommandError> {
    use tokio::signal::unix::{SignalKind, signal};
    let wrap = |error| CommandError::new("cannot listen for signals", error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(wrap)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(wrap)?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => info!("interrupted"),
            _ = terminate.recv() => info!("terminated"),
        }
        token.cancel();
    });
    Ok(stop)
}

/// The name of this machine.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned())
}
