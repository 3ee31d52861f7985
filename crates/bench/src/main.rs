//! Benchmarks: what a controller costs, beside the least that the same API server could do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command for developers")]

mod core;
mod process;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measures Capstan on a control plane of its own.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The Cluster controller brings Clusters to Provisioned whose infrastructure is ready already
    Core {
        /// How many Clusters
        #[arg(long, default_value_t = 1000)]
        clusters: usize,
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Further flags for the manager, after --
        #[arg(last = true, value_name = "FLAG")]
        flags: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Args::parse().what {
        What::Core { clusters, binary, flags } => {
            let beside = std::env::current_exe()?.with_file_name("capstan");
            core::run(clusters.max(1), &binary.unwrap_or(beside), &flags).await
        }
    }
}
