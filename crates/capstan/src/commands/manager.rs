//! `capstan manager`.

use capstan_runtime::{
    manager::Manager,
    shell::{host_name, stop_on_signal},
};
use tracing::warn;

use crate::{cli::ManagerArgs, error::CommandError, logging};

pub(crate) async fn run(args: ManagerArgs) -> Result<(), CommandError> {
    logging::to_stderr(args.verbosity, args.logging_format);
    if let Some(gates) = args.feature_gates.as_deref().filter(|gates| !gates.is_empty()) {
        warn!(gates, "--feature-gates has no effect: there are no feature gates here");
    }
    let stop = stop_on_signal().map_err(|error| CommandError::new("cannot listen for signals", error))?;
    // Where the core provider is part of the process, its Lease keeps upstream's core manager out.
    let lease = if args.which.core() { capstan_cluster::LEASE } else { capstan_provider_local::LEASE };
    let wrap = |error| CommandError::new("the manager cannot run", error);
    let mut manager = Manager::connect(args.options, lease, &host_name(), stop).await.map_err(wrap)?;
    let core = args.which.core();
    let service =
        if core { capstan_cluster::WEBHOOK_SERVICE } else { capstan_provider_local::WEBHOOK_SERVICE };
    let namespace = manager.client().default_namespace().to_owned();
    if let Some(identity) = manager.options().webhook_identity(service, &namespace) {
        manager.keep_webhook_certificates(identity);
    }
    if args.which.core() {
        let connections = capstan_cluster::ConnectionOptions {
            concurrency: args.clustercache_concurrency,
            client_qps: args.clustercache_client_qps,
            client_burst: args.clustercache_client_burst,
            grace_period: args.remote_connection_grace_period,
            ..capstan_cluster::ConnectionOptions::default()
        };
        let options = capstan_cluster::Options { concurrency: args.cluster_concurrency, connections };
        capstan_cluster::register(&mut manager, options);
    }
    if args.which.local() {
        let options = capstan_provider_local::Options { concurrency: args.localcluster_concurrency };
        let registered = capstan_provider_local::register(&mut manager, options);
        registered.map_err(|error| CommandError::new("the local provider cannot run", error))?;
    }
    manager.run().await.map_err(wrap)
}
