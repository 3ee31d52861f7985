//! A plan, stage by stage.

use std::time::Duration;

use futures::TryStreamExt;
use serde_json::Value;

use super::{DeleteError, DeletePlan, Removal, Stage, search::Scope, usage};
use capstan_management::{
    ManagementCluster, ObjectRef, ServerError, at_once,
    crd::Crd,
    error,
    retry::{Backoff, Wait, retry},
    sweep::Component,
};

/// How long to retry transient failures.
const RETRY_LIMIT: Duration = Duration::from_mins(1);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
/// How long a CRD may take to go: the server deletes the objects of its kind first.
const GONE_LIMIT: Duration = Duration::from_mins(1);
const GONE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

/// The progress of a deletion.
#[derive(Clone, Debug)]
pub enum DeleteEvent<'a> {
    /// A stage begins.
    Stage {
        /// The stage in which it is deleted.
        stage: Stage,
        /// How many objects go in it.
        count: usize,
    },
    /// An object is deleted.
    Deleted(&'a ObjectRef),
    /// An object could not be deleted yet, and is tried again.
    Retrying {
        /// The object.
        object: &'a ObjectRef,
        /// The reason.
        reason: String,
    },
}

/// Receives the progress of a deletion.
pub type DeleteReporter<'a> = &'a (dyn Fn(DeleteEvent<'_>) + Sync);

pub(crate) async fn execute(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    report: DeleteReporter<'_>,
) -> Result<(), DeleteError> {
    let removals: Vec<&Removal> =
        plan.targets.iter().flat_map(|it| &it.removals).filter(|it| !it.goes_with_namespace).collect();
    for stage in Stage::ALL {
        let members: Vec<&Component> =
            removals.iter().filter(|it| it.stage == stage).map(|it| &it.component).collect();
        if members.is_empty() {
            continue;
        }
        if stage == Stage::Crds {
            // They take their objects with them, and the plan is some seconds old.
            let kinds = cluster.kinds().await?;
            let scope = Scope::new(&plan.selection, plan.targets.iter().flat_map(|it| &it.entries));
            let usages = usage::of_crds(cluster, &kinds, &scope, &members).await?;
            if !usages.is_empty() {
                return Err(DeleteError::MadeMeanwhile { usages });
            }
        }
        report(DeleteEvent::Stage { stage, count: members.len() });
        let requests = members.iter().map(|component| delete_one(cluster, component, report));
        at_once(requests).try_collect::<()>().await?;
        if stage == Stage::Crds {
            // All are on their way out before any is waited for.
            let waits = members.iter().map(|component| gone(cluster, component));
            at_once(waits).try_collect::<()>().await?;
        }
    }
    Ok(())
}

async fn delete_one(
    cluster: &ManagementCluster,
    component: &Component,
    report: DeleteReporter<'_>,
) -> Result<(), DeleteError> {
    let id = &component.id;
    let request = || async {
        let deleted = component.delete(cluster).await;
        deleted.map_err(|error| cluster.failed(format!("delete {id}"), error))
    };
    let is_transient =
        |error: &ServerError, elapsed| error::is_transient(&error.source) && elapsed < RETRY_LIMIT;
    let retrying = |error: &ServerError| {
        report(DeleteEvent::Retrying { object: id, reason: error.to_string() });
    };
    retry(BACKOFF, request, is_transient, retrying).await?;
    report(DeleteEvent::Deleted(id));
    Ok(())
}

/// Waits until a CRD is gone, and its kind with it.
async fn gone(cluster: &ManagementCluster, component: &Component) -> Result<(), DeleteError> {
    let Component { kind, id, .. } = component;
    let api = cluster.objects(kind, None);
    let mut wait = Wait::new(GONE_BACKOFF, GONE_LIMIT);
    loop {
        let found = api.get_opt(&id.name).await;
        let crd = match found {
            Ok(None) => return Ok(()),
            Ok(Some(crd)) => Some(crd),
            Err(error) if error::is_transient(&error) => None,
            Err(error) => return Err(cluster.failed(format!("look at {id}"), error).into()),
        };
        if wait.is_over() {
            let reason = crd.map_or_else(String::new, |it| why_terminating(&it.data));
            let seconds = GONE_LIMIT.as_secs();
            return Err(DeleteError::NotGone { object: Box::new(id.clone()), seconds, reason });
        }
        wait.pause().await;
    }
}

/// What a CRD says about its own end.
fn why_terminating(crd: &Value) -> String {
    let message = Crd::new(crd).condition("Terminating").map(|it| it.message).filter(|it| !it.is_empty());
    message.unwrap_or("the server does not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_says_what_holds_it() {
        let crd = |conditions: Value| json!({"status": {"conditions": conditions}});
        let held =
            json!([{"type": "Established", "message": "no"}, {"type": "Terminating", "message": "2 left"}]);
        assert_eq!(why_terminating(&crd(held)), "2 left");
        assert_eq!(why_terminating(&crd(json!([]))), "the server does not say why");
    }
}
