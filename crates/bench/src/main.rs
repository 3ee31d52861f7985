//! Benchmarks: what a controller costs, beside the least that the same API server could do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command for developers")]

mod contender;
mod core;
mod process;
mod table;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::contender::{Contender, read_crds};

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
        /// How many Clusters; several runs with a comma between them
        #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
        clusters: Vec<usize>,
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Upstream's core manager, to be measured with the first number of Clusters in the same run
        #[arg(long, requires = "upstream_crds")]
        upstream: Option<PathBuf>,
        /// The folder with upstream's CRDs
        #[arg(long)]
        upstream_crds: Option<PathBuf>,
        /// Further flags for Capstan's manager, after --
        #[arg(last = true, value_name = "FLAG")]
        flags: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let What::Core { clusters, binary, upstream, upstream_crds, flags } = Args::parse().what;
    let binary = binary.map_or_else(|| Ok(std::env::current_exe()?.with_file_name("capstan")), anyhow::Ok)?;
    let ours = Contender::Capstan { binary, flags };
    // The same kinds for all, so that all have the same to watch.
    let kinds = upstream_crds.as_deref().map(read_crds).transpose()?.unwrap_or_default();
    let mut measured = Vec::new();
    for (run, clusters) in clusters.into_iter().enumerate() {
        let clusters = clusters.max(1);
        measured.push(core::measure(&ours, &kinds, clusters).await?);
        if let (0, Some(binary)) = (run, &upstream) {
            for unlimited in [true, false] {
                let theirs = Contender::Upstream { binary: binary.clone(), unlimited };
                measured.push(core::measure(&theirs, &kinds, clusters).await?);
            }
        }
    }
    println!("{}", table::table(&measured));
    Ok(())
}
