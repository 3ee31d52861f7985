//! What the server says to an installation before anything is stored.

use std::collections::HashMap;

use capstan_api::names::CERT_MANAGER;
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError,
    dry_run::{self, Detail, Outcome},
};
use serde_json::Value;

use super::{InstallPlan, InstallProblem};
use crate::diff::{self, Intent, Preview};

/// Has the server try every object of a plan, and adds what it would refuse to the plan's problems.
pub(super) async fn run(cluster: &ManagementCluster, plan: &mut InstallPlan) -> Result<(), ServerError> {
    let objects: Vec<Value> = parts(plan).iter().flat_map(|it| it.1).cloned().collect();
    let trials = dry_run::try_all(cluster, &objects, Detail::Brief).await?;
    let providers: HashMap<ObjectRef, String> = parts(plan)
        .into_iter()
        .flat_map(|(part, objects)| objects.iter().map(move |it| (ObjectRef::of(it), part.clone())))
        .collect();
    let known: Vec<&ObjectRef> = plan.problems.iter().filter_map(InstallProblem::unknown_kind).collect();
    let refused = trials.into_iter().filter_map(|it| match it.outcome {
        Outcome::Refused(refusal) if !known.contains(&&refusal.object) => {
            let provider = providers.get(&refusal.object).cloned().unwrap_or_default();
            Some(InstallProblem::Refused { provider, refusal })
        }
        Outcome::Refused(_) | Outcome::Stored(_) | Outcome::Unknown => None,
    });
    let refused: Vec<_> = refused.collect();
    plan.problems.extend(refused);
    Ok(())
}

/// Compares what would be stored with what is there.
pub(super) async fn preview(cluster: &ManagementCluster, plan: &InstallPlan) -> Result<Preview, ServerError> {
    let parts = parts(plan);
    let intents: Vec<_> = parts
        .iter()
        .map(|(provider, wanted)| Intent { provider, wanted: wanted.iter().collect(), removed: &[] })
        .collect();
    diff::preview(cluster, &intents).await
}

/// The objects to apply, by the provider that they belong to.
fn parts(plan: &InstallPlan) -> Vec<(String, &[Value])> {
    let cert_manager = (CERT_MANAGER.to_owned(), plan.cert_manager.objects());
    let providers = plan.queue.iter().map(|it| (it.provider.label(), it.components.objects()));
    [cert_manager].into_iter().filter(|it| !it.1.is_empty()).chain(providers).collect()
}
