//! Waiting until providers run, with the same output in all commands.

use std::time::Duration;

use capstan_lifecycle::{
    install::{
        InstallPlan,
        wait::{self, AwaitedDeployment, WaitError},
    },
    release::Prepared,
};
use capstan_management::ManagementCluster;

use crate::{error::CommandError, hints::Hint, printer::Printer, progress::Progress};

/// Waits for the providers of an installation.
pub(super) async fn for_plan(
    cluster: &ManagementCluster,
    plan: &InstallPlan,
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    let progress = begin(printer);
    let result = wait::wait(cluster, plan, limit, &|late| tell(late, &progress)).await;
    end(result, &progress, printer)
}

/// Waits for the providers of some releases.
pub(super) async fn for_releases(
    cluster: &ManagementCluster,
    releases: impl IntoIterator<Item = &Prepared>,
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    let progress = begin(printer);
    let result = wait::wait_for_releases(cluster, releases, limit, &|late| tell(late, &progress)).await;
    end(result, &progress, printer)
}

fn begin(printer: Printer) -> Progress {
    printer.step("waiting until the providers run");
    Progress::new(printer)
}

fn tell(late: &[AwaitedDeployment], progress: &Progress) {
    if let Some(first) = late.first() {
        progress.waiting(&format!("{} not there yet; {first}", late.len()));
    }
}

fn end(result: Result<(), WaitError>, progress: &Progress, printer: Printer) -> Result<(), CommandError> {
    progress.end();
    match result {
        Ok(()) => printer.done("all providers run"),
        Err(WaitError::Server(error)) => return Err(error.into()),
        Err(WaitError::Kind(error)) => {
            let failed = CommandError::plain(format!("{error}; everything is installed"));
            return Err(failed.hint_if(error.hint()));
        }
        Err(error) => {
            let mut failed = CommandError::plain(format!("{error}; everything is installed")).hint(
                "the providers start as soon as these problems are solved; --wait-provider-timeout waits longer",
            );
            if let WaitError::NotAvailable { late, .. } = &error {
                failed.causes = late.iter().map(ToString::to_string).collect();
            }
            return Err(failed);
        }
    }
    Ok(())
}
