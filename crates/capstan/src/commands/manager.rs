//! `capstan manager`.

use capstan_runtime::{
    manager::Manager,
    shell::{host_name, stop_on_signal},
};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, warn};

use crate::{
    cli::{Controllers, ManagerArgs},
    error::CommandError,
    logging, session,
};

/// Files that serve a full house: 1,024 connections to the webhooks, and a thousand Clusters.
const ENOUGH_FILES: u64 = 4096;

/// A part of the management plane that a manager can run.
struct Part {
    name: Controllers,
    lease: &'static str,
    webhook_service: &'static str,
    register: fn(&mut Manager, &ManagerArgs) -> Result<(), CommandError>,
}

/// All parts. `all` is core and local: the operator installs core where it is wanted.
///
/// A manager that runs several has the Lease and the webhook Service of the first of them: where the core
/// provider is one, its Lease keeps upstream's core manager out.
const PARTS: [Part; 3] = [
    Part {
        name: Controllers::Core,
        lease: capstan_cluster::LEASE,
        webhook_service: capstan_cluster::WEBHOOK_SERVICE,
        register: |manager, args| {
            register_core(manager, args);
            Ok(())
        },
    },
    Part {
        name: Controllers::Local,
        lease: capstan_provider_local::LEASE,
        webhook_service: capstan_provider_local::WEBHOOK_SERVICE,
        register: register_local,
    },
    Part {
        name: Controllers::Operator,
        lease: capstan_operator::LEASE,
        webhook_service: capstan_operator::WEBHOOK_SERVICE,
        register: register_operator,
    },
];

pub(crate) async fn run(args: ManagerArgs) -> Result<(), CommandError> {
    logging::to_stderr(args.verbosity, args.logging_format);
    if let Some(gates) = args.feature_gates.as_deref().filter(|gates| !gates.is_empty()) {
        warn!(gates, "--feature-gates has no effect: there are no feature gates here");
    }
    open_all_files();
    let stop = stop_on_signal().map_err(|error| CommandError::new("cannot listen for signals", error))?;
    let parts = chosen(args.which);
    let first = parts.first().ok_or_else(|| CommandError::plain("there are no controllers to run"))?;
    let wrap = |error| CommandError::new("the manager cannot run", error);
    let mut manager =
        Manager::connect(args.options.clone(), first.lease, &host_name(), stop).await.map_err(wrap)?;
    let namespace = manager.client().default_namespace().to_owned();
    if let Some(identity) = manager.options().webhook_identity(first.webhook_service, &namespace) {
        manager.keep_webhook_certificates(identity);
    }
    for part in parts {
        (part.register)(&mut manager, &args)?;
    }
    manager.run().await.map_err(wrap)
}

/// Lets the process open as many files as it may. Each connection is one, and what a container may open without asking
/// (1,024) is less than what all servers and workload clusters together need.
fn open_all_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most).map(|()| most));
    match raised {
        Ok(files) if files < ENOUGH_FILES => {
            warn!(files, "the limit on open files is low: connections may fail beyond it");
        }
        Ok(files) => debug!(files, "open files are limited"),
        Err(error) => warn!(%error, "cannot raise the limit on open files"),
    }
}

fn chosen(which: Controllers) -> Vec<&'static Part> {
    PARTS.iter().filter(|part| which.includes(part.name)).collect()
}

fn register_core(manager: &mut Manager, args: &ManagerArgs) {
    let connections = capstan_cluster::ConnectionOptions {
        concurrency: args.clustercache_concurrency,
        client_qps: args.clustercache_client_qps,
        client_burst: args.clustercache_client_burst,
        grace_period: args.remote_connection_grace_period,
        ..capstan_cluster::ConnectionOptions::default()
    };
    let options = capstan_cluster::Options { concurrency: args.cluster_concurrency, connections };
    capstan_cluster::register(manager, options);
}

fn register_local(manager: &mut Manager, args: &ManagerArgs) -> Result<(), CommandError> {
    let options = capstan_provider_local::Options { concurrency: args.localcluster_concurrency };
    let registered = capstan_provider_local::register(manager, options);
    registered.map(drop).map_err(|error| CommandError::new("the local provider cannot run", error))
}

fn register_operator(manager: &mut Manager, args: &ManagerArgs) -> Result<(), CommandError> {
    let environment = session::capture();
    let network = capstan_operator::fetch::network_options(&environment)
        .map_err(|error| CommandError::new("the operator cannot run", error))?;
    let fetcher = capstan_operator::Fetcher::new(manager.leader_client(), environment, network);
    let options = capstan_operator::Options {
        concurrency: args.provider_concurrency,
        migrate_inventory: args.migrate_inventory,
        ..capstan_operator::Options::default()
    };
    capstan_operator::register(manager, fetcher, options);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operator's release files name the Service that its manager looks for without flags.
    #[test]
    fn the_operators_webhook_is_behind_the_service_of_its_components() {
        let part = chosen(Controllers::Operator);
        assert_eq!(part[0].webhook_service, capstan_components::operator::WEBHOOK_SERVICE);
    }

    #[test]
    fn each_choice_has_its_parts_and_the_lease_of_the_first() {
        for (which, parts, lease) in [
            (Controllers::Core, &[Controllers::Core][..], "controller-leader-election-capi"),
            (Controllers::Local, &[Controllers::Local], "controller-leader-election-capstan-local"),
            (Controllers::Operator, &[Controllers::Operator], "controller-leader-election-capstan-operator"),
            (Controllers::All, &[Controllers::Core, Controllers::Local], "controller-leader-election-capi"),
        ] {
            let found = chosen(which);
            assert_eq!(found.iter().map(|part| part.name).collect::<Vec<_>>(), parts, "{which:?}");
            assert_eq!(found[0].lease, lease, "{which:?}");
        }
    }
}
