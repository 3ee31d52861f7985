//! The controllers' log.

use std::{fs::File, path::Path, sync::Mutex};

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Kubernetes' verbosity in tracing's words.
fn filter(verbosity: u8) -> EnvFilter {
    // The client's own lines on failed requests say less than those of who sent them, and a workload cluster that is
    // away would fill the log with them.
    EnvFilter::new(match verbosity {
        0 => "warn,kube_client::client::builder=off",
        1..=2 => "info,kube_client::client::builder=off",
        3..=4 => {
            "info,kube_client::client::builder=off,capstan=debug,capstan_runtime=debug,capstan_cluster=debug,capstan_provider_local=debug"
        }
        5 => "debug,hyper=info,tower=info,rustls=info",
        _ => "trace",
    })
}

/// Logs to stderr.
pub(crate) fn to_stderr(verbosity: u8, format: LogFormat) {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(verbosity)).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// Logs to a file, for commands that have something else on the screen.
pub(crate) fn to_file(verbosity: u8, path: &Path) -> std::io::Result<()> {
    let file = Mutex::new(File::options().create(true).append(true).open(path)?);
    tracing_subscriber::fmt().with_env_filter(filter(verbosity)).with_ansi(false).with_writer(file).init();
    Ok(())
}
