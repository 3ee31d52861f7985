//! A provider as a process of its own.

use std::io;

use capstan_runtime::{
    manager::{Manager, ManagerError},
    options::ManagerOptions,
    shell::{host_name, stop_on_signal},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{BrokenContract, Options, Provider, register};

/// A provider cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its CRDs are not what the contract asks for.
    #[error(transparent)]
    Contract(#[from] BrokenContract),
    /// The manager cannot start, or had to end.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Signals cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
}

/// Runs a provider until SIGTERM or Ctrl-C.
///
/// It installs nothing: the CRDs are part of the provider's release.
pub async fn run<P: Provider>(
    provider: P,
    crds: &[CustomResourceDefinition],
    options: ManagerOptions,
) -> Result<(), RunError> {
    let stop = stop_on_signal().map_err(RunError::Signals)?;
    let lease = format!("controller-leader-election-{}", P::NAME);
    let mut manager = Manager::connect(options, &lease, &host_name(), stop).await?;
    register(&mut manager, provider, crds, Options::default())?;
    manager.run().await?;
    Ok(())
}
