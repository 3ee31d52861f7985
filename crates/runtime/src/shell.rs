//! What a process needs to be a manager: a name, and an ear for signals.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// A token that is cancelled by Ctrl-C or SIGTERM.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
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
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned())
}
