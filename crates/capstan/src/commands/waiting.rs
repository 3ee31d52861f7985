//! Waiting until providers run, with the same output in all commands.

use std::time::Duration;

use capstan_lifecycle::{
    install::{
        InstallPlan,
        wait::{self, AwaitedDeployment, WaitError},
    },
    release::Prepared,
};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError, error,
    retry::{Backoff, Wait},
};

use crate::{
    error::CommandError,
    hints::Hint,
    operator::{
        COMPONENT, OperatorState,
        judge::{self, Look},
    },
    printer::Printer,
    progress::Progress,
};

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));

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

/// Waits for the operator's Deployment.
pub(super) async fn for_operator(
    cluster: &ManagementCluster,
    operator: (&str, &str),
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    printer.step("waiting until the provider operator runs");
    let progress = Progress::new(printer);
    let awaited = vec![AwaitedDeployment::new(COMPONENT, operator.0, operator.1)];
    let result = wait::wait_for(cluster, awaited, limit, &|late| tell(late, &progress)).await;
    progress.end();
    match result {
        Ok(()) => {
            printer.done("the provider operator runs");
            Ok(())
        }
        Err(WaitError::NotAvailable { late, limit }) => {
            let message = format!("the provider operator does not run after {} s", limit.as_secs());
            let mut failed = CommandError::plain(message)
                .hint("it starts as soon as these problems are solved; provider objects wait for it");
            failed.causes = late.iter().map(ToString::to_string).collect();
            Err(failed)
        }
        Err(WaitError::Server(error)) => Err(error.into()),
        Err(WaitError::Kind(error)) => Err(error.into()),
    }
}

/// Waits until provider objects are ready.
pub(super) async fn for_objects(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    awaited: &[ObjectRef],
    limit: Duration,
    printer: Printer,
) -> Result<(), CommandError> {
    let progress = begin(printer);
    let mut wait = Wait::new(BACKOFF, limit);
    let result = loop {
        match look(cluster, state, awaited).await {
            Ok(late) if late.is_empty() => break Ok(()),
            Ok(late) if wait.is_over() || late.iter().any(|it| matches!(it.1, Look::Stuck(_))) => {
                break Err(not_ready(late, wait.elapsed()));
            }
            Ok(late) => {
                if let Some((object, Look::Waiting(reason))) = late.first() {
                    progress.waiting(&format!("{} not ready yet; {object}: {reason}", late.len()));
                }
            }
            Err(error) if error::is_transient(&error.source) && !wait.is_over() => {
                progress.waiting(&error.to_string());
            }
            Err(error) => break Err(error.into()),
        }
        wait.pause().await;
    };
    progress.end();
    result.map(|()| printer.done("all providers run"))
}

/// The objects that are not ready.
async fn look(
    cluster: &ManagementCluster,
    state: &mut OperatorState,
    awaited: &[ObjectRef],
) -> Result<Vec<(ObjectRef, Look)>, ServerError> {
    state.refresh(cluster).await?;
    let looks = awaited.iter().map(|id| {
        let object = state.providers.iter().find(|it| it.id() == *id);
        (id.clone(), object.map_or_else(|| Look::Stuck("it was deleted".to_owned()), judge::ready))
    });
    Ok(looks.filter(|it| it.1 != Look::Done).collect())
}

fn not_ready(late: Vec<(ObjectRef, Look)>, after: Duration) -> CommandError {
    let count =
        if late.len() == 1 { "1 provider is".to_owned() } else { format!("{} providers are", late.len()) };
    let hint =
        "the operator goes on by itself as soon as these problems are solved; kubectl describe shows more";
    let mut error = CommandError::plain(format!("{count} not ready after {} s", after.as_secs())).hint(hint);
    error.causes = late
        .into_iter()
        .map(|(object, look)| match look {
            Look::Waiting(reason) | Look::Stuck(reason) => format!("{object}: {reason}"),
            Look::Done => object.to_string(),
        })
        .collect();
    error
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
