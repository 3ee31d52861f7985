//! An installation that is only tried: the server says what it would store, and stores nothing.

use std::collections::HashMap;

use capstan_api::names::CERT_MANAGER;
use serde_json::Value;

use super::{InstallPlan, InstallProblem};
use crate::diff::{self, Handling, Intent, Preview};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    dry_run::{self, Detail, Outcome, Refusal},
};

/// Has the server look at every object of a plan, and adds what it would not accept to the plan's problems.
pub async fn try_out(cluster: &ManagementCluster, plan: &mut InstallPlan) -> Result<(), ServerError> {
    let objects: Vec<Value> = parts(plan).iter().flat_map(|it| it.1).cloned().collect();
    let trials = dry_run::try_all(cluster, &objects, Detail::Brief).await?;
    let refusals = trials.into_iter().filter_map(|it| match it.outcome {
        Outcome::Refused(refusal) => Some(refusal),
        Outcome::Stored(_) | Outcome::Unknown => None,
    });
    add(plan, refusals.collect());
    Ok(())
}

/// The same, and compares what would be stored with what is there.
pub async fn preview(cluster: &ManagementCluster, plan: &mut InstallPlan) -> Result<Preview, ServerError> {
    let parts = parts(plan);
    let intents: Vec<_> = parts
        .iter()
        .map(|(provider, wanted)| Intent { provider, wanted, removed: &[], handling: Handling::Applied })
        .collect();
    let preview = diff::preview(cluster, &intents).await?;
    drop(intents);
    add(plan, preview.refusals.clone());
    Ok(preview)
}

/// The objects to apply, by whom they are for.
fn parts(plan: &InstallPlan) -> Vec<(String, &[Value])> {
    let cert_manager = (CERT_MANAGER.to_owned(), plan.cert_manager.objects());
    let providers = plan.queue.iter().map(|it| (it.provider.label(), it.components.objects()));
    [cert_manager].into_iter().filter(|it| !it.1.is_empty()).chain(providers).collect()
}

fn add(plan: &mut InstallPlan, refusals: Vec<Refusal>) {
    let known: Vec<&ObjectRef> = plan.problems.iter().filter_map(unknown_kind).collect();
    let owners: HashMap<ObjectRef, String> = parts(plan)
        .into_iter()
        .flat_map(|(part, objects)| objects.iter().map(move |it| (ObjectRef::of(it), part.clone())))
        .collect();
    let refusals = refusals.into_iter().filter(|it| !known.contains(&&it.object));
    let problems: Vec<_> = refusals
        .map(|refusal| {
            let provider = owners.get(&refusal.object).cloned().unwrap_or_default();
            InstallProblem::Refused { provider, refusal }
        })
        .collect();
    plan.problems.extend(problems);
}

/// The object of a problem that a trial would find again.
fn unknown_kind(problem: &InstallProblem) -> Option<&ObjectRef> {
    match problem {
        InstallProblem::UnknownKind { object, .. } => Some(object),
        _ => None,
    }
}
