//! A plan, stage by stage.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{DeleteError, DeletePlan, Removal, Stage, search::Scope, usage};
use capstan_management::{ManagementCluster, ObjectRef, error, sweep::Component};

/// How many requests are under way at a time.
const AT_ONCE: usize = 16;
/// For how long a request is repeated that fails for a reason that passes.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a kind may take to go: the server deletes its objects first.
const GONE_LIMIT: Duration = Duration::from_mins(1);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(3);

/// What is told on the way.
#[derive(Clone, Debug)]
pub enum DeleteEvent<'a> {
    /// A stage begins.
    Stage {
        /// Which.
        stage: Stage,
        /// How many objects go in it.
        count: usize,
    },
    /// An object is deleted.
    Deleted(&'a ObjectRef),
    /// An object could not be deleted yet, and is tried again.
    Retrying {
        /// Which.
        object: &'a ObjectRef,
        /// Why.
        reason: String,
    },
}

/// Who is told.
pub type DeleteReporter<'a> = &'a (dyn Fn(DeleteEvent<'_>) + Sync);

pub(crate) async fn execute(
    cluster: &ManagementCluster,
    plan: &DeletePlan,
    tell: DeleteReporter<'_>,
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
            let usages = usage::of_crds(cluster, kinds, &scope, &members).await?;
            if !usages.is_empty() {
                return Err(DeleteError::MadeMeanwhile { usages });
            }
        }
        tell(DeleteEvent::Stage { stage, count: members.len() });
        let requests = members.iter().map(|component| delete_one(cluster, component, tell));
        stream::iter(requests).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        if stage == Stage::Crds {
            // All are on their way out before any is waited for.
            let waits = members.iter().map(|component| gone(cluster, component));
            stream::iter(waits).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        }
    }
    Ok(())
}

async fn delete_one(
    cluster: &ManagementCluster,
    component: &Component,
    tell: DeleteReporter<'_>,
) -> Result<(), DeleteError> {
    let id = &component.id;
    let start = Instant::now();
    let mut delay = FIRST_DELAY;
    while let Err(error) = component.delete(cluster).await {
        let is_transient = error::is_transient(&error) && start.elapsed() < PATIENCE;
        let error = cluster.failed(format!("delete {id}"), error);
        if !is_transient {
            return Err(error.into());
        }
        tell(DeleteEvent::Retrying { object: id, reason: error.to_string() });
        sleep(delay).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
    tell(DeleteEvent::Deleted(id));
    Ok(())
}

/// Waits until a CRD is gone, and its kind with it.
async fn gone(cluster: &ManagementCluster, component: &Component) -> Result<(), DeleteError> {
    let Component { kind, id, .. } = component;
    let api = cluster.objects(kind, None);
    let start = Instant::now();
    let mut delay = Duration::from_millis(20);
    loop {
        let found = api.get_opt(&id.name).await;
        let crd = match found {
            Ok(None) => return Ok(()),
            Ok(Some(crd)) => Some(crd),
            Err(error) if error::is_transient(&error) => None,
            Err(error) => return Err(cluster.failed(format!("look at {id}"), error).into()),
        };
        if start.elapsed() > GONE_LIMIT {
            let reason = crd.map_or_else(String::new, |it| why_terminating(&it.data));
            let seconds = GONE_LIMIT.as_secs();
            return Err(DeleteError::NotGone { object: Box::new(id.clone()), seconds, reason });
        }
        sleep(delay).await;
        delay = (delay * 2).min(Duration::from_millis(500));
    }
}

/// What a CRD says about its own end.
fn why_terminating(crd: &Value) -> String {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    let condition = conditions.into_iter().flatten().find(|it| it["type"] == "Terminating");
    let message = condition.and_then(|it| it["message"].as_str()).filter(|it| !it.is_empty());
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
