//! What the Makefile calls: generated files, and a control plane for the tests.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command for developers")]

mod release;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use capstan_api::{cluster, operator};
use capstan_components::operator::NAME;
use capstan_control_plane::{Binaries, Sources};
use capstan_manifest::yaml;
use capstan_provider_local::api as local;
use clap::{Parser, Subcommand};
use semver::Version;
use serde_json::json;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the generated manifests under config/, and the chart under charts/
    Config {
        /// Change nothing; fail where a file is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Write the files of a release, in the layout of a local repository of clusterctl's
    Release {
        /// The version, with a leading v [default: the workspace's]
        #[arg(long, default_value = concat!("v", env!("CARGO_PKG_VERSION")), hide_default_value = true)]
        version: String,
        /// The folder to write to
        #[arg(long, default_value = "dist")]
        out: PathBuf,
    },
    /// Make sure that etcd and the Kubernetes control plane are there
    ControlPlane,
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Config { check } => config(check),
        Task::Release { version, out } => release(&version, &out),
        Task::ControlPlane => control_plane(),
    }
}

fn config(check: bool) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let mut stale = Vec::new();
    for (path, text) in generated()? {
        let path = root.join(path);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
        } else {
            fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    if !stale.is_empty() {
        bail!("not up to date, run `make config`: {}", stale.join(", "));
    }
    Ok(())
}

/// Every generated file with its text.
fn generated() -> Result<Vec<(PathBuf, String)>> {
    let mut crds = vec![("core", cluster::crd(cluster::WEBHOOK_SERVICE))];
    crds.extend(local::crds(local::WEBHOOK_SERVICE).into_iter().map(|crd| ("local", crd)));
    crds.extend(operator::crds().into_iter().map(|crd| ("operator", crd)));
    let crds = crds.into_iter().map(|(part, crd)| {
        let file = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        (PathBuf::from("config/crd").join(part).join(file), yaml::to_string(&json!(crd)))
    });
    let chart = release::chart::files(&workspace_version()?).into_iter();
    let folder = Path::new("charts").join(NAME);
    Ok(crds.chain(chart.map(|(file, text)| (folder.join(file), text))).collect())
}

fn workspace_version() -> Result<Version> {
    Version::parse(env!("CARGO_PKG_VERSION")).map_err(|error| anyhow!("the workspace's version: {error}"))
}

fn release(version: &str, out: &Path) -> Result<()> {
    for (path, text) in release::files(version)? {
        let path = out.join(path);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

fn control_plane() -> Result<()> {
    let sources = Sources::from_env(|name| std::env::var_os(name));
    let binaries = Binaries::locate(&sources, &mut |progress| eprintln!("{progress}"))?;
    println!("{}", binaries.kube_apiserver.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_up_to_date() {
        super::config(true).unwrap();
    }
}
