//! A local Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager as child processes on
//! loopback, for tests, demonstrations and first steps. No nodes, so no Pod ever runs.
//!
//! ```no_run
//! use capstan_control_plane::{Binaries, ControlPlane, Options, Sources};
//!
//! # fn main() -> Result<(), capstan_control_plane::Error> {
//! let sources = Sources::from_env(|name| std::env::var_os(name));
//! let binaries = Binaries::locate(&sources, &mut |progress| eprintln!("{progress}"))?;
//! let plane = ControlPlane::start(Options::temporary(binaries, std::env::temp_dir()))?;
//! eprintln!("export KUBECONFIG={}", plane.kubeconfig().display());
//! plane.stop()
//! # }
//! ```
//!
//! The processes end with the one that started them, even when that one is killed. Nothing in here reads the
//! environment, the time of day or the terminal: what is needed of those is handed in.

mod binaries;
mod certificates;
mod control_plane;
mod error;
mod flags;
mod go_build;
mod http;
mod kubeconfig;
mod ports;
mod process;
#[cfg(test)]
mod scratch;
mod state_dir;

pub use binaries::{Binaries, ETCD_VERSION, KUBERNETES_VERSION, Progress, Sources};
pub use control_plane::{ControlPlane, Options, State};
pub use error::Error;
pub use http::{Client, Response};
