//! Benchmarks: what a controller costs beside the least that the same API server could do, and what commands cost
//! beside upstream's.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command for developers")]

mod contender;
mod core;
mod lifecycle;
mod operator;
mod process;
mod render;
mod table;
mod webhook;

use std::{path::PathBuf, time::Duration};

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
    /// Commands that print manifests, beside upstream's
    Render {
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Upstream's clusterctl
        #[arg(long)]
        upstream: Option<PathBuf>,
        /// The folder of releases that has cluster-api/VERSION/core-components.yaml
        #[arg(long)]
        releases: PathBuf,
    },
    /// Commands that change a management cluster, beside upstream's
    Lifecycle {
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Upstream's clusterctl
        #[arg(long)]
        upstream: Option<PathBuf>,
        /// The folder of releases that has LABEL/VERSION/*-components.yaml of core, kubeadm and gcp
        #[arg(long)]
        releases: PathBuf,
        /// A manifest of cert-manager, in a folder named after its version
        #[arg(long)]
        cert_manager: PathBuf,
    },
    /// The provider operator installs core, kubeadm and gcp, beside upstream's
    Operator {
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Upstream's operator
        #[arg(long, requires = "upstream_crds")]
        upstream: Option<PathBuf>,
        /// The folder with the CRDs of upstream's operator
        #[arg(long)]
        upstream_crds: Option<PathBuf>,
        /// The folder of releases that has LABEL/VERSION/*-components.yaml of core, kubeadm and gcp
        #[arg(long)]
        releases: PathBuf,
        /// A manifest of cert-manager
        #[arg(long)]
        cert_manager: PathBuf,
    },
    /// Small reviews at a steady rate, beside requests that never end and idle connections
    Webhook {
        /// The binary to measure [default: capstan, beside this one]
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Seconds of attack; a sixth of that passes before and after it
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Reviews a second
        #[arg(long, default_value_t = 50)]
        rate: u32,
    },
    /// One run of a program, for the others
    #[command(hide = true)]
    Once {
        program: PathBuf,
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Args::parse().what {
        What::Core { clusters, binary, upstream, upstream_crds, flags } => {
            let ours = Contender::Capstan { binary: or_ours(binary)?, flags };
            measure_core(ours, clusters, upstream, upstream_crds).await
        }
        What::Render { binary, upstream, releases } => {
            println!("{}", render::measure(&or_ours(binary)?, upstream.as_deref(), &releases)?);
            Ok(())
        }
        What::Lifecycle { binary, upstream, releases, cert_manager } => {
            let ours = or_ours(binary)?;
            let stock = lifecycle::Stock {
                ours: &ours,
                upstream: upstream.as_deref(),
                releases: &releases,
                cert_manager: &cert_manager,
            };
            println!("{}", lifecycle::measure(&stock).await?);
            Ok(())
        }
        What::Operator { binary, upstream, upstream_crds, releases, cert_manager } => {
            let ours = or_ours(binary)?;
            let stock = operator::Stock {
                ours: &ours,
                upstream: upstream.as_deref().zip(upstream_crds.as_deref()),
                releases: &releases,
                cert_manager: &cert_manager,
            };
            println!("{}", operator::measure(&stock).await?);
            Ok(())
        }
        What::Webhook { binary, seconds, rate } => {
            println!("{}", webhook::measure(&or_ours(binary)?, Duration::from_secs(seconds), rate).await?);
            Ok(())
        }
        What::Once { program, arguments } => {
            println!("{}", render::once(&program, &arguments)?);
            Ok(())
        }
    }
}

fn or_ours(binary: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    binary.map_or_else(|| Ok(std::env::current_exe()?.with_file_name("capstan")), Ok)
}

async fn measure_core(
    ours: Contender,
    clusters: Vec<usize>,
    upstream: Option<PathBuf>,
    upstream_crds: Option<PathBuf>,
) -> anyhow::Result<()> {
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
